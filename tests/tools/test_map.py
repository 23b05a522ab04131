# SPDX-License-Identifier: GPL-2.0-only
"""map, unmap, remap, resize: what is written to the driver, what is said, how it exits."""
import os
import re
import shutil
import socket
from kit import *

ONE = ("map", "vol/1", "store1", "10.0.1.7", "10.0.1.9,10.0.2.7", "--policy", "min-latency",
       "--name", "vol1")


@test
def map_says_the_device(w):
    w.client()
    eq(w.run(*ONE).out, "/dev/ibnbd0\n")
    eq(w.log(), ["class/ibnbd-client/ctl/map_device sessname=store1 path=ip:10.0.1.7 "
                 "path=ip:10.0.1.9@ip:10.0.2.7 device_path=vol/1 policy=min-latency name=vol1"])
    eq(w.run("map", "vol/2", "store1", "ro").out, "/dev/ibnbd1\n")
    has(w.log()[-1], "device_path=vol/2", "access_mode=ro")


@test
def map_all_spellings(w):
    w.client()
    w.run("map", "sessname=s1", "path=ip:10.0.0.2", "device_path=d1", "access_mode=ro")
    w.run("map", "d2", "--session", "s1", "--access=ro")
    w.run("map", "--device-path=d3", "s1", "hold=-1", "--io-timeout", "30")
    w.run("map", "d4", "from", "s1", "migration")
    want = ["sessname=s1 path=ip:10.0.0.2 device_path=d1 access_mode=ro",
            "sessname=s1 device_path=d2 access_mode=ro",
            "sessname=s1 device_path=d3 hold=-1 io_timeout=30",
            "sessname=s1 device_path=d4 access_mode=migration"]
    eq([l.split(" ", 1)[1] for l in w.log()], want)


@test
def map_made_session(w):
    w.client()
    w.run("map", "d", "-", "10.0.1.7")
    has(w.log()[0], "@10-0-1-7 path=ip:10.0.1.7")


@test
def map_made_session_is_of_this_machine(w):
    """Two hosts of one name have two names for their sessions;
    what an earlier version opened goes on under its name."""
    w.client()
    made = lambda: w.run("map", "d", "-", "10.0.1.7", "-n").out.split("sessname=")[1].split(" ")[0]
    host = socket.gethostname().replace(".", "-")
    ids = ("0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdee")
    names = []
    for text in ids:
        w.put("root/etc/machine-id", text)
        names.append(made())
        eq(bool(re.fullmatch(re.escape(host) + "-[0-9a-f]{8}@10-0-1-7", names[-1])), True,
           names[-1])
        hasnt(names[-1], text[:8], text[-8:])   # the id itself is nobody's business
    eq(names[0] != names[1], True, "another machine")
    old = socket.gethostname().split(".")[0] + "@10-0-1-7"
    w.put(f"sys/class/ibtrs-client/{old}/uuid", "")
    eq(made(), old)


@test
def a_machine_without_an_id_makes_no_session(w):
    """Another one of its name would make the same."""
    w.client()
    f = w.root / "etc/machine-id"
    f.unlink()
    w.conf("vol1 vol/1 - path=10.0.1.7\nvol2 vol/2 s path=10.0.1.7\n")

    def refused(words):
        for args in (("map", "d", "-", "10.0.1.7"), ("map", "d", "-", "store.example", "-n"),
                     ("maps", "check")):
            has(w.run(*args, want=None).err, "\"-\" makes no session that is this host's alone: ",
                f"{f}: {words}", "systemd-machine-id-setup")
        w.run("maps", "start", "vol1", want=3)
        eq(w.log(), [])

    refused("No such file or directory")
    for data in (b"", b"\n", b"uninitialized\n", b"0" * 32 + b"\n", b"x" * 32, b"0123\n"):
        f.write_bytes(data)
        refused("it is no id of a machine")
    f.write_bytes(b"\0" * 32)
    refused("it is no text, but has NUL bytes")
    f.unlink()
    f.mkdir()
    refused("Is a directory")
    has(w.run("maps", "check", want=2).out, "1 mapping, 1 error")
    w.put(f"sys/class/ibtrs-client/{socket.gethostname().replace('.', '-')}@10-0-1-7/uuid", "")
    has(w.run("maps", "check").out, "2 mappings, 0 errors")     # it has it already


@test
def map_twice(w):
    w.client()
    w.run(*ONE)
    r = w.run(*ONE, want=4)
    has(r.err, "/dev/ibnbd0", "--idempotent")
    eq(w.run(*ONE, "--idempotent").out, "/dev/ibnbd0\n")
    eq(len(w.log()), 1)


@test
def map_dry_run_writes_nothing(w):
    w.client()
    for args in (("-n", *ONE), (*ONE, "--dry-run"), ("map", "-n", *ONE[1:])):
        r = w.run(*args)
        has(r.out, "echo 'sessname=store1 path=ip:10.0.1.7", "map_device'")
    eq(w.log(), [])


@test
def map_json(w):
    w.client()
    d = w.json(*ONE)
    eq(d["schema"], "ibnbd/1")
    eq([d["devices"][0][k] for k in ("path", "name", "session", "device_path", "size")],
       ["/dev/ibnbd0", "vol1", "store1", "vol/1", 1 << 30])


@test
def map_refusals_have_exit_codes(w):
    w.client()
    for err, code, hint in (("ENOENT", 1, "search path"), ("EPERM", 6, "migration"),
                            ("EACCES", 6, "server.conf"), ("EROFS", 6, "ro"),
                            ("ETIMEDOUT", 7, "ibnbd doctor"), ("EHOSTUNREACH", 7, "ibnbd doctor"),
                            ("ECONNREFUSED", 7, "listen"), ("EPROTO", 1, "versions"),
                            ("EBUSY", 5, "does the server use the disk itself"), ("EINVAL", 2, "")):
        r = w.run("map", "E-" + err, "s", "10.0.0.2", want=code)
        has(r.err, f"cannot map E-{err} of session s: "
            f"device E-{err} of session s: the server refuses", hint)
        eq(r.out, "", err)


@test
def map_without_root(w):
    """The driver did not hear it: what it said of another one is not the reason."""
    w.client()
    w.run("map", "d", "s", "10.0.0.1")
    w.run("map", "E-EACCES", "s", "10.0.0.2", want=6)
    w.put("sys/block/ibnbd0/ibnbd/state", "closed")
    for f in ("class/ibnbd-client/ctl/map_device", "block/ibnbd0/ibnbd/unmap_device",
              "block/ibnbd0/ibnbd/remap_device"):
        (w.sys / f).chmod(0o200 if os.getuid() == 0 else 0o400)
    w.dir.chmod(0o755)
    program = shutil.copy(w.build / "ibnbd-faked", w.dir)
    for args in (("map", "d2", "s"), ("unmap", "ibnbd0"), ("remap", "ibnbd0")):
        r = w.run(*args, want=6, program=program, user=65534 if os.getuid() == 0 else None)
        has(r.err, f"cannot {args[0]} ", "only root may do that", "sudo")
        hasnt(r.err, "refuses", "server.conf")


@test
def map_mistakes_are_found_before_the_driver(w):
    w.client()
    for args, words in (((), ["sessname=NAME is missing"]), (("d",), ["no usable line \"d\""]),
                        (("d", "s"), ["no session s", "address"]),
                        (("d", "s", "10.0.0.300"), ["10.0.0.300"]),
                        (("d", "s.x", "10.0.0.2"), ["sessname must not contain '.'"]),
                        (("d", "s", "10.0.0.2", "--polcy", "rr"), ["did you mean --policy"]),
                        (("d", "s", "10.0.0.2", "policy=fast"),
                         ["round-robin, min-inflight or min-latency"]),
                        (("d", "s", "10.0.0.2", "10.0.0.2"), ["given twice"]),
                        (("d", "s", "10.0.0.2", "--hold"), ["--hold needs a value"]),
                        (("d", "s", "10.0.0.2", "--save"), ["--name"])):
        r = w.run("map", *args, want=2)
        has(r.err, *words)
    eq(w.log(), [])


@test
def map_without_the_driver(w):
    r = w.run(*ONE, want=8)
    has(r.err, "ibnbd-client is not loaded", "modprobe ibnbd-client")


@test
def map_name_of_a_host(w):
    w.client()
    has(w.run("map", "d", "s", "no-such-host.invalid", want=7).err,
        "no-such-host.invalid cannot be resolved")
    w.put("root/hosts", "two 10.0.0.99\ntwo 10.0.0.98\nother 10.0.5.1\nnone 10.0.0.99\n"
          "none 10.1.0.99")
    w.run("map", "d2", "s2", "two", "10.0.9.1")
    has(w.log()[-1], " path=ip:10.0.9.1 path=ip:10.0.0.99 ")      # another path is up
    w.run("unmap", "d2")
    w.run("map", "d2", "s2", "two")
    has(w.log()[-1], "path=ip:10.0.0.98")
    n = len(w.log())
    has(w.run("map", "d3", "s3", "none", want=7).err, "no answer")
    eq([re.search(r" path=(\S+)", l)[1] for l in w.log()[n:]], ["ip:10.0.0.99", "ip:10.1.0.99"])
    has(w.run("path", "add", "s2", "none", want=7).err, "ip:10.1.0.99")
    w.run("path", "remove", "s2", "10.0.0.98", "--force")
    w.run("path", "add", "s2", "two")
    has(w.log()[-1], "ip:10.0.0.98")
    n = len(w.log())
    w.conf("d2 d2 s2 path=two path=other\n")
    has(w.run("maps", "apply").out, "path ip:10.0.5.1 added")
    eq(len(w.log()), n + 1, "the second address of two is a path already")
    w.run("unmap", "d2")
    w.conf("")
    w.run("map", "d", "s", "localhost")
    has(w.log()[-1], "path=ip:")
    hasnt(w.log()[-1], "localhost")


@test
def unmap_by_every_name(w):
    w.client()
    for how in ("ibnbd0", "/dev/ibnbd0", "vol1", "vol/1@store1", "vol/1"):
        w.run(*ONE)
        w.run("unmap", how)
        eq((w.sys / "block/ibnbd0").exists(), False, how)
        eq(w.log()[-1], "block/ibnbd0/ibnbd/unmap_device normal")


@test
def unmap_unknown(w):
    w.client()
    has(w.run("unmap", "vol1", want=3).err, "nothing is mapped")
    w.run(*ONE)
    has(w.run("unmap", "vol2", want=3).err, 'did you mean "vol1"')
    w.run("unmap", "vol2", "--idempotent")
    has(w.run("unmap", "vol2", "vol1", want=9).err, "vol2")
    eq((w.sys / "block/ibnbd0").exists(), False)


@test
def unmap_ambiguous(w):
    w.client()
    w.run("map", "d", "s1", "10.0.0.2")
    w.run("map", "d", "s2", "10.0.0.2")
    has(w.run("unmap", "d", want=3).err, "DEVICE@SESSION")
    w.run("unmap", "d@s2")


@test
def unmap_busy_names_the_users(w):
    w.client()
    w.run(*ONE)
    w.put("sys/block/ibnbd0/busy")
    (w.root / "proc/self/mountinfo").write_text(
        "36 25 259:0 / /srv/data rw - ext4 /dev/ibnbd0 rw\n")
    w.put("sys/block/ibnbd0/holders/dm-3/dm/name", "vg0-data")
    w.put("sys/block/loop2/loop/backing_file", "/dev/ibnbd0")
    w.put("sys/block/loop3/loop/backing_file", "/srv/data/image")
    w.process(77, "dd", "ibnbd0")
    r = w.run("unmap", "vol1", want=5)
    has(r.err, "it is in use", "/srv/data", "vg0-data", "loop2 is built on it",
        "process 77 (dd) has it open")
    hasnt(r.err, "loop3")
    w.run("unmap", "vol1", "--force")
    has(w.log()[-1], "force")


@test
def unmap_all_spares_the_root(w):
    w.client()
    w.run(*ONE)
    w.run("map", "vol/2", "store1")
    w.put("sys/block/ibnbd0/ibnbd0p1/partition", 1)
    w.put("sys/block/ibnbd0/ibnbd0p1/dev", "259:77")
    w.put("root/dev/ibnbd0p1", "259:77")
    for users, name in (("1 0 259:77 / / rw - ext4 /dev/root rw", "self/mountinfo"),
                        ("1 0 0:45 /@ / rw - btrfs /dev/ibnbd0p1 rw", "self/mountinfo"),
                        ("/dev/ibnbd0p1 partition 1048572 0 -2", "swaps")):
        f = w.root / "proc" / name
        f.write_text(users + "\n")
        has(w.run("unmap", "--all").err, "ibnbd0 is left alone")
        eq(sorted(p.name for p in (w.sys / "block").iterdir()), ["ibnbd0"], users)
        f.write_text("")
    w.run("unmap", "--all")
    eq(list((w.sys / "block").iterdir()), [])


@test
def a_btrfs_of_several_disks(w):
    """Mounted by the name of one of them, it is on all."""
    w.client()
    w.run(*ONE)
    w.run("map", "vol/2", "store1")
    w.put("sys/block/ibnbd1/busy")
    w.put("sys/block/sda/dev", "8:0")
    w.put("root/dev/sda", "8:0")
    for fs, disks in (("77", ("sda", "ibnbd1")), ("99", ("sdz",)), ("features", ())):
        d = w.sys / "fs/btrfs" / fs / "devices"
        d.mkdir(parents=True)
        for disk in disks:
            (d / disk).symlink_to(f"../../../../block/{disk}")
    mounts = w.root / "proc/self/mountinfo"
    mounts.write_text("36 25 0:45 / /srv rw - btrfs /dev/sda rw\n")
    has(w.run("unmap", "ibnbd1", want=5).err, "it is mounted on /srv")
    mounts.write_text("36 25 0:45 / / rw - btrfs /dev/sda rw\n")
    has(w.run("unmap", "--all").err, "/dev/ibnbd1 is left alone: the system runs on it")
    eq([d["kname"] for d in w.json("list")["devices"]], ["ibnbd1"])
    hasnt("\n".join(w.log()), "ibnbd1/ibnbd/unmap_device force")


@test
def unmap_dry_run(w):
    w.client()
    w.run(*ONE)
    has(w.run("unmap", "-n", "vol1").out, "echo 'normal' >")
    eq(len(w.log()), 1)


@test
def remap(w):
    w.client()
    w.run(*ONE)
    has(w.run("remap", "vol1", want=4).err, "is open")
    w.put("sys/block/ibnbd0/ibnbd/state", "closed")
    w.run("remap", "vol1")
    eq((w.sys / "block/ibnbd0/ibnbd/state").read_text(), "open\n")
    w.run("remap", "--all")


@test
def remap_force_maps_again(w):
    w.client()
    w.run(*ONE)
    w.run("map", "d2", "store1")
    eq(w.run("remap", "--force", "vol1").out, "/dev/ibnbd0\n")
    has(w.log()[-1], "sessname=store1 ", " device_path=vol/1 ", " access_mode=rw ", "name=vol1")


@test
def remap_force_of_the_last_device(w):
    """The session closes with it, and is opened again as it was."""
    w.client()
    w.run("map", "vol/1", "store1", "10.0.1.7", "10.0.1.9,10.0.2.7", "--name", "v", "--hold", "7",
          "--io-timeout", "30", "--policy", "rr", "--max-reconnect-attempts", "9",
          "--access-mode", "ro", "--dest-port", "1500", "--hb-misses", "5", "--write-cache", "off")
    for p in ("10.0.3.7", "10.0.4.7", "10.0.5.7", "10.0.6.7", "10.0.7.7"):
        w.run("path", "add", "store1", p)
    w.put("sys/class/ibtrs-client/store1/paths/ip:10.0.0.1@ip:10.0.1.7/state", "disconnected")
    w.put("sys/class/ibtrs-client/store1/paths/ip:10.0.0.1@ip:10.0.1.7/src_addr", "ip:0.0.0.0")
    w.put("sys/class/ibtrs-client/store1/paths/ip:10.0.0.1@ip:10.0.3.7/src_addr", "ip:0.0.0.0")
    ask = lambda: ({k: v for k, v in w.json("list")["devices"][0].items()
                    if k in ("hold", "io_timeout", "access_mode", "name", "nr_poll_queues")},
                   [(s["policy"], s["max_reconnect_attempts"])
                    for s in w.json("session", "list")["sessions"]])
    before = ask()
    eq(before[0]["hold"], 7)
    n = len(w.log())
    has(w.run("remap", "-n", "--force", "v").out, "unmap_device", "path=ip:10.0.1.9@ip:10.0.2.7")
    eq(w.run("remap", "--force", "v").out, "/dev/ibnbd0\n")
    has(w.log()[n + 1], "path=ip:10.0.1.9@ip:10.0.2.7", "policy=round-robin",
        "max_reconnect_attempts=9", "dest_port=1500", "hb_misses=5", "write_cache=off")
    eq((w.log()[n + 1].count("path=ip:"), "0.0.0.0" in w.log()[n + 1]), (6, False))
    eq(ask(), before)
    eq(len(list((w.sys / "class/ibtrs-client/store1/paths").iterdir())), 7)


@test
def remap_force_takes_the_rest_from_maps_conf(w):
    w.client()
    w.conf("v vol/1 store1 path=store.invalid dest_port=1500 hb_misses=5 write_zeroes=off "
           "hold=20\n")
    w.run("map", "vol/1", "store1", "10.0.1.7", "--name", "v", "--hold", "7", "--dest-port", "1500")
    older(w)
    w.run("remap", "--force", "v")
    has(w.log()[-1], "path=ip:10.0.0.1@ip:10.0.1.7 ", "dest_port=1500", "hb_misses=5",
        "write_zeroes=off", "hold=7")
    shutil.rmtree(w.sys / "class/ibtrs-client/store1/paths/ip:10.0.0.1@ip:10.0.1.7")
    n = len(w.log())
    has(w.run("remap", "--force", "v", want=7).err, "store.invalid cannot be resolved",
        "it stays as it is")
    w.conf("")
    has(w.run("remap", "--force", "v", want=1).err, "session store1 has no path")
    eq(len(w.log()), n)


@test
def remap_force_that_fails_says_how_to_come_back(w):
    w.client()
    w.run(*ONE)
    w.put("sys/refuse", "ETIMEDOUT")
    r = w.run("remap", "--force", "vol1", want=7)
    has(r.err, "the server is gone", "it is unmapped now; then: ibnbd map ")
    (w.sys / "refuse").unlink()
    w.run(*r.err.split("then: ibnbd ")[1].split())
    has(w.json("list")["devices"][0]["name"], "vol1")


@test
def resize(w):
    w.client()
    w.run(*ONE)
    for text, sectors in (("2G", 4194304), ("4194312s", 4194312), ("3GiB", 6291456),
                          (str(4 << 30), 8388608)):
        w.run("resize", "vol1", text)
        eq(w.log()[-1], f"block/ibnbd0/ibnbd/resize {sectors}")
    n = len(w.log())
    has(w.run("resize", "vol1", "1G", want=2).err, "shrink from 4G to 1G", "--force")
    has(w.run("resize", "vol1", "big", want=2).err, '"big" is not a size')
    has(w.run("resize", "vol1", "1000", want=2).err, "not a size")
    has(w.run("resize", "vol9", "1G", want=3).err, "vol9: no such device", "ibnbd list")
    eq(len(w.log()), n)
    has(w.run("resize", "vol1", "8388609s", want=2).err,
        "cannot resize /dev/ibnbd0: ibnbd0: resize: not a number of whole logical blocks")
    w.run("resize", "vol1", "1G", "--force")


@test
def an_old_refusal_explains_nothing(w):
    """The driver's last words are of another disk; this write has never come to it."""
    w.client()
    w.run(*ONE)
    (session,) = w.sys.glob("class/ibtrs-client/*")
    orders = (["map", "d2", "store1"], ["map", "d2", "s2", "10.0.0.2"], ["unmap", "vol1"],
              ["resize", "vol1", "2G"], ["path", "add", "store1", "10.0.0.9"],
              ["path", "policy", "store1", "rr"],
              ["path", "disconnect", "--force", "store1", "10.0.1.7"])

    def said(*words):
        for f in w.sys / "class/ibnbd-client/ctl/last_error", session / "last_error":
            f.write_text("cannot open other on session other (-13): exclusive to client2\n")
        for o in orders:
            r = w.run(*o, want=None)
            has(r.err, *words)
            hasnt(r.err, "other", "server", "another client")
            eq(r.rc in (1, 6), True, f"{r}")

    for err, words in (("30", ("/sys is mounted read-only here", "on the host")),
                       ("13", ("keeps this process from writing", "on the host"))):
        w.put("sys/barred", err)
        said(*words)
    (w.sys / "barred").unlink()
    w.put("sys/incapable")
    w.put("root/proc/self/status", "Name: x\nCapEff:\t00000000a80425fb\nCapBnd: 1")
    said("CAP_SYS_ADMIN", "on the host")
    w.put("root/proc/self/status", "Name: x\nCapEff:\t000001ffffffffff")
    w.put("root/proc/self/uid_map", "         0     100000      65536")
    said("CAP_SYS_ADMIN", "on the host")
    (w.sys / "incapable").unlink()
    (w.sys / "block/ibnbd0/ibnbd/state").write_text("closed\n")
    has(w.run("resize", "vol1", "2G", want=None).err, "it is not open", "ibnbd remap")
    (w.sys / "block/ibnbd0/ibnbd/resize").unlink()
    hasnt(w.run("resize", "vol1", "2G", want=None).err, "other")


@test
def who_uses_it_in_a_container(w):
    w.client()
    w.run(*ONE)
    w.put("sys/block/ibnbd0/busy")
    w.namespace("self", 1, "1 0 8:1 / / rw - ext4 /dev/sda1 rw")
    for pid in range(90, 100):          # a service with copies of the mounts here, and its kind
        w.namespace(pid, 2, "1 0 8:1 / / rw - ext4 /dev/sda1 rw")
    users = lambda: [l.strip().removeprefix("try: ")
                     for l in w.run("unmap", "vol1", want=5).err.splitlines()[1:]]
    has(users()[0], "fuser -v /dev/ibnbd0")

    # a namespace that has no process
    own = w.root / "proc/self/mountinfo"
    before = own.read_text()
    own.write_text(before + "2 1 0:4 mnt:[2] /run/a.mnt rw - nsfs nsfs rw\n"
                   "3 1 0:4 mnt:[7] /run/snapd/ns/b.mnt rw - nsfs nsfs rw\n"
                   "4 1 0:4 net:[8] /run/netns/c rw - nsfs nsfs rw\n")
    eq(len(users()), 1)
    has(users()[0], "nsenter --mount=/run/snapd/ns/b.mnt")
    own.write_text(before)

    # mounted there alone; by a name here, and there, and by many
    mount = "2 1 259:0 / /data rw - ext4 /dev/ibnbd0 rw"
    w.put("root/proc/1234/comm", "postgres")
    w.namespace(1234, 3, mount)
    w.namespace(1235, 3, mount)
    eq(users(), ["it is mounted on /data in the mount namespace of process 1234 (postgres)"])
    w.conf("vol1 vol/1 store1 path=10.0.1.7\n")
    has(w.run("maps", "stop", "vol1", want=5).err, "stays mapped", "process 1234 (postgres)")
    for n in range(40):
        w.namespace(2000 + n, 100 + n, mount)
    eq(len(users()), 8)
    has(users()[-1], "in more mount namespaces")
    own.write_text(mount.replace("/data", "/srv") + "\n")
    eq(users(), ["it is mounted on /srv"])
    own.write_text(mount.replace("/data", "/") + "\n")
    has(w.run("maps", "stop", "vol1").err, "the system runs on it")
    own.write_text(before)
    for n in (1234, 1235, *range(2000, 2040)):
        shutil.rmtree(w.root / f"proc/{n}")
    w.namespace(1234, 3, mount.replace("/data", "/"))
    has(w.run("maps", "stop", "vol1", want=5).err, "mounted on / in the mount namespace of process")
    shutil.rmtree(w.root / "proc/1234")

    # a node elsewhere, in a namespace of its own and here; a loop device on it
    csi = "var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/pv/dev/1"
    w.process(4321, "qemu", "ibnbd0", node=csi)
    has(users()[0], f"process 4321 (qemu) has it open as /{csi}")
    w.namespace(4321, 5)
    has(users()[0], f"process 4321 (qemu) has it open as /{csi} in another mount namespace")
    shutil.rmtree(w.root / "proc/4321")
    w.process(4322, "mysqld", "ibnbd0")
    w.namespace(4322, 6)
    has(users()[0], "process 4322 (mysqld) has it open as /dev/ibnbd0 in another mount namespace")
    shutil.rmtree(w.root / "proc/4322")
    w.put("sys/block/loop3/loop/backing_file", f"/{csi}")
    w.put("sys/block/loop3/dev", "7:3")
    own.write_text("2 1 7:3 / /mnt rw - ext4 /dev/loop3 rw\n")
    eq(users(), ["loop3 is built on it", "it is mounted on /mnt"])
    shutil.rmtree(w.sys / "block/loop3")

    # what may wait for a server is not looked at; a local mount below it is
    w.process(4323, "tar", "ibnbd0", node="net/local/disk")
    net = "2 1 0:50 / /net rw - {} server:/x rw\n"
    for kind in ("nfs4", "cifs", "fuse.sshfs", "ceph"):
        own.write_text(net.format(kind))
        has(users()[0], "fuser -v")
    own.write_text(net.format("nfs4") + "3 2 8:2 / /net/local rw - ext4 /dev/sda2 rw\n")
    has(users()[0], "process 4323 (tar) has it open as /net/local/disk")
