# SPDX-License-Identifier: GPL-2.0-only
"""The server's adapter acknowledges packets, the server's driver answers requests. A write that was
answered and not acknowledged is sent again by the client's adapter, out of the same memory: whoever
owned those pages by then would be read by the server. That is what acked_writes is for."""
description = ("with acked_writes the pages of a write are not given back before the adapter is "
               "done with them, even if the server has answered")
deadline = 90
import time

WRITES = "cut -d' ' -f3 /sys/class/ibtrs-server/s1/paths/*/stats/rdma"
RECONNECTS = "cat /sys/class/ibtrs-client/s1/paths/*/stats/reconnects"
ACK = "0x11"        # opcode of the transport header, behind those of IPv4 and UDP
WITHHOLD = ("tc qdisc replace dev eth0 root handle 1: prio bands 3 priomap" + " 0" * 16 + "; "
            "tc qdisc add dev eth0 parent 1:3 netem loss 100%; "
            "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 "
            f"match ip protocol 17 0xff match u8 {ACK} 0xff at 28 flowid 1:3")


def answered(t, dev, size):
    """A write that the server has executed and answered, and not acknowledged."""
    c, s = t.client, t.server
    before = int(s.sh(WRITES))
    s.sh(WITHHOLD)
    job = c.spawn(f"head -c {size} /dev/zero | tr '\\0' 'w' > /tmp/w{size}; "
                  f"dd if=/tmp/w{size} of={dev} bs={size} count=1 oflag=direct status=none")
    t.wait(lambda: int(s.sh(WRITES)) == before + 1, 10, "the server has the write")
    return job


def run(t):
    c, s = t.client, t.server
    s.sh("serve; ram_disks 1 16")
    c.sh("modprobe ibtrs-client acked_writes=Y")
    dev = c.sh("map ram0")
    for size in 4096, 65536:
        t.log(f"--- a write of {size} bytes; the acknowledgement comes late")
        job = answered(t, dev, size)
        time.sleep(1)
        t.eq(job.rc, None, f"it has not ended yet: {job.out()}")
        s.sh("net_fifo eth0")
        t.eq(job.wait(20), 0, job.out())
        c.sh(f"dd if={dev} bs={size} count=1 iflag=direct status=none | cmp - /tmp/w{size}")
        t.eq(c.sh(RECONNECTS), "0 0", "the path has not been lost for it")

    t.log("--- many at a time")
    c.sh(f"fio_verify {dev} 8m; fio_verify {dev} 8m --bs=128k", timeout=90)

    t.log("--- it never comes: the write ends with its answer when its QP has drained")
    job = answered(t, dev, 4096)
    # the next path is no better: a write that were sent again could not end
    t.eq(job.wait(20), 0, f"the write ends, acknowledgements still withheld: {job.out()}")
    s.sh("net_fifo eth0")
    c.sh("wait_for 20 paths_up s1 1; "
         f"dd if={dev} bs=4k count=1 iflag=direct status=none | cmp - /tmp/w4096; unmap {dev}",
         timeout=60)
