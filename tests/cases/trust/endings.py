# SPDX-License-Identifier: GPL-2.0-only
"""Each path that is closed has a work that waits for its end, and a client can draw that out."""
description = ("a client with 256 paths that are closed and not at their end is told to come back; "
               "the next client has its own")
vms = 3
long = True
deadline = 240

DRAIN = "/sys/kernel/debug/ibtrs/server/drain"
ENDING = 256        # of ibtrs/server/quota.c
SLACK = 100         # in the handshake, and counted when they are closed


def run(t):
    c, s, d = t.client, t.server, t.client2
    s.sh("ram_disks 1 16; serve sess_queue_depth=24; "
         f"echo 'delay={60000 if t.image.debug else 30000}' > {DRAIN}")
    answers = []
    while len(answers) < ENDING + 2 * SLACK and "refused 16" not in answers:
        answers += d.sh("knock 10.0.0.2 count=40", timeout=60).splitlines()
    t.log(f"{len(answers)} knocks: {sorted(set(answers))}")
    accepted = sum(a.startswith("accepted") for a in answers)
    t.ok("refused 16" in answers, f"it is told to come back: {answers[-40:]}")
    t.ok(ENDING <= accepted < ENDING + SLACK, f"{accepted} paths were accepted")
    c.sh("unmap $(map ram0 access_mode=ro)", timeout=60)
    s.sh(f"echo off > {DRAIN}")
