# SPDX-License-Identifier: GPL-2.0-only
description = "ext4 and xfs on it: make, mount, copy, remount, compare; partitions; 4 KiB sectors"
long = True
crowd = True
deadline = 240


def fs(t, dev, kind, opts=""):
    c = t.client

    c.sh(f"mkfs.{kind} {opts} {dev} > /dev/null 2>&1; mkdir -p /mnt; mount {dev} /mnt; "
         "mkdir /mnt/d; cp -a /bin /mnt/d/ 2>/dev/null; sync; "
         "(cd /mnt/d && find . -type f | sort | xargs md5sum) > /tmp/sums; umount /mnt", timeout=90)
    c.sh(f"echo 3 > /proc/sys/vm/drop_caches; mount {dev} /mnt; cd /mnt/d; md5sum -c /tmp/sums | "
         "grep -v ': OK$' && exit 1; [ $(wc -l < /tmp/sums) -gt 5 ]; cd /; umount /mnt", timeout=90)


def run(t):
    c, s = t.client, t.server

    s.sh("serve; ram_disks 1 320")
    dev = c.sh("map ram0")
    fs(t, dev, "ext4", "-q -F")
    fs(t, dev, "xfs", "-q -f")
    c.sh(f"wipefs -aq {dev}; printf 'label: gpt\\n,64M\\n,\\n' | sfdisk -q {dev}")
    c.sh(f"wait_for 5 test -b {dev}p2")
    fs(t, dev + "p1", "ext4", "-q -F")
    c.sh(f"unmap {dev}")

    # not both at once: the machine has 1 GiB
    s.sh("unload brd; modprobe ibnbd-testdisk lbs=4096 size_mb=320")
    dev = c.sh("map testdisk0")
    t.eq(c.sh(f"blockdev --getss {dev}"), "4096", "logical block size")
    fs(t, dev, "xfs", "-q -f")
    c.fails(f"fio --name=r --filename={dev} --direct=1 --rw=read --bs=512 --size=4k",
            "Invalid argument")
