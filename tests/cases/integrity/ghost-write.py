# SPDX-License-Identifier: GPL-2.0-only
description = ("a write executed late on a lost path never comes over a newer one; "
               "without fences it does, and the checker sees it")
links = 2
disk = 64
faults = True
deadline = 200
import time
import late

BLOCK = 77


def scene(t, unsafe, scheduler, crowd=False):
    """crowd: each slot that is free for a moment is taken by a neighbour, so a write that gave its
    own back would get another one."""
    # the server loses the path before the disk is done: what it forgot then would not keep
    # the repetition waiting (law L6)
    l = late.Scene(t, unsafe, scheduler, depth=4 if crowd else 2, disks=2,
                   serve="" if unsafe else "hb_misses=2")
    first, t0 = l.strand(BLOCK, crowd=t.client.sh("map testdisk1") if crowd else None)
    t.eq(first.wait(40), 0, f"the first write: {first.out()}")
    took = time.monotonic() - t0
    t.eq(l.write(2, BLOCK).wait(20), 0, "the second write")
    t.log(f"the first write took {took:.1f} s")
    if unsafe:
        t.below(took, late.DELAY - 1,
                "seconds until the first write was acknowledged, without a fence")
    else:
        t.ok(took > late.DELAY - 1, f"its repetition waited for the first copy: {took:.1f} s")
    time.sleep(max(0, t0 + late.DELAY + 2 - time.monotonic()))
    what = f"late copy, same block, {'crowd, ' if crowd else ''}scheduler {scheduler}"
    l.rows = [] if unsafe else [dict(fault="T37", what=what, stack="ibnbd", Tstall=took, Nerr=0,
                                     note=f"the disk holds it for {late.DELAY} s")]
    return l.end(128, must_fail=bool(unsafe))


def run(t):
    scene(t, "", "none")
    scene(t, "", "mq-deadline", crowd=True)
    if t.server.serves_user():      # it has no switch for that
        return
    verdict = scene(t, "no_fence", "none")
    t.eq((verdict.lost, verdict.ghost, verdict.wrong), (0, 1, 0),
         "lost, ghosts and wrong blocks without fences")
