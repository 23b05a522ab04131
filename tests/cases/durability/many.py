# SPDX-License-Identifier: GPL-2.0-only
"""Memory is compared with that of as many disks that keep nothing."""
description = ("a thousand disks of one session that keep what no flush has covered cost no more "
               "than the pool, and lose nothing")
deadline = 900
long = True
mem = 1536

N, POOL, SLACK = 1000, 16, 4             # MiB
P = "/sys/module/ibnbd_testdisk/parameters"
CTL = "/sys/class/ibnbd-server/ctl/devices"
MAP = """
p=$(paths) m=$(ctl)/map_device
for ((i = 0; i < {n}; i++)); do
	echo "sessname=s1 $p device_path=testdisk$i hold=-1 unflushed={how} retain_mb={pool}" > $m
done
memory_kib
"""
UNMAP = """
for f in /sys/block/ibnbd*/ibnbd/unmap_device; do echo normal > $f; done
wait_for 60 sh -c '! ls -d /sys/block/ibnbd* 2> /dev/null'
wait_for 10 test ! -e /sys/class/ibtrs-client/s1
memory_kib
"""
# 96 KiB each: more than the pool, all in all
WRITE = """
for ((i = 0; i < {n}; i++)); do
	d=$(readlink -f $(ctl)/devices/testdisk$i@s1)
	{{ echo disk $i; head -c 98000 /dev/zero; }} |
		dd of=/dev/${{d##*/}} bs=96k conv=sync iflag=fullblock oflag=direct status=none
done
memory_kib
"""
SUM = "cat /sys/block/ibnbd*/ibnbd/unflushed_bytes | awk '{ n += $1 } END { print n }'"


def run(t):
    c, s = t.client, t.server
    s.sh(f"modprobe ibnbd-testdisk nr_disks={N} size_mb=1; serve sess_queue_depth=64; "
         f"wait_for 20 test -b /dev/testdisk{N - 1}", timeout=60)
    c.sh("modprobe ibnbd-client")
    before = int(c.sh("memory_kib"))
    ignore = before - int(c.sh(MAP.format(n=N, how="ignore", pool=POOL), timeout=120))
    before = int(c.sh(UNMAP, timeout=120))
    mapped = before - int(c.sh(MAP.format(n=N, how="replay", pool=POOL), timeout=120))
    written = before - int(c.sh(WRITE.format(n=N), timeout=120))
    t.log(f"KiB: {N} disks that keep nothing {ignore}, that keep {mapped}, when they do {written}")
    t.below((written - ignore) >> 10, POOL + SLACK, "MiB that keeping costs")
    # all of them were flushed whenever half of the pool was in use, perhaps just now
    c.sh(WRITE.format(n=8), timeout=60)
    t.ok(int(c.sh(SUM)) > 0, "something is kept")
    t.eq(c.sh("cat /sys/block/ibnbd*/ibnbd/kept | sort -u"), "whole", "kept")

    s.sh(f"for f in {CTL}/*/cache_lost; do echo 1 > $f; done; echo 1 > {P}/power_cut", timeout=60)
    c.sh("for d in /dev/ibnbd*; do dd if=$d of=/dev/null bs=4k count=1 iflag=direct status=none & "
         "done; wait", timeout=120)
    t.eq(c.sh("cat /sys/block/ibnbd*/ibnbd/state_detail | sort -u"), "open", "all of them go on")
    want = "\n".join(f"disk {i}" for i in range(N))
    t.eq(s.sh(f"for ((i = 0; i < {N}; i++)); do head -n 1 /dev/testdisk$i | tr -d '\\0'; done",
              timeout=60), want, "on the disks")
    c.sh(UNMAP, timeout=120)
