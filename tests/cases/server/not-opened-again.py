# SPDX-License-Identifier: GPL-2.0-only
"""The server is there again, but two of its disks are not there yet, for whatever reason.  hold=
says how long their I/O waits, and nothing else does (law L4).  Their requests hold a good part of
the slots, and no other disk may have to wait for them when it comes or goes (law L2)."""
description = ("disks that cannot be opened yet are held as long as hold= says, and leave their "
               "neighbours alone; they open when they can")
crowd = True
faults = True
deadline = 150
import re
import time
import faults as F

DEPTH = 64
HOLD = 18
# what is behind the name meanwhile, and what the client says of it
LATE = (("rm -f /dev/mine",
         "does not have the disk yet .-2.: the server says: there is no such name"),
        ("mknod /dev/none b 7 200; ln -s /dev/none /dev/mine", "does not have the disk yet .-6."),
        ("ln -sfn /tmp /dev/mine", "does not have the disk yet .-15."),
        ("dmsetup create d --table '0 16384 linear /dev/ram0 0'; ln -sfn /dev/ram0 /dev/mine",
         "is still in use .-16.: the server says: it is in use on the server"))


def run(t):
    c, s = t.client, t.server
    s.sh(f"serve sess_queue_depth={DEPTH}; ram_disks 4 16; modprobe loop max_loop=1; "
         "ln -sfn /dev/ram0 /dev/mine; ln -sfn /dev/ram2 /dev/other")
    dev, other = c.sh("map mine hold=-1"), c.sh(f"map other hold={HOLD}")
    near = c.sh("map ram1")
    state = lambda d, what="state_detail": c.sh(f"dev_attr {d} {what}")
    speed = lambda: c.fio(near, rw="randread", bs="4k", iodepth=16, runtime=2)["read"]["iops"]
    before = speed()
    job = c.spawn(f"exec fio --name=f --filename={dev} --rw=randwrite --bs=4k --size=8m "
                  f"--ioengine=libaio --iodepth={DEPTH // 2} --direct=1 --time_based --runtime=20 "
                  "> /tmp/fio 2>&1")
    time.sleep(2)
    c.link(0, False)
    t.wait(lambda: state(other) == "held", 15, "I/O is held")
    begin = time.monotonic()
    write = c.spawn(f"dd if=/dev/zero of={other} bs=4k count=1 oflag=direct status=none")
    s.sh("wait_for 20 test ! -e /run/sessions/s1; rm /dev/other; " + LATE[0][0])
    c.link(0, True)
    t.wait(lambda: state(near) == "open", 15, "the neighbour is open again")

    new = c.spawn("map ram3")
    t.eq(new.wait(5 * F.vm.SLOW), 0, "a new disk is mapped")
    pulse = c.spawn(f"iopulse {near} 2 500 rw 5000")
    for script, words in LATE:
        s.sh(script)
        t.wait(lambda: re.search(words, state(dev, "reason")), 10, words)
        t.log(state(dev, "reason"))
        t.match(state(dev), "^held", "the disk that may wait for ever")
        time.sleep(2)
    rate = speed()
    t.log(f"{before:.0f} IOPS of the neighbour before, {rate:.0f} now")
    t.ok(rate > before / 4, "the neighbour has its share of the slots")
    t.wait(lambda: state(other).startswith("failed"), HOLD + 10, "hold= of the other one is over")
    took = time.monotonic() - begin
    t.ok(HOLD - 1 < took < (HOLD + 4) * F.vm.SLOW, f"not before, and soon after: {took:.1f} s")
    t.ok(write.wait(5), "its write has failed")
    t.match(state(dev), "^held", "the first one still waits")
    t.match(state(dev, "reason"), r"; I/O waits, for \d\d s so far, hold=-1$", "since when")
    t.match(c.kernel_news(), f"hold={HOLD} is over: the server does not have the disk yet", "log")

    s.sh("dmsetup remove d; ln -sfn /dev/ram2 /dev/other")
    for d in dev, other:
        t.wait(lambda: state(d) == "open", 10, "it is opened when it can be")
    t.eq(job.wait(30), 0, "no error of what has waited: " + c.sh("cat /tmp/fio"))
    c.sh(f"dd if=/dev/zero of={other} bs=4k count=1 oflag=direct status=none; pkill -TERM iopulse")
    t.eq(pulse.wait(20), 0, "iopulse on the neighbour: " + pulse.out())
    end = dict(word.split("=") for word in pulse.out().split() if "=" in word)
    t.eq(end["errs"], "0", "errors of the neighbour")
