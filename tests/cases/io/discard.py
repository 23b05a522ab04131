# SPDX-License-Identifier: GPL-2.0-only
description = ("discard, write zeroes and secure erase, seen at the backing disk; "
               "a disk without them announces none")
crowd = True


def counts(g):
    return dict((k, int(v)) for k, v in (w.split("=") for w in
                g.sh("cat /sys/module/ibnbd_testdisk/parameters/counts").split()))


def run(t):
    c, s = t.client, t.server
    reset = "echo 0 > /sys/module/ibnbd_testdisk/parameters/counts"

    s.sh("serve; modprobe ibnbd-testdisk")
    dev = c.sh("map testdisk0")
    c.sh("(yes full-of || true) | "
         f"dd of={dev} bs=1M count=8 iflag=fullblock oflag=direct status=none")

    s.sh(reset)
    c.sh(f"blkdiscard -o 1M -l 1M {dev}")
    t.ok(counts(s)["discard"] >= 1, "a discard arrived")
    t.eq(s.sh("dd if=/dev/testdisk0 bs=1M skip=1 count=1 iflag=direct status=none | "
              "tr -d '\\0' | wc -c"), "0", "discarded")

    s.sh(reset)
    c.sh(f"blkdiscard -z -o 2M -l 1M {dev}")
    got = counts(s)
    t.ok(got["zeroes"] >= 1 and got["write"] == 0,
         f"zeroes arrived as an order, not as data: {got}")
    t.eq(s.sh("dd if=/dev/testdisk0 bs=1M skip=2 count=1 iflag=direct status=none | "
              "tr -d '\\0' | wc -c"), "0", "zeroed")
    c.sh(f"fallocate -z -o 3M -l 1M {dev}")
    t.ok(counts(s)["nounmap"] >= 1, f"NOUNMAP is kept: {counts(s)}")

    s.sh(reset)
    c.sh(f"blkdiscard -s -o 4M -l 1M {dev}")
    t.ok(counts(s)["erase"] >= 1, "a secure erase arrived")
    t.eq(s.sh("dd if=/dev/testdisk0 bs=1M skip=4 count=1 iflag=direct status=none | "
              "tr -d '\\356' | wc -c"), "0", "erased")
    t.eq(s.sh("for i in 0 5 6 7; do dd if=/dev/testdisk0 bs=1M skip=$i count=1 iflag=direct "
              "status=none; done | sort -u"),
         "full-of", "the neighbours")
    c.sh(f"unmap {dev}")

    s.sh("unload ibnbd_testdisk; modprobe ibnbd-testdisk discard=0 zeroes=0 erase=0")
    dev = c.sh("map testdisk0")
    for attr in ("discard_max_bytes", "write_zeroes_max_bytes"):
        t.eq(c.sh(f"cat /sys/block/{dev[5:]}/queue/{attr}"), "0", attr)
    c.fails(f"blkdiscard {dev}", "not supported")
    c.fails(f"blkdiscard -s {dev}", "not supported")
