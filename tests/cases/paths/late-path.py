# SPDX-License-Identifier: GPL-2.0-only
"""A path that was dark when the disk was mapped has never been up.  The other one
goes for good, and the server lets go of the session with it: the path may make it
anew, as one that was up before may."""
description = ("a path that never was up takes over when all others have gone, "
               "and the server has forgotten the session")
crowd = True
links = 2
deadline = 150


def run(t):
    c, s = t.client, t.server
    s.sh("serve; modprobe ibnbd-testdisk")
    s.link(1, False)
    dev = c.sh("map testdisk0", timeout=60)
    t.eq(c.sh("cat /sys/class/ibtrs-client/s1/paths/*/state | sort | uniq -c | "
              "tr -s ' '").splitlines()[0].strip(), "1 connected", "paths that are up")
    c.link(0, False)
    s.sh("wait_for 30 test ! -e /sys/class/ibtrs-server/s1", timeout=60)
    held = c.spawn(f"echo held | dd of={dev} bs=4k conv=sync oflag=direct status=none")
    c.sh("sleep 1")
    t.eq(held.rc, None, "the write is held")
    s.link(1, True)
    t.eq(held.wait(20), 0, "the write: " + held.out())
    t.eq(s.sh("head -c 4 /dev/testdisk0"), "held", "what has arrived")
    c.link(0, True)
    c.sh(f"wait_for 20 paths_up s1 2; unmap {dev}", timeout=40)
