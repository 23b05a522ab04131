# SPDX-License-Identifier: GPL-2.0-only
"""A disk takes long to be opened, and its client loses the path meanwhile, gives the mapping up,
and comes back: it never hears that the disk is open, and has nothing to close."""
description = ("a disk that was opened for a client which had lost its path, and did not ask "
               "again, goes to another client")
crowd = True
deadline = 150
import time

OPEN = 5
UNCLAIMED = 20      # OPEN_UNCLAIMED of ibnbd/server/open.c
P = "/sys/module/ibnbd_testdisk/parameters/open_ms"
PATH = "$(echo /sys/class/ibtrs-client/s1/paths/*)"
DEVICES = "/run/devices"


def run(t):
    c, s = t.client, t.server
    s.sh("serve; modprobe ibnbd-testdisk cache=0 nr_disks=1; ram_disks 1 16")
    near = c.sh("map ram0")
    s.sh(f"echo {OPEN * 1000} > {P}")
    job = c.spawn("map testdisk0")
    time.sleep(1)
    c.sh(f"echo 1 > {PATH}/disconnect")
    t.ok(job.wait(20), f"the mapping was given up: {job.out()}")
    c.sh(f"echo 1 > {PATH}/reconnect; wait_for 20 paths_up s1 1", timeout=60)
    s.sh(f"echo 0 > {P}; wait_for 20 test -e {DEVICES}/testdisk0/sessions/s1", timeout=60)
    c.fails("map testdisk0 sessname=s2", "open for writing|requests of an earlier")
    c.sh(f"wait_for {UNCLAIMED + 10} eval 'map testdisk0 sessname=s2 > /tmp/dev 2>&1'; "
         "unmap $(tail -1 /tmp/dev)", timeout=60)
    c.sh(f"dd if={near} of=/dev/null bs=4k count=1 iflag=direct status=none; unmap {near}")
