# SPDX-License-Identifier: GPL-2.0-only
"""Each path that is closed has a work that waits for its end, and a client can draw that out."""
description = ("a client with 256 paths that are closed and not at their end is told to come back, "
               "with a key or without; the next client has its own")
vms = 3
long = True
deadline = 400
import keys

STRANGER = "/sys/module/ibnbd_stranger/parameters"
KEY = "22" * 32
DRAIN = "/sys/kernel/debug/ibtrs/server/drain"
ENDING = 256        # of ibtrs/server/quota.c
SLACK = 100         # in the handshake, and counted when they are closed


def with_key(t):
    """The same machine, which has taken all that is its own without a key.  Each of its paths is of
    a session of its own, and left when the next one begins."""
    heard = t.client2.sh(
        "modprobe ibnbd-stranger to=ip:10.0.0.2; n=0; "
        f"until grep -q 'refused 16' {STRANGER}/said || [ $n -ge {ENDING + SLACK} ]; do "
        f"n=$((n + 1)); printf 'name=other secret={KEY} uuid=%032x conn=good' $n > "
        f"{STRANGER}/visit; done; echo $n; cat {STRANGER}/said", timeout=240)
    t.match(heard, "refused 16", "with a key, after so many paths, it is told to come back")
    return int(heard.split()[0])


def run(t):
    c, s, d = t.client, t.server, t.client2
    delay = 150000 if t.image.debug else 75000
    s.sh("ram_disks 1 16; serve auth=optional sess_queue_depth=24; "
         f"echo 'delay={delay} path=10.0.0.3' > {DRAIN}")
    keys.give(s, other=keys.text(KEY))
    answers = []
    while len(answers) < ENDING + 2 * SLACK and "refused 16" not in answers:
        answers += d.sh("knock 10.0.0.2 count=40", timeout=60).splitlines()
    t.log(f"{len(answers)} knocks: {sorted(set(answers))}")
    accepted = sum(a.startswith("accepted") for a in answers)
    t.ok("refused 16" in answers, f"it is told to come back: {answers[-40:]}")
    t.ok(ENDING <= accepted < ENDING + SLACK, f"{accepted} paths were accepted")
    t.ok(ENDING < with_key(t), "a key has its own")
    c.sh("unmap $(map ram0 access_mode=ro)", timeout=60)
    # paths that wait already go on waiting
    s.sh(f"echo off > {DRAIN}; sleep {delay // 1000 + 5}", timeout=delay // 1000 + 60)
