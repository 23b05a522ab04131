# SPDX-License-Identifier: GPL-2.0-only
"""A path that never got as far as its trial gives back no slot of the session's: it took none.  It
did once, and the next message that found all slots taken used one beyond the last."""
description = "after a path that could not be added, messages still wait for a slot of the session"
crowd = True
deadline = 90

OPEN_MS = 4000
P = "/sys/module/ibnbd_testdisk/parameters/open_ms"


def run(t):
    c, s = t.client, t.server
    # so few slots that one message takes all that are not the disks'
    s.sh("serve sess_queue_depth=4 max_chunk_size=8192; ram_disks 2 16; "
         "modprobe ibnbd-testdisk cache=0 nr_disks=1 size_mb=4")
    first = c.sh("map ram0")
    c.fails("ibnbd path add s1 ip:10.0.0.99", "")
    t.eq(c.sh("ls /sys/class/ibtrs-client/s1/paths | wc -l"), "1", "paths of the session")
    s.sh(f"echo {OPEN_MS} > {P}")
    slow = c.spawn("map testdisk0")
    c.sh("sleep 1")
    second = c.sh("map ram1", timeout=30)
    t.eq(slow.wait(30), 0, "the disk that takes long to be opened: " + slow.out())
    s.sh(f"echo 0 > {P}")
    for dev in first, second, slow.out().split()[-1]:
        c.sh(f"dd if={dev} of=/dev/null bs=4k count=1 iflag=direct status=none; unmap {dev}")
    s.sh("unload ibnbd_server; modprobe -r ibnbd-testdisk")
