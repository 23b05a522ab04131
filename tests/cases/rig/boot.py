# SPDX-License-Identifier: GPL-2.0-only
description = ("a kernel's short test: "
               "load, map, verified I/O, a path is lost under it, unmap, unload")
links = 2
long = True                 # tests/kernels/boot.sh runs it on each kernel


def stats(c):
    """stats/rdma of both paths: reads, bytes, writes, bytes, in flight, failovers."""
    return [[int(n) for n in line.split()[1:]]
            for line in c.sh("path_attr s1 stats/rdma").splitlines()]


def run(t):
    c, s = t.client, t.server

    t.log("kernel", c.sh("uname -rv"))
    s.sh("serve; ram_disks 1 32")
    dev = c.sh("map ram0")
    t.eq(c.sh(f"blockdev --getsize64 {dev}"), str(32 << 20), "size")
    c.sh("wait_for 10 paths_up s1 2")

    c.sh(f"fio_verify {dev} 4m --output=/dev/null", timeout=60)
    t.eq(c.sh(f"dd if={dev} bs=1M count=4 iflag=direct status=none | sha1sum"),
         s.sh("dd if=/dev/ram0 bs=1M count=4 status=none | sha1sum"),
         "what the server's disk holds")

    io = c.spawn(f"fio_verify {dev} 16m --bsrange=4k-8k --runtime=30 "
                 "--time_based --output=/dev/null")
    for _ in range(5):
        before = stats(c)
        busy = lambda now: (now[0][0] + now[0][2] > before[0][0] + before[0][2] + 30
                            and now[0][4] > 0)
        t.wait(lambda: busy(stats(c)), 15, "I/O on the path that will be lost")
        c.link(0, False)
        c.sh("wait_for 10 paths_up s1 1; sleep 1")
        moved = sum(p[5] for p in stats(c)) - sum(p[5] for p in before)
        c.link(0, True)
        c.sh("wait_for 15 paths_up s1 2")
        # a kernel that tells of the link at once may find nothing under way at that moment
        if moved:
            break
    t.ok(moved, "requests of the lost path go over the other")
    t.eq(io.wait(60), 0, "verified I/O over the loss of a path")

    c.sh(f"unmap {dev}; unload ibnbd_client ibtrs_client ibtrs_core")
    s.sh("unload ibnbd_server ibtrs_server ibtrs_core")
