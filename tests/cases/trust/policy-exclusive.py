# SPDX-License-Identifier: GPL-2.0-only
description = ("an exclusive rule keeps the disk from the server's own use for a reader, too, and "
               "without the parameter claim; for files as far as can be")
crowd = True


def run(t):
    c, s = t.client, t.server
    claimed = lambda export: s.sh(f"wait_for 5 test -e /run/devices/{export}; "
                                  f"cat /run/devices/{export}/claimed")

    s.sh("serve claim=N; ram_disks 2 16; modprobe loop; mkdir -p /mnt; "
         "mkfs.ext4 -q -F /dev/ram0; mkfs.ext4 -q -F /dev/ram1; "
         r"printf 'ram0 ro exclusive\nram1 ro\nimage ro exclusive\n' | policy")
    plain = c.sh("map ram1 access_mode=ro")
    s.sh("mount /dev/ram1 /mnt; umount /mnt")
    t.eq(claimed("ram1"), "0", "without exclusive")
    c.sh(f"unmap {plain}")

    dev = c.sh("map ram0 access_mode=ro")
    t.eq(claimed("ram0"), "1", "claimed for a reader")
    s.fails("mount /dev/ram0 /mnt", "busy|already mounted")
    s.fails("mkfs.ext4 -q /dev/ram0", "in use by the system")
    second = c.sh("map ram0 access_mode=ro sessname=s2")
    c.sh(f"unmap {dev}")
    s.fails("mount /dev/ram0 /mnt", "busy|already mounted")
    c.sh(f"unmap {second}")
    s.sh("mount /dev/ram0 /mnt")
    c.fails("map ram0 access_mode=ro", "in use on the server")
    s.sh("umount /mnt")

    t.log("--- files")
    s.sh("truncate -s 16M /tmp/image; losetup /dev/loop1 /tmp/image; "
         "server_set dev_search_path=/tmp")
    c.fails("map image access_mode=ro",
            "loop device or a program of the server has the file open for writing")
    s.sh("losetup -d /dev/loop1")
    first, second = c.sh("map image access_mode=ro"), c.sh("map image access_mode=ro sessname=s2")
    c.sh(f"unmap {first}; unmap {second}")
    s.sh("echo image rw exclusive | policy")
    c.sh("dev=$(map image); unmap $(map image access_mode=ro sessname=s2); unmap $dev")
