# SPDX-License-Identifier: GPL-2.0-only
description = "the server is shut down in good order and started again, three times under I/O"
links = 2
disk = 64
faults = True
long = True
deadline = 200
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
    dev = c.sh("map vda unflushed=ignore")     # its cache is the host's, and outlives it
    w = F.Work(t, c, dev)
    for i in range(3):
        row = w.fault("F10", f"server reboots, {i + 1}", down, up, hold=1, down=[0, 1],
                      from_healed=True, recover=40)
        w.limit(row, Trec=3, Nerr=0)
    w.end("/dev/vda")
