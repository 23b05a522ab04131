# SPDX-License-Identifier: GPL-2.0-only
"""The server is there again, but one of its disks is not there yet.  Its requests hold a
good part of the slots, and no other disk may have to wait for them when it comes or goes
(law L2).  (With all of the slots a new disk could not even read its partition table
before they are given up, law L4.)"""
description = ("a disk that can not be opened again gives up its I/O after 10 s "
               "and leaves its neighbours alone; it opens when it can")
crowd = True
faults = True
deadline = 150
import time
import faults as F

DEPTH = 16


def run(t):
    c, s = t.client, t.server
    s.sh(f"serve sess_queue_depth={DEPTH}; ram_disks 2 16; ln -sfn /dev/ram0 /dev/mine")
    dev = c.sh("map mine")
    c.link(0, False)
    job = c.spawn(f"exec fio --name=f --filename={dev} --rw=randwrite --bs=4k --size=4m "
                  f"--ioengine=libaio --iodepth={DEPTH // 2} --direct=1 > /dev/null 2>&1")
    t.wait(lambda: c.sh(f"dev_attr {dev} state") == "closed", 15, "I/O is held")
    s.sh("wait_for 20 test ! -e /sys/class/ibtrs-server/s1; rm /dev/mine")
    t0 = time.monotonic()
    c.link(0, True)
    near = c.sh("wait_for 5 eval 'map ram1 > /tmp/dev 2>&1'; tail -1 /tmp/dev")
    near = c.sh(f"unmap {near}; map ram1")
    t.match(c.sh(f"dev_attr {dev} state_detail"), "^held", "the other one still holds its I/O")
    pulse = c.spawn(f"iopulse {near} 2 500 rw 5000")
    t.wait(lambda: job.rc is not None, 40, "the held I/O has ended")
    t.ok(job.rc in (0, 1, 2, 3), f"fio's status {job.rc}: {job.out()}")
    took = time.monotonic() - t0
    detail = c.sh(f"dev_attr {dev} state_detail")
    t.log(f"given up after {took:.1f} s: {detail}")
    t.match(detail, "^failed", "state")
    t.match(c.sh(f"dev_attr {dev} reason"),
            "the server says: there is no such name.*, for 10 seconds", "reason")
    t.ok(9 < took < 16 * F.vm.SLOW, f"10 s after the link was back it was given up: {took:.1f} s")
    t.match(c.sh(f"dev_attr {near} state"), "open", "the neighbour")
    # every slot serves
    c.fio(near, rw="randwrite", bs="4k", iodepth=DEPTH, io_size=4 * 4096 * DEPTH)
    s.sh("ln -sfn /dev/ram0 /dev/mine")
    t.wait(lambda: c.sh(f"dev_attr {dev} state") == "open", 10, "it is opened when it can be")
    c.sh(f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none; pkill -TERM iopulse")
    t.eq(pulse.wait(20), 0, "iopulse on the neighbour: " + pulse.out())
    end = dict(word.split("=") for word in pulse.out().split() if "=" in word)
    t.eq(end["errs"], "0", "errors of the neighbour")
