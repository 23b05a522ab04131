# SPDX-License-Identifier: GPL-2.0-only
"""What paths/all-paths-lost does with carriers, where nothing tells either end that the way is
gone or free again; and a hold that never ends."""
description = ("every path falls silent: I/O is held and resumes, fails when hold= is over, "
               "is held for ever with hold=-1; another path helps")
long = True
links = 2
disk = 64
faults = True
deadline = 240
import time
import faults as F

HOLD = 5


def run(t):
    c, s = t.client, t.server
    links = lambda m, up: [m.link(i, up) for i in (0, 1)]

    s.sh("serve; modprobe ibnbd-testdisk cache=0")
    dev = c.sh("map testdisk0")
    w = F.Work(t, c, dev)
    row = w.fault("F5", "all paths: silence", lambda: links(s, False), lambda: links(s, True),
                  hold=8, down=[0, 1])
    w.limit(row, Tdet=6, Trec=3, Nerr=0)

    file = f"/sys/block/{dev[5:]}/ibnbd/hold"
    c.sh(f"echo {HOLD} > {file}")

    # Nothing tells the client that the way is free again, and nothing is held any more: only
    # what is refused shows that somebody waits.
    def tries():
        return [int(n) for n in
                c.sh("for p in /sys/class/ibtrs-client/s1/paths/*/stats/reconnects; do "
                     "cut -d' ' -f2 $p; done").split()]

    def heal():
        before = tries()
        time.sleep(8)
        more = [b - a for a, b in zip(before, tries())]
        t.log(f"attempts in 8 s: {more}")
        t.ok(len(more) == 2 and min(more) >= 3,
             f"each path was tried at least 3 times in 8 s of refused I/O: {more}")
        links(s, True)

    row = w.fault("F6", "all paths: silence, far longer than hold", lambda: links(s, False), heal,
                  hold=HOLD + 7, down=[0, 1], from_healed=True)
    w.limit(row, Tdet=6, Trec=3)

    c.sh(f"echo -1 > {file}")
    row = w.fault("F5", "all paths: carrier down, hold=-1", lambda: links(c, False),
                  lambda: links(c, True), hold=HOLD + 4, down=[0, 1])
    w.limit(row, Trec=3, Nerr=0)
    # a path that is added while all are down, over a link that is up
    session, path = "/sys/class/ibtrs-client/s1", "ip:10.0.0.1@ip:10.0.0.2"
    c.sh(f"echo 1 > {session}/paths/{path}/remove_path")
    row = w.fault("F5", "the only path is lost, another one is added", lambda: c.link(1, False),
                  lambda: c.sh(f"echo {path} > {session}/add_path"), hold=3,
                  up=lambda: c.rc("paths_up s1 1")[0] == 0)
    w.limit(row, Trec=3, Nerr=0)
    c.link(1, True)
    w.end("/dev/testdisk0", errors_expected=True)
