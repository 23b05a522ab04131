# SPDX-License-Identifier: GPL-2.0-only
"""In-kernel servers may make a session twice when two paths that come back at once ask for it; that
of 5.10 dies of it.  Our server is like them here (`plain`), but tells instead.  The path that has
its turn may be the one whose way is dark: it must not keep the other one waiting."""
description = ("all paths to a server without extensions come back at once: "
               "one of them makes the session, and it is soon there")
long = True
links = 2
disk = 64
faults = True
deadline = 240
import faults as F

ROUNDS = 4
TOLD = "dmesg | grep -c 'ask to make one session' || true"


def run(t):
    c, s = t.client, t.server
    both = lambda m, up: [m.link(i, up) for i in (0, 1)]

    s.sh("serve; modprobe ibnbd-testdisk cache=0; echo 1 > /sys/kernel/debug/ibtrs-server/plain")
    dev = c.sh("map testdisk0; paths_up s1 2")
    told = int(s.sh(TOLD))
    w = F.Work(t, c, dev)
    for i in range(ROUNDS):
        row = w.fault("F5", f"all paths: carrier down, no extensions, {i + 1}",
                      lambda: both(c, False), lambda: both(c, True), hold=3, down=[0, 1])
        w.limit(row, Trec=3, Nerr=0)
    for dark in 0, 1:
        def heal():
            s.link(dark, False)
            both(c, True)

        row = w.fault("F5", f"all paths: only {1 - dark} returns, no extensions",
                      lambda: both(c, False), heal, hold=3, down=[0, 1],
                      up=lambda: w.up(w.watch.state[w.paths[1 - dark]]))
        w.limit(row, Trec=3, Nerr=0)
        s.link(dark, True)
        t.wait(w.all_up, 15, "the other path is up")
    t.eq(int(s.sh(TOLD)) - told, 0,
         "times that two paths asked to make the session at the same time")
    w.end("/dev/testdisk0")
