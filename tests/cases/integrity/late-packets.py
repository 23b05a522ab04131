# SPDX-License-Identifier: GPL-2.0-only
"""The network itself holds a write back: it arrives when its repetition has long been
executed, and a newer write after that.  The server knows by the token that it is stale,
executes nothing, and answers how far it is behind."""
description = ("a write that the network delivers late is not executed; "
               "without fences it is, and the checker sees it")
long = True
links = 2
disk = 64
faults = True
deadline = 150
import time
import faults as F
import late

BLOCK, LATE = 77, 8


def scene(t, unsafe):
    c = t.client
    # nobody asks whether that path lives
    l = late.Scene(t, unsafe, words="hb_interval=30000", serve="hb_interval_ms=60000")
    l.path(1, "disconnect")
    l.traced("ibtrs_srv_reply")
    late_ms = int(1000 * LATE * max(1, F.vm.SLOW / 2))
    c.sh(f"tc qdisc replace dev eth0 root netem limit 10000 delay {late_ms}ms")
    first, t0 = l.write(1, BLOCK), time.monotonic()
    t.wait(lambda: c.sh(f"cat /sys/block/{l.dev[5:]}/inflight").split()[1] != "0", 15,
           "the write is out")
    time.sleep(0.5)
    l.path(1, "reconnect")
    # only the client knows that this path is not used any more: what it says
    # about that comes after the write
    down = c.spawn("echo 1 > /sys/class/ibtrs-client/s1/paths/ip:10.0.0.1@ip:10.0.0.2/disconnect")
    t.eq(first.wait(40), 0, f"the first write: {first.out()}")
    t.eq(l.write(2, BLOCK).wait(20), 0, "the second write")
    took = time.monotonic() - t0
    t.below(took, late_ms / 1000 - 1,
            "seconds until both were written, before the late one arrives")
    down.wait(60)
    time.sleep(max(0, t0 + late_ms / 1000 + 2 - time.monotonic()))
    c.sh("net_fifo eth0")
    lines = l.trace()
    if lines is not None:
        stale = [x for x in lines if "err -38" in x]
        t.log(*stale)
        t.eq(len(stale), 0 if unsafe else 1, "answers that it is behind")
    l.rows = [] if unsafe else [dict(fault="T37", what="late copy, in the network", stack="ibnbd",
                                     Tstall=took, Nerr=0,
                                     note=f"it arrives after {late_ms / 1000:.0f} s, "
                                          "answered that it is behind")]
    return l.end(128, must_fail=bool(unsafe))


def run(t):
    scene(t, "")
    if t.server.serves_user():      # it has no switch for that
        return
    verdict = scene(t, "no_fence")
    t.eq((verdict.lost, verdict.ghost, verdict.wrong), (0, 1, 0),
         "lost, ghosts and wrong blocks without fences")
