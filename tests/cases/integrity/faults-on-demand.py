# SPDX-License-Identifier: GPL-2.0-only
description = ("each point that can be made to fail fails under I/O, in each of its ways: "
               "what the application hears, and that nothing is lost")
links = 2
disk = 64
faults = True
long = True
deadline = 360
import time
import faults as F

POINT = "/sys/kernel/debug/ibtrs/{}/{}"
# who, point, rule, what the application hears, must a path be lost?
# I/O is a sign of life, too: nobody misses a heartbeat beside it
RULES = (
    ("client", "submit", "error=5 times=1", "", True),
    ("client", "submit", "stuck times=1", "", True),
    ("client", "submit", "drop times=1", "", None),
    ("client", "submit", "delay=50 every=5", "", False),
    ("client", "completion", "error=5 times=1", "", True),
    ("client", "completion", "drop times=1", "", None),
    ("client", "completion", "delay=50 every=5", "", False),
    ("client", "heartbeat", "error=104 times=1", "", True),
    ("client", "heartbeat", "drop", "", False),
    ("server", "request", "error=5 times=2", "error", False),
    ("server", "request", "delay=1500 every=5", "", False),
    ("server", "reply", "error=5 times=2", "error", False),
    ("server", "reply", "drop times=1", "", None),
    ("server", "reply", "stuck times=1", "", True),
    ("server", "reply", "delay=1500 every=5", "", False),
    ("server", "heartbeat", "error=104 times=1", "", True),
    ("server", "heartbeat", "drop", "", False),
)


def run(t):
    c, s = t.client, t.server
    s.sh("serve; modprobe ibnbd-testdisk cache=0")
    dev = c.sh("map testdisk0 hb_interval=500")
    for m in c, s:
        said = m.sh(f"cat {POINT.format('*', '*')}").splitlines()
        t.ok(len(said) > 10 and all(text.startswith("off;") for text in said),
             f"points that are armed at the beginning: {said}")
    w = F.Work(t, c, dev, think_us=3000)
    for words in "session=another", "path=10.0.7.":     # somebody else's
        file = POINT.format("client", "submit")
        c.sh(f"echo error=5 {words} > {file}")
        t.ok(w.flows(), f"I/O while {words} shall fail")
        t.match(c.sh(f"cat {file}; echo off > {file}"), " hits=0$", f"{words} strikes nobody")
    for who, point, rule, hears, breaks in RULES:
        m = c if who == "client" else s
        file = POINT.format(who, point)

        def heal():
            t.ok(" hits=0" not in m.sh(f"cat {file}; echo off > {file}"),
                 f"{who}/{point}: {rule}: it struck")
            # that request waits for ever, as it would with a server that forgot
            # it: a new connection asks again
            if breaks is None:
                c.sh("for p in /sys/class/ibtrs-client/s1/paths/*; do echo 1 > $p/disconnect; "
                     "echo 1 > $p/reconnect; done", timeout=60)
        # a server may be as slow as its disk: it takes its own
        # heartbeats' time to find such a queue
        hold = 14 if "stuck" in rule else 6
        from_ = time.monotonic()
        row = w.fault("I1", f"{who}/{point}: {rule}", lambda: m.sh(f"echo {rule} > {file}"),
                      heal, hold=hold)
        lost = [x for x in w.watch.changes if from_ < x[0] < from_ + hold and not w.up(x[2])]
        t.ok(breaks is None or bool(lost) == breaks, f"{who}/{point}: {rule}: paths lost: {lost}")
        t.ok(bool(row["Nerr"]) == bool(hears),
             f"{who}/{point}: {rule}: errors of the application: {row['Nerr']}")
    w.end("/dev/testdisk0", errors_expected=True)
