# SPDX-License-Identifier: GPL-2.0-only
"""The disk keeps a good part of the session's slots.  A forced unmap breaks the paths under them;
the server lets the paths come back at once, since their client has given those requests up, and
their slots serve the neighbour.  Nobody writes to the disk before it has answered."""
description = ("a disk that does not answer is forced away: "
               "the neighbours' I/O goes on, all slots serve again, the disk waits for its own")
long = True
links = 2
disk = 64
faults = True
deadline = 180
import time
import faults as F

P = "/sys/module/ibnbd_testdisk/parameters"
# one slot of them is for messages: what is said about the stuck disk must not keep it
DEPTH = 12


def run(t):
    c, s = t.client, t.server
    delay = 120 if t.image.debug else 40
    # it keeps its content when the session is over, and so does a request that it has
    s.sh(f"serve sess_queue_depth={DEPTH}; "
         "modprobe ibnbd-testdisk nr_disks=1 cache=0; ram_disks 2 16")
    near, other = c.sh("map ram0"), c.sh("map ram1")
    w = F.Work(t, c, near)
    dev = c.sh("map testdisk0")
    # all on one path: what is said about the disk goes by the other one, which is not broken
    path = "/sys/class/ibtrs-client/s1/paths/ip:10.0.1.1@ip:10.0.1.2"
    c.sh(f"echo 1 > {path}/disconnect")
    s.sh(f"echo {delay * 1000} > {P}/delay_ms")
    stuck = time.monotonic()
    job = c.spawn(f"exec fio --name=f --filename={dev} --rw=randwrite --bs=4k --size=4m "
                  f"--ioengine=libaio --iodepth={DEPTH // 2} --direct=1 > /dev/null 2>&1")
    t.wait(lambda: int(c.sh(f"cat /sys/block/{dev[5:]}/inflight").split()[1]) >= DEPTH // 4, 30,
           "the disk has a good part of the slots")
    last = time.monotonic()
    s.sh(f"echo 0 > {P}/delay_ms")      # for what comes from now on
    c.sh(f"echo 1 > {path}/reconnect")

    row = w.fault("F17", "a disk hangs and is forced away: its neighbour",
                  lambda: c.sh(f"unmap {dev} force"))
    w.limit(row, Tstall=3, Nerr=0)
    t.eq(job.wait(5) in (0, 1, 2, 3), True, "the task that did I/O has ended")
    if not s.serves_user():
        t.match(s.kernel_news(), "that the client aborted", "the server's log")
    # every slot serves
    c.fio(other, rw="randwrite", bs="4k", iodepth=DEPTH, io_size=4 * 4096 * DEPTH)
    t.ok(time.monotonic() < stuck + delay - 2, "the disk still holds its requests")

    for mode in "rw", "migration":
        c.fails(f"map testdisk0 access_mode={mode}", "the disk has not ended all its requests")
    # nor anybody else
    c.fails("map testdisk0 sessname=s2 access_mode=migration",
            "the disk has not ended all its requests")
    c.sh("unmap $(map testdisk0 access_mode=ro)")

    time.sleep(max(0, last + delay + 1 - time.monotonic()))
    dev = c.sh("wait_for 10 eval 'map testdisk0 > /tmp/dev 2>&1'; tail -1 /tmp/dev")
    c.sh("head -c 1048576 /dev/urandom > /tmp/data; "
         fr"""dd if=/tmp/data of={dev} bs=64k oflag=direct status=none
              dd if={dev} bs=64k count=16 iflag=direct status=none | cmp - /tmp/data; """
         f"unmap {dev}; unmap {other}")
    check_force_close(t)
    w.end("/dev/ram0")


def check_force_close(t):
    """The server's administrator takes the mapping away, and need not wait for the disk."""
    c, s = t.client, t.server
    delay = 60 if t.image.debug else 15
    dev = c.sh("map testdisk0")
    s.sh(f"echo {delay * 1000} > {P}/delay_ms")
    write = c.spawn(f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none")
    t.wait(lambda: int(c.sh(f"cat /sys/block/{dev[5:]}/inflight").split()[1]), 10,
           "the disk has a write")
    s.sh(f"sleep 1; echo 0 > {P}/delay_ms")
    order = "echo 1 > /run/devices/testdisk0/sessions/s1/force_close"
    if s.serves_user():     # the order waits in a FIFO, not its giver
        s.sh(order)
    else:
        t.killed(s, order)
    t.eq(write.rc, None, "the disk still has the write")
    t.wait(lambda: c.sh(f"dev_attr {dev} state_detail") == "fenced", 5,
           "the client has heard of it")
    t.match(c.sh(f"dev_attr {dev} reason"), "the server closed the export", "the reason")
    write.wait(delay + 15)
    s.sh("wait_for 10 test ! -e /run/devices/testdisk0")
    c.sh(f"echo 1 > /sys/block/{dev[5:]}/ibnbd/remap_device; "
         f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none; unmap {dev}")
