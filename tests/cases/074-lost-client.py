# SPDX-License-Identifier: GPL-2.0-only
"""The fences of what a disk still works on outlive everything; the client's other disks, and his name, need not."""
description = "a client dies while one of its disks hangs: its other disks, and its name, go to others all the same"
vms = 3
links = 1
long = True
deadline = 360
import time
import vm

P = "/sys/module/ibnbd_testdisk/parameters"


def run(t):
    c, s, c2 = t.client, t.server, t.client2
    delay = int(100 * vm.SLOW)
    s.sh("serve; modprobe ibnbd-testdisk nr_disks=1 cache=0; ram_disks 2 16")
    hung, near = c.sh("map testdisk0"), c.sh("map ram0")
    c.sh(f"dd if=/dev/zero of={near} bs=64k count=4 oflag=direct status=none")
    s.sh(f"echo {delay * 1000} > {P}/delay_ms")
    c.spawn(f"dd if=/dev/zero of={hung} bs=4k count=1 oflag=direct status=none")
    t.wait(lambda: int(c.sh(f"cat /sys/block/{hung[5:]}/inflight").split()[1]), 10, "the disk has a write")
    t0 = time.monotonic()
    s.sh(f"sleep 1; echo 0 > {P}/delay_ms")
    c.kill()
    t.wait(lambda: "busy" in c2.rc("map ram0 sessname=s2")[1], 30, "the server has seen that the client is gone, and waits whether it comes back")
    took = t.wait(lambda: c2.rc("map ram0 sessname=s2")[0] == 0, 60, "its other disk is free")
    t.log(f"free after {took:.1f} s")
    t.ok(time.monotonic() - t0 < delay - 10, "the disk still hangs")
    c2.sh("wait_for 10 eval 'map ram1 sessname=s1 > /dev/null 2>&1'", timeout=30)        # the name
    c2.fails("map testdisk0 sessname=s2", "has not ended the requests of an earlier mapping|busy")
    c2.sh("dd if=/dev/zero of=/dev/$(dev_of ram0 s2) bs=64k count=4 oflag=direct status=none")
    t.ok(time.monotonic() - t0 < delay, "the disk still hung")
    t.wait(lambda: c2.rc("map testdisk0 sessname=s2")[0] == 0, delay + 20, "the disk has ended its requests")
    c2.sh("dd if=/dev/zero of=/dev/$(dev_of testdisk0 s2) bs=64k count=4 oflag=direct status=none")
