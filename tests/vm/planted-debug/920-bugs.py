# SPDX-License-Identifier: GPL-2.0-only
description = ("planted: a bug of each kind that the debug kernel looks for, "
               "and the case does not look")
vms = 1
append = "panic_on_warn=0"
BUGS = "rcu sleep shift object dma order free leak"     # the later ones switch lockdep off


def run(t):
    t.client.sh(f"modprobe ibnbd-planted; for b in {BUGS}; "
                "do echo $b > /sys/module/ibnbd_planted/parameters/bug; done")
