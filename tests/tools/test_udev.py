# SPDX-License-Identifier: GPL-2.0-only
"""Done is said when udev is done: its links are there, or gone."""
import os
import subprocess
import threading
import time
from kit import *

LATE = 0.7          # seconds that udev takes


class Udevd:
    """udev, with LATE seconds for each event: links, then the record; without a record it is
    gone first."""

    def __init__(self, w, deaf=False):
        self.w, self.run, self.seen = w, w.root / "run/udev", {}
        (self.run / "data").mkdir(parents=True)
        (self.run / "control").touch()
        self.over = threading.Event()
        self.thread = threading.Thread(target=lambda: deaf or self.serve())
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def link(self, kname):
        part = kname.partition("p")
        return self.w.root / f"dev/ibnbd/by-name/{part[0]}{'-part' * bool(part[1])}{part[2]}"

    def devices(self):
        """{name: (number, what an event is sent for)}"""
        found = {}
        for d in sorted((*self.w.sys.glob("block/ibnbd*"), *self.w.sys.glob("block/*/ibnbd*p*"))):
            try:
                number = (d / "dev").read_text().strip()
                if number:          # the fake kernel has not written it yet
                    found[d.name] = (number, tuple(
                        (d / f).read_text() for f in ("size", "ibnbd/state")
                        if (d / f).exists()))
            except OSError:
                pass
        return found

    def serve(self):
        while not self.over.wait(0.02):
            now = self.devices()
            for name in [n for n in self.seen if n not in now]:
                self.over.wait(LATE)
                (self.run / f"data/b{self.seen.pop(name)[0]}").unlink()
                self.over.wait(LATE)
                self.link(name).unlink()
            for name, what in now.items():
                if self.seen.get(name) != what:
                    self.over.wait(LATE)
                    self.event(name, what[0])
                    self.seen[name] = what

    def event(self, name, number, first=None):
        link, record = self.link(name), self.run / f"data/b{number}"
        if not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(f"../../{name}")
        first = first or (self.seen.get(name) and [
            l for l in record.read_text().splitlines() if l[0] == "I"][0][2:]) \
            or int(time.monotonic() * 1e6)
        new = record.with_suffix(".new")
        new.write_text(f"S:ibnbd/by-name/{link.name}\nI:{first}\nE:ID_BUS=ibnbd\nG:systemd\n")
        os.rename(new, record)


def took(w, *args, **how):
    begin = time.monotonic()
    return w.run(*args, **how), time.monotonic() - begin


@test
def map_and_unmap_wait_for_udev(w):
    w.client()
    w.put("root/dev/ibnbd0", "259:0")
    with Udevd(w) as udev:
        link = udev.link("ibnbd0")
        for _ in range(2):
            hasnt(w.run("map", "d", "s", "10.0.0.2").err, "udev")
            eq(link.is_symlink(), True, "map returns, the link is there")
            w.put("sys/block/ibnbd0/ibnbd0p1/partition", "1")
            w.put("sys/block/ibnbd0/ibnbd0p1/dev", "259:1")
            hasnt(w.run("map", "d", "s", "--idempotent").err, "udev")
            eq(udev.link("ibnbd0p1").is_symlink(), True, "and that of its partition")
            hasnt(w.run("unmap", "ibnbd0").err, "udev")
            eq([link.is_symlink(), udev.link("ibnbd0p1").is_symlink()], [False, False],
               "unmap returns, they are gone")


@test
def resize_and_remap_wait_for_udev(w):
    w.client()
    with Udevd(w) as udev:
        w.run("map", "d", "s", "10.0.0.2")
        record = udev.run / "data/b259:0"
        for order in (["resize", "ibnbd0", "2G"], ["remap", "ibnbd0"]):
            if order[0] == "remap":
                w.put("sys/block/ibnbd0/ibnbd/state", "closed")
                time.sleep(3 * LATE)
            before = record.stat().st_ino
            hasnt(w.run(*order).err, "udev")
            eq(record.stat().st_ino != before, True, f"udev has heard of {order[0]}")
        hasnt(took(w, "resize", "ibnbd0", "2G")[0].err, "udev")     # nothing to hear of


@test
def a_unit_is_ready_when_udev_is(w):
    w.client()
    w.conf("vol1 d s path=10.0.0.2\nvol2 e s path=10.0.0.2\n")
    with Udevd(w) as udev:
        w.run("maps", "start", "vol1")
        eq(udev.link("ibnbd0").is_symlink(), True, "start")
        w.run("maps", "apply")
        eq(udev.link("ibnbd1").is_symlink(), True, "apply")
        w.run("maps", "stop", "vol1")
        eq(udev.link("ibnbd0").is_symlink(), False, "stop")


@test
def who_is_late_is_named(w):
    """The record of a disk that had the number before does not count; ten seconds are enough."""
    w.client()
    with Udevd(w, deaf=True) as udev:
        udev.event("ibnbd0", "259:0", first=1)
        r, s = took(w, "map", "d", "s", "10.0.0.2")
        has(r.err, "/dev/ibnbd0: udev has not made its links after 10 seconds")
        eq((r.out, 9 < s < 20), ("/dev/ibnbd0\n", True), f"{s} s")
        r, s = took(w, "unmap", "ibnbd0", "--wait", "0")
        eq((r.err, s < 9), ("", True), f"nobody waits: {s} s")


@test
def nobody_waits_where_no_udev_is(w):
    w.client()
    w.put("root/run/udev/data/b259:0", "I:1")
    r, s = took(w, "map", "d", "s", "10.0.0.2")
    w.run("unmap", "ibnbd0")
    eq((r.err, s < 9), ("", True), f"{s} s")


# ---- the helper ----

ID = {"MAJOR": "259", "MINOR": "0"}


def helper(w, *args, **how):
    return w.run(*args, program="ibnbd-udev", env=ID, **how)


@test
def what_nobody_owns_goes(w):
    """Links to the node of this number, and udev's notes of them, when udev has no record of it."""
    links, dev = w.root / "run/udev/links", w.root / "dev"

    def lost():
        for link, to in (("ibnbd/by-name/old", "ibnbd0"), ("ibnbd/by-name/other", "ibnbd1"),
                         ("ibnbd/by-session/s/a/b", "ibnbd0"), ("disk/by-uuid/1", "ibnbd0"),
                         ("x\\x20y/mine", "ibnbd0"), ("x/unknown", "ibnbd0")):
            (dev / link).parent.mkdir(parents=True, exist_ok=True)
            if not (dev / link).is_symlink():
                (dev / link).symlink_to("../" * link.count("/") + to)
            if link == "x/unknown":
                continue
            noted = links / link.replace("\\", "\\x5c").replace("/", "\\x2f")
            noted.mkdir(parents=True, exist_ok=True)
            (noted / "b259:0").touch()
            (noted / "b259:1").touch()
    left = lambda: (sorted(str(p.relative_to(dev)) for p in dev.rglob("*") if p.is_symlink()),
                    {p.name for p in links.glob("*/*")})
    gone = (["ibnbd/by-name/other", "x/unknown"], {"b259:1"})

    lost()
    helper(w, "ibnbd0")
    eq(left(), gone)
    lost()
    helper(w, "--forget", "ibnbd0")
    eq(left(), gone)
    lost()
    w.put("root/run/udev/data/b259:0", "S:ibnbd/by-name/old")
    before = left()
    helper(w, "ibnbd0")
    eq(left(), before, "udev has a record")
    (w.root / "run/udev/data/b259:0").unlink()
    w.run("ibnbd0", program="ibnbd-udev")
    eq(left(), before, "it is not udev that asks")


@test
def a_probe_ends(w):
    """A third of udev's time, whoever has said what that is."""
    (w.root / "dev/ibnbd0").write_bytes(bytes(4 << 20))
    eq(helper(w, "--probe", "ibnbd0").out, "", "nothing is on it")
    subprocess.run(["/sbin/mkfs.ext4", "-q", "-F", w.root / "dev/ibnbd0"], check=True)
    has(helper(w, "--probe", "ibnbd0").out, "ID_FS_TYPE=ext4\n", "ID_FS_UUID_ENC=")
    w.put("root/sbin/blkid", "#!/bin/sh\nexec sleep 60").chmod(0o755)     # the disk hangs
    for name, text, least, most in (
            ("etc/udev/udev.conf", "# event_timeout=180\nevent_timeout=\"3\"", 1, 4.5),
            ("proc/cmdline", "quiet udev.event-timeout=6s rw", 2, 4.5),
            (f"proc/{os.getpid()}/cmdline", "udevd\0--daemon\0--event-timeout=6", 2, 4.5),
            ("run/udev/udev.conf", "event_timeout=180", 5, 10)):
        f = w.put("root/" + name, text)
        r, s = took(w, "--probe", "ibnbd0", program="ibnbd-udev", env=ID, want=1)
        eq((r.out, least <= s < most), ("", True), f"{name}: {s} s")
        f.unlink()
