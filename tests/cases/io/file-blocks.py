# SPDX-License-Identifier: GPL-2.0-only
"""The image's partition table counts in blocks of 512 bytes, its partitions begin at odd places,
and the file lies on a disk whose sectors have 4096."""
description = ("a file has 512-byte blocks wherever it lies: partitions at their place, "
               "direct and buffered I/O side by side, a move to another disk, a new server")
deadline = 180

TABLE = "label: dos\\nstart=63,size=30001\\nstart=40000,size=20000\\n"
SIZE = (64 << 20) + 1536
E = "/sys/class/ibnbd-server/ctl/devices/!mnt!img"


def run(t):
    c, s = t.client, t.server
    state = lambda: c.sh(f"dev_attr {dev} state_detail")
    limit = lambda what: c.sh(f"cat /sys/block/{dev[5:]}/queue/{what}")
    # XFS has pages of several blocks, which direct and buffered writes share
    s.sh("ram_disks 1 384; modprobe loop; losetup -b 4096 /dev/loop0 /dev/ram0; "
         "mkfs.xfs -q -f /dev/loop0 > /dev/null; mkdir -p /mnt /exp; mount /dev/loop0 /mnt; "
         f"truncate -s {SIZE} /mnt/img; printf '{TABLE}' | sfdisk -q /mnt/img; "
         "ln -sfn /mnt/img /exp/img; "
         "serve dev_search_path=/exp writer_file=/tmp/writers", timeout=60)
    dev = c.sh("map img hold=-1")
    t.eq(c.sh(f"blockdev --getss {dev}"), "512", "the logical block size")
    t.eq(limit("physical_block_size"), "4096", "the physical block size")
    t.eq(limit("minimum_io_size"), "4096", "the smallest I/O that costs no more than itself")
    t.eq(c.sh(f"blockdev --getsz {dev}"), str(SIZE >> 9), "the size in sectors")
    part = lambda n, what: c.sh(f"cat /sys/block/{dev[5:]}/{dev[5:]}p{n}/{what}")
    for n, start, size in ((1, 63, 30001), (2, 40000, 20000)):
        t.eq((part(n, "start"), part(n, "size")), (str(start), str(size)), f"partition {n}")

    t.log("--- what does not fit the disk's sectors, beside what does")
    epoch = s.sh(f"cat {E}/cache_epoch")
    jobs = [c.spawn(f"fio_verify {dev}p{n} 6m --bsrange=512-32k --fsync=64 --iodepth=8")
            for n in (1, 2)]
    for job in jobs:
        t.eq(job.wait(100), 0, "verified: " + job.out()[-300:])
    c.sh(f"dd if={dev} bs=512 skip=131072 count=3 iflag=direct status=none | wc -c | "
         "grep -qx 1536; "
         "(yes end || true) | head -c 1536 | "
         f"dd of={dev} bs=512 seek=131072 oflag=direct conv=fsync "
         "status=none")
    both = [m.sh(f"head -c {SIZE} {where} | sha1sum")
            for m, where in ((c, dev), (s, "/mnt/img"))]
    t.eq(*both, "what the client reads and what the file has")
    # a file system in a partition that no sector of the disk begins with, the server's own view
    c.sh(f"mkfs.ext4 -q -F {dev}p1; mkdir -p /f; mount {dev}p1 /f; seq 100000 > /f/seq; umount /f")
    s.sh("sync; losetup -r -o $((63 * 512)) --sizelimit $((30001 * 512)) /dev/loop1 /mnt/img; "
         "mkdir -p /f; mount -o ro /dev/loop1 /f; seq 100000 | cmp - /f/seq; umount /f; "
         "losetup -d /dev/loop1")
    t.eq(s.sh(f"cat {E}/cache_epoch"), epoch, "no flush has failed")

    t.log("--- the disk below becomes one of 512, the server another one")
    s.sh("unload ibnbd_server; umount /mnt; losetup -d /dev/loop0; losetup /dev/loop0 /dev/ram0; "
         "mount /dev/loop0 /mnt || { losetup -d /dev/loop0; losetup -b 4096 /dev/loop0 /dev/ram0; "
         "mount /dev/loop0 /mnt; }; "
         "serve dev_search_path=/exp writer_file=/tmp/writers file_block=512")
    t.wait(lambda: state() == "open", 20, "open again, not fenced")
    c.sh(f"unmap {dev}")

    t.log("--- the exporter says 4096, and later 512 again")
    param = "/sys/module/ibnbd_server/parameters/file_block"
    s.sh(f"echo 4096 > {param}")
    s.fails(f"echo 1000 > {param}", "[Ii]nvalid")
    dev = c.sh("map img hold=-1")
    user = c.spawn(f"exec sleep 1000 < {dev}")
    t.eq(c.sh(f"blockdev --getss {dev}"), "4096", "the exporter's block size")
    for block, want in (("512", "open"), ("4096", "open")):
        c.link(0, False)
        t.wait(lambda: c.sh(f"dev_attr {dev} state") == "closed", 15, "the device waits")
        t.wait(lambda: not s.sh("exports"), 30,
               "the server has let it go")
        s.sh(f"echo {block} > {param}")
        c.link(0, True)
        t.wait(lambda: state() == want, 20, f"{want} with blocks of {block}: "
               + c.sh(f"dev_attr {dev} reason"))
        t.eq(c.sh(f"blockdev --getss {dev}; blockdev --getsz {dev}").split(),
             ["4096", str(64 << 11)], "it counts on in its own blocks")
        c.sh(f"dd if=/dev/zero of={dev} bs=4k count=1 seek=5 oflag=direct status=none")
    user.kill()
    c.sh(f"unmap {dev}")
    s.sh("unload ibnbd_server; wait_for 5 umount /mnt")
