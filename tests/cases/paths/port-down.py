# SPDX-License-Identifier: GPL-2.0-only
description = ("a cable out of the client's own port is noticed at once: "
               "I/O goes over the other path, and no heartbeat is waited for")
links = 2
faults = True
import faults as F
import vm

LIES = "/sys/kernel/debug/ibtrs/server/cm"


def run(t):
    c, s = t.client, t.server
    # it takes the client's word for it that the old connection is dead (law L9)
    s.sh("serve hb_misses=30; ram_disks 1 32")
    dev = c.sh("map ram0")
    c.sh("paths_up s1 2")
    w = F.Work(t, c, dev)
    for link in 0, 1:
        row = w.fault("F22", f"port {link} of the client is down", lambda: c.link(link, False),
                      lambda: c.link(link, True), down=[link])
        w.limit(row, Tdet=1, Tstall=2, Trec=5, Nerr=0)
    w.end("/dev/ram0", unmap=False)

    # A server that hears nothing of the end takes the new connection for it: else this would last
    # until a heartbeat of its own fails (law L9)
    path = "/sys/class/ibtrs-client/s1/paths/ip:10.0.0.1@ip:10.0.0.2"
    s.sh(f"echo drop path=10.0.0. > {LIES}")
    c.sh(f"echo 1 > {path}/disconnect; sleep 0.5")
    s.sh(f"grep -v ' hits=0' {LIES}; echo off > {LIES}; "
         "[ $(ls -d /sys/class/ibtrs-server/*/paths/* | wc -l) = 2 ]")
    # reconnect may give up waiting, the path does not
    took = float(c.sh(f"t=$(uptime_s); echo 1 > {path}/reconnect || true; "
                      "wait_for 40 paths_up s1 2; since $t", timeout=90).split()[-1])
    t.log(f"a path whose end the server has not heard of is back after {took:.1f} s")
    t.below(took, min(3, 1.5 * vm.SLOW), "seconds until the path was back")
