# SPDX-License-Identifier: GPL-2.0-only
description = ("flush and FUA arrive at the backing disk, as many as were sent; "
               "what was flushed survives its power cut")
crowd = True


def counts(g):
    return dict((k, int(v)) for k, v in (w.split("=") for w in
                g.sh("cat /sys/module/ibnbd_testdisk/parameters/counts").split()))


def run(t):
    c, s = t.client, t.server
    p = "/sys/module/ibnbd_testdisk/parameters"

    s.sh("serve; modprobe ibnbd-testdisk nr_disks=2")
    dev = c.sh("map testdisk0")
    t.eq(c.sh(f"cat /sys/block/{dev[5:]}/queue/write_cache"), "write back", "announced cache")
    s.sh(f"echo 0 > {p}/counts")
    c.sh(f"fio --name=f --filename={dev} --rw=write --bs=4k --size=1m --fsync=8 "
         "--ioengine=psync > /dev/null")
    got = counts(s)
    t.ok(got["flush"] >= 31, f"an fsync after each 8 of 256 writes, but the last: {got}")
    s.sh(f"echo 0 > {p}/counts")
    c.sh(f"fio --name=f --filename={dev} --rw=write --bs=4k --size=64k --ioengine=psync "
         "--direct=1 --sync=1 > /dev/null")
    got = counts(s)
    t.ok(got["fua"] + got["flush"] >= 16, f"each of 16 O_SYNC writes is FUA or flushed: {got}")
    t.ok(got["write"] >= 16, f"and written: {got}")

    c.sh("(yes kept-up || true) | "
         f"dd of={dev} bs=4k count=8 iflag=fullblock oflag=direct conv=fsync status=none")
    c.sh("(yes lost-it || true) | "
         f"dd of={dev} bs=4k count=8 seek=8 iflag=fullblock oflag=direct status=none")
    s.sh(f"echo 1 > {p}/power_cut")
    t.eq(c.sh(f"dd if={dev} bs=4k count=8 iflag=direct status=none | sort -u"), "kept-up",
         "flushed data")
    t.eq(c.sh(f"dd if={dev} bs=4k count=8 skip=8 iflag=direct status=none | "
              "grep -ac lost-it || true"), "0",
         "lines that were in the lost cache")
    c.sh(f"unmap {dev}")

    s.sh("unload ibnbd_testdisk; modprobe ibnbd-testdisk cache=0")
    dev = c.sh("map testdisk0")
    t.eq(c.sh(f"cat /sys/block/{dev[5:]}/queue/write_cache"), "write through",
         "no cache to announce")
