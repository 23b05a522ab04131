# SPDX-License-Identifier: GPL-2.0-only
"""A name is kept for a client that was lost with something open, and the server keeps 256 in all:
one host that loses many must not make it forget those of others."""
description = ("a host that loses more sessions than its share loses the oldest of their names, "
               "and nobody else's")
vms = 3
long = True
deadline = 300

SHARE = 32          # IBTRS_KEPT_PER_HOST
LOST = SHARE + 2


def run(t):
    c, s, d = t.client, t.server, t.client2
    s.sh("ram_disks 1 16; serve sess_queue_depth=16")
    for i in range(LOST):
        c.sh(f"map ram0 access_mode=ro sessname=n{i} hold=0", timeout=60)
    c.sh("net_loss 0 100")
    s.sh("wait_for 60 eval '! ls /run/sessions/ | grep -qE \"^n[0-9]\"'", timeout=90)
    taken = []
    for i in range(LOST):
        rc, out = d.rc(f"dev=$(map ram0 access_mode=ro sessname=n{i} 2>&1) && unmap $dev || "
                       "{ echo \"$dev\"; exit 1; }", timeout=60)
        taken += [i] * (rc == 0)
        t.ok(rc == 0 or "is kept for" in out, out)
    t.eq(len(taken), LOST - SHARE, f"names that others may have: {taken}")
    c.sh("net_loss 0 0; for d in $(ls /sys/block | grep ibnbd); do unmap $d force; done",
         timeout=120)
