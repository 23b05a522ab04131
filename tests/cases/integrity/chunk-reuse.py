# SPDX-License-Identifier: GPL-2.0-only
description = ("memory that a late write still reads is not given to another one; "
               "were it shared among paths, it would be")
long = True
links = 2
disk = 64
faults = True
deadline = 150
import time
import late

BLOCK, OTHER = 77, 99


def scene(t, unsafe, scheduler="none"):
    l = late.Scene(t, unsafe, scheduler)
    first, t0 = l.strand(BLOCK)
    t.eq(first.wait(40), 0, f"the first write: {first.out()}")
    t.eq(l.write(2, OTHER).wait(20), 0, "the write to another block, with the same slot")
    took = time.monotonic() - t0
    time.sleep(max(0, t0 + late.DELAY + 2 - time.monotonic()))
    l.rows = [] if unsafe else [dict(fault="T38",
                                     what=f"late copy, slot used for another block, {scheduler}",
                                     stack="ibnbd", Tstall=took, Nerr=0,
                                     note=f"the disk holds it for {late.DELAY} s")]
    return l.end(128, must_fail=bool(unsafe))


def run(t):
    scene(t, "")
    scene(t, "", "mq-deadline")
    if t.server.serves_user():      # it has no switch for that
        return
    verdict = scene(t, "no_fence shared_chunks")
    t.eq((verdict.lost, verdict.ghost, verdict.wrong), (0, 0, 1),
         "lost, ghosts and wrong blocks with shared memory")
