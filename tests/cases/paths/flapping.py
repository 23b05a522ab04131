# SPDX-License-Identifier: GPL-2.0-only
"""Each offline and each online makes udev run all its rules, so a server, or a cable, that lets the
link flap must not have one for each time."""
description = ("a link that flaps: offline and online come in a burst, then once a second; "
               "what is told in the end is so")
crowd = True
deadline = 120
import re

TIMES, BURST, SPAN = 20, 10, 10     # more than ibnbd/client/disk.h lets through at once


def run(t):
    c, s = t.client, t.server
    s.sh("serve; ram_disks 1 16")
    dev = c.sh("map ram0")
    c.spawn("exec ibnbd monitor > /h/monitor")
    told = lambda: re.findall(rf"{dev[5:]} (offline|online)", c.sh("cat /h/monitor"))
    path = "/sys/class/ibtrs-client/s1/paths/*"
    flap = f"echo 1 > $(echo {path})/disconnect"
    back = f"echo 1 > $(echo {path})/reconnect; wait_for 10 paths_up s1 1"
    c.sh("sleep 1; " + flap)
    t.wait(lambda: told() == ["offline"], 10, "the first one is told at once")
    c.sh(back)
    t.wait(lambda: told() == ["offline", "online"], 10, "and its end")
    took = float(c.sh(f"t=$(uptime_s); for i in $(seq {TIMES}); do {flap}; "
                      f"wait_for 5 eval '[ $(dev_attr {dev} state) = closed ]'; {back}; "
                      f"wait_for 5 eval '[ $(dev_attr {dev} state) = open ]'; done; since $t",
                      timeout=90))
    c.sh(f"sleep 3; dd if={dev} of=/dev/null bs=4k count=1 iflag=direct status=none")
    events = told()
    t.log(f"{TIMES} times in {took:.1f} s: {' '.join(events)}")
    most = BURST * (1 + took // SPAN) + took + 3
    t.below(most, 2 * TIMES, "events that may be told, so that it shows")
    t.below(len(events), most + 0.5, "events that were told")
    t.eq(events[-1], "online", "the last one")
    c.sh(f"unmap {dev}")
