# SPDX-License-Identifier: GPL-2.0-only
"""The disk is a virtio disk that outlives its machine, so everything that was acknowledged
must be there after a power cut."""
description = ("the server is unloaded, stopped for a while, rebooted, "
               "and loses its power, under I/O")
links = 2
disk = 64
faults = True
deadline = 240
import faults as F

SERVE = "modprobe virtio_blk; wait_for 5 test -b /dev/vda; serve"


def run(t):
    c, s = t.client, t.server

    s.sh(SERVE)
    dev = c.sh("map vda unflushed=ignore")     # its cache is the host's, and outlives it
    w = F.Work(t, c, dev)

    def unload():
        took = float(s.sh("t=$(uptime_s); unload $OUR_MODULES >&2; since $t"))
        t.below(took, F.within(5), "seconds until the server's modules were unloaded")
    row = w.fault("F9", "server's modules unloaded and loaded again", unload, lambda: s.sh(SERVE),
                  down=[0, 1], from_healed=True)
    w.limit(row, Trec=3, Nerr=0)

    row = w.fault("F12", "server stands still for 10 s", s.pause, s.resume, hold=10, down=[0, 1])
    w.limit(row, Tdet=6, Trec=3, Nerr=0)

    def reboot():
        s.boot()
        s.sh(SERVE)
    row = w.fault("F11", "server loses its power", s.kill, reboot, hold=5, down=[0, 1],
                  from_healed=True, recover=40)
    w.limit(row, Tdet=6, Trec=3, Nerr=0)
    w.end("/dev/vda")
