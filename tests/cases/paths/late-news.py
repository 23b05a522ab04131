# SPDX-License-Identifier: GPL-2.0-only
"""A session that comes back is a new one for the server: numbers of devices may mean other disks
there.  What was numbered for the session before must not be sent on it, also while the devices have
not heard yet that there was a change."""
description = ("the link goes and comes before a busy machine tells its devices: "
               "no request goes out under a number of the session before")
faults = True
deadline = 120
import time
import faults as F

NEWS = "/sys/kernel/debug/ibtrs/client/news"
LATE = 3


def run(t):
    c, s = t.client, t.server
    s.sh("serve; ram_disks 1 32")
    dev = c.sh("map ram0")
    w = F.Work(t, c, dev)
    before = c.sh(f"echo delay={LATE * 1000} > {NEWS}; "
                  "cat /sys/class/ibtrs-client/s1/paths/*/stats/reconnects | cut -d' ' -f1")

    row = w.fault("N1", f"a new session, its devices hear of it {LATE} s later",
                  lambda: c.sh("echo 1 > $(echo /sys/class/ibtrs-client/s1/paths/*/reconnect)"))
    w.limit(row, Nerr=0)
    t.ok(int(c.sh("cat /sys/class/ibtrs-client/s1/paths/*/stats/reconnects | "
                  "cut -d' ' -f1")) > int(before), "it was another session")
    t.ok(int(c.sh(f"sed -n 's/.*hits=//p' {NEWS}")) > 0, "the news were late")
    t.ok(row["Tstall"] >= LATE / 2,
         f"I/O waited until the devices had heard of it: {row['Tstall']}")
    t.ok("no such device open" not in s.kernel_news(),
         "the server was asked for no device that it does not know")
    c.sh(f"echo off > {NEWS}")
    w.end("/dev/ram0")
