# SPDX-License-Identifier: GPL-2.0-only
description = ("map and unmap a disk 100 times; "
               "the node, its size and its sysfs files are right each time")
crowd = True
deadline = 180


def run(t):
    c, s = t.client, t.server

    s.sh("serve; ram_disks 2 32")
    dev = c.sh("map ram0")
    t.eq(dev, "/dev/ibnbd0", "name")
    t.eq(c.sh(f"blockdev --getsize64 {dev}"), str(32 << 20), "size")
    for attr, want in (("state", "open"), ("session", "s1"), ("mapping_path", "ram0"),
                       ("access_mode", "rw"),
                       ("nr_poll_queues", "0")):
        t.eq(c.sh(f"dev_attr {dev} {attr}"), want, attr)
    t.match(c.sh("cat $(ctl)/map_device"), "sessname", "usage of map_device")
    t.eq(c.sh("ls $(ctl)/devices"), "ram0@s1", "links")
    t.eq(c.sh("cat /sys/block/ibnbd0/dev").split(":")[0], "259", "major (blkext)")
    t.eq(s.sh("ls /sys/class/ibnbd-server/ctl/devices"), "ram0", "exports on the server")
    t.eq(s.sh("cat /sys/class/ibnbd-server/ctl/devices/ram0/sessions/s1/access_mode"), "rw")
    c.fails("map_line 'sessname=s1 device_path=ram0'", "File exists")
    c.sh(f"unmap {dev}")
    c.sh("wait_for 5 test ! -e /sys/class/ibtrs-client/s1")
    s.sh("wait_for 5 test ! -e /sys/class/ibnbd-server/ctl/devices/ram0")

    cycle = ("for i in $(seq {}); do d=$(map ram0); "
             "dd if=$d of=/dev/null bs=4k count=1 status=none; unmap $d; done")
    c.sh(cycle.format(9), timeout=60)           # session and device
    other = c.sh("map ram1")
    # the device alone, the session is in use
    c.sh(cycle.format(20 if t.image.debug else 90), timeout=120)
    c.sh(f"unmap {other}")
    s.sh("wait_for 5 test ! -e /sys/class/ibtrs-server/s1")
