# SPDX-License-Identifier: GPL-2.0-only
"""hold= is over while a slow disk still has a write: the application hears an error.  The path
that the write was sent on cannot return before the disk has answered, or does not return at
all, but the other one can, and with it the session; what is written then must not be overtaken
by the write that had failed."""
description = ("a write that failed because hold= was over never lands over one "
               "that came after it; the neighbours do not wait for it")
long = True
links = 2
disk = 64
faults = True
deadline = 300
import math, time
import faults as F
import late

BLOCK, DELAY, HOLD = 77, 20, 2


def scene(t, what, healed, remove=False):
    c = t.client
    delay = DELAY * math.ceil(F.vm.SLOW)
    l = late.Scene(t, depth=32, disks=2, words=f"hold={HOLD}")
    near = c.sh(f"map testdisk1 hold={HOLD}")
    first, t0 = l.strand(BLOCK, delay)
    c.link(1, False)
    t.ok(first.wait(20) != 0, "the write has failed")
    if remove:
        l.path(0, "remove_path")
    for i in healed:
        c.link(i, True)
    # from the same processor, where it most likely gets the same slot; judged last: a copy that
    # lands late tells more than a neighbour that waits
    beside = c.spawn(f"wait_for 15 eval 'taskset 1 dd if=/dev/zero of={near} bs=4k count=1 "
                     "oflag=direct status=none'; uptime_s")
    begin = time.monotonic() - t0 - float(c.sh("uptime_s"))

    seq, rc = 1, 1
    while rc and time.monotonic() - t0 < 2 * delay + 20:
        seq += 1
        # another processor, so that it hardly gets the same slot
        rc = l.write(seq, BLOCK, cpu=1).wait(40)
        time.sleep(0.2)
    took = time.monotonic() - t0
    t.eq(rc, 0, f"the device takes writes again; {c.sh(f'dev_attr {l.dev} state_detail')}")
    t.log(f"{what}: written again after {took:.1f} s, attempt {seq - 1}")
    t.below(took, delay + 10, "seconds until the device could write again")
    time.sleep(max(0, t0 + delay + 2 - time.monotonic()))
    l.rows = [dict(fault="T37", what=f"late copy of a failed write, {what}", stack="ibnbd",
                   Tstall=took, Nerr=seq - 1, note=f"the disk holds it for {delay} s")]
    neighbour = beside.wait(60)
    c.sh(f"unmap {near}")
    l.end(128, must_fail=False)
    t.eq(neighbour, 0, "the neighbour can write: " + beside.out())
    t.below(begin + float(beside.out().split()[-1]), delay - 2,
            "seconds until the neighbour could write")


def run(t):
    scene(t, "its path returns", (0, 1))
    scene(t, "its path is lost", (1,))
    scene(t, "its path is removed", (1,), remove=True)
