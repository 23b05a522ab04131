# SPDX-License-Identifier: GPL-2.0-only
"""The only path is lost while a disk hangs.  The server keeps the path as long as the disk works
for it (law L6), and its client, who could give the disk up only over a path, would be kept out just
as long, with all its other disks."""
description = ("a client whose only path is lost while a disk hangs is let in after half a minute: "
               "its other disks go on, the one comes when it can")
links = 1
disk = 64
faults = True
long = True
deadline = 240
import time
import faults as F

P = "/sys/module/ibnbd_testdisk/parameters"
DELAY = 90      # the kernel reports who waits for 120 s
AWAY = 30       # LOOK_AWAY of ibtrs/server/look.c


def run(t):
    c, s = t.client, t.server
    t.allow(r"I/O error, dev ibnbd0")
    s.sh("modprobe virtio_blk; wait_for 5 test -b /dev/vda; serve; modprobe ibnbd-testdisk cache=0")
    hung, near = c.sh(f"map testdisk0 hold={AWAY + 10}"), c.sh("map vda")
    w = F.Work(t, c, near)
    s.sh(f"echo {DELAY * 1000} > {P}/delay_ms")
    t0 = time.monotonic()
    write = c.spawn(f"dd if=/dev/zero of={hung} bs=4k count=1 oflag=direct status=none")
    t.wait(lambda: int(c.sh(f"cat /sys/block/{hung[5:]}/inflight").split()[1]), 10,
           "the disk has a write")
    s.sh(f"sleep 1; echo 0 > {P}/delay_ms")
    row = w.fault("F5", "the only path blinks while another disk hangs", lambda: c.link(0, False),
                  lambda: c.link(0, True), hold=2, down=[0], recover=AWAY + 20)
    t.ok(time.monotonic() - t0 < DELAY - 10, "the disk still hangs")
    w.limit(row, Tstall=AWAY + 10, Nerr=0)
    t.ok(row["Tstall"] > AWAY - 5, f"half a minute of patience: {row['Tstall']} s")
    user = s.serves_user()
    t.match(s.sh("cat /run/serverd.log") if user else s.kernel_news(),
            "testdisk0 is closed: it has not ended its requests, "
            "and its client cannot come back before that", "the server's log")
    # that disk is refused, so nothing can overtake the write that it still works on
    t.wait(lambda: write.rc is not None, 30, "the hanging write ended")
    t.ok(write.rc != 0, "with an error")
    c.fails(f"dd if=/dev/zero of={hung} bs=4k count=1 oflag=direct status=none", "error")
    if not t.image.debug:       # the steps before take too long there
        t.ok(time.monotonic() - t0 < DELAY, "the disk still hung")
    t.wait(lambda: c.sh(f"dev_attr {hung} state") == "open", DELAY + 20,
           "it is opened when it has ended its requests")
    t.ok(time.monotonic() - t0 >= DELAY - 1, "not before")
    c.sh(f"dd if=/dev/zero of={hung} bs=4k count=1 oflag=direct status=none; unmap {hung}")
    w.end("/dev/vda")
