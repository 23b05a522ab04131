# SPDX-License-Identifier: GPL-2.0-only
"""Mappings are saved and forgotten: map --save, maps save, remove and tidy, unmap --forget."""
import fcntl, os, re, subprocess
from kit import *
from test_maps import GOOD


HEAD = ("# Saved by ibnbd, which writes this file anew: options may be changed here, other lines "
        "belong elsewhere.\n")


def file_of(w, name):
    return w.root / f"etc/ibnbd/maps.conf.d/{name}.conf"


def saved(w, name):
    """The line of a saved mapping, which is all there is in its file."""
    text = file_of(w, name).read_text()
    eq((text.startswith(HEAD), text.count("\n")), (True, 2), text)
    return text[len(HEAD):]


def files(w):
    d = w.root / "etc/ibnbd/maps.conf.d"
    return sorted(p.name for p in d.iterdir()) if d.exists() else []


@test
def map_save(w):
    w.client()
    f = w.conf(GOOD)
    args = ("map", "vol/3", "store3", "host.example", "10.0.3.7", "--name", "vol3", "--hold", "-1",
            "--save-only")
    w.run(*args)
    eq(f.read_text(), GOOD)
    eq(saved(w, "vol3"), "vol3 vol/3 store3 path=host.example path=ip:10.0.3.7 hold=-1\n")
    eq(w.log(), [])
    before = file_of(w, "vol3").stat().st_mtime_ns
    w.run(*args)
    eq(file_of(w, "vol3").stat().st_mtime_ns, before, "the same twice")
    w.run("map", "vol/4", "store3", "10.0.3.7", "--name", "50-saved", "--save")
    eq(saved(w, "50-saved~"), "50-saved vol/4 store3 path=ip:10.0.3.7\n")
    w.run("maps", "check")
    w.run("map", "E-EPERM", "s", "10.0.0.1", "--name", "no", "--save", want=6)
    eq(files(w), ["50-saved~.conf", "vol3.conf"], "and no temporary file")
    w.run("unmap", "50-saved", "--forget")
    eq(files(w), ["vol3.conf"])


@test
def a_persons_line_is_named_and_not_edited(w):
    """Whatever would change it: the error names it, and what it would have to be."""
    w.client()
    own = 'vol5 vol/5 store1 nofail policy=min-latency uuid=01020304 x-a=b "x-c=d e" x-f\n'
    f = w.conf(GOOD + own)
    extra = w.conf("# mine\nvol6 vol/6 s6 path=10.0.0.6\n", "maps.conf.d/vol6.conf")
    before = (f.read_text(), extra.read_text())
    r = w.run("map", "vol/1", "store1", "10.0.9.9", "policy=min-latency", "--name", "vol1",
              "--save-only", want=2)
    has(r.err, f"maps.conf is not changed: {f}:2 has the line of vol1",
        "change it there to: vol1 vol/1 store1 path=ip:10.0.9.9 policy=min-latency\n")
    r = w.run("map", "vol/5", "store1", "ro", "policy=min-latency", "--name", "vol5", "--save-only",
              want=2)
    has(r.err, f"{f}:7 has the line of vol5", "access_mode=ro policy=min-latency nofail "
        'uuid=01020304 x-a=b "x-c=d e" x-f\n')
    has(w.run("map", "vol/6", "s6", "10.0.0.6", "ro", "--name", "vol6", "--save-only", want=2).err,
        f"{extra}:2 has the line of vol6")
    for name, where in (("scratch", f"{f}:5"), ("vol6", f"{extra}:2")):
        has(w.run("maps", "remove", name, want=2).err, f"{where} has the line of {name}",
            "delete the line there, then: systemctl daemon-reload")
    w.run("map", "vol1")
    has(w.run("unmap", "vol1", "--forget", want=2).err, f"{f}:2 has the line of vol1")
    eq(w.json("list")["devices"], [])
    # the file is somebody's, though it has no such line
    w.conf("# nothing yet\n", "maps.conf.d/vol7.conf")
    has(w.run("map", "d", "s", "10.0.0.1", "--name", "vol7", "--save-only", want=2).err,
        "vol7.conf is there, and was not written by this command", "mv ")
    eq((f.read_text(), extra.read_text()), before)


@test
def a_persons_line_that_says_it_is_enough(w):
    w.client()
    f = w.conf("vol1 vol/1 store1 path=10.0.1.7 nofail hb_misses=9 x-own # one\n"
               "vol2 vol/2 store1 hb_misses=9\n")
    w.run("map", "vol1")
    w.run("map", "vol2")
    before = f.read_text()
    w.run("maps", "save", "--all")
    w.run("map", "vol/1", "store1", "10.0.1.7", "hb_misses=9", "--name", "vol1", "--save-only")
    eq((f.read_text(), files(w)), (before, []))


@test
def a_saved_line_may_be_changed_by_hand(w):
    """What a command line cannot say stays, and a comment; more than that makes it a person's."""
    w.client()
    w.run("map", "vol/5", "store2", "10.0.0.9", "--name", "vol5", "--save")
    f = file_of(w, "vol5")
    own = 'nofail uuid=01020304 x-a=b "x-c=d e" x-f'
    f.write_text(f.read_text()[:-1] + f" {own} # of db1\n")
    f.chmod(0o640)
    w.run("map", "vol/5", "store2", "10.0.0.8", "ro", "--name", "vol5", "--save-only")
    eq(saved(w, "vol5"), f"vol5 vol/5 store2 path=ip:10.0.0.8 access_mode=ro {own}  # of db1\n")
    eq(f.stat().st_mode & 0o777, 0o640)
    f.write_text(f.read_text() + "# more\n")
    has(w.run("maps", "remove", "vol5", want=2).err, f"{f}:2 has the line of vol5")
    f.write_text(HEAD + "vol5 vol/5 store2 path=nonsense:1 ro\n")
    w.run("map", "vol/5", "store2", "10.0.0.8", "--name", "vol5", "--save-only")
    eq(saved(w, "vol5"), "vol5 vol/5 store2 path=ip:10.0.0.8\n", "a mistake is replaced")


@test
def a_name_is_not_taken_from_another_mapping(w):
    w.client()
    w.run("map", "vol/1", "s1", "10.0.0.1", "--name", "v1", "--save")
    before = saved(w, "v1")
    for words in (("vol/2", "s1"), ("vol/1", "s2", "10.0.0.1")):
        has(w.run("map", *words, "--name", "v1", "--save-only", want=2).err,
            "v1 is the name of vol/1 of session s1", "ibnbd maps remove v1")
    has(w.run("map", "vol/2", "s1", "--name", "v1", "--save", want=2).err,
        "its name v1 is that of vol/1 of session s1")
    eq((saved(w, "v1"), len(w.json("list")["devices"])), (before, 1))
    w.run("maps", "remove", "v1")
    w.run("map", "vol/2", "s1", "--name", "v1", "--save-only")
    has(saved(w, "v1"), "v1 vol/2 s1 path=ip:10.0.0.1,ip:10.0.0.1\n")


@test
def save_through_a_link(w):
    """The file may be kept elsewhere; the link stays, the file behind it has the line."""
    w.run("map", "vol/1", "store1", "10.0.1.7", "--name", "vol1", "--save-only")
    f = file_of(w, "vol1")
    real = w.put("kept/vol1.conf")
    f.rename(real)
    f.symlink_to("../../../../kept/vol1.conf")
    w.run("map", "vol/1", "store1", "10.0.9.9", "--name", "vol1", "--save-only")
    eq((f.is_symlink(), real.read_text()),
       (True, HEAD + "vol1 vol/1 store1 path=ip:10.0.9.9\n"))
    w.run("maps", "remove", "vol1")
    eq((f.is_symlink(), real.exists()), (False, True))
    f.symlink_to("nowhere")
    has(w.run("map", "d", "s", "10.0.0.1", "--name", "d", "--save-only", want=2).err,
        "vol1.conf: error: the link leads nowhere")
    eq(f.is_symlink(), True)


@test
def save_from_what_runs(w):
    w.client()
    w.run("map", "vol/1", "store1", "10.0.1.7", "port=5555", "hb_misses=9", "--name", "vol1",
          "--save")
    w.run("map", "vol/2", "store1", "ro", "hold=7", "--name", "vol2")
    w.run("path", "policy", "store1", "rr")
    w.run("path", "add", "store1", "10.0.2.7")
    w.run("maps", "save", "--all")
    session = ("path=ip:10.0.0.1,ip:10.0.1.7 path=ip:10.0.0.1,ip:10.0.2.7 dest_port=5555 {}"
               "hb_misses=9 policy=round-robin\n")
    eq(saved(w, "vol1"), "vol1 vol/1 store1 " + session.format(""))
    eq(saved(w, "vol2"), "vol2 vol/2 store1 " + session.format("access_mode=ro hold=7 "))
    w.run("map", "vol/3", "store1")
    has(w.run("maps", "save", "ibnbd2", want=2).err, "has no name")


OTHER = ("dest_port=5555 hb_interval_ms=500 hb_misses=9 reconnect_delay_ms=50 "
         "reconnect_max_ms=2000",
         "write_zeroes=off write_cache=on unflushed=ignore")


@test
def save_without_an_old_line(w):
    """Each key that is not the default, from the driver alone; no other."""
    w.client()
    w.run("map", "vol/1", "store1", "10.0.1.7", *OTHER[0].split(), *OTHER[1].split(),
          "--name", "vol1")
    w.run("map", "vol/2", "store2", "10.0.2.7", "--name", "vol2")
    w.run("maps", "save", "--all")
    eq((saved(w, "vol1"), saved(w, "vol2")),
       (f"vol1 vol/1 store1 path=ip:10.0.0.1,ip:10.0.1.7 {OTHER[0]} {OTHER[1]}\n",
        "vol2 vol/2 store2 path=ip:10.0.0.1,ip:10.0.2.7\n"))


def another(default, value):
    """A value of an option that is not its default, by the table of docs/sysfs.md."""
    numbers = re.match(r"(-?\d+)\.\.(\d+)", value)
    if numbers and default:
        return str(int(default) + 1 if int(default) < int(numbers[2]) else int(default) - 1)
    words = [w.split(" ")[0] for w in value.split(", ")]
    return [w for w in words if w != default][0] if len(words) > 1 else "some-name"


@test
def save_reads_back_each_option(w):
    """Of a mapping whose options are all set nothing is lost; the old io_mode and input_mode mean
    nothing."""
    w.client()
    text = (TOP / "docs/sysfs.md").read_text().split("### The mapping grammar")[1].split("\n#")[0]
    rows = re.findall(r"^\| (\w+)(?: \*\*\+\*\*)? \|[^|]*\| ([^|]+) \| ?([^|]*?) ?\|", text, re.M)
    given = {key: another(default, value) for key, value, default in rows
             if key not in ("key", "sessname", "path", "device_path", "name", "io_mode",
                            "input_mode")}
    eq(len(given) > 15, True, given)
    w.run("map", "vol/1", "store1", "10.0.1.7", *(f"{k}={v}" for k, v in given.items()),
          "--name", "vol1")
    w.run("maps", "save", "vol1")
    line = saved(w, "vol1").split()
    for key, value in given.items():
        has(line, f"{key}={value}")


@test
def save_from_a_driver_that_tells_less(w):
    w.client()
    w.run("map", "vol/1", "store1", "10.0.1.7", *OTHER[0].split(), *OTHER[1].split(),
          "--name", "vol1", "--save")
    older(w)
    w.run("path", "policy", "store1", "rr")
    w.run("maps", "save", "vol1")
    has(saved(w, "vol1"), OTHER[0], OTHER[1], "policy=round-robin")


@test
def save_over_a_session_that_exists(w):
    """Each line says all of its session, so that each file can go alone."""
    w.client()
    w.run("map", "vol/1", "store1", "10.0.1.7", "policy=rr")
    w.run("map", "vol/2", "store1", "--name", "vol2", "--save")
    w.run("map", "vol/3", "store1", "--name", "vol3", "--save")
    w.run("map", "vol/2", "store1", "--name", "vol2", "--save", "--idempotent")
    w.run("map", "vol/5", "store1", "--name", "vol5", "--save-only")
    for n in "235":
        eq(saved(w, f"vol{n}"), f"vol{n} vol/{n} store1 path=ip:10.0.0.1,ip:10.0.1.7 "
           "policy=round-robin\n")
    w.run("maps", "check")
    r = w.run("map", "vol/4", "store4", "--name", "vol4", "--save-only", want=2)
    has(r.err, "vol4.conf: vol4 would not be mapped", "no path= to open session store4")
    eq(files(w), ["vol2.conf", "vol3.conf", "vol5.conf"])


@test
def save_beside_lines_of_the_session(w):
    """What is not said is what the other lines say; a person's line needs no path of its own."""
    f = w.conf("vol1 vol/1 store1 path=10.0.1.7 path=host.example port=99 policy=rr hold=7\n")
    w.run("map", "vol/2", "store1", "--name", "vol2", "--save-only")
    eq(saved(w, "vol2"),
       "vol2 vol/2 store1 path=host.example path=ip:10.0.1.7 dest_port=99 policy=round-robin\n")
    f.write_text("vol1 vol/1 store1 port=99 policy=rr\n")
    w.run("maps", "check")
    r = w.run("maps", "remove", "vol2", want=2)
    has(r.err, f"{f}:1: vol1 would not be mapped any more: there is no path=", "change that first")
    r = w.run("map", "vol/3", "store1", "policy=min-latency", "--name", "vol3", "--save-only",
              want=2)
    has(r.err, "vol3.conf: vol3 would not be mapped", "policy of session store1 is another one in")
    # a file that is read before a person's one
    w.conf("vol4 vol/4 store1 port=99 policy=rr\n", "maps.conf.d/20-more.conf")
    f.write_text("")
    r = w.run("map", "vol/3", "store1", "policy=min-latency", "--name", "1.vol3", "--save-only",
              want=2)
    has(r.err, "20-more.conf:1: vol4 would not be mapped any more: policy of session store1")
    eq(files(w), ["20-more.conf", "vol2.conf"])


@test
def save_of_what_belongs_to_the_session(w):
    """All its saved lines say it: those that say something else would be lost."""
    w.client()
    f = w.conf("vol3 vol/3 store3 path=10.0.1.7 policy=rr\n")
    w.run("map", "vol/1", "store1", "10.0.1.7", "policy=rr", "--name", "vol1", "--save")
    w.run("map", "vol/2", "store1", "--name", "vol2", "--save")
    w.run("path", "policy", "store1", "min-latency")
    w.run("path", "add", "store1", "10.0.2.7")
    w.run("maps", "save", "vol1")
    w.run("maps", "check")
    for n in "12":
        has(saved(w, f"vol{n}"), "10.0.2.7 policy=min-latency\n")
    eq(f.read_text(), "vol3 vol/3 store3 path=10.0.1.7 policy=rr\n")
    # a person's line that says otherwise is in the way
    f.write_text("vol4 vol/4 store1 policy=min-latency\n")
    w.run("path", "policy", "store1", "rr")
    has(w.run("maps", "save", "vol1", want=2).err, "vol1 would not be mapped",
        f"policy of session store1 is another one in {f}:1")


@test
def save_to_a_file_of_ones_own(w):
    w.client()
    f = w.dir / "mine.conf"
    for n in "12":
        w.run("map", f"vol/{n}", "s", "10.0.0.1", "--name", f"v{n}", "--save-only", "--file", f)
    eq(f.read_text(), HEAD + "v1 vol/1 s path=ip:10.0.0.1\nv2 vol/2 s path=ip:10.0.0.1\n")
    w.run("maps", "remove", "v1", "--file", f)
    eq(f.read_text(), HEAD + "v2 vol/2 s path=ip:10.0.0.1\n")
    w.run("maps", "remove", "v2", "--file", f)
    eq((f.exists(), files(w)), (False, []))


OLD_HEAD = "# Mappings saved by `ibnbd map --save` and `ibnbd maps save`.\n"


def old_file(w, text):
    return w.conf(text, "maps.conf.d/50-saved.conf")


@test
def the_old_file_is_split(w):
    """By the first change, whichever it is, or by tidy: nothing is lost."""
    w.client()
    text = (OLD_HEAD + "[defaults] ro hold=5 nofail\n"
            "vol1 vol/1 store1 path=10.0.1.7 path=host.example port=99 hold=7\n\n"
            "# two\nvol2 vol/2 store1 port=99 rw x-own \\\n  # more\n"
            "50-saved vol/3 - path=10.0.1.8 noauto\n")
    session = "path=host.example path=ip:10.0.1.7 dest_port=99"
    lines = {"vol1": f"vol1 vol/1 store1 {session} access_mode=ro hold=7 nofail\n",
             "vol2": f"vol2 vol/2 store1 {session} access_mode=rw hold=5 nofail x-own  # more\n",
             "50-saved~": "50-saved vol/3 - path=ip:10.0.1.8 access_mode=ro hold=5 nofail noauto\n"}
    for change, more in ((("maps", "tidy"), {}),
                         (("map", "vol/4", "store1", "--name", "vol4", "--save-only"),
                          {"vol4": f"vol4 vol/4 store1 {session}\n"}),
                         (("maps", "remove", "vol2"), {"vol2": None}),
                         (("map", "vol/1", "store1", "port=99", "--name", "vol1",
                           "--save-only"), {"vol1": f"vol1 vol/1 store1 {session} nofail\n"})):
        f = old_file(w, text)
        before = w.json("maps", "show")["maps"]
        dry = w.run(*change, "-n").out
        has(dry, f"{f}: without: vol1 vol/1", f"{file_of(w, '50-saved~')}: 50-saved vol/3 -")
        eq((f.read_text(), files(w)), (text, ["50-saved.conf"]), "a dry run")
        has(w.run(*change).err, "each mapping of", f"{f}.old is not read")
        want = {n: t for n, t in {**lines, **more}.items() if t}
        eq({n: saved(w, n) for n in want}, want)
        eq(files(w), sorted([n + ".conf" for n in want] + ["50-saved.conf.old"]))
        eq((f.parent / "50-saved.conf.old").read_text(), text)
        if not more:
            keys = ("name", "device_path", "session", "access_mode", "hold", "dest_port", "nofail",
                    "noauto")
            eq(sorted([m[k] for k in keys] for m in w.json("maps", "show")["maps"]),
               sorted([m[k] for k in keys] for m in before))
        hasnt(w.run("maps", "check").err, "error")
        w.run("maps", "tidy")
        for p in f.parent.iterdir():
            p.unlink()


@test
def a_split_that_was_interrupted_goes_on(w):
    text = OLD_HEAD + "vol1 vol/1 s path=10.0.0.1\nvol2 vol/2 s path=10.0.0.1\n"
    f = old_file(w, text)
    w.run("maps", "tidy")
    old_file(w, text)
    eq([m["file"] for m in w.json("maps", "show")["maps"]], [str(f)] * 2, "it counts until then")
    w.run("maps", "tidy")
    eq(files(w), ["50-saved.conf.old", "vol1.conf", "vol2.conf"])
    w.run("maps", "check")


@test
def an_old_file_with_a_mistake_stays(w):
    """What the line means is not known: the file is read, and is a person's."""
    text = OLD_HEAD + "vol1 vol/1 s path=10.0.0.1\nvol2 vol/2 s pth=10.0.0.1\n"
    f = old_file(w, text)
    r = w.run("maps", "tidy", want=2)
    has(r.err, f'maps.conf is not changed: {f}:3: unknown option', "ibnbd maps tidy")
    r = w.run("map", "vol/3", "s", "--name", "vol3", "--save-only")
    has(r.err, "no files of their own", f"{f}:3")
    has(w.run("maps", "remove", "vol1", want=2).err, f"{f}:2 has the line of vol1")
    eq((f.read_text(), saved(w, "vol3")), (text, "vol3 vol/3 s path=ip:10.0.0.1\n"))
    w.conf("# mine\n", "maps.conf.d/vol1.conf")
    old_file(w, OLD_HEAD + "vol1 vol/1 s path=10.0.0.1\n")
    has(w.run("maps", "tidy", want=2).err, "vol1.conf is there, and was not written")


@test
def save_one_device_under_one_name(w):
    w.client()
    f = w.conf("vol1 vol/1 store1 path=10.0.1.7\n")
    r = w.run("map", "vol/1", "store1", "10.0.1.7", "--name", "other", "--save", want=4)
    has(r.err, "cannot save other", "already, as vol1", "ibnbd maps remove vol1")
    has(w.run("maps", "save", "other", want=4).err, "already, as vol1")
    eq((f.read_text(), files(w)), ("vol1 vol/1 store1 path=10.0.1.7\n", []))


@test
def remove_of_a_line_that_replaced_one(w):
    f = w.conf("vol1 vol/1 s path=10.0.0.1\n")
    w.conf(HEAD + "vol1 vol/9 s path=10.0.0.1 override\n", "maps.conf.d/vol1.conf")
    has(w.run("maps", "remove", "vol1").err, "the line of vol1 in ", "maps.conf counts again")
    has(w.run("maps", "show").out, "vol1 vol/1 s")
    has(w.run("maps", "remove", "vol1", want=2).err, f"{f}:1 has the line of vol1")


@test
def remove_lines(w):
    for name in ("a", "b"):
        w.run("map", f"vol/{name}", "s", "10.0.0.1", "ro", "--name", name, "--save-only")
    eq(w.run("maps", "remove", "-n", "a").out,
       f"{file_of(w, 'a')}: without: a vol/a s path=ip:10.0.0.1 access_mode=ro\n")
    w.run("maps", "remove", "a")
    eq(files(w), ["b.conf"])
    has(w.run("maps", "remove", "a", want=3).err, "a")
    w.run("maps", "remove", "a", "--idempotent")


@test
def unmap_forget(w):
    w.client()
    f = w.conf(GOOD)
    w.run("map", "vol/9", "s9", "10.0.0.9", "--name", "vol9", "--save")
    w.run("unmap", "vol9", "--forget")
    eq((files(w), f.read_text()), ([], GOOD))


@test
def edits_at_the_same_time_lose_nothing(w):
    w.client()
    ps = [subprocess.Popen([str(w.build / "ibnbd-faked"), "map", f"d{i}", "s", "10.0.0.1",
                            "--name", f"n{i}", "--save-only"], env=w.env)
          for i in range(12)]
    eq([p.wait(DEADLINE) for p in ps], [0] * 12)
    eq(files(w), sorted(f"n{i}.conf" for i in range(12)))
    w.run("maps", "check")


@test
def a_lock_that_stays(w):
    """Not for ever, and with the name of who has it; only root can open what is locked."""
    w.client()
    add = ("map", "vol/1", "s", "10.0.0.1", "--name", "vol1", "--save-only")
    dirs = [os.open(d, os.O_RDONLY) for d in (w.root / "etc/ibnbd", w.root)]    # as any user can
    for d in dirs:
        fcntl.flock(d, fcntl.LOCK_EX)
    w.run(*add)
    lock = w.root / "run/ibnbd/maps.lock"
    eq(lock.stat().st_mode & 0o777, 0o600)
    file_of(w, "vol1").unlink()
    hold = ("import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, fcntl.LOCK_EX); "
            "print(1, flush=True); sys.stdin.read()")
    p = subprocess.Popen([sys.executable, "-c", hold, lock], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
    p.stdout.readline()
    has(w.run(*add, want=5).err, f"{lock}: process {p.pid} (", "import fcntl",
        "has held the lock for 10 s; nothing was saved", f"if it hangs: kill {p.pid}")
    eq(files(w), [])
    p.communicate()
    w.run(*add)
    eq(files(w), ["vol1.conf"])
    for d in dirs:
        os.close(d)
