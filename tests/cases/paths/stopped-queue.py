# SPDX-License-Identifier: GPL-2.0-only
"""Up to Linux 6.12 a sender that sees the queue stopped puts its request on a list, and leaves it
to who starts the queue to run that list.  If its CPU stands still in between, as an emulated one
on a busy host does, the queue may have been started by then: nobody runs the list, and the request
waits for ever, with the path up and the disk open.  Seen once in trust/shares."""
description = ("a request that was being queued while its disk came back is executed, however "
               "long its CPU stood still")
needs = ["ibnbd-slowfn"]
deadline = 180

SLOW = "/sys/module/ibnbd_slowfn/parameters"
PATH = "$(echo /sys/class/ibtrs-client/s1/paths/*)"
ROUNDS = 3


def run(t):
    """The device is made to stand still just before it starts the queue, on CPU 0, and the reader
    just before it puts its request on the list, on CPU 1, for longer."""
    c, s = t.client, t.server
    s.sh("serve; ram_disks 1 16")
    dev = c.sh("map ram0")
    c.sh("insert=blk_mq_insert_request; "
         "grep -q ' blk_mq_sched_insert_request$' /proc/kallsyms && "
         "insert=blk_mq_sched_insert_request; "
         "modprobe ibnbd-slowfn func=ibnbd_clt_inflight_abort_larger,$insert; "
         "echo 1 > /sys/devices/virtual/workqueue/cpumask")
    for i in range(ROUNDS):
        c.sh(f"echo 1 > {PATH}/disconnect; wait_for 10 eval '[ $(dev_attr {dev} state) != open ]'; "
             f"echo 800,1500 > {SLOW}/ms")
        reader = c.spawn(f"taskset -cp 1 $$ > /dev/null; echo 1 > {PATH}/reconnect; "
                         f"until [ $(cut -d, -f1 {SLOW}/hits) -gt {i} ]; do :; done; "
                         f"exec dd if={dev} of=/dev/null bs=4k count=1 skip={i} iflag=direct "
                         "status=none")
        t.wait(lambda: int(c.sh(f"cut -d, -f2 {SLOW}/hits")) > i, 15, "the reader is late")
        c.sh(f"echo 0,0 > {SLOW}/ms; wait_for 10 eval '[ $(dev_attr {dev} state) = open ]'")
        t.eq(reader.wait(20), 0, f"round {i}: the read")
    c.sh(f"modprobe -r ibnbd-slowfn; unmap {dev}; echo 3 > /sys/devices/virtual/workqueue/cpumask")
