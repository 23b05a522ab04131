# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's handler of completions says that it is done, and arms the queue again after
that: a CPU that stands still in between, as an emulated one on a busy host does, finds a
queue that is gone when its owner asked only whether the handler was done.  Seen once in
077, whose sessions come and go."""
description = ("a connection ends while a CPU is slow to arm its completion queue again: "
               "the queue is there as long as that takes")
crowd = True
deadline = 180
needs = ["ibnbd-slowfn"]

SLOW = "/sys/module/ibnbd_slowfn/parameters"
MS, ROUNDS = 150, 12


def run(t):
    c, s = t.client, t.server
    s.sh("serve; ram_disks 1 16")
    c.sh("modprobe ibnbd-client; modprobe ibnbd-slowfn func=rxe_req_notify_cq")
    for i in range(ROUNDS):
        dev = c.sh(f"map ram0; echo {MS} > {SLOW}/ms")
        if i % 2:
            c.sh("echo 1 > $(echo /sys/class/ibtrs-client/s1/paths/*/disconnect); "
                 f"echo 0 > {SLOW}/ms; unmap {dev} force", timeout=60)
        else:
            c.sh(f"unmap {dev}; wait_for 15 test ! -e /sys/class/ibtrs-client/s1; "
                 f"echo 0 > {SLOW}/ms", timeout=60)
        c.sh("wait_for 15 test ! -e /sys/class/ibtrs-client/s1", timeout=60)
    hits = int(c.sh(f"cat {SLOW}/hits; modprobe -r ibnbd-slowfn"))
    t.ok(hits >= ROUNDS, f"the handler was slow {hits} times")
