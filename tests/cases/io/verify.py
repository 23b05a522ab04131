# SPDX-License-Identifier: GPL-2.0-only
description = ("what was written is read back: "
               "512 B to 1 MiB, unaligned to 4 KiB, several jobs and queue depths")
crowd = True
deadline = 240


def run(t):
    c, s = t.client, t.server
    # blockalign makes ranges overlap; fio checks one while it writes the other, and fails on
    # any disk, unless told to wait
    verify = dict(rw="randrw", verify="crc32c", verify_fatal=1, do_verify=1, verify_backlog=64,
                  serialize_overlap=1)

    s.sh("serve; ram_disks 1 64")
    dev = c.sh("map ram0")
    for options in (dict(bs="512", size="1m", iodepth=8),
                    dict(bsrange="512-8k", blockalign="512", size="4m", iodepth=16),
                    dict(bs="4k", size="8m", iodepth=32),
                    dict(bsrange="4k-128k", blockalign="512", size="16m", iodepth=16),
                    dict(bsrange="128k-1m", blockalign="4k", size="32m", iodepth=4)):
        job = c.fio(dev, timeout=90, **verify, **options)
        t.eq(job["error"], 0, f"fio {options}")
        t.ok(job["write"]["total_ios"] > 0, "fio wrote")
    c.sh(f"fio --name=v --filename={dev} --direct=1 --ioengine=libaio --rw=randwrite "
         "--bsrange=512-64k --blockalign=512 --size=4m --offset_increment=8m --numjobs=4 "
         "--iodepth=8 --serialize_overlap=1 --verify=crc32c --verify_fatal=1 --do_verify=1 "
         "--thread --randrepeat=0 > /tmp/out 2>&1 || { cat /tmp/out; false; }", timeout=90)

    c.sh("dd if=/dev/urandom of=/tmp/r bs=1M count=8 status=none; "
         f"dd if=/tmp/r of={dev} bs=1M oflag=direct status=none")
    want = c.sh("md5sum < /tmp/r")
    t.eq(c.sh(f"dd if={dev} bs=1M count=8 iflag=direct status=none | md5sum"), want,
         "big direct reads on the client")
    t.eq(c.sh(f"dd if={dev} bs=3k count=2731 status=none | head -c 8388608 | md5sum"), want,
         "buffered odd reads")
    t.eq(s.sh("head -c 8388608 /dev/ram0 | md5sum"), want, "the server's disk")
