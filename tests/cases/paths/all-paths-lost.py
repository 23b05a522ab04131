# SPDX-License-Identifier: GPL-2.0-only
"""Carriers; paths/all-paths-silent has what nothing tells of."""
description = ("every path is lost: I/O is held and resumes; "
               "when hold= is over it fails once and at once until the link returns")
links = 2
disk = 64
faults = True
deadline = 240
import faults as F

HOLD = 5


def run(t):
    c, s = t.client, t.server
    links = lambda m, up: [m.link(i, up) for i in (0, 1)]

    s.sh("serve; modprobe ibnbd-testdisk cache=0")
    dev = c.sh("map testdisk0")
    w = F.Work(t, c, dev)
    row = w.fault("F5", "all paths: carrier down", lambda: links(c, False), lambda: links(c, True),
                  hold=6, down=[0, 1])
    w.limit(row, Tdet=1.5, Trec=3, Nerr=0)      # the kernel spaces news of carriers by a second

    c.sh(f"echo {HOLD} > /sys/block/{dev[5:]}/ibnbd/hold")
    row = w.fault("F6", f"all paths, longer than hold={HOLD}", lambda: links(c, False),
                  lambda: links(c, True), hold=HOLD + 6, down=[0, 1])
    logs = w.read_logs()
    took = sorted(f[-1] / 1e3 for f in [*logs.failed.values(), *logs.read_errors])
    t.log(f"errors after {took}")
    t.ok(row["Nerr"] and row["Nerr"] == len(took),
         f"errors come from this fault alone: {row}, {len(took)}")
    t.below(took[-1], HOLD + 1.5, "seconds until the held I/O failed")
    t.ok(took[-1] > HOLD - 1, "I/O was held")
    t.below(took[len(took) // 2], 0.3, "seconds until I/O after that failed")
    t.eq({f[0] for f in [*logs.failed.values(), *logs.read_errors]}, {5},
         "errno of all of them (EIO)")
    row["note"] = f"held I/O failed after {took[-1]:.1f} s, later I/O at once"
    w.limit(row, Trec=3)

    file = f"/sys/block/{dev[5:]}/ibnbd/hold"
    c.sh(f"echo 0 > {file}")

    def refused():
        out = c.fails(f"t=$(uptime_s); dd if={dev} of=/dev/null bs=4k count=1 iflag=direct "
                      "2> /dev/null || rc=$?; since $t; exit $rc", "^[0-9.]+$")
        t.below(float(out), F.within(0.5), "seconds until I/O failed")
        links(c, True)
    row = w.fault("F6", "all paths: carrier down, hold=0", lambda: links(c, False), refused, hold=3,
                  down=[0, 1])
    w.limit(row, Trec=3)
    t.ok(row["Nerr"], "nothing was held")
    w.end("/dev/testdisk0", errors_expected=True)
