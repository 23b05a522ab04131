# SPDX-License-Identifier: GPL-2.0-only
"""ibnbd mirror watch, beside others: other legs, another mirror's file, its own end."""
import signal
from kit import *
from test_maps import Notify
from test_mirror import A, B, Watch, in_sync, leg, machine, mirror


@test
def watch_lets_no_leg_wait_for_another(w):
    """One that cannot be copied is tried less and less often; the other one is not."""
    machine(w)
    w.run("mirror", "create", "data", A, B, "vol1 store-c 10.0.1.9")
    w.put("mdadm-refuses", "--zero-superblock")
    leg(w, 1, "fenced", "in_sync")
    watch = Watch(w).says("cannot wipe the superblock of data-b")
    leg(w, 2, "open", "faulty")
    watch.until("data-c is taken back at once",
                lambda: "data-c is back" in watch.err.read_text(), 6)
    watch.end()


@test
def watch_of_a_mirror_that_is_none_any_more(w):
    """Without its record, or as no leg, a disk speaks for no other one."""
    mirror(w)
    conf = w.root / "etc/ibnbd/mirrors.d/data.conf"
    was = conf.read_text()
    p = Watch(w)
    for text in None, "uuid = x\nlegs = 2\n", was.replace("data-b", "data-c"):
        conf.write_text(was)
        p.until("told", lambda: in_sync(w) == ["1", "1"])
        if text is None:
            conf.unlink()
        else:
            conf.write_text(text)
        # a file with mistakes, or none: for all; another leg in the place of data-b: for that
        p.until((text, "not told any more"),
                lambda: in_sync(w) == (["1", "0"] if text and "data-c" in text else ["0", "0"]), 8)
    p.end()


@test
def watch_tells_systemd_that_it_lives(w):
    """After each look; systemd ends one that tells nothing for a minute."""
    mirror(w)
    notify = Notify(w)
    p = Watch(w, NOTIFY_SOCKET=notify.path)
    eq([notify.s.recv(4096).decode() for _ in range(3)], ["READY=1\nWATCHDOG=1"] * 3)
    p.end()


@test
def a_mirror_of_any_name(w):
    machine(w)
    w.run("mirror", "create", "watch", A, B)
    p = Watch(w)
    p.until("it looks", lambda: in_sync(w) == ["1", "1"])
    w.run("mirror", "stop", "watch")
    p.end()


@test
def watch_ends_with_a_worker_that_does_not(w):
    """systemd kills it in the end; no leg is let go from the beginning."""
    mirror(w)
    fake = w.root / "sbin/mdadm"
    fake.write_text("#!/bin/sh\nsleep 5\nexit 1\n")
    p = Watch(w)
    p.until("it looks", lambda: in_sync(w) == ["1", "1"])
    leg(w, 1, "fenced", "in_sync")
    p.says("data-b is copied whole")
    p.p.send_signal(signal.SIGTERM)
    p.until("told at once", lambda: in_sync(w) == ["0", "0"], 4)
    p.end()
