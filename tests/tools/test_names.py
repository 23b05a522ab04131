# SPDX-License-Identifier: GPL-2.0-only
"""Names that nobody would choose:
in the links of udev, in every output, and back as words of a command."""
import csv, io, random, re
from kit import *

UMLAUT = "d\u00e4t\u00e4"
C1, RLO, ZWSP = "\u009b31m", "\u202e", "\u200b"
ODD = [UMLAUT, "d\u00f6t\u00f6", f"a{C1}", f"x{RLO}gpj", f"a{ZWSP}b", "=cmd|x", "@sum", "+1", "-",
       "\u78c1\u76d8", "a\\xe4", "a\\b", 'q"$`', "dev-disk-by\\x2duuid", "vol/1", "vol:1",
       *(f"{c}1" for c in "\uff1d\uff0b\uff0d\uff20"), "\u0301x"]
RAW = [b"a\xe4b", b"\xff\xfe", b"\xc3\xa4\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]


def mapped(w, names):
    """One disk for each name; bytes that Python has no text for are put there afterwards."""
    w.client()
    for i, name in enumerate(names):
        w.run("map", f"--device-path={name if isinstance(name, str) else f'raw{i}'}",
              "--session=s1", "--path=10.0.0.2")
        if isinstance(name, bytes):
            (w.sys / f"block/ibnbd{i}/ibnbd/mapping_path").write_bytes(name + b"\n")


def hex_undone(text):
    """As ibnbd(8) tells scripts to."""
    data = text.encode()
    undo = lambda m: (bytes([b]) if (b := int(m[1], 16)) <= 32 or b >= 127 or b in b"\"$\\`"
                      or not m.start() and b in b"=+-@" else m[0])
    return re.sub(rb"\\x([0-9a-f]{2})", undo, data)


def shown(w, *args, **how):
    r = w.run(*args, **how)
    for c in r.out + r.err:
        if c != "\n" and (ord(c) < 32 or 0x7f <= ord(c) < 0xa0 or c in (RLO, ZWSP, "\ufffd")):
            raise Failed(f"{c!r} came out: {r}")
    return r.out


def every_form(w):
    """What each output for scripts calls the devices, in order."""
    raw = shown(w, "list", "-r", "-H", "-o", "device_path").splitlines()
    pairs = [re.fullmatch(r'DEVICE="([^"]*)"', l)[1]
             for l in shown(w, "list", "-P", "-o", "device_path").splitlines()]
    rows = [r[0] for r in csv.reader(
        io.StringIO(shown(w, "list", "--csv", "-H", "-o", "device_path")))]
    return {"raw": raw, "pairs": pairs, "csv": rows,
            "json": [d["device_path"] for d in w.json("list")["devices"]]}


@test
def a_table_shows_what_can_be_shown(w):
    mapped(w, [UMLAUT, "\u78c1\u76d8", "vol/1", f"x{RLO}", b"\xe4"])
    table = shown(w, "list", "-o", "kname,device_path,size").splitlines()
    has(table[1], UMLAUT)
    has("\n".join(table), "\u78c1\u76d8", "x\\xe2\\x80\\xae", "\\xe4")
    # a mark alone would go onto what stands before it
    w.run("map", "\u0301x", "s1")
    has(shown(w, "list", "-H", "-o", "device_path"), "\\xcc\\x81x")
    w.run("unmap", "\u0301x")
    # a wide character takes two columns
    eq([len(l) + (len(l) - len(l.encode("ascii", "ignore"))) * ("\u78c1" in l) for l in table],
       [len(table[0])] * 6, "\n".join(table))
    has(shown(w, "list", "-o", "device_path", env={"LC_ALL": "C"}), "d\\xc3\\xa4t\\xc3\\xa4")
    has(shown(w, "list", "-o", "device_path", env={"LC_ALL": "de_DE.UTF-8"}), "vol/1")
    for verb in (("list", "-t"), ("show", UMLAUT), ("dump",), ("stat",), ("doctor",)):
        shown(w, *verb, want=None)


@test
def what_scripts_read_is_the_name(w):
    names = ODD + RAW
    mapped(w, names)
    want = [n if isinstance(n, bytes) else n.encode() for n in names]
    for form, got in every_form(w).items():
        eq([hex_undone(g) for g in got], want, form)
    eq(every_form(w)["raw"][0], UMLAUT)
    for cell in every_form(w)["csv"]:
        if cell[0] in "=+-@\t\r\uff1d\uff0b\uff0d\uff20":
            raise Failed(f"a formula: {cell}")
    utf8 = every_form(w)
    w.env["LC_ALL"] = "C"
    eq(every_form(w), utf8, "the locale does not count")


@test
def what_was_printed_can_be_given_back(w):
    names = ODD + RAW
    for form in ("raw", "pairs", "csv", "json"):
        one = World()
        one.env.update(w.env, IBNBD_SYSFS=str(one.sys), IBNBD_ROOT=str(one.root))
        try:
            mapped(one, names)
            for i, word in enumerate(every_form(one)[form]):
                # (the disks that are left have kept their numbers)
                eq(json.loads(one.run("list", "--json", "--", word).out)["devices"][0]["kname"],
                   f"ibnbd{i}", f"{form}: {word}")
                has(shown(one, "show", "--", word), f"device ibnbd{i}\n")
                eq(one.run("list", "-H", "-o", "kname", "-f", f"device={word}").out,
                   f"ibnbd{i}\n", word)
                one.run("unmap", "--", word)
            eq(one.json("list")["devices"], [])
        finally:
            one.close()


@test
def a_word_with_two_meanings_is_a_question(w):
    mapped(w, ["a\\xe4", b"a\xe4"])
    r = w.run("unmap", "a\\xe4", want=3)
    has(r.err, "/dev/ibnbd0", "/dev/ibnbd1")
    w.run("unmap", "a\\x5cxe4")
    w.run("unmap", "a\\xe4")
    eq(w.json("list")["devices"], [])


@test
def what_is_taken_away_has_one_meaning(w):
    """Of an export and of a session too: the word is both of them, or one in another order."""
    raw, both = os.fsdecode(b"a\xe4"), ("a\\xe4", os.fsdecode(b"a\xe4"))
    exports, srv, clt = (w.sys / "class" / d for d in (
        "ibnbd-server/ctl/devices", "ibtrs-server", "ibtrs-client"))
    w.server()
    w.client()
    for i, name in enumerate(both):
        for at in (exports / name / "sessions/clt1", exports / "sdb/sessions" / name):
            shutil.copytree(exports / "sdb/sessions/clt1", at)
        shutil.copytree(srv / "clt1", srv / name)
        w.run("map", f"d{i}", f"t{i}", "10.0.0.2")
        (clt / f"t{i}").rename(clt / name)
        (w.sys / f"block/ibnbd{i}/ibnbd/session").write_bytes(os.fsencode(name) + b"\n")
    (w.sys / "log").unlink()
    word = both[0]
    for args in (("server", "close", word, "--all", "--force"), ("server", "disconnect", word),
                 ("server", "close", "sdb", word, "--force"), ("session", "reconnect", word),
                 ("path", "add", word, "10.0.0.3"),
                 ("remap", "--force", "--session", word)):
        has(w.run(*args, want=3).err, "as it is, another one as an escape")
    eq(w.log(), [])
    for word, gone in (("a\\x5cxe4", both[0]), (raw, raw)):
        w.run("server", "close", word, "clt1", "--force")
        w.run("server", "close", "sdb", word, "--force")
        w.run("server", "disconnect", word)
        eq([(d / gone / x).exists() for d, x in ((exports, "sessions/clt1"), (srv, "paths/ip:10.0."
            "0.1@ip:10.0.0.2"), (exports / "sdb/sessions", ""))], [False] * 3, word)


@test
def the_session_of_remap_may_be_an_escape(w):
    w.client()
    w.run("map", "d", UMLAUT, "10.0.0.2")
    (w.sys / "block/ibnbd0/ibnbd/state").write_text("failed\n")
    w.run("remap", "--session", "d\\xc3\\xa4t\\xc3\\xa4")
    has(w.log()[-1], "ibnbd0/ibnbd/remap_device")
    w.run("remap", "--session", "d\\xc3\\xa4t", want=3)


@test
def sessions_and_messages(w):
    w.client()
    w.run("map", "d", UMLAUT, "10.0.0.2")
    for word in (UMLAUT, "d\\xc3\\xa4t\\xc3\\xa4"):
        has(shown(w, "session", "list", word), UMLAUT)
        has(shown(w, "path", "list", word), "10.0.0.2")
        has(shown(w, "stat", word), UMLAUT)
        shown(w, "session", "reconnect", word)
    has(w.run("unmap", "x\033[31m\n<3>y", want=3).err, "x\\x1b[31m\\x0a<3>y: no such device")
    r = w.run("map", f"dev{C1}", "s2", "10.0.0.2", "--dry-run")
    has(r.out, "$'", "dev\\302\\23331m")
    eq(subprocess.run(["bash", "-c", f"echo {r.out.split('echo ')[1].split(' > ')[0]}"],
                      capture_output=True, text=True).stdout,
       f"sessname=s2 path=ip:10.0.0.2 device_path=dev{C1}\n")
    (w.sys / "block/ibnbd0/ibnbd/state_detail").write_text("held\n")
    (w.sys / "block/ibnbd0/ibnbd/reason").write_bytes(b"the server says \x9b2J\x1b[0m\n")
    has(shown(w, "doctor", want=2), "the server says \\x9b2J\\x1b[0m")
    has(shown(w, "show", "ibnbd0"), "the server says \\x9b2J\\x1b[0m")


@test
def metrics_are_utf8(w):
    mapped(w, [UMLAUT, b'a\xe4"\\', f"x{RLO}"])
    out = shown(w, "metrics")
    has(out, f'export="{UMLAUT}"', 'export="a\\\\xe4\\"\\\\"', 'export="x\\\\xe2\\\\x80\\\\xae"')


@test
def the_kernels_log_is_read(w):
    """/dev/kmsg escapes whatever is not ASCII: it is shown as the name that it is."""
    w.client()
    w.run("map", UMLAUT, "s1", "10.0.0.2")
    (w.sys / "block/ibnbd0/ibnbd/state_detail").write_text("held\n")
    (w.root / "dev/kmsg").write_text("4,1,1,-;ibnbd_client: ibnbd0: d\\xc3\\xa4t\\xc3\\xa4 "
                                     "\\x1b[31m\\x5c: held\n")
    has(shown(w, "doctor", "-v", want=2),
        f"kernel: ibnbd_client: ibnbd0: {UMLAUT} \\x1b[31m\\: held")


# ---- links ----

def links(w, n, session, device):
    own = w.sys / f"block/ibnbd{n}/ibnbd"
    own.mkdir(parents=True, exist_ok=True)
    (own / "session").write_bytes(session + b"\n")
    (own / "mapping_path").write_bytes(device + b"\n")
    got = dict(l.split("=", 1) for l in w.run(f"ibnbd{n}", program="ibnbd-udev").out.splitlines())
    return f"{got['IBNBD_SESSION']}/{got['IBNBD_DEVICE_LINK']}", got["IBNBD_PATH"]


def link_undone(link):
    return re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), link.encode())


@test
def links_are_one_to_one(w):
    """Through the helper itself; tests/unit/test_tools_escape.c has the many."""
    rnd = random.Random(16)
    pieces = [b"a", b"-", b".", b"..", b"/", b":", b"_", b"\\x2f", b"\xc3\xa4", b"\xc3\xb6",
              b"\xe4", b"-part1", b"!", b"@", b",", b"\xe2\x80\xae"]
    name = lambda: b"".join(rnd.choice(pieces) for _ in range(rnd.randint(1, 5)))
    known = [(b"s", n.encode()) for n in ("vol:1", "vol/1", UMLAUT, "d\u00f6t\u00f6", "a!b", "a/b",
                                          "/a", "a", "//a", "a/", ".", "a-part1")]
    names = sorted(set(known + [(b"a-b", b"c"), (b"a", b"b-c")]
                       + [(name().replace(b"/", b"").replace(b".", b"") or b"s", name())
                          for _ in range(60)]))
    seen = {}
    for session, device in names:
        by_session, by_path = links(w, 0, session, device)
        for link in (by_session, by_path):
            eq(seen.setdefault(link, (session, device)), (session, device), link)
            if re.search(r"[^\w#+.:=@/\\-]", link) or re.search(r"(^|/)\.{0,2}(/|$)", link):
                raise Failed(f"{link} of {device} of {session}")
        eq(link_undone(by_session), session + b"/" + device)
        middle = re.fullmatch(r"ibnbd-([^-]*)-(.*)", by_path)
        eq((link_undone(middle[1]), link_undone(middle[2].replace(":", "/"))),
           (session, device), by_path)


@test
def links_that_stay(w):
    for session, device, by_session, by_path in (
            ("s1", "vda1", "s1/vda1", "ibnbd-s1-vda1"),
            ("store1", "vol/1", "store1/vol/1", "ibnbd-store1-vol:1"),
            ("host@10:0:0:1", "a_b-c.img", "host@10:0:0:1/a_b-c.img",
             "ibnbd-host@10:0:0:1-a_b-c.img")):
        eq(links(w, 1, session.encode(), device.encode()), (by_session, by_path))


@test
def one_disk_has_a_name(w):
    """The line of a disk that was mapped without its name gives it no link of another's."""
    w.client()
    w.conf("v1 vol/1 s1 path=10.0.0.2\n")
    name = lambda n: re.findall("IBNBD_NAME=(.*)", w.run(f"ibnbd{n}", program="ibnbd-udev").out)
    w.run("map", "vol/1", "s1", "10.0.0.2")
    eq(name(0), ["v1"])
    r = w.run("map", "vol/2", "s1", "--name", "v1", want=2)
    has(r.err, "its name v1 is that of vol/1 of session s1",
        "ibnbd maps remove v1")
    eq(len(w.json("list")["devices"]), 1, "after the refusal")
    # a driver that was asked by somebody else, and a line that goes to another disk
    w.conf("")
    w.run("map", "vol/2", "s1", "--name", "v1")
    w.conf("v1 vol/1 s1 path=10.0.0.2\n")
    eq((name(0), name(1)), ([], ["v1"]))
    w.run("map", "vol/2", "s1", "--name", "v1", "--idempotent")
    w.run("unmap", "vol/2")
    eq(name(0), ["v1"])
    w.run("unmap", "vol/1")
    w.run("map", "vol/1", "s1", "10.0.0.2", "--name", "v1")


@test
def a_name_that_looks_like_a_partition(w):
    w.client()
    w.run("map", "d", "s1", "10.0.0.2", "--name", "vol1-part1")
    has(w.run("ibnbd0", program="ibnbd-udev").out, "IBNBD_NAME=vol1\\x2dpart1\n")
    eq(w.json("list")["devices"][0]["link"], "/dev/ibnbd/by-name/vol1\\x2dpart1")
    w.run("unmap", "vol1-part1")


@test
def maps_show_hides_nothing(w):
    """What nobody sees is escaped, in quotes: it is not read back as something else. Others stay,
    whatever the locale."""
    w.client()
    f = w.conf(f'v1 vol/1 s1 path=10.0.0.1 "x-a={ZWSP}" x-b={UMLAUT} "x-c=a\\\\xe4 b"\n'
               f'v2 "d{UMLAUT}{RLO}" s1 x-d=\ufffe\n')
    for locale in ("C", "C.UTF-8"):
        out = shown(w, "maps", "show", env={"LC_ALL": locale})
        has(out, '"x-a=\\xe2\\x80\\x8b"', f" x-b={UMLAUT}",  f'\nv2 "d{UMLAUT}\\xe2\\x80\\xae" s1',
            '"x-d=\\xef\\xbf\\xbe"\n', '"x-c=a\\\\xe4 b"')
    w.conf(shown(w, "maps", "show"))
    has(w.run("maps", "check", want=2).out, "0 mappings, 9 errors")
    f.unlink()
    has(shown(w, "map", f"d{RLO}", "s1", "10.0.0.1", "--name", "v3", "--save-only", "-n"),
        '"d\\xe2\\x80\\xae"')
    w.run("map", f"d{RLO}", "s1", "10.0.0.1", "--name", "v3", "--save-only")
    has(shown(w, "maps", "remove", "-n", "v3"), "without: v3", '"d\\xe2\\x80\\xae"')
