# SPDX-License-Identifier: GPL-2.0-only
"""maps.conf: what is accepted, what is refused in which words,
how it is changed, and what it does."""
import os, socket, struct, subprocess, threading, time
from kit import *

GOOD = """# disks of this host
vol1      vol/1      store1     path=10.0.1.7 path=10.0.1.9,10.0.2.7 policy=min-latency  # the first
vol2      vol/2      store1     ro nofail policy=min-latency

scratch   "nvme0n1"  -          path=gid:fe80:0000:0000:0000:0002:c903:00a1:b2c3 \\
          noauto port=1235 start-timeout=90s x-mine=yes link=fast/scratch size=1G
"""


def unescape(text):
    for a, b in (("\\\\", "\\"), ("\\n", "\n"), ("\\t", "\t"), ("\\r", "\r"), ("\\x07", "\x07"),
                 ("\\0", "\0")):
        text = text.replace(a, b)
    return re.sub(r"\\x([89a-f][0-9a-f])",
                  lambda m: bytes((int(m[1], 16),)).decode("utf-8", "surrogateescape"), text)


@test
def every_mistake_has_its_message(w):
    out, n, f = "", 0, w.root / "etc/ibnbd/maps.conf"
    for line in (HERE / "bad-maps.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        title, _, text = line.partition("|")
        text = unescape(text).replace("\\udcff", "\udcff")
        end = "" if title.startswith("no newline") else "\n"
        f.write_bytes((text + end).encode("utf-8", "surrogateescape"))
        r = w.run("maps", "check", want=None)
        has(r.out, " error")
        eq(r.rc, 0 if " 0 errors" in r.out else 2, title)
        if "error: " not in r.err and "warning: " not in r.err:
            raise Failed(f"{title}: nothing was said: {r}")
        out += f"## {title}\n{r.err}{r.out}\n"
        n += 1
    if n < 60:
        raise Failed(f"only {n} cases")
    w.golden("bad-maps.out", out)


@test
def quiet_warnings_have_no_hint(w):
    """--quiet: errors only, with what to do about them."""
    w.conf("vol1 vol/1 store1 path=10.0.1.7 hold=x\n")
    eq(w.run("maps", "show").err,
       "ibnbd: warning: 1 mistakes, whose lines are left out\n   try: ibnbd maps check\n")
    eq(w.run("maps", "show", "--quiet").err, "")
    has(w.run("maps", "start", "vol1", "--quiet", "--no-modprobe", want=3).err, "no usable line",
        "   try: ibnbd maps check\n")


@test
def good_lines_are_shown_canonically(w):
    w.conf(GOOD)
    r = w.run("maps", "show")
    lines = r.out.splitlines()
    eq(lines[0], "vol1 vol/1 store1 path=ip:10.0.1.7 path=ip:10.0.1.9,ip:10.0.2.7 "
       "policy=min-latency")
    eq(lines[1], "vol2 vol/2 store1 access_mode=ro policy=min-latency nofail")
    eq(lines[2], "scratch nvme0n1 - path=gid:fe80:0000:0000:0000:0002:c903:00a1:b2c3 "
       "dest_port=1235 noauto start-timeout=90s link=fast/scratch size=1G x-mine=yes")
    # What is shown is read back as the same.
    w.conf(r.out)
    eq(w.run("maps", "show").out, r.out)
    has(w.run("maps", "show", "vol1", "--as-commands").out,
        "ibnbd map vol/1 store1 path=ip:10.0.1.7")
    has(w.run("maps", "show", "vol9", want=3).err, "vol9")


@test
def drop_ins(w):
    w.conf("vol1 vol/1 s path=10.0.0.1\n[defaults] hold=-1 nofail\nvol2 vol/2 s hold=5\n")
    w.conf("vol3 vol/3 s\n", "maps.conf.d/10-more.conf")
    w.conf("vol1 vol/9 s path=10.0.0.1 override\n", "maps.conf.d/20-other.conf")
    w.conf("broken\n", "maps.conf.d/30-off.conf.disabled")
    w.run("maps", "check")
    shown = w.run("maps", "show").out
    has(shown, "vol2 vol/2 s hold=5 nofail\n", "vol3 vol/3 s\n",
        "vol1 vol/9 s path=ip:10.0.0.1 override\n")
    hasnt(shown, "vol/1")


@test
def rights_of_the_file(w):
    f = w.conf(GOOD)
    f.chmod(0o666)
    has(w.run("maps", "check", want=2).err, "everybody can write to it", "chmod go-w")
    f.chmod(0o644)
    w.run("maps", "check")
    has(w.run("maps", "check", "--file", "/nonexistent", want=2).err, "cannot be read")


@test
def fstab_without_netdev(w):
    w.conf(GOOD + "data d s3 path=10.0.0.1 path=10.0.0.2 uuid=0123-4567\n")
    (w.root / "etc/fstab").write_text("/dev/ibnbd/by-name/vol1 /srv ext4 defaults 0 2\n"
                                      "/dev/ibnbd/by-name/vol2 /b ext4 _netdev,nofail 0 2\n"
                                      "UUID=0123-4567 /data xfs nofail 0 0\n"
                                      "/dev/disk/by-uuid/0123-4567 /again xfs nofail 0 0\n"
                                      "/dev/disk/by-uuid/0123-4568 /b xfs nofail 0 0\n"
                                      "UUID=9999 / ext4 defaults 0 1\n")
    (w.root / "etc/crypttab").write_text("# x\ncrypt /dev/ibnbd/by-name/scratch none luks\n"
                                         "other /dev/sda none luks\n")
    r = w.run("maps", "check")
    has(r.err, "/srv (/dev/ibnbd/by-name/vol1) has no _netdev",
        "/data (UUID=0123-4567) has no _netdev", "/again (/dev/disk/",
        "crypt (/dev/ibnbd/by-name/scratch)")
    hasnt(r.err, "/b (", "other")
    eq(w.run("doctor", want=None).out.count("has no _netdev"), 4)


@test
def fstab_of_what_is_mounted_on_our_disk(w):
    """It needs the network as well: whatever lies on a mount of ours, and what lies on that."""
    w.conf(GOOD)
    (w.root / "srv/link").parent.mkdir(parents=True)
    (w.root / "opt").mkdir()
    (w.root / "opt/link").symlink_to(w.root / "srv")
    for line, named in (("/srv/data /bind none bind 0 0", "/bind"),
                        ("overlay /o overlay lowerdir=/usr:/srv/low,upperdir=/u,workdir=/w", "/o"),
                        ("overlay /o overlay lowerdir=/a,upperdir=/srv/up,workdir=/w 0 0", "/o"),
                        ("overlay /o overlay lowerdir=/a,upperdir=/b,workdir=/srv/w 0 0", "/o"),
                        ("overlay /o overlay lowerdir+=/a,lowerdir+=/srv/b 0 0", "/o"),
                        ("/srv/swap none swap sw 0 0", "none"),
                        ("/srv/disk.img /img ext4 loop,ro 0 0", "/img"),
                        ("/opt/link/disk.img /img ext4 loop 0 0", "/img"),
                        ("/srv//./x\\040y.img /img ext4 loop 0 0", "/img"),
                        ("/a:/srv/b /pool fuse.mergerfs defaults 0 0", "/pool"),
                        ("bindfs#/srv/b /b fuse defaults 0 0", "/b"),
                        ("tmpfs /srv/tmp tmpfs defaults 0 0", "/srv/tmp"),
                        ("/dev/sda3 /x xfs logdev=/dev/ibnbd/by-name/vol2 0 0", "/x"),
                        ("/dev/sda3 /x ext4 x-systemd.requires-mounts-for=/srv/x 0 0", "/x"),
                        ("/dev/mapper/image /x ext4 defaults 0 0", "/x"),
                        ("/dev/mapper/keyed /x ext4 defaults 0 0", "/x"),
                        ("/srvs/data /bind none bind 0 0", None),
                        ("/home /srv2 none bind 0 0", None), ("/srv/a /b none bind,_netdev", None),
                        ("/dev/sda3 / ext4 defaults 0 0", None), ("proc /proc proc", None)):
        (w.root / "etc/fstab").write_text(f"{line}\n"
                                          "/dev/ibnbd/by-name/vol1 /srv ext4 _netdev 0 2\n")
        (w.root / "etc/crypttab").write_text("image /srv/luks.img none luks,_netdev\n"
                                             "keyed /dev/sdb /srv/key luks,_netdev\n"
                                             "plain /dev/sdb /root/key:UUID=1 luks\n")
        r = w.run("maps", "check")
        eq(re.findall(r"(\S+) \(.*\) needs .* has no _netdev", r.err), [named] if named else [],
           line)
        eq("has no _netdev" in w.run("doctor", want=None).out, bool(named), line)
    # chains, in whatever order they stand
    (w.root / "etc/fstab").write_text("/merged/disk.img /img ext4 loop 0 0\n"
                                      "overlay /merged overlay lowerdir=/twice,upperdir=/u 0 0\n"
                                      "/once/b /twice none bind 0 0\n"
                                      "/srv/a /once none bind 0 0\n"
                                      "/img/swap none swap defaults 0 0\n"
                                      "/dev/ibnbd/by-name/vol1 /srv/ ext4 _netdev 0 2\n")
    (w.root / "etc/crypttab").unlink()
    eq(re.findall(r"(\S+) \(.*\) needs (\S+) and has no _netdev", w.run("maps", "check").err),
       [("/once", "/srv/"), ("/twice", "/once"), ("/merged", "/twice"), ("/img", "/merged"),
        ("none", "/img")])


@test
def fstab_by_tags_and_through_layers(w):
    """The usual line names our disk by UUID, LABEL, a logical volume:
    a disk that is mapped is known by all of them."""
    w.client()
    w.conf("vol1 vol/1 s path=10.0.0.1 path=10.0.0.2\n")
    w.run("map", "vol/1", "s", "10.0.0.1", "--name", "vol1")
    block = w.sys / "class/block"
    block.mkdir()
    for name, slave in (("ibnbd0", None), ("ibnbd0p1", None), ("dm-0", "ibnbd0"), ("dm-1", "dm-0"),
                        ("md127", "ibnbd0p1"), ("sda1", None), ("dm-2", "sda1")):
        real = w.sys / "block" / name
        real.mkdir(exist_ok=True)
        if slave:
            (real / "slaves" / slave).mkdir(parents=True)
        (block / name).symlink_to(f"../../block/{name}")
    w.put("sys/block/md127/md127p1/partition", 1)
    (block / "md127p1").symlink_to("../../block/md127/md127p1")
    for name in ("ibnbd0", "ibnbd0p1", "dm-0", "dm-1", "md127p1", "sda1", "dm-2"):
        w.put(f"root/dev/{name}")
    for link, to in (("disk/by-uuid/0123-4567", "ibnbd0"),
                     ("disk/by-label/my\\x20data", "ibnbd0p1"),
                     ("disk/by-partuuid/77-01", "ibnbd0p1"), ("vg0/lv0", "dm-0"),
                     ("mapper/secret", "dm-1"), ("md/m0p1", "md127p1"),
                     ("disk/by-uuid/9999", "sda1"), ("vg1/root", "dm-2")):
        f = w.root / "dev" / link
        f.parent.mkdir(parents=True, exist_ok=True)
        f.symlink_to(w.root / "dev" / to)
    (w.root / "etc/fstab").write_text("".join(
        f"{source} /m{i} ext4 defaults 0 2\n" for i, source in enumerate(
            ("UUID=0123-4567", 'LABEL="my\\040data"', "PARTUUID=77-01", "/dev/vg0/lv0",
             "/dev/mapper/secret", "/dev/md/m0p1", "UUID=9999", "/dev/vg1/root",
             "/dev/none", "UUID=none", "tmpfs"))))
    (w.root / "etc/crypttab").write_text("secret /dev/vg0/lv0 none luks\n"
                                         "third UUID=\"0123-4567\" none luks,_netdev\n")
    r = w.run("maps", "check")
    eq(sorted(re.findall(r"(\S+) \(.*\) has no _netdev", r.err)),
       ["/m0", "/m1", "/m2", "/m3", "/m4", "/m5", "secret"])
    eq(w.run("doctor", want=None).out.count("has no _netdev"), 7)
    w.run("unmap", "vol1")
    shutil.rmtree(w.root / "dev/disk")
    hasnt(w.run("maps", "check").err, "/m0 (", "/m1 (")


# ---- making it so ----

@test
def start_and_stop(w):
    w.client()
    w.conf(GOOD)
    has(w.run("maps", "start", "vol1").out, "vol1: /dev/ibnbd0")
    w.run("maps", "start", "vol1")
    eq(len(w.log()), 1)
    w.run("map", "byhand", "store1")
    has(w.run("maps", "start", "vol9", want=3).err, 'no usable line "vol9"')
    w.run("maps", "stop", "vol1", "vol2")
    eq([p.name for p in (w.sys / "block").iterdir()], ["ibnbd1"],
       "what the file does not name stays")
    has(w.run("maps", "stop", "byhand", want=3).err, "nothing else is touched")


@test
def stop_leaves_what_is_in_use(w):
    w.client()
    w.conf(GOOD)
    w.run("maps", "start", "vol1")
    (w.root / "proc/self/mountinfo").write_text("36 25 259:0 / /srv rw - ext4 /dev/ibnbd0 rw\n")
    has(w.run("maps", "stop", "vol1", want=5).err, "stays mapped", "/srv")
    for p in (w.sys / "class/ibtrs-client/store1/paths").iterdir():
        (p / "state").write_text("disconnected\n")
    n = len(w.log())
    has(w.run("maps", "stop", "vol1", want=5).err, "stays mapped", "/srv")
    eq(len(w.log()), n, "its I/O waits for a server that comes back")
    (w.root / "proc/self/mountinfo").write_text("36 25 259:0 / / rw - ext4 /dev/ibnbd0 rw\n")
    has(w.run("maps", "stop", "vol1").err, "the system runs on it")
    eq((w.sys / "block/ibnbd0").exists(), True)


def dead_server(w):
    w.client()
    w.conf(GOOD)
    w.run("maps", "start", "vol1")
    for p in (w.sys / "class/ibtrs-client/store1/paths").iterdir():
        (p / "state").write_text("disconnected\n")
    return len(w.log())


@test
def stop_does_not_wait_for_a_dead_server(w):
    n = dead_server(w)
    w.run("maps", "stop", "vol1")
    eq(w.log()[n:], ["block/ibnbd0/ibnbd/unmap_device normal"], "unmapping ends what waits")


@test
def stop_lets_go_what_udev_reads(w):
    n = dead_server(w)
    w.process(77, "(udev-worker)", "ibnbd0", "system.slice/systemd-udevd.service/udev")
    busy = w.put("sys/block/ibnbd0/busy")
    has(w.run("maps", "stop", "vol1", want=5).err, "process 77 ((udev-worker)) has it open")
    eq(w.log()[n], "block/ibnbd0/ibnbd/hold 0")
    eq(w.log()[-1], "block/ibnbd0/ibnbd/hold 100", "it stays mapped, with its hold=")
    busy.unlink()
    n = len(w.log())
    w.run("maps", "stop", "vol1")
    eq(w.log()[n:], ["block/ibnbd0/ibnbd/hold 0", "block/ibnbd0/ibnbd/unmap_device normal"])


@test
def stop_leaves_the_io_of_a_process(w):
    """No mount, no holder: what it has written waits for a server that comes back."""
    dead_server(w)
    w.process(77, "(udev-worker)", "ibnbd0", "system.slice/systemd-udevd.service/udev")
    w.process(78, "qemu", "ibnbd0")
    w.put("sys/block/ibnbd0/busy")
    has(w.run("maps", "stop", "vol1", want=5).err, "it is in use", "process 78 (qemu) has it open")
    hasnt("\n".join(w.log()), "hold")


class Notify:
    """systemd's end of the notification socket."""

    def __init__(self, w):
        self.path = str(w.dir / "notify")
        self.s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.s.bind(self.path)
        self.s.settimeout(20)
        self.begin = time.monotonic()

    def until(self, word):
        seen = []
        while not any(word in m for m in seen):
            seen.append(self.s.recv(4096).decode())
        return seen, time.monotonic() - self.begin


class Start:
    """ibnbd maps start vol1, as systemd runs it; with: it does not outlive the test."""

    def __init__(self, w):
        self.notify = Notify(w)
        self.p = subprocess.Popen([str(w.build / "ibnbd-faked"), "maps", "start", "vol1"],
                                  env={**w.env, "NOTIFY_SOCKET": self.notify.path},
                                  stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait(DEADLINE)


@test
def boot_does_not_hang_on_a_dead_server(w):
    w.client()
    w.conf("vol1 E-ETIMEDOUT s path=10.0.0.1\n")
    with Start(w) as start:
        seen, took = start.notify.until("READY=1")
        eq(3 < took < 13, True, f"READY after {took}")
        has(seen[0], "STATUS=not mapped yet, tried 1 times")
        eq(start.p.poll(), None, "it goes on")
        start.p.terminate()
        eq(start.p.wait(DEADLINE), -15)


@test
def boot_does_not_hang_while_the_driver_waits(w):
    """The driver's wait ends by what is fatal alone (fake.c): no handler runs before."""
    w.client()
    w.conf("vol1 SLOW25 s path=10.0.0.1\n")
    with Start(w) as start:
        seen, took = start.notify.until("READY=1")
        eq((seen, 9 < took < 13), (["READY=1"], True), f"READY after {took}")
        start.p.terminate()
        eq(start.p.wait(DEADLINE), -15)


@test
def nofail_is_content(w):
    w.client()
    w.conf("vol1 E-EPERM s path=10.0.0.1 wait nofail\n")
    n = Notify(w)
    has(w.run("maps", "start", "vol1", env={"NOTIFY_SOCKET": n.path}).err, "refuses")
    has(n.until("READY=1")[0][-1], "not mapped")
    w.run("maps", "start", "vol1", want=6)
    shutil.rmtree(w.sys / "class")      # a kernel that has no driver of ours
    has(w.run("maps", "start", "vol1", env={"NOTIFY_SOCKET": n.path}).err,
        "ibnbd-client is not loaded")
    has(n.until("READY=1")[0][-1], "not mapped")
    w.run("maps", "start", "vol1", want=8)
    w.run("maps", "start", "--missing", want=8)


@test
def ready_when_mapped(w):
    w.client()
    w.conf(GOOD)
    n = Notify(w)
    w.run("maps", "start", "vol1", env={"NOTIFY_SOCKET": n.path})
    has(n.until("READY=1")[0][0], "READY=1\nSTATUS=mapped")


@test
def wait_ends(w):
    w.client()
    w.conf("a E-EPERM s path=10.0.0.1 wait start-timeout=60s\n"
           "b E-ETIMEDOUT s2 path=10.0.0.1 wait start-timeout=2s\n")
    t = time.monotonic()
    has(w.run("maps", "start", "a", want=6).err, "cannot map E-EPERM")
    eq(w.log().count(w.log()[0]), 3, "refused three times")
    has(w.run("maps", "start", "b", want=7).err, "given up after")
    eq(time.monotonic() - t < 15, True)


@test
def pauses_double(w):
    """1, 2, 4 seconds, each a fifth more or less;
    a bound above would measure the load of this machine."""
    w.client()
    w.conf("b E-ETIMEDOUT s path=10.0.0.1 wait start-timeout=13s\n")
    has(w.run("maps", "start", "b", want=7).err, "given up after")
    times = [float(t) for t in (w.sys / "times").read_text().split()]
    gaps = [b - a for a, b in zip(times, times[1:])]
    eq(len(gaps), 3, f"pauses {gaps}")
    for gap, least in zip(gaps, (0.8, 1.6, 3.2)):
        eq(gap > least - 0.3, True, f"pauses {gaps}")


@test
def somebody_elses_attempt_is_no_mapping(w):
    """The driver knows the name from the beginning of an attempt; that one may fail."""
    w.client()
    w.conf("b E-EEXIST s path=10.0.0.1 wait start-timeout=2s\n")
    has(w.run("maps", "start", "b", want=7).err, "given up after")


@test
def the_wrong_size_is_unmapped_again(w):
    w.client()
    w.conf("a d s path=10.0.0.1 size=2G\nb d2 s path=10.0.0.1 size=1G\n")
    has(w.run("maps", "start", "a", "--wait", "0", want=1).err, "is not the disk of a",
        "unmapped again")
    eq(w.json("list")["devices"], [])
    w.run("maps", "start", "b")
    has(w.run("maps", "start", "a", want=1).err, "is not the disk of a")
    has(w.run("map", "a", want=1).err, "is not the disk of a", "unmapped again")
    eq([d["name"] for d in w.json("list")["devices"]], ["b"])


@test
def the_wrong_uuid_is_unmapped_again(w):
    """Of what is on the disk, or of its partition table; by a start of the unit, and by hand."""
    w.client()
    disk = bytearray(65536)
    dos = disk[:]
    disk[1024:1052] = struct.pack("<III", 1, 15, 0) + bytes(range(16))
    disk[4086:4096] = b"SWAPSPACE2"
    dos[440:444], dos[510:512] = bytes((4, 3, 2, 1)), b"\x55\xaa"
    dos[446:462] = struct.pack("<BBBBBBBBII", 0, 0, 2, 0, 0x83, 0, 9, 0, 1, 8)
    node = w.root / "dev/ibnbd0"
    for what, uuid in ((disk, "00010203-0405-0607-0809-0A0B0C0D0E0F"), (dos, "01020304"),
                       (bytes(65536), None)):
        node.write_bytes(what)
        w.conf(f"a d s path=10.0.0.1 uuid=9999-9999\nb d s2 path=10.0.0.1 uuid={uuid}\n")
        for cmd in (("maps", "start"), ("map",)):
            has(w.run(*cmd, "a", want=1).err, f"{node.name} is not the disk of a",
                "its UUID is " + uuid.lower() if uuid else "it has no UUID",
                "maps.conf says 9999-9999; unmapped again")
            eq(w.json("list")["devices"], [])
            if uuid:
                w.run(*cmd, "b")
                w.run("unmap", "b")
    node.unlink()
    has(w.run("map", "a", want=1).err, "it cannot be read; unmapped again")


@test
def whoever_maps_it_gets_no_other_disk(w):
    """By its words, or again: the line of this device of this session counts, whatever the name."""
    w.client()
    w.conf("a d s path=10.0.0.1 size=2G\n")
    for args in (("map", "d", "s", "10.0.0.1"),
                 ("map", "d", "s", "10.0.0.1", "--name", "b", "--save", "--no-reload")):
        r = w.run(*args, want=1)
        has(r.err, "is not the disk of a", "unmapped again")
        eq((r.out, w.json("list")["devices"]), ("", []))
    eq((w.root / "etc/ibnbd/maps.conf.d").exists(), False)
    has(w.run("map", "d", "s", "10.0.0.1", "-n").out, "device_path=d")
    w.run("map", "d2", "s", "10.0.0.1")
    w.conf("a d2 s path=10.0.0.1 size=1G\n")
    eq(w.run("remap", "--force", "ibnbd0").out, "/dev/ibnbd0\n")
    w.conf("a d2 s path=10.0.0.1 size=2G\n")
    r = w.run("remap", "--force", "ibnbd0", want=1)
    has(r.err, "is not the disk of a", "unmapped again")
    eq((r.out, w.json("list")["devices"]), ("", []))


@test
def start_missing(w):
    w.client()
    w.conf(GOOD)
    w.run("maps", "start", "--missing")
    eq([d["name"] for d in w.json("list")["devices"]], ["vol1", "vol2"], "noauto is left out")


@test
def a_server_that_hangs_is_not_the_end(w):
    """The lines behind it are tried."""
    w.client()
    w.conf("vol1 SLOW11 s path=10.0.0.1\nvol2 d s2 path=10.0.0.2\n")
    has(w.run("maps", "start", "--missing", want=9).err, "vol1: cannot map SLOW11")
    eq([d["name"] for d in w.json("list")["devices"]], ["vol2"])


@test
def apply(w):
    w.client()
    w.conf("vol1 vol/1 s path=10.0.1.7\n")
    w.run("maps", "apply")
    w.conf("vol1 vol/1 s path=10.0.1.7 path=10.0.2.7 hold=5 policy=rr max-reconnect=9\n"
           "vol2 vol/2 s policy=rr max-reconnect=9\nx\n")
    r = w.run("maps", "apply", "-n")
    has(r.out, "echo 'round-robin' > ", "echo 'ip:10.0.2.7' > ", "device_path=vol/2")
    eq(len(w.log()), 1)
    w.run("maps", "apply")
    has("\n".join(w.log()), "hold 5", "mpath_policy round-robin", "max_reconnect_attempts 9",
        "add_path ip:10.0.2.7", "device_path=vol/2")
    n = len(w.log())
    w.run("maps", "apply")
    eq(len(w.log()), n, "applied twice changes nothing")


@test
def apply_tells_what_is_only_had_anew(w):
    """Each option but those that are changed in place."""
    w.client()
    w.conf("vol1 vol/1 s path=10.0.1.7\n")
    w.run("maps", "apply")
    n = len(w.log())
    text = "retain_mb=7 unflushed=fence write_cache=on write_zeroes=off hb_misses=9 access_mode=ro"
    w.conf(f"vol1 vol/1 s path=10.0.1.7 {text}\n")
    r = w.run("maps", "apply")
    for word in text.split():
        has(r.err, f"vol1 is mapped with {word.split('=')[0]}=", f", maps.conf says {word}\n")
    has(r.err, "ibnbd unmap vol1 and what else is mapped over session s, then ibnbd maps apply")
    eq(len(w.log()), n, "nothing is written")
    w.conf("vol1 vol/1 s path=10.0.1.7 unflushed=fence\n")
    has(w.run("maps", "apply").err, "unflushed=auto, maps.conf says unflushed=fence",
        "ibnbd unmap vol1, then")
    w.conf("vol1 vol/1 s path=10.0.1.7\n")
    eq(w.run("maps", "apply").err, "", "what is not said is as it was mapped")


@test
def apply_adds_paths_to_hosts(w):
    w.client()
    w.conf("vol1 vol/1 s path=10.0.1.7\n")
    w.run("maps", "apply")
    w.conf("vol1 vol/1 s path=10.0.1.7 path=localhost\n")
    has(w.run("maps", "apply").out, "session s: path ip:", " added")
    eq(w.log()[-1] in [f"class/ibtrs-client/s/add_path ip:{a}"
                       for a in ("127.0.0.1", "[::1]", "::1")], True, w.log()[-1])
    n = len(w.log())
    w.run("maps", "apply")
    eq(len(w.log()), n, "applied twice changes nothing")
    w.conf("vol1 vol/1 s path=store.invalid path=10.0.2.7\n")
    has(w.run("maps", "apply", want=7).err, "session s: the host store.invalid cannot be resolved")
    has(w.log()[-1], "add_path ip:10.0.2.7")


@test
def apply_unmaps_only_when_told(w):
    w.client()
    w.conf("vol1 vol/1 s path=10.0.1.7\nvol2 vol/2 s\n")
    w.run("maps", "apply")
    w.run("map", "byhand", "s")
    w.conf("vol1 vol/1 s path=10.0.1.7\n")
    has(w.run("maps", "apply").err, "vol2 (/dev/ibnbd1) is mapped and not in maps.conf")
    eq(len(w.json("list")["devices"]), 3)
    w.conf("vol1 vol/1 s path=10.0.1.7\nvol2 vol/2 s polcy=rr\n")
    has(w.run("maps", "apply", "--prune", want=9).err, "nothing is unmapped")
    w.conf("vol1 vol/1 s path=10.0.1.7\n")
    w.run("maps", "apply", "--prune")
    eq([d["device_path"] for d in w.json("list")["devices"]], ["vol/1", "byhand"])


# ---- generator, udev ----

@test
def generator(w):
    w.conf(GOOD
           + "my-vol a%b s5 path=10.0.0.1 wait start-timeout=5min x-systemd.requires=foo.service\n"
           "bad\n")
    (w.root / "proc/cmdline").write_text("quiet\n")
    (w.root / "dev/kmsg").write_text("")
    out = w.dir / "gen"
    out.mkdir()
    w.run(out, program="ibnbd-generator")
    files = {str(p.relative_to(out)): (os.readlink(p) if p.is_symlink() else p.read_text())
             for p in sorted(out.rglob("*")) if not p.is_dir()}
    w.golden("generator.txt",
             "".join(f"== {k}\n{v}\n" for k, v in files.items())
             + (w.root / "dev/kmsg").read_text())
    (w.root / "proc/cmdline").write_text("quiet ibnbd=no\n")
    other = w.dir / "gen2"
    other.mkdir()
    w.run(other, program="ibnbd-generator")
    eq(list(other.iterdir()), [])


@test
def udev_helper(w):
    w.client()
    w.conf("vol1 vol/1 store1 path=10.0.1.7 scheduler=bfq readahead=512 link=fast\n")
    w.run("map", "vol/1", "store1", "10.0.1.7")
    w.run("map", "../a b/./c", "store1", "--name", "x", want=None)
    eq(w.run("ibnbd0", program="ibnbd-udev").out,
       "IBNBD_SESSION=store1\nIBNBD_DEVICE_LINK=vol/1\nIBNBD_PATH=ibnbd-store1-vol:1\n"
       "IBNBD_NAME=vol1\nIBNBD_LINK=fast\nIBNBD_SCHEDULER=bfq\nIBNBD_READAHEAD=512\n"
       "IBNBD_ID=00112233445566778899aabbccddeeff\n")
    (w.sys / "block/ibnbd0/ibnbd/mapping_path").write_text("/../x//$(id)/.\n")
    has(w.run("ibnbd0", program="ibnbd-udev").out,
        "IBNBD_DEVICE_LINK=\\x2f../x/\\x2f\\x24\\x28id\\x29/\\x2e\n")
    eq(w.run("ibnbd9", program="ibnbd-udev").out, "")


@test
def a_host_of_another_name_has_its_disks(w):
    """Its "-" is named after it and its id; both change: DHCP, cloud-init, initramfs."""
    w.client()
    lines = "vol1 vol/1 - path=10.0.0.2\nvol2 vol/2 - path=10.0.0.2\n"
    session = lambda n: (w.sys / f"block/ibnbd{n}/ibnbd/session").read_text().strip()
    mapped = lambda: sorted(p.name for p in (w.sys / "block").iterdir())

    def before(*names):
        """Mapped when the host was called otherwise."""
        w.conf("#\n")
        for name in names:
            w.run("map", "vol/1", name, "10.0.0.2", "--name", "vol1")
        w.conf(lines)

    for name in ("db1-dhcp-example-01234567@10-0-0-2", "localhost-fedcba98@10-0-0-2"):
        before(name)
        for words in (["start", "vol1"], ["start", "--missing", "-q"], ["apply"],
                      ["apply", "--prune"]):
            w.run("maps", *words)
        eq((mapped(), session(0), session(1)), (["ibnbd0", "ibnbd1"], name, name), "one session")
        has(w.run("map", "vol/1", "-", "10.0.0.2", want=4).err, "mapped already, as /dev/ibnbd0")
        hasnt(w.run("ibnbd0", program="ibnbd-udev").out, "IBNBD_LINK")
        eq([m["mapped_as"] for m in w.json("maps", "show")["maps"]], ["/dev/ibnbd0", "/dev/ibnbd1"])
        w.run("maps", "stop", "vol1", "vol2")
        eq(mapped(), [], "stopped")

    # mapped twice, as by a command that did not know: the line is that of its device
    before("a-01234567@10-0-0-2", "b-01234567@10-0-0-2")
    w.run("unmap", "ibnbd0")
    w.run("map", "other", "a-01234567@10-0-0-2", "10.0.0.2")
    w.run("maps", "stop", "vol1")
    eq((mapped(), session(0)), (["ibnbd0"], "a-01234567@10-0-0-2"))
    w.run("unmap", "ibnbd0")

    # what is not this line's: of another server, or named by somebody
    for name in ("a-01234567@10-0-0-3", "a-0123456@10-0-0-2", "-01234567@10-0-0-2", "mine@10-0-0-2",
                 "a-0123456g@10-0-0-2", "a-01234567@10-0-0-2x"):
        w.run("map", "vol/1", name, "10.0.0.2")
        w.run("maps", "stop", "vol1")
        eq(mapped(), ["ibnbd0"], name)
        w.run("unmap", "ibnbd0")
