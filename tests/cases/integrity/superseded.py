# SPDX-License-Identifier: GPL-2.0-only
"""Three copies of a write: the disk holds the first one, the second one waits for its end, and its
path is lost before the server knows of that.  The third one takes its place."""
description = ("a repetition that waits for the first copy is dropped "
               "when another one comes after it: told that it is behind, never executed")
long = True
links = 3
disk = 64
faults = True
deadline = 100
import time
import late

BLOCK = 77


def run(t):
    c = t.client
    # it hears nothing of the paths' end meanwhile, and drops nothing for that
    l = late.Scene(t, serve="hb_misses=30")
    l.traced("ibtrs_srv_reply", "ibtrs_srv_request")
    state = lambda i: c.sh("cat "
                           f"/sys/class/ibtrs-client/s1/paths/ip:10.0.{i}.1@ip:10.0.{i}.2/state")
    l.path(2, "disconnect")
    first, t0 = l.strand(BLOCK)         # by path 0, repeated by path 1
    t.wait(lambda: state(0) != "connected", 3, "path 0 is lost")
    l.path(2, "reconnect")
    c.link(1, False)
    t.wait(lambda: state(1) != "connected", 3, "path 1 is lost")
    t.below(time.monotonic() - t0, late.DELAY - 2,
            "seconds until there were three copies, while the disk has the first one")
    t.eq(first.wait(40), 0, f"the first write: {first.out()}")
    took = time.monotonic() - t0
    t.ok(took > late.DELAY - 1, f"its repetitions waited for the first copy: {took:.1f} s")
    t.eq(l.write(2, BLOCK).wait(20), 0, "the second write")
    time.sleep(2)
    lines = l.trace()
    if lines is not None:
        stale = [x for x in lines if "err -38" in x]
        t.log(*stale)
        t.eq(len(stale), 1, "answers that it is behind")
        t.match(stale[0], r"10\.0\.1\.", "whose it is")
        t.eq([x for x in lines if "ibtrs_srv_request" in x and "10.0.1." in x], [],
             "requests executed for path 1")
    l.rows = [dict(fault="T37", what="late copy, its repetition overtaken by another",
                   stack="ibnbd", Tstall=took, Nerr=0,
                   note=f"the disk holds it for {late.DELAY} s")]
    c.link(1, True)
    l.end(128, must_fail=False)
