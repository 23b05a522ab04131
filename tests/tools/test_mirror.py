# SPDX-License-Identifier: GPL-2.0-only
"""ibnbd mirror: two legs on two servers, md and mdadm being mdadm.py beside this file."""
import re, shutil, signal, subprocess, time
from kit import *
from test_list import schema

A, B = "vol1 store-a 10.0.1.7 10.0.2.7", "vol1 store-b path=10.0.1.8"
IDENTITY = "uuid 00112233445566778899aabbccddeeff"
RECORD = "var/lib/ibnbd/mirrors/data"


def machine(w):
    w.client()
    fake = w.put("root/sbin/mdadm", (HERE / "mdadm.py").read_text())
    fake.chmod(0o755)
    for i in range(4):
        with open(w.root / f"dev/ibnbd{i}", "wb") as f:
            f.truncate(1 << 20)


def mirror(w):
    machine(w)
    w.run("mirror", "create", "data", A, B)
    w.run("mirror", "watch", "-c", "2")
    said(w)


def by_files(w):
    """A mirror m of two legs, n and o, that runs; the work of no command."""
    machine(w)
    for i, name in (7, "n"), (8, "o"):
        own = f"sys/block/ibnbd{i}"
        for key, text in (("state", "open"), ("state_detail", "open"), ("name", name),
                          ("session", name), ("mapping_path", "vol"), ("hold", "-1"),
                          ("identity", IDENTITY), ("features", "identity durability"),
                          ("in_sync", "0"), ("remap_device", ""), ("unmap_device", "")):
            w.put(f"{own}/ibnbd/{key}", text)
        w.put(f"sys/block/md127/md/dev-ibnbd{i}/state", "in_sync,failfast")
        holder = w.dir / own / "holders/md127"
        holder.parent.mkdir()
        holder.symlink_to("../../md127")
        w.put(f"root/dev/ibnbd{i}.super", f"1:2:3:4 AA {i - 7}")
    for key, text in (("level", "raid1"), ("array_state", "clean"), ("sync_action", "idle")):
        w.put(f"sys/block/md127/md/{key}", text)
    w.conf(f"uuid = 1:2:3:4\nleg = n {IDENTITY}\nleg = o {IDENTITY}\n", "mirrors.d/m.conf")
    w.put("root/var/lib/ibnbd/mirrors/m", "n\no")


def said(w):
    """What mdadm was called with since the last time."""
    f = w.dir / "mdadm"
    lines = f.read_text().splitlines() if f.exists() else []
    f.write_text("")
    return lines


def record(w):
    return (w.root / RECORD).read_text().split()


def leg(w, i, state=None, md=None, **attrs):
    own = w.sys / f"block/ibnbd{i}/ibnbd"
    if state:
        (own / "state").write_text("open\n" if state == "open" else "closed\n")
        (own / "state_detail").write_text(state + "\n")
    if md:
        (w.sys / f"block/md127/md/dev-ibnbd{i}/state").write_text(md + "\n")
    for name, text in attrs.items():
        (own / name).write_text(f"{text}\n")


def in_sync(w):
    return [(w.sys / f"block/ibnbd{i}/ibnbd/in_sync").read_text().strip() for i in (0, 1)]


def look(w, *more, n=1):
    return w.run("mirror", "watch", "-c", n, *more).err


class Watch:
    """A watch that goes on; its end is a signal, as from systemd."""

    def __init__(self, w, **env):
        self.err = w.put("watch.err")
        self.p = subprocess.Popen([str(w.build / "ibnbd-faked"), "mirror", "watch"],
                                  env={**w.env, **env},
                                  stdout=subprocess.DEVNULL, stderr=open(self.err, "w"), text=True)

    def until(self, what, condition, seconds=40):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise Failed(f"not within {seconds} s: {what}: {self.end()}")
            time.sleep(0.1)

    def says(self, *words):
        self.until(words, lambda: all(x in self.err.read_text() for x in words))
        return self

    def end(self):
        self.p.send_signal(signal.SIGTERM)
        self.p.wait(timeout=DEADLINE)
        err = self.err.read_text()
        if self.p.returncode or "Sanitizer" in err:
            raise Failed(f"watch ended with {self.p.returncode}: {err}")
        return err


@test
def mirror_create(w):
    machine(w)
    w.conf("mine vol9 store-b path=10.0.1.8\n")
    before = w.log()
    plan = w.run("mirror", "create", "data", A, B, "-n").out.splitlines()
    eq((w.log(), (w.dir / "mdadm").exists()), (before, False), "a dry run")
    has("\n".join(plan), "mirrors.d/data.conf:", RECORD)
    eq(w.run("mirror", "create", "data", A, B).out, "/dev/md/data\n")
    maps = [l for l in w.log() if "map_device" in l]
    has(maps[0], "sessname=store-a path=ip:10.0.1.7 path=ip:10.0.2.7 device_path=vol1",
        " hold=-1 group=data name=data-a")
    has(maps[1], "sessname=store-b path=ip:10.0.1.8 ", " hold=-1 group=data name=data-b")
    ran = said(w)
    eq(len(ran), 1)
    has(ran[0], "--create /dev/md/data --run --level=1 --metadata=1.2 --raid-devices=2 "
        "--homehost=any --name=data --uuid=", " --bitmap=internal --bitmap-chunk=4M --failfast "
        "/dev/ibnbd0 /dev/ibnbd1")
    hasnt(ran[0], "assume-clean")
    has([l for l in plan if "mdadm" in l][0], "mdadm --create /dev/md/data", "--failfast "
        "/dev/ibnbd/by-name/data-a /dev/ibnbd/by-name/data-b")
    for i, x in enumerate("ab"):
        has((w.root / f"etc/ibnbd/maps.conf.d/data-{x}.conf").read_text(),
            f"data-{x} vol1 store-{x} path=", "hold=-1", "group=data")
    conf = (w.root / "etc/ibnbd/mirrors.d/data.conf").read_text()
    has(conf, f"leg = data-a {IDENTITY}\n", f"leg = data-b {IDENTITY}\n", "wait = 30s\n",
        "uuid = " + re.search(r"--uuid=(\S+)", ran[0])[1])
    eq(record(w), ["data-a", "data-b"])
    has(w.run("mirror", "create", "data", A, B, want=4).err, "already")


@test
def mirror_create_refuses(w):
    machine(w)
    w.conf("one vol1 store-a path=10.0.1.7\ntwo vol2 store-b path=10.0.1.8\n"
           "three vol3 store-a path=10.0.1.7\nfour vol4 store-d path=10.0.9.9 path=10.0.1.8\n")
    for name, legs, rc, words in (
            ("../x", ("one", "two"), 2, ["is no name of a mirror"]),
            ("x" * 28, ("one", "two"), 2, ["27 bytes"]),
            ("data", ("one", "nine"), 3, ["leg nine", "DEVICE SESSION PATH"]),
            ("data", ("one", "one"), 2, ["the same disk"]),
            ("data", ("one", "three"), 2, ["on one server", "store-a", "--force"]),
            ("data", ("two", "four"), 2, ["on one server", "10.0.1.8"]),
            ("data", ("one", "vol2 store-b nonsense=1"), 2, ["nonsense"]),
            ("data", ("one",), 2, ["is missing"])):
        has(w.run("mirror", "create", name, *legs, want=rc).err, *words)
    has(w.run("mirror", "create", "data", "one", "two", "--wait", "x", want=2).err, "--wait x")
    eq(w.log(), [], "nothing was mapped")
    # what can be seen only when they are mapped, and then they are unmapped again
    legs = "--force", "vol1 store-a 10.0.1.7", "vol1 store-b 10.0.1.8"
    for attr, text, words in (("ibnbd/features", "zeroes words", "does not tell"),
                              ("ibnbd/identity", "", "does not tell"),
                              ("size", "4096", "different sizes")):
        w.run("map", "vol1", "store-b", "10.0.1.8", "--name", "data-b", "--group", "data",
              "--hold=-1")
        w.put(f"sys/block/ibnbd0/{attr}", text)
        has(w.run("mirror", "create", "data", *legs[1:], want=2).err, words, "data-b")
        eq(sorted(p.name for p in w.sys.glob("block/*")), ["ibnbd0"], "ours is gone")
        w.run("unmap", "ibnbd0")
    eq(said(w), [])
    eq((w.root / "etc/ibnbd/maps.conf.d").exists(), False)
    w.conf("")
    subprocess.run(["mkfs.ext4", "-q", "-F", str(w.root / "dev/ibnbd1")], check=True,
                   env={"PATH": os.environ["PATH"] + ":/sbin:/usr/sbin"}, capture_output=True)
    has(w.run("mirror", "create", "data", *legs[1:], want=2).err, "content", "ext4 on data-b")
    eq(list(w.sys.glob("block/*")), [])
    has(w.run("mirror", "create", "data", *legs).err, "ext4 on data-b")
    eq(len(said(w)), 1)


@test
def mirror_create_of_saved_mappings(w):
    """They are mapped anew if they are mapped otherwise; what a person wrote stays hers."""
    machine(w)
    w.run("map", "vol1", "store-a", "10.0.1.7", "--name", "one", "--save")
    w.run("map", "vol2", "store-b", "10.0.1.8", "--name", "two", "--save-only")
    n = len(w.log())
    w.run("mirror", "create", "data", "one", "two", "--assume-clean", "--wait", "5min")
    has(w.log()[n], "ibnbd0/ibnbd/unmap_device normal")
    has(w.log()[n + 1], "device_path=vol1", "hold=-1 group=data name=one")
    has(said(w)[0], "--assume-clean")
    has((w.root / "etc/ibnbd/maps.conf.d/one.conf").read_text(), "group=data")
    has((w.root / "etc/ibnbd/mirrors.d/data.conf").read_text(), "wait = 300s")

    w.conf("three vol3 store-a path=10.0.1.7\nfour vol4 store-b path=10.0.1.8\n")
    r = w.run("mirror", "create", "more", "three", "four", want=2)
    has(r.err, "not a file that this command writes", "change it there to: three vol3", "hold=-1",
        "group=more")
    eq((said(w), len(list(w.sys.glob("block/ibnbd*")))), ([], 2))


@test
def mirror_create_that_fails(w):
    machine(w)
    w.put("mdadm-refuses", "--create")
    has(w.run("mirror", "create", "data", A, B, want=1).err, "it does not want to")
    eq((list(w.sys.glob("block/*")), (w.root / "etc/ibnbd/mirrors.d").exists()), ([], False))
    (w.root / "sbin/mdadm").unlink()
    if not shutil.which("mdadm"):
        has(w.run("mirror", "create", "data", A, B, want=1).err, "there is no mdadm")


@test
def mirror_status(w):
    mirror(w)
    out = w.run("mirror", "status").out
    has(out, "data  /dev/md127  whole\n", "├─ data-a  /dev/ibnbd0  open  in sync\n",
        "└─ data-b  /dev/ibnbd1  open  in sync\n")
    leg(w, 1, "held", reason="no answer")
    look(w)
    has(w.run("mirror", "status", "data").out, "degraded",
        "data-b  /dev/ibnbd1  held  in sync, lacks something: no answer")
    w.put("sys/block/md127/md/sync_action", "recover")
    w.put("sys/block/md127/md/sync_completed", "500 / 2000")
    has(w.run("mirror", "status", "data").out, "degraded, recover 25%")
    doc = w.json("mirror", "status")
    schema(doc, "mirrors")
    eq([(l["name"], l["md"], l["state_detail"], l["recorded"]) for l in doc["mirrors"][0]["legs"]],
       [("data-a", "in_sync", "open", True), ("data-b", "in_sync", "held", False)])
    eq(doc["mirrors"][0]["mismatched_sectors"], 0)
    has(w.run("mirror", "status", "x", want=3).err, "there is no mirror x")
    schema(w.json("mirror", "status", "x", want=3))
    w.conf("uuid = 1\n", "mirrors.d/bad.conf")
    has(w.run("mirror", "status", want=2).err, "bad.conf: it has fewer than two legs")
    for text, why in (("nonsense\n", "KEY = VALUE"), ("what = 1\n", 'no key "what"'),
                      ("wait = x\n", "is no time"), ("leg = a\nleg = b\n", "no uuid"),
                      ("uuid = 1\nleg=a\nleg=b\nleg=c\nleg=d\n", "more than 3 legs")):
        w.conf(text, "mirrors.d/bad.conf")
        has(w.run("mirror", "status", want=2).err, why)
    (w.root / "etc/ibnbd/mirrors.d/bad.conf").chmod(0o666)
    has(w.run("mirror", "status", want=2).err, "can write to it")


@test
def list_as_a_tree(w):
    """A mirror, its legs, their sessions and paths; a session that has other disks stays a root."""
    machine(w)
    w.run("mirror", "create", "data", A, B)
    w.run("map", "vol2", "store-a")
    w.run("map", "vol3", "store-c", "10.0.1.9")
    path = lambda i: f"path ip:10.0.0.1@ip:10.0.{i} up"
    shape = [re.sub(r" (?:\S+:\d|\(client\).*|vol\d .*)$", "", l)
             for l in w.run("list", "-t").out.splitlines()]
    mirror_lines = ["data  /dev/md127  whole",
                    "├─ data-a  /dev/ibnbd0  open  in sync",
                    "│  └─ store-a",
                    f"│     ├─ {path('1.7')}",
                    f"│     └─ {path('2.7')}",
                    "└─ data-b  /dev/ibnbd1  open  in sync",
                    "   └─ store-b",
                    f"      └─ {path('1.8')}"]
    eq(shape, [*mirror_lines,
               "store-a", f"├─ {path('1.7')}", f"├─ {path('2.7')}", "└─ /dev/ibnbd2",
               "store-c", f"├─ {path('1.9')}", "└─ /dev/ibnbd3"])
    # of what was asked for
    roots = lambda *args: [l.split()[0] for l in w.run("list", "-t", *args).out.splitlines()
                           if not l.startswith(("├", "└", "│", " "))]
    eq(roots("data-b"), ["data"])
    eq(roots("ibnbd2"), ["store-a"])
    eq(roots("-S", "store-b"), ["data"])
    eq(roots("-S", "store-a"), ["data", "store-a"])
    eq(roots("-S", "store-c"), ["store-c"])
    leg(w, 1, "held", reason="no answer")
    has(w.run("list", "-t").out, "└─ data-b  /dev/ibnbd1  held  in sync: no answer\n")

    doc = w.json("list", "-t")
    schema(doc, "devices", "mirrors", "sessions")
    eq([(l["name"], [s["name"] for s in l["sessions"]], [len(s["paths"]) for s in l["sessions"]])
        for m in doc["mirrors"] for l in m["legs"]],
       [("data-a", ["store-a"], [2]), ("data-b", ["store-b"], [1])])
    eq([s["name"] for s in doc["sessions"]], ["store-a", "store-b", "store-c"])
    eq(len(doc["devices"]), 4)
    doc = w.json("list", "-t", "ibnbd3")
    eq([[x.get("name") or x["device_path"] for x in doc[k]]
        for k in ("devices", "mirrors", "sessions")], [["vol3"], [], ["store-c"]])
    # what a list has, its tree has
    (w.sys / "block/ibnbd2/ibnbd/session").unlink()
    w.put("sys/block/ibnbd3/ibnbd/session", "gone")
    has(w.run("list", "-t").out, "\n/dev/ibnbd2 vol2 ", "\n/dev/ibnbd3 vol3 ")
    eq(roots("ibnbd2"), ["/dev/ibnbd2"])
    w.run("mirror", "stop", "data")
    w.run("unmap", "data-b")
    has(w.run("list", "-t").out, "data  /dev/-  stopped\n", "└─ data-b  -  not mapped")
    eq([l["sessions"] == [] for l in w.json("list", "-t")["mirrors"][0]["legs"]], [False, True])


@test
def mirror_check(w):
    mirror(w)
    eq(w.run("mirror", "check", "data").out, "data: the legs are equal\n")
    has(w.log()[-1], "sync_action check")
    w.put("sys/block/md127/md/mismatch_cnt", 128)
    has(w.run("mirror", "check", "data", want=1).out, "differ", "128 sectors")
    doc = w.json("mirror", "check", "data", want=1)
    schema(doc, "mirrors")
    eq(doc["mirrors"][0]["mismatched_sectors"], 128)
    leg(w, 1, "held")
    has(w.run("mirror", "check", "data", want=5).err, "data-b is not there")
    leg(w, 1, "open", "spare")
    has(w.run("mirror", "check", "data", want=5).err, "data-b is not there")
    w.run("mirror", "stop", "data")
    has(w.run("mirror", "check", "data", want=3).err, "not started", "mirror assemble data")


@test
def mirror_stop_and_assemble(w):
    mirror(w)
    has(w.run("mirror", "assemble", "data", want=4).err, "runs, as /dev/md127")
    w.run("mirror", "stop", "data")
    eq(said(w), ["--stop /dev/md127"])
    has(w.run("mirror", "stop", "data", want=4).err, "is stopped")
    w.run("mirror", "assemble", "data")
    eq(said(w), ["--assemble --run /dev/md/data /dev/ibnbd0 /dev/ibnbd1"])
    leg(w, 0, "held")
    leg(w, 1, "held")
    has(w.run("mirror", "stop", "data", want=7).err, "no leg is open")
    leg(w, 0, "open")
    w.run("mirror", "stop", "data")

    r = w.run("mirror", "assemble", "data", want=5)
    has(r.err, "data-b is held", "assemble --run data")
    said(w)
    w.run("mirror", "assemble", "data", "--run")
    eq(said(w), ["--assemble --run /dev/md/data /dev/ibnbd0"])
    w.run("mirror", "stop", "data")

    (w.root / RECORD).write_text("data-b\n")
    for args in (), ("--run",):
        has(w.run("mirror", "assemble", "data", *args, want=5).err,
            "data-a is there, and lacks what was written without it", "--run --force")
    said(w)
    w.run("mirror", "assemble", "data", "--run", "--force")
    eq(said(w), ["--assemble --run /dev/md/data /dev/ibnbd0"])


@test
def mirror_replace(w):
    mirror(w)
    w.run("mirror", "replace", "data", "data-b")
    whole = ["/dev/md127 --fail /dev/ibnbd1", "/dev/md127 --remove /dev/ibnbd1",
             "--zero-superblock /dev/ibnbd1", "/dev/md127 --add --failfast /dev/ibnbd1"]
    eq(said(w), whole)
    eq(w.run("mirror", "replace", "data", "data-b", "-n").out.splitlines(),
       ["mdadm " + l for l in whole])
    leg(w, 1, md="faulty")
    w.run("mirror", "replace", "data", "data-b")
    eq(said(w), whole[1:])
    # it is fenced, and another disk by now: the administrator's word is enough
    leg(w, 1, "fenced", "in_sync", identity="hardware ff")
    n = len(w.log())
    w.run("mirror", "replace", "data", "data-b")
    eq((said(w), [l for l in w.log()[n:] if "remap" in l]),
       (whole, ["block/ibnbd1/ibnbd/remap_device 1"]))
    has((w.root / "etc/ibnbd/mirrors.d/data.conf").read_text(), "leg = data-b hardware ff\n")
    # never without a source
    leg(w, 1, md="in_sync")
    for state, md in (("held", "in_sync"), ("open", "spare"), ("open", "faulty"),
                      ("fenced", "in_sync")):
        leg(w, 0, state, md)
        has(w.run("mirror", "replace", "data", "data-b", want=5).err, "no other leg is in sync")
    leg(w, 0, "open", "in_sync")
    leg(w, 1, "held")
    has(w.run("mirror", "replace", "data", "data-b", want=5).err, "has to arrive")
    has(w.run("mirror", "replace", "data", "x", want=3).err, "has no leg x")
    leg(w, 1, "open")
    eq(said(w), [])
    w.put("mdadm-refuses", "--zero-superblock")
    has(w.run("mirror", "replace", "data", "data-b", want=1).err, "cannot wipe the superblock")
    hasnt("\n".join(said(w)), "--add")


@test
def mirror_replace_by_a_new_disk(w):
    mirror(w)
    leg(w, 1, "held", "faulty")
    has(w.run("mirror", "replace", "data", "data-b", "vol2 store-a 10.0.1.7",
              want=2).err, "on one server")
    eq((said(w), len(list(w.sys.glob("block/ibnbd*")))), ([], 2))
    n = len(w.log())
    r = w.run("mirror", "replace", "data", "data-b", "vol1 store-c 10.0.1.9")
    has(w.log()[n], "sessname=store-c path=ip:10.0.1.9", "hold=-1 group=data name=data-c")
    eq(said(w), ["/dev/md127 --remove /dev/ibnbd1", "--zero-superblock /dev/ibnbd2",
                 "/dev/md127 --add --failfast /dev/ibnbd2"])
    has(r.err, "ibnbd unmap --forget data-b")
    conf = (w.root / "etc/ibnbd/mirrors.d/data.conf").read_text()
    has(conf, f"leg = data-c {IDENTITY}", "leg = data-a")
    hasnt(conf, "data-b")
    eq(record(w), ["data-a"])
    has((w.root / "etc/ibnbd/maps.conf.d/data-c.conf").read_text(), "group=data")
    has(w.run("mirror", "replace", "data", "data-c", "vol2 store-d 10.0.1.5", "-n").out,
        "name=data-d", "--fail /dev/ibnbd2", "leg = data-d")


@test
def watch_keeps_the_record(w):
    machine(w)
    w.run("mirror", "create", "data", A, B)
    look(w, n=1)
    eq(in_sync(w), ["0", "0"], "it has ended: no leg is let go")
    has("\n".join(w.log()), "ibnbd0/ibnbd/in_sync 1", "ibnbd1/ibnbd/in_sync 1")
    both = ["data-a", "data-b"]
    p = Watch(w)
    p.until("it has told", lambda: in_sync(w) == ["1", "1"])
    becomes = lambda legs, what=None: p.until((legs, what), lambda: record(w) == legs)
    leg(w, 1, "held")
    becomes(["data-a"])
    leg(w, 0, "held")
    look_at_it = 2.5
    time.sleep(look_at_it)
    eq(record(w), ["data-a"], "both are dark")
    leg(w, 1, "open")
    becomes(["data-b"], "b has everything, and a is dark")
    leg(w, 0, "open")
    becomes(both)
    for state, md in (("failfast", "in_sync"), ("open", "faulty"), ("open", "spare"),
                      ("fenced", "in_sync"), ("replaying", "in_sync")):
        leg(w, 1, state, md)
        w.put("mdadm-refuses", "/dev/md127")    # it is about the record
        w.put("sys/block/md127/md/dev-ibnbd1/refuse")
        becomes(["data-a"], (state, md))
        leg(w, 1, "open", "in_sync")
        becomes(both, (state, md))
    (w.dir / "mdadm-refuses").unlink()
    w.run("mirror", "stop", "data")
    leg(w, 1, "held")
    time.sleep(look_at_it)
    p.end()
    eq(record(w), both, "of an array that does not run nothing is known")


@test
def watch_without_a_record(w):
    """What cannot be noted does not happen: no leg is let go."""
    machine(w)
    w.run("mirror", "create", "data", A, B)
    long = w.put("x" * 255, "data-a\ndata-b")        # no room for the name of a temporary file
    (w.root / RECORD).unlink()
    (w.root / RECORD).symlink_to(long)
    leg(w, 1, "held")
    leg(w, 0, in_sync=1)
    n = len(w.log())
    has(look(w), "cannot be written")
    eq(w.log()[n:], ["block/ibnbd0/ibnbd/in_sync 0"])


@test
def watch_ends_what_still_waits(w):
    """Writes that md sent without FAILFAST, when the leg was its only one."""
    mirror(w)
    hold = lambda: (w.sys / "block/ibnbd1/ibnbd/hold").read_text().strip()
    for state, md, other, now in (
            ("held", "in_sync", "open", "-1"), ("failfast", "in_sync", "open", "-1"),
            ("failed", "faulty", "open", "-1"), ("failfast", "faulty", "open", "0"),
            ("failfast", "spare", "open", "0"), ("failfast", "spare", "held", "-1"),
            ("failfast", "faulty", "held", "-1"), ("open", "in_sync", "open", "-1")):
        leg(w, 0, other)
        leg(w, 1, state, md)
        look(w, n=1)
        eq(hold(), now, (state, md, other))
    leg(w, 1, hold=10)      # of maps release
    look(w)
    eq(hold(), "10")


@test
def watch_takes_a_leg_back(w):
    mirror(w)
    leg(w, 1, "held", "faulty")
    look(w)
    eq(said(w), [])
    leg(w, 1, "open")
    n = len(w.log())
    has(look(w), "data-b is back: what was written meanwhile is copied")
    eq((said(w), [l for l in w.log()[n:] if "re-add" in l]),
       ([], ["block/md127/md/dev-ibnbd1/state re-add"]))
    leg(w, 1, "open", "faulty")
    leg(w, 0, "held")
    n = len(w.log())
    look(w)
    eq([l for l in w.log()[n:] if "re-add" in l], [], "md would wait for the other leg")


@test
def watch_damps_a_leg_whose_disk_fails(w):
    """Open, and dropped at each write: taken back twice, and then every 10 seconds. One that was
    whole for a while is well."""
    mirror(w)
    leg(w, 1, "open", "faulty")
    watch = Watch(w)
    taken = lambda: watch.err.read_text().count("data-b is back")
    for i in 1, 2:
        watch.until(f"taken back {i} times", lambda: taken() == i)
        leg(w, 1, "open", "faulty")
    watch.says("data-b was dropped again soon", "every 10 seconds", "disk of its server")
    eq(taken(), 2)
    watch.until("taken back once more", lambda: taken() == 3, 30)
    leg(w, 1, "open", "in_sync")
    time.sleep(9)           # two looks, and what makes it well
    for i in 4, 5:
        leg(w, 1, "open", "faulty")
        watch.until(f"taken back at once, {i}", lambda: taken() == i, 8)
    watch.end()


WHOLE = ["/dev/md127 --remove /dev/ibnbd1", "--zero-superblock /dev/ibnbd1",
         "/dev/md127 --add --failfast /dev/ibnbd1"]


@test
def watch_copies_whole(w):
    mirror(w)
    for how, why, ran in (
            (lambda: leg(w, 1, "open", "faulty", features="zeroes identity words"),
             "does not tell", WHOLE),
            (lambda: leg(w, 1, "open", "faulty", unflushed="ignore"), "unflushed=ignore", WHOLE),
            (lambda: leg(w, 1, "fenced", "in_sync"), "fenced",
             ["/dev/md127 --fail /dev/ibnbd1", *WHOLE]),
            (lambda: leg(w, 1, "fenced", "faulty"), "fenced", WHOLE),
            (lambda: (leg(w, 1, "open", "faulty"), w.run("mirror", "status"), remove(w)),
             "not in the array", WHOLE[1:])):
        leg(w, 1, "open", "in_sync", features="identity durability", unflushed="auto")
        how()
        said(w)
        has(look(w), "data-b is copied whole", why)
        eq(said(w), ran)
        leg(w, 1, md="in_sync")


@test
def watch_doubts_what_only_md_believes(w):
    """Something has started the array that does not ask the record."""
    mirror(w)
    (w.root / RECORD).write_text("data-a\n")
    leg(w, 0, "held")
    n = len(w.log())
    look(w)
    eq((said(w), record(w)), ([], ["data-a"]), "nothing to copy from")
    leg(w, 0, "open")
    has(look(w), "data-b is copied whole: it is not in the record, and md took it for in sync")
    eq(said(w), ["/dev/md127 --fail /dev/ibnbd1", *WHOLE])
    eq([l for l in w.log()[n:] if "ibnbd1/ibnbd/in_sync 1" in l], [], "it stands for no other leg")
    leg(w, 1, md="spare")
    p = Watch(w)
    p.until("a is told", lambda: in_sync(w)[0] == "1")
    leg(w, 1, md="in_sync")
    p.until("it was copied", lambda: record(w) == ["data-a", "data-b"])
    p.end()
    eq(said(w), [])
    (w.root / RECORD).unlink()
    look(w, n=2)
    eq((said(w), record(w)), ([], ["data-a", "data-b"]), "a record that is lost accuses nobody")


def remove(w):
    subprocess.run([str(w.root / "sbin/mdadm"), "/dev/md127", "--remove", "/dev/ibnbd1"],
                   env=w.env, check=True)


@test
def watch_copies_where_md_refuses(w):
    mirror(w)
    leg(w, 1, "open", "faulty")
    w.put("sys/block/md127/md/dev-ibnbd1/refuse")
    has(look(w), "data-b is copied whole: md does not take it back")
    eq(said(w), WHOLE)


@test
def watch_asks_before_another_disk(w):
    """It may be somebody's."""
    mirror(w)
    leg(w, 1, "fenced", "in_sync", identity="hardware ff")
    has(look(w), "not known to be the disk", "hardware ff", "mirror replace data data-b")
    eq(said(w), ["/dev/md127 --fail /dev/ibnbd1", "/dev/md127 --remove /dev/ibnbd1"])
    has(look(w), "mirror replace data data-b")
    eq(said(w), [])
    # and never takes the last one
    leg(w, 0, "fenced")
    has(look(w), "data-a is fenced, and no other leg")
    eq(said(w), [])


@test
def watch_starts_at_boot(w):
    """From the legs that have everything, never from another one."""
    mirror(w)
    stop = lambda: w.run("mirror", "stop", "data", want=None) and said(w)
    conf = w.root / "etc/ibnbd/mirrors.d/data.conf"
    both = ["--assemble --run /dev/md/data /dev/ibnbd0 /dev/ibnbd1"]
    stop()
    p = Watch(w)
    p.until("it is started", lambda: (w.sys / "block/md127").exists())
    eq(said(w), both)
    p.until("it is looked at", lambda: in_sync(w) == ["1", "1"])
    w.run("mirror", "stop", "data")
    p.says("it was stopped").end()
    eq(said(w), ["--stop /dev/md127"], "who stopped it meant it")

    leg(w, 1, "held")
    Watch(w).says("not started, it waits for data-b").end()
    eq(said(w), [])
    conf.write_text(conf.read_text().replace("30s", "1"))
    p = Watch(w)
    p.until("it is started", lambda: (w.sys / "block/md127").exists())
    p.end()
    eq(said(w), ["--assemble --run /dev/md/data /dev/ibnbd0"])
    stop()
    for text in "data-b\n", "":
        (w.root / RECORD).write_text(text)
        Watch(w).says("no leg that is there has everything").end()
        eq(said(w), [])
    # the superblock speaks against it
    (w.root / RECORD).write_text("data-a\n")
    disk = w.root / "dev/ibnbd0.super"
    uuid = disk.read_text().split()[0]
    for text, why in ((f"{uuid} .A 0", "that it lacks something"), ("1:2:3:4 AA 0", "of 1:2:3:4"),
                      (None, "of no array")):
        disk.write_text(text or "")
        if not text:
            disk.unlink()
        Watch(w).says(why).end()
        eq(said(w), [])


@test
def watch_starts_what_udev_began(w):
    """mdadm -I has put one leg into an array, and does not start it."""
    mirror(w)
    w.put("sys/block/md127/md/array_state", "inactive")
    remove(w)
    leg(w, 1, "held")
    (w.root / RECORD).write_text("data-a\n")
    said(w)
    p = Watch(w)
    state = w.sys / "block/md127/md/array_state"
    p.until("it is started", lambda: state.read_text() == "clean\n")
    p.end()
    eq(said(w), ["--run /dev/md127"])


@test
def watch_is_one(w):
    mirror(w)
    p = Watch(w)
    p.until("it looks", lambda: in_sync(w) == ["1", "1"])
    has(w.run("mirror", "watch", "-c", "1", want=5).err, "watches already")
    has(w.run("mirror", "watch", "-c", "x", want=2).err, "--count x")
    p.end()
    eq(in_sync(w), ["0", "0"])


@test
def doctor_of_mirrors(w):
    mirror(w)
    found = lambda: {f["message"]: (f["level"], f["hint"]) for f in
                     w.json("doctor", want=None)["findings"] if f["check"] == "mirror"}
    nobody = "ibnbd-mirror.service does not run: a leg that is lost is not let go, nor taken back"
    eq(found(), {nobody: ("error", "systemctl start ibnbd-mirror"),
                 "mirror data is whole": ("ok", None)})
    p = Watch(w)
    p.until("it looks", lambda: in_sync(w) == ["1", "1"])
    eq(list(found()), ["mirror data is whole"])
    p.end()
    w.put("sys/block/md127/md/bitmap/location", "none")
    leg(w, 0, md="in_sync", features="words")
    w.put("sys/class/ibtrs-client/store-b/paths/ip:10.0.0.1@ip:10.0.1.8/dst_addr", "ip:10.0.2.7")
    leg(w, 1, "held")
    f = found()
    os.utime(w.root / RECORD, (0, 0))
    has("\n".join(f), "mirror data is degraded since 20", "data-b is held", "has no bitmap",
        "md has data-a without --failfast", "data-a and data-b are on one server",
        "the server of data-a does not tell")
    has("\n".join(found()), "degraded since 1970-01-01")
    w.run("mirror", "stop", "data")
    has("\n".join(found()), "mirror data is not started")
    w.conf("x\n", "mirrors.d/bad.conf")
    has("\n".join(found()), "1 file of /etc/ibnbd/mirrors.d cannot be used")
