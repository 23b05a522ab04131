# SPDX-License-Identifier: GPL-2.0-only
"""A mirror that heals itself: one server is killed and boots, the other one loses its power behind
a dark link, and then both links are dark for 20 seconds, under writers that flush.  Nothing is
typed in between.  (client2 is the one that is killed: the other server is the hub of the links.)"""
description = ("a mirror made by one command loses its servers one after the other, and then sight "
               "of both: no error, short pauses, nothing typed, and the legs are equal")
vms = 3
links = 2
disk = 64
long = True
deadline = 240
import faults as F, mirrors as M, vm
programs = M.PROGRAMS
DARK = 20
STATE = "/sys/class/ibtrs-client/{}/paths/*/state"
FAST = "hb_interval_ms=200 failfast=4"      # noticed within a second, let go 4 seconds later
SERVE = "modprobe virtio_blk; wait_for 5 test -b /dev/vda; "


def run(t):
    c, (one, two) = t.client, M.machines(t, size=64)
    two.sh(SERVE)
    m = M.Mirror(t, (one, two), (FAST, FAST), chunk=None, disks=("testdisk0", "vda"), how="")
    t.ok(m.healed(120), "made")
    m.watch()
    w = F.Work(t, c, m.dev, flush=4, states=" ".join(map(STATE.format, "ab")))

    def boot():
        m.dropped(m.b)
        two.boot()
        two.sh(SERVE + "serve")
    row = w.fault("M4", "a mirror: one server is killed, and boots", two.kill, boot, down=[1],
                  from_healed=True, recover=60, up=m.whole)
    w.limit(row, Nerr=0, Tstall=6)
    m.said("data-b is back")

    def power():
        c.link(0, False)
        one.sh(f"echo 1 > {M.P}/power_cut; echo 1 > {M.CTL}/testdisk0/cache_lost")
    row = w.fault("M5", "a mirror: the other one loses its power", power,
                  lambda: (m.dropped(m.a), c.link(0, True)), down=[0], recover=60, up=m.whole)
    w.limit(row, Nerr=0, Tstall=6)
    m.said("data-a is back|data-a is copied whole")

    row = w.fault("M6", "a mirror: both links are dark", lambda: (c.link(0, False),
                                                                  c.link(1, False)),
                  lambda: (c.link(0, True), c.link(1, True)), hold=DARK, down=[0, 1])
    w.limit(row, Nerr=0, Trec=3)
    t.ok(m.healed(), "whole after the dark")
    t.wait(lambda: m.record() == ["data-a", "data-b"], 20 * vm.SLOW, "both are recorded")
    t.eq(c.rc(f"cat /sys/block/{m.md0}/md/dev-*/bad_blocks")[1], "", "bad blocks")
    w.stop()
    t.eq(c.sh("ibnbd mirror check data", timeout=60), "data: the legs are equal", "the command")
    t.eq(m.compare("after all"), "", "the halves")
    m.prove(w)
    M.leave(t)
