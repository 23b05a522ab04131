# SPDX-License-Identifier: GPL-2.0-only
description = "a regular file as backing store: verified I/O, flush, discard makes holes"
crowd = True
deadline = 180


def run(t):
    c, s = t.client, t.server

    s.sh("ram_disks 1 256; mkfs.ext4 -q -F /dev/ram0; mkdir -p /mnt /exp; mount /dev/ram0 /mnt; "
         "truncate -s 64M /mnt/disk; ln -sfn /mnt/disk /exp/disk; serve dev_search_path=/exp")
    dev = c.sh("map disk")
    t.eq(c.sh(f"blockdev --getsize64 {dev}"), str(64 << 20), "size")
    c.sh(f"fio_verify {dev} 32m --fsync=32 --blockalign=4k", timeout=90)
    c.sh("(yes file-fs || true) | "
         f"dd of={dev} bs=1M count=4 iflag=fullblock oflag=direct conv=fsync status=none")
    t.eq(s.sh("head -c 4194304 /mnt/disk | sort -u"), "file-fs", "content of the file")
    before = int(s.sh("stat -c %b /mnt/disk"))
    c.sh(f"blkdiscard -o 1M -l 2M {dev}")
    t.ok(int(s.sh("stat -c %b /mnt/disk")) < before, "a discard makes a hole")
    t.eq(c.sh(f"dd if={dev} bs=1M skip=1 count=2 iflag=direct status=none | tr -d '\\0' | wc -c"),
         "0", "the hole reads as zeroes")
    c.sh(f"blkdiscard -z -o 3M -l 1M {dev}")
    t.eq(c.sh(f"dd if={dev} bs=1M count=4 iflag=direct status=none | tr -d '\\0' | wc -c"),
         str(1 << 20), "what is left")
    s.fails("umount /mnt", "busy")
    c.sh(f"unmap {dev}")
    s.sh("wait_for 5 umount /mnt")
