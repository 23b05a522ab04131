# SPDX-License-Identifier: GPL-2.0-only
"""A path that waits for a disk which never answers lingers: its client comes back beside it, and
could do so again and again.  It keeps the chunk that the disk's request uses, of 66 MiB.  A key is
no excuse."""
description = ("a path that waits for nothing but a disk's request gives back all its chunks but "
               "that one, while it waits")
long = True
disk = 64
deadline = 240
import time
import keys

P = "/sys/module/ibnbd_testdisk/parameters"
CHUNKS = 66 << 10       # KiB of a path


def run(t):
    c, s = t.client, t.server
    delay = 120 if t.image.debug else 60
    s.sh("modprobe ibnbd-testdisk nr_disks=1 cache=0; ram_disks 1 16; "
         "serve auth=required")
    keys.share("db-1", c, s)
    near = c.sh("map ram0 auth=db-1")
    dev = c.sh("map testdisk0 auth=db-1")
    free = int(s.sh("memory_kib"))
    s.sh(f"echo {delay * 1000} > {P}/delay_ms")
    begin = time.monotonic()
    job = c.spawn(f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none")
    t.wait(lambda: int(c.sh(f"cat /sys/block/{dev[5:]}/inflight").split()[1]), 10,
           "the disk has a write")
    s.sh(f"sleep 1; echo 0 > {P}/delay_ms")
    c.sh(f"unmap {dev} force", timeout=60)
    job.wait(20)
    t.wait(lambda: "that the client aborted" in s.kernel_news(), 30, "the path lingers")
    c.sh(f"wait_for 30 paths_up s1 1; dd if=/dev/zero of={near} bs=4k count=8 oflag=direct "
         "status=none", timeout=60)
    # once in ten seconds
    t.wait(lambda: free - int(s.sh("memory_kib")) < CHUNKS // 2, 25,
           "the chunks of the path that lingers are back, beside those of the next one")
    t.ok(time.monotonic() < begin + delay - 1, "the disk still holds its request")
    t.match(s.kernel_news(), "but the storage has not ended a request", "the server's log")
    time.sleep(max(0, begin + delay + 1 - time.monotonic()))
    c.sh(f"unmap {near}")
