# SPDX-License-Identifier: GPL-2.0-only
"""Authentication with any bytes, in any order, of any length, left in the middle or not at all: by
who has another key, by who names one that is not there, and by who has the right one.  The last may
come in, and no further than its own limits."""
description = ("whatever is said in the place of a proof, only the key gets a grant, others come "
               "in meanwhile, nothing is kept, and a key that is misused shuts out itself alone")
crowd = True
vms = 3
import os
import keys

PARAMS = "/sys/module/ibnbd_stranger/parameters"
LIMITS = "/sys/module/ibtrs_server/parameters"
# connections and messages, by each
ENOUGH = min(int(os.environ.get("IBNBD_EXCHANGES") or 1000) // 5, 4000)
SEED = int(os.environ.get("IBNBD_SEED") or 24)
deadline = 180 + ENOUGH // 2
KEY, BAD = "22" * 32, "11" * 32
RECONNECT = "for p in /sys/class/ibtrs-client/s1/paths/*; do echo 1 > $p/reconnect; done"


def guess(t, whom, seed):
    """Beside it the other one loses its path and comes back."""
    c, d = t.client, t.client2
    d.sh(f"echo '{whom}' > {PARAMS}/whom")
    job = d.spawn(f"echo '{seed} {ENOUGH}' > {PARAMS}/guess; cat {PARAMS}/guessed")
    c.sh(f"sleep 1; {RECONNECT}; sleep 0.2; wait_for 20 paths_up s1 1", timeout=60)
    t.eq(job.wait(60 + ENOUGH // 2), 0, "guesses: " + job.out())
    said, challenges, refused, granted = map(int, job.out().split())
    t.log(f"{whom}: {said} said, {challenges} challenges, {refused} refused, {granted} granted")
    t.ok(said >= ENOUGH and challenges > ENOUGH // 20 and refused, "it was in earnest")
    return granted


def half_open(t):
    """Of a key that may have two paths half open, the third one is refused."""
    c, d = t.client, t.client2
    # the log takes ten refusals in five seconds, and the guesses had more than that
    t.server.sh("sleep 6")
    if not t.server.serves_user():
        t.server.sh("server_set max_paths_half_open_per_peer=2")
    heard = d.sh(f"echo 'half 1; on 1; half 1; on 2; half 1' > {PARAMS}/tell || true; "
                 f"cat {PARAMS}/said", timeout=60)
    t.match(heard, "cid 0: refused 28 ", "its third path")
    t.match(t.server.server_news(), "max_paths_half_open_per_peer", "the server says why")
    c.sh(f"{RECONNECT}; sleep 0.2; wait_for 20 paths_up s1 1; "
         "unmap $(map ram1 auth=db-1 sessname=s2)", timeout=60)
    keys.share("third", d, t.server)
    d.sh("unmap $(map ram1 auth=third access_mode=ro sessname=s3)", timeout=60)
    d.sh(f"echo 'half 1' > {PARAMS}/tell", timeout=60)


def alone(t):
    t.eq(t.server.sh("ls /run/sessions/ | grep -v ctl"), "s1", "sessions at the server")


def run(t):
    c, s, d = t.client, t.server, t.client2
    user = s.serves_user()      # its handshake_timeout_s is 10
    s.sh("ram_disks 2 16; serve auth=required sess_queue_depth=24 " +
         ("max_paths_half_open_per_peer=2" if user else "handshake_timeout_s=20"))
    keys.give(s, other=keys.text(KEY))
    keys.share("db-1", c, s)
    dev = c.sh("map ram0 auth=db-1")
    free = int(s.sh("sleep 1; memory_kib"))
    pulse = c.spawn(f"iopulse {dev} 2 5000 rw 20000")
    d.sh("modprobe ibnbd-stranger to=ip:10.0.0.2")
    for i, name in enumerate(("db-1", "other", "nobody")):
        t.eq(guess(t, f"name={name} secret={BAD}", SEED + i), 0, "grants without the key")
    if not user:
        before = int(s.sh(f"cat {LIMITS}/auth_failures"))
        t.ok(before > 2, f"{before} failures are counted")
    t.ok(guess(t, f"name=other secret={KEY}", SEED + 3) > 0, "with the key it would come in")
    alone(t)
    half_open(t)
    d.sh("modprobe -r ibnbd-stranger")
    s.sh("wait_for 30 eval '[ \"$(ls /run/sessions/ | grep -v ctl)\" = s1 ]'", timeout=60)
    t.below(free - int(s.sh("sleep 6; memory_kib")), (48 if t.image.debug else 16) << 10,
            "KiB that stayed behind")
    c.sh("pkill -TERM iopulse")
    t.eq(pulse.wait(30), 0, "the other's I/O: " + pulse.out())
    c.sh(f"unmap {dev}")
