# SPDX-License-Identifier: GPL-2.0-only
"""A disk is forced away while no path is up: nobody can tell the server, who still has it open, and
may still be writing to it.  The server is told before anything else is opened when a path is
back, so that the disk is given to nobody before its last write has ended."""
description = ("unmap force without a link: "
               "the CLOSE is made up for, and the late write never lands over a newer one")
long = True
links = 2
disk = 64
faults = True
deadline = 200
import math, time
import faults as F
import late

BLOCK, DELAY = 99, 20
SAID = "the disk has not ended all its requests"


def run(t):
    c, s = t.client, t.server
    delay = DELAY * math.ceil(F.vm.SLOW)
    l = late.Scene(t, depth=32, disks=2)
    near = c.sh("map testdisk1")
    s.sh(f"echo {1000 * delay} > {late.P}/delay_ms")
    job, t0 = l.write(1, BLOCK), time.monotonic()
    t.wait(lambda: c.sh(f"cat /sys/block/{l.dev[5:]}/inflight").split()[1] != "0", 15,
           "the write is out")
    time.sleep(1)
    s.sh(f"echo 0 > {late.P}/delay_ms")     # for what comes from now on
    for i in 0, 1:
        c.link(i, False)
    t.wait(lambda: c.sh(f"dev_attr {l.dev} state") == "closed", 10, "all I/O is held")
    c.sh(f"unmap {l.dev} force")
    t.ok(job.wait(10) != 0, "the write has failed")
    for i in 0, 1:
        c.link(i, True)
    c.sh(f"wait_for 10 eval '[ $(dev_attr {near} state) = open ]'; "
         f"dd if=/dev/zero of={near} bs=4k count=1 oflag=direct status=none")
    c.fails("map testdisk0", SAID)
    c.fails("map testdisk0 sessname=s2 access_mode=migration", SAID)
    t.below(time.monotonic() - t0, delay - 1, "seconds so far: the disk still holds the write")
    # both are free for the neighbour
    c.sh("wait_for 6 "
         "eval '[ $(cat /sys/class/ibtrs-client/s1/paths/*/state | grep -c connected) = 2 ]'")

    time.sleep(max(0, t0 + delay + 1 - time.monotonic()))
    l.dev = c.sh("wait_for 10 eval 'map testdisk0 > /tmp/dev 2>&1'; tail -1 /tmp/dev")
    t.eq(l.write(2, BLOCK).wait(20), 0, "the disk takes writes again")
    took = time.monotonic() - t0
    c.sh(f"unmap {near}")
    l.rows = [dict(fault="T38", what="late copy of a write, unmapped without a link", stack="ibnbd",
                   Tstall=took, Nerr=1, note=f"the disk holds it for {delay} s")]
    l.end(128, must_fail=False)
