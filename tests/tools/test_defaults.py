# SPDX-License-Identifier: GPL-2.0-only
"""[defaults] of maps.conf: what it gives, a mistake in it, and lines that are saved below it."""
from kit import *

PATHS = "path=10.0.0.1 path=10.0.0.2"
LINE = f"v1 vol/1 s1 {PATHS}\n"
SHOWN = "v1 vol/1 s1 path=ip:10.0.0.1 path=ip:10.0.0.2"


@test
def defaults_of_each_kind(w):
    """A number, a word and names, each whole."""
    name, group = "k" * 63, "g" * 64
    w.conf(f"[defaults] hold=5 group={group} policy=rr auth={name} nofail\n{LINE}")
    eq(w.run("maps", "show").out,
       f"{SHOWN} hold=5 group={group} policy=round-robin auth={name} nofail\n")


# What was meant as [defaults] ro, and is not.
MISTAKEN = ("[defaults] ro \u200b", "[Defaults] ro", "[defaults]ro", "[ defaults ] ro",
            "[defaults] hold=5\n[defaults] ro", "[defaults] ro=1", "[defaults] ro hold=3O",
            "[defaults] ro ro", "[defaults] ro rw", '[defaults] ro "hold=5', "[defaults ro",
            "defaults] ro", "{defaults} ro", "defaults ro", "defaults ro nofail", "DEFAULTS: ro",
            "\u2060[defaults] ro", "\u200b[defaults] ro", "[def\u200baults] ro", "[default] ro",
            "[defaults] ro path=10.0.0.1", "[defaults] ro \0", "[defaults] ro " + "x" * 4096,
            "# x\r[defaults] ro", "# x\u2028[defaults] ro", "v2 vol/2 s1 \\\n[defaults] ro",
            "[defaults] \\\nv2 vol/2 s1 ro", "[vol2] ro")


@test
def a_mistake_in_defaults_leaves_out_its_lines(w):
    """They would be mapped without what it says: here, to write. Other files count."""
    w.conf(f"v8 vol/8 s8 {PATHS}\n", "maps.conf.d/10-other.conf")
    for text in MISTAKEN:
        for whole in (f"{text}\n{LINE}v9 vol/9 s1\n", f"{LINE}v9 vol/9 s1\n{text}\n"):
            w.conf(whole)
            r = w.run("maps", "show", want=None)
            eq([line.split()[0] for line in r.out.splitlines()], ["v8"], repr(whole))
            line = whole.count("\n", 0, whole.rindex(text)) + 1 + ("\n[" in text)
            has(w.run("maps", "check", want=2).err,
                f"v1 is left out: line {line} would give options to it, and has a mistake",
                f"v9 is left out: line {line} would", "fix that line, then: ibnbd maps check")


@test
def other_lines_leave_defaults_alone(w):
    """Lines that are no header cost themselves only; a mapping may have that name."""
    for text in ("# [defaults] ro", "v2 vol/2 s1 polcy=rr", 'v2 "[defaults]" s1',
                 "defaults vol/2 s1", "default vol/2 s1 polcy=rr", "v2", "# x\ry"):
        w.conf(f"{text}\n{LINE}[defaults] hold=5\n")
        has(w.run("maps", "show").out, f"{SHOWN} hold=5\n")


@test
def defaults_behind_too_many_lines_count(w):
    """The 4097th line is one too many; [defaults] behind it is read all the same."""
    lines = "".join(f"v{i} vol/{i} s{i}\n" for i in range(4097))
    w.conf(LINE.replace("v1 vol/1", "a b") + lines + "[defaults] ro\n")
    r = w.run("maps", "show", "a", want=None)
    has(r.out, "access_mode=ro")
    eq(w.run("maps", "check", want=2).err.count("more than 4096 mappings"), 1)


@test
def nothing_is_split_below_a_mistake_in_defaults(w):
    """What its lines would mean is not known."""
    f = w.conf("[Defaults] ro\n" + LINE, "maps.conf.d/50-saved.conf")
    has(w.run("maps", "tidy", want=2).err, f"maps.conf is not changed: {f}:1: ")
    has(w.run("map", "vol/1", "s1", "10.0.0.9", "--name", "v1", "--save-only", want=2).err,
        f"{f}:2 has the line of v1")
    eq(f.read_text(), "[Defaults] ro\n" + LINE)


@test
def saved_is_what_was_mapped(w):
    """Whatever [defaults] the old line had: old or new, by map --save and maps save."""
    w.client()
    keys = ("access_mode", "hold", "policy", "dest_port", "io_timeout", "nofail")
    for conf in ("", "[defaults] ro\n", "[defaults] ro hold=5 policy=rr port=9 nofail\n"):
        for old in ("", "v1 vol/1 s1 path=10.0.0.1\n", "v1 vol/1 s1 path=10.0.0.1 rw\n",
                    "v1 vol/1 s1 path=10.0.0.1 ro hold=3 io-timeout=9 port=7\n"):
            for mode in ("rw", "ro"):
                for how in ("--save", "--save-only", "maps save"):
                    f = w.conf(conf + old, "maps.conf.d/50-saved.conf")
                    w.run("map", "vol/1", "s1", "10.0.0.1", *(["ro"] if mode == "ro" else []),
                          "--name", "v1", *([how] if how[0] == "-" else []))
                    if how[0] != "-":
                        w.run(*how.split(), "v1")
                    eq([w.json("maps", "show", "v1")["maps"][0][key] for key in keys],
                       [mode, 100, "min-inflight", 1234, 0, bool(old) and "nofail" in conf],
                       (conf, old, how))
                    if how != "--save-only":
                        w.run("unmap", "v1")
                    for p in f.parent.glob("v1.conf"):
                        p.unlink()
