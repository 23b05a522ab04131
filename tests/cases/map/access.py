# SPDX-License-Identifier: GPL-2.0-only
description = ("read-only is enforced on the server; "
               "one writer, two in migration, as many readers as you like")
crowd = True
vms = 3


def run(t):
    c, s, d = t.client, t.server, t.client2

    s.sh("serve; ram_disks 1 16; echo before | dd of=/dev/ram0 bs=4k conv=sync,notrunc status=none")
    ro = c.sh("map ram0 access_mode=ro")
    t.eq(c.sh(f"blockdev --getro {ro}"), "1", "the node is read-only")
    # an administrator of the client can make the node writable; the server still refuses
    c.sh(f"blockdev --setrw {ro}")
    c.fails(f"echo after | dd of={ro} bs=4k conv=sync oflag=direct status=none",
            "error|not permitted|Read-only")
    s.sh("head -c 6 /dev/ram0 | grep before")

    rw = d.sh("map ram0 sessname=s2")
    d.sh(f"echo second | dd of={rw} bs=4k conv=sync oflag=direct status=none")
    t.eq(s.sh("cat /sys/class/ibnbd-server/ctl/devices/ram0/sessions/s2/access_mode"), "rw")
    t.eq(s.sh("cat /sys/class/ibnbd-server/ctl/devices/ram0/sessions/s1/read_only"), "1")
    c.sh(f"unmap {ro}")
    c.fails("map ram0", "not permitted")
    # who has not agreed to a second writer gets none, whatever that one calls himself
    c.fails("map ram0 access_mode=migration", "open for itself alone")
    t.match(s.sh("cat /sys/class/ibnbd-server/ctl/last_error"),
            "both map it with access_mode=migration", "the server says what to do")
    d.sh(f"unmap {rw}")
    rw = d.sh("map ram0 sessname=s2 access_mode=migration")
    two = c.sh("map ram0 access_mode=migration")
    c.sh(f"dd if={two} bs=6 count=1 iflag=fullblock status=none | grep second")
    c.sh(f"echo third | dd of={two} bs=4k conv=sync oflag=direct status=none")
    d.sh(f"unmap {rw}")
    c.sh(f"unmap {two}")
    c.sh("unmap $(map ram0)")
