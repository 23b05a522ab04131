# SPDX-License-Identifier: GPL-2.0-only
"""maps.conf is changed: map --save, maps save, maps remove, unmap --forget."""
import fcntl, os, re, struct, subprocess
from kit import *
from test_maps import GOOD


@test
def map_save(w):
    w.client()
    f = w.conf(GOOD)
    w.run("map", "vol/3", "store3", "host.example", "10.0.3.7", "--name", "vol3", "--hold", "-1",
          "--save-only")
    eq(f.read_text(), GOOD)
    saved = w.root / "etc/ibnbd/maps.conf.d/50-saved.conf"
    has(saved.read_text(), "# Mappings saved",
        "vol3 vol/3 store3 path=host.example path=ip:10.0.3.7 hold=-1\n")
    eq(w.log(), [])
    before = (saved.read_text(), saved.stat().st_mtime_ns)
    w.run("map", "vol/3", "store3", "host.example", "10.0.3.7", "--name", "vol3", "--hold", "-1",
          "--save-only")
    eq((saved.read_text(), saved.stat().st_mtime_ns), before, "the same twice")
    w.run("map", "vol/4", "store3", "10.0.3.7", "--name", "vol4", "--save")
    has(saved.read_text(), "vol3 vol/3", "\nvol4 vol/4 store3 path=ip:10.0.3.7\n")
    w.run("maps", "check")
    r = w.run("map", "E-EPERM", "s", "10.0.0.1", "--name", "no", "--save", want=6)
    hasnt(saved.read_text(), "E-EPERM")


@test
def save_changes_one_line(w):
    w.client()
    own = 'vol5 vol/5 store1 nofail uuid=01020304 x-a=b "x-c=d e" x-f\n'
    f = w.conf(GOOD + own + "no newline s9 path=10.0.0.9")
    os.chmod(f, 0o640)
    w.run("map", "vol/1", "store1", "10.0.9.9", "policy=min-latency", "--name", "vol1",
          "--save-only")
    want = GOOD.splitlines()
    want[1] = "vol1 vol/1 store1 path=ip:10.0.9.9 policy=min-latency  # the first"
    eq(f.read_text(), "\n".join(want) + "\n" + own + "no newline s9 path=10.0.0.9")
    # What a command line cannot say stays, and so does what is none of our business.
    w.run("map", "vol/5", "store2", "10.0.0.8", "ro", "--name", "vol5", "--save-only")
    saved = ('vol5 vol/5 store2 path=ip:10.0.0.8 access_mode=ro nofail uuid=01020304 '
             'x-a=b "x-c=d e" x-f\n')
    eq(f.read_text(), "\n".join(want) + "\n" + saved + "no newline s9 path=10.0.0.9")
    table = bytearray(65536)
    table[440:444], table[510:512] = bytes((4, 3, 2, 1)), b"\x55\xaa"
    table[446:462] = struct.pack("<BBBBBBBBII", 0, 0, 2, 0, 0x83, 0, 9, 0, 1, 8)
    (w.root / "dev/ibnbd0").write_bytes(table)
    w.run("map", "vol/5", "store2", "10.0.0.9", "--name", "vol5")
    w.run("maps", "save", "vol5")
    has(f.read_text(), ' nofail uuid=01020304 x-a=b "x-c=d e" x-f\n')
    eq(f.stat().st_mode & 0o777, 0o640)
    eq(sorted(p.name for p in f.parent.iterdir()), ["maps.conf", "policy.conf"],
       "no temporary file is left")


@test
def save_through_a_link(w):
    """The file may be kept elsewhere; the link stays, the file behind it has the line."""
    real = w.put("kept/maps.conf", "vol1 vol/1 store1 path=10.0.1.7")
    f = w.root / "etc/ibnbd/maps.conf"
    f.symlink_to("../../../kept/maps.conf")
    w.run("map", "vol/1", "store1", "10.0.9.9", "--name", "vol1", "--save-only")
    eq((f.is_symlink(), real.read_text()), (True, "vol1 vol/1 store1 path=ip:10.0.9.9\n"))
    w.run("maps", "remove", "vol1")
    eq((f.is_symlink(), real.read_text(), [p.name for p in real.parent.iterdir()]),
       (True, "", ["maps.conf"]))
    saved = w.root / "etc/ibnbd/maps.conf.d/50-saved.conf"
    saved.parent.mkdir()
    saved.symlink_to("nowhere")
    has(w.run("map", "d", "s", "10.0.0.1", "--name", "d", "--save-only", want=2).err,
        "50-saved.conf: error: the link leads nowhere")
    eq(saved.is_symlink(), True)


@test
def save_from_what_runs(w):
    w.client()
    w.conf("vol1 vol/1 store1 path=10.0.1.7 port=5555 nofail hb_misses=9\n")
    w.run("map", "vol1")
    has(w.log()[0], "dest_port=5555", "hb_misses=9")
    w.run("map", "vol/2", "store1", "ro", "hold=7", "--name", "vol2")
    w.run("path", "policy", "store1", "rr")
    w.run("path", "add", "store1", "10.0.2.7")
    w.run("maps", "save", "--all")
    text = (w.root / "etc/ibnbd/maps.conf").read_text()
    eq(text, "vol1 vol/1 store1 path=ip:10.0.0.1,ip:10.0.1.7 path=ip:10.0.0.1,ip:10.0.2.7 "
       "dest_port=5555 hb_misses=9 policy=round-robin nofail\n")
    has((w.root / "etc/ibnbd/maps.conf.d/50-saved.conf").read_text(), "vol2 vol/2 store1",
        "access_mode=ro hold=7")
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
    saved = w.root / "etc/ibnbd/maps.conf.d/50-saved.conf"
    eq(saved.read_text().splitlines()[1:],
       [f"vol1 vol/1 store1 path=ip:10.0.0.1,ip:10.0.1.7 {OTHER[0]} {OTHER[1]}",
        "vol2 vol/2 store2 path=ip:10.0.0.1,ip:10.0.2.7"])


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
    line = (w.root / "etc/ibnbd/maps.conf.d/50-saved.conf").read_text().splitlines()[-1].split()
    for key, value in given.items():
        has(line, f"{key}={value}")


@test
def save_from_a_driver_that_tells_less(w):
    w.client()
    w.conf(f"vol1 vol/1 store1 path=10.0.1.7 {OTHER[0]} {OTHER[1]}\n")
    w.run("map", "vol1")
    older(w)
    w.run("maps", "save", "vol1")
    has((w.root / "etc/ibnbd/maps.conf").read_text(), OTHER[0], OTHER[1])


@test
def save_of_a_default_beside_defaults(w):
    """Left out, it would read as what [defaults] says."""
    w.client()
    f = w.conf("[defaults] hold=-1\nvol1 vol/1 store1 path=10.0.1.7 hold=100\n")
    w.run("map", "vol1")
    w.run("path", "add", "store1", "10.0.2.7")
    w.run("maps", "save", "vol1")
    has(f.read_text(), "path=ip:10.0.0.1,ip:10.0.2.7 hold=100\n")


@test
def save_over_a_session_that_exists(w):
    """Its paths are written where no other line has one."""
    w.client()
    w.run("map", "vol/1", "store1", "10.0.1.7")
    w.run("map", "vol/2", "store1", "--name", "vol2", "--save")
    w.run("map", "vol/3", "store1", "--name", "vol3", "--save")
    w.run("map", "vol/2", "store1", "--name", "vol2", "--save", "--idempotent")
    lines = (w.root / "etc/ibnbd/maps.conf.d/50-saved.conf").read_text().splitlines()[1:]
    eq(lines, ["vol2 vol/2 store1 path=ip:10.0.0.1,ip:10.0.1.7", "vol3 vol/3 store1"])
    w.run("maps", "check")
    r = w.run("map", "vol/4", "store4", "--name", "vol4", "--save-only", want=2)
    has(r.err, "no path= to open session store4", "maps.conf has mistakes now")


@test
def save_of_what_belongs_to_the_session(w):
    """It is said in all lines that say it:
    those behind the one that is saved would contradict it, and be lost."""
    w.client()
    f = w.conf("vol1 vol/1 store1 path=10.0.1.7 policy=rr\n"
               "vol2 vol/2 store1 policy=rr # two\n"
               "vol3 vol/3 store3 path=10.0.1.7 policy=rr\n")
    w.run("maps", "start", "vol1", "vol2")
    w.run("path", "policy", "store1", "min-latency")
    w.run("maps", "save", "vol1")
    w.run("maps", "check")
    eq(f.read_text().splitlines()[1:], ["vol2 vol/2 store1 policy=min-latency  # two",
                                        "vol3 vol/3 store3 path=10.0.1.7 policy=rr"])
    w.run("maps", "save", "--all")
    w.run("maps", "check")
    eq(f.read_text().count("policy=min-latency"), 2)


@test
def a_new_line_that_contradicts_is_said(w):
    w.client()
    w.conf("vol1 vol/1 store1 path=10.0.1.7 policy=rr\n")
    r = w.run("map", "vol/2", "store1", "policy=min-latency", "--name", "vol2",
              "--save-only", want=2)
    has(r.err, "policy of session store1 is another one in", "maps.conf has mistakes now")
    has(w.run("maps", "show", want=0).out, "vol1 vol/1 store1 path=ip:10.0.1.7 policy=round-robin")


ENDS = ("", "\n", " \\\n", " \\", " \\\r\n", "\r\n", " # x", " # x \\\n", "\n# x \\", "\n\\\n",
        ' x-a="b \\\\"', "\n\n  \\\n")


@test
def save_behind_any_end(w):
    """A backslash at the end of a file joins what is appended to its last line."""
    for head in ("", "\ufeff"):
        for end in ENDS:
            f = w.conf(head + "vol1 vol/1 store1 path=10.0.1.7 path=10.0.2.7" + end,
                       "maps.conf.d/50-saved.conf")
            before = f.read_bytes()
            good = w.run("maps", "show", want=None).out
            w.run("map", "vol/2", "store2", "10.0.3.7", "10.0.4.7", "--name", "vol2", "--save-only")
            shown = w.run("maps", "show").out
            has(shown, good, "vol2 vol/2 store2 path=ip:10.0.3.7 path=ip:10.0.4.7")
            eq(f.read_bytes().startswith(before), True, repr(end))
            w.run("maps", "remove", "vol2")
            eq(w.run("maps", "show").out, good or w.run("maps", "show").out, repr(end))


@test
def save_keeps_line_ends_and_comments(w):
    f = w.root / "etc/ibnbd/maps.conf"
    f.write_bytes(b"\xef\xbb\xbfvol1 vol/1 store1 path=10.0.1.7 \\\r\n  #one\r\n"
                  b"vol2 vol/2 store2 path=10.0.1.8\r\n")
    w.run("map", "vol/1", "store1", "10.0.9.9", "--name", "vol1", "--save-only")
    eq(f.read_bytes(), b"\xef\xbb\xbfvol1 vol/1 store1 path=ip:10.0.9.9  #one\r\n"
       b"vol2 vol/2 store2 path=10.0.1.8\r\n")
    long = "# " + "x" * 4050
    f.write_text(f"vol1 vol/1 store1 path=10.0.1.7 {long}\n")
    w.run("map", "vol/1", "store1", "10.0.9.9", "10.0.9.8", "--name", "vol1", "--save-only")
    eq(f.read_text(), f"{long}\nvol1 vol/1 store1 path=ip:10.0.9.9 path=ip:10.0.9.8\n")


@test
def who_opens_the_session_goes(w):
    """Its path= and what else is the session's goes to the next line."""
    w.client()
    w.conf("vol1 vol/1 store1 path=10.0.1.7 path=host.example port=99 hold=7\n")
    saved = w.conf("vol2 vol/2 store1 ro # two\nvol3 vol/3 store1\n", "maps.conf.d/50-saved.conf")
    has(w.run("maps", "remove", "vol1", "-n").out,
        "50-saved.conf: vol2 vol/2 store1 path=host.example path=ip:10.0.1.7")
    w.run("maps", "remove", "vol1")
    eq(saved.read_text(), "vol2 vol/2 store1 path=host.example path=ip:10.0.1.7 dest_port=99 "
       "access_mode=ro  # two\nvol3 vol/3 store1\n")
    w.run("map", "vol/2", "other", "10.0.5.7", "--name", "vol2", "--save-only")
    has(w.run("maps", "show", "vol3").out,
        "vol3 vol/3 store1 path=host.example path=ip:10.0.1.7 dest_port=99")
    w.run("map", "vol/3", "store1", "hold=9", "--name", "vol3", "--save-only")
    has(w.run("maps", "show", "vol3").out, "path=host.example path=ip:10.0.1.7 hold=9")
    w.conf("vol1 vol/1 s path=10.0.0.1\n")
    w.conf("vol1 vol/9 s path=10.0.0.1 override\nvol8 vol/1 s\n", "maps.conf.d/50-saved.conf")
    r = w.run("maps", "remove", "vol1", want=2)
    has(r.err, "maps.conf is not changed: vol8 would not be mapped any more: "
        "device vol/1 of session s is mapped by")


@test
def save_one_device_under_one_name(w):
    w.client()
    f = w.conf("vol1 vol/1 store1 path=10.0.1.7\n")
    r = w.run("map", "vol/1", "store1", "10.0.1.7", "--name", "other", "--save", want=4)
    has(r.err, "cannot save other", "already, as vol1", "ibnbd maps remove vol1")
    has(w.run("maps", "save", "other", want=4).err, "already, as vol1")
    eq((f.read_text(), (w.root / "etc/ibnbd/maps.conf.d").exists()),
       ("vol1 vol/1 store1 path=10.0.1.7\n", False))


@test
def remove_of_a_line_that_replaced_one(w):
    w.conf("vol1 vol/1 s path=10.0.0.1\n")
    w.conf("vol1 vol/9 s path=10.0.0.1 override\n", "maps.conf.d/20-other.conf")
    has(w.run("maps", "remove", "vol1").err, "the line of vol1 in ", "maps.conf counts again")
    has(w.run("maps", "show").out, "vol1 vol/1 s")
    hasnt(w.run("maps", "remove", "vol1").err, "again")


@test
def remove_lines(w):
    f = w.conf(GOOD)
    w.run("maps", "remove", "scratch")
    eq(f.read_text(), GOOD[:GOOD.index("scratch")])
    w.run("maps", "remove", "vol1")
    has(f.read_text(), "# disks of this host\nvol2")
    has(w.run("maps", "remove", "vol1", want=3).err, "vol1")
    w.run("maps", "remove", "vol1", "--idempotent")
    line = ("vol2 vol/2 store1 path=ip:10.0.1.7 path=ip:10.0.1.9,ip:10.0.2.7 access_mode=ro "
            "policy=min-latency nofail\n")
    eq(w.run("maps", "remove", "-n", "vol2").out, f"{f}: without: {line}")
    has(f.read_text(), "vol2")


@test
def unmap_forget(w):
    w.client()
    f = w.conf(GOOD)
    w.run("map", "vol1")
    w.run("unmap", "vol1", "--forget")
    hasnt(f.read_text(), "vol1 ")
    has(f.read_text(), "vol2")


@test
def edits_at_the_same_time_lose_nothing(w):
    w.client()
    ps = [subprocess.Popen([str(w.build / "ibnbd-faked"), "map", f"d{i}", "s", "10.0.0.1",
                            "--name", f"n{i}", "--save-only"], env=w.env)
          for i in range(12)]
    eq([p.wait(DEADLINE) for p in ps], [0] * 12)
    text = (w.root / "etc/ibnbd/maps.conf.d/50-saved.conf").read_text()
    eq(sorted(l.split()[0] for l in text.splitlines() if l[0] == "n"),
       sorted(f"n{i}" for i in range(12)))
    eq(text.count("# Mappings saved"), 1)


@test
def a_lock_that_stays(w):
    """Not for ever, and with the name of who has it; only root can open what is locked."""
    w.client()
    f = w.conf(GOOD)
    add = ("maps", "remove", "vol1")
    dirs = [os.open(d, os.O_RDONLY) for d in (f.parent, w.root)]    # as any user can
    for d in dirs:
        fcntl.flock(d, fcntl.LOCK_EX)
    w.run(*add)
    lock = w.root / "run/ibnbd/maps.lock"
    eq(lock.stat().st_mode & 0o777, 0o600)
    f.write_text(GOOD)
    hold = ("import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, fcntl.LOCK_EX); "
            "print(1, flush=True); sys.stdin.read()")
    p = subprocess.Popen([sys.executable, "-c", hold, lock], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
    p.stdout.readline()
    has(w.run(*add, want=5).err, f"{lock}: process {p.pid} (", "import fcntl",
        "has held the lock for 10 s; nothing was saved", f"if it hangs: kill {p.pid}")
    eq(f.read_text(), GOOD)
    p.communicate()
    w.run(*add)
    hasnt(f.read_text(), "vol1")
    for d in dirs:
        os.close(d)
