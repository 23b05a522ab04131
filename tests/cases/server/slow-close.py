# SPDX-License-Identifier: GPL-2.0-only
"""The server flushes a disk behind its last writer before it closes it, and a disk may take any
time for that.  The client that wrote to it is kept out for half a minute at most."""
description = "a disk that is not closed yet does not cost its client the other disks"
long = True
deadline = 240
import time

FLUSH = "/sys/module/ibnbd_testdisk/parameters/flush_ms"
OURS = "/sys/class/ibnbd-server/ctl/devices/testdisk0/sessions"
WRITE = "dd if=/dev/zero of={} bs=4k count=1 oflag=direct status=none"
AWAY = 30


def run(t):
    c, s = t.client, t.server
    ms = 1000 * (120 if t.image.debug else 60)
    s.sh("modprobe ibnbd-testdisk nr_disks=1; ram_disks 1 16; serve")
    far, near = c.sh("map testdisk0 hold=10"), c.sh("map ram0 hold=100")
    c.sh(WRITE.format(far))
    s.sh(f"echo {ms} > {FLUSH}")
    begin = time.monotonic()
    s.sh("ibnbd server disconnect s1 > /dev/null")
    c.sh(f"wait_for {AWAY + 20} paths_up s1 1; {WRITE.format(near)}", timeout=100)
    took = time.monotonic() - begin
    t.log(f"back after {took:.1f} s")
    t.ok(AWAY - 2 < took < ms / 1000 - 5, "the client is back, and not before its time")
    t.eq(s.sh(f"ls {OURS}"), "s1", "the disk is not closed")
    c.fails(WRITE.format(far), "Input/output error", timeout=60)
    c.sh(f"{WRITE.format(near)}; unmap {near}")
    s.sh(f"echo 0 > {FLUSH}")
    t.wait(lambda: c.rc(WRITE.format(far))[0] == 0, ms // 1000 + 30, "the disk is back")
    c.sh(f"unmap {far}")
