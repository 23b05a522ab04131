# SPDX-License-Identifier: GPL-2.0-only
"""A work queue of the kernel runs 256 works at a time unless it is told otherwise, 512 at most."""
description = "300 disks of one client that hang while they are closed keep nobody else waiting"
long = True
vms = 3
mem = 768
deadline = 400
import time

N = 300
FLUSH = "/sys/module/ibnbd_testdisk/parameters/flush_ms"
MAP = """
for ((i = 0; i < {n}; i++)); do
	echo "sessname=s1 $(paths) device_path=testdisk$i hold=5" > $(ctl)/map_device
done
"""
CLOSING = ("{ grep -l ibnbd_srv_session_release_work /proc/[0-9]*/stack 2> /dev/null || true; } | "
           "wc -l")


def run(t):
    c, s, d = t.client, t.server, t.client2
    ms = 1000 * (240 if t.image.debug else 60)
    s.sh(f"modprobe ibnbd-testdisk nr_disks={N} size_mb=1; ram_disks 1 16; serve; "
         f"wait_for 20 test -b /dev/testdisk{N - 1}", timeout=60)
    c.sh("modprobe ibnbd-client; " + MAP.format(n=N), timeout=200)
    s.sh(f"echo {ms} > {FLUSH}")
    begin = time.monotonic()
    c.kill()            # else it would ask for all of them, again and again
    s.sh("ibnbd server disconnect s1 > /dev/null")
    t.wait(lambda: int(s.sh(CLOSING)) >= 250, 40, "the disks are being closed")
    dev = d.sh("map ram0 sessname=s2", timeout=60)
    d.sh(f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none; unmap {dev}")
    t.log(f"another client: {time.monotonic() - begin:.1f} s")
    t.ok(int(s.sh(CLOSING)) >= 250, "the disks are still being closed")
    t.below(time.monotonic() - begin, ms / 1000 - 2, "seconds")
    s.sh(f"echo 0 > {FLUSH}")
    t.wait(lambda: int(s.sh(CLOSING)) == 0, ms // 1000 + 30, "all are closed")
