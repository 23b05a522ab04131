# SPDX-License-Identifier: GPL-2.0-only
description = "the kernel's own rnbd maps a disk through the rig: what fails here is not ours"
crowd = True
vms = 2
links = 2
needs = ["rnbd-client", "rnbd-server"]


def run(t):
    c, s = t.client, t.server

    s.sh("FAMILY=rnbd serve; ram_disks 1 32")
    dev = c.sh("FAMILY=rnbd map ram0")
    t.eq(c.sh(f"blockdev --getsize64 {dev}"), str(32 << 20), "size")
    t.eq(c.sh("FAMILY=rnbd path_attr s1 state"),
         "ip:10.0.0.1@ip:10.0.0.2 connected\nip:10.0.1.1@ip:10.0.1.2 connected", "paths")

    # 4 KiB only: soft-RoCE may lose its way after a retransmission of a memory registration
    c.sh(f"fio_verify {dev} 2m --bsrange=4k-4k --iodepth=4", timeout=60)
    c.sh(f"echo pattern | dd of={dev} bs=4k seek=5000 conv=sync oflag=direct status=none")
    s.sh("dd if=/dev/ram0 bs=4k skip=5000 count=1 status=none | grep -a pattern")

    c.sh(f"FAMILY=rnbd unmap {dev}")
    c.fails("FAMILY=rnbd map nosuchdisk", "map_device refused")
