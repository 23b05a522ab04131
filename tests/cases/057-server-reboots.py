# SPDX-License-Identifier: GPL-2.0-only
description = "the server is shut down in good order and started again, three times under I/O; it stands still for 60 s"
links = 2
disk = 64
faults = True
long = True
deadline = 280
import faults as F

SERVE = "modprobe virtio_blk; wait_for 5 test -b /dev/vda; serve"


def run(t):
    c, s = t.client, t.server

    def down():
        s.sh("unload $OUR_MODULES; sync")
        s.kill()

    def up():
        s.boot()
        s.sh(SERVE)
    s.sh(SERVE)
    dev = c.sh("map vda")
    w = F.Work(t, c, dev)
    for i in range(3):
        row = w.fault("F10", f"server reboots, {i + 1}", down, up, hold=1, down=[0, 1], from_healed=True, recover=40)
        w.limit(row, Trec=3, Nerr=0)

    # What is sent to a machine that stands still stays in the sender's ring. soft-RoCE waits 50 s for it, frees the QP all the
    # same, and crashes when the ring moves on: so such packets are lost here.
    still = lambda: (s.pause(), s.link(0, False), s.link(1, False))
    wake = lambda: (s.link(0, True), s.link(1, True), s.resume())
    row = w.fault("F12", "server stands still for 60 s", still, wake, hold=60, down=[0, 1])
    w.limit(row, Tdet=6, Trec=3, Nerr=0)
    w.end("/dev/vda")
