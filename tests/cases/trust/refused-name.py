# SPDX-License-Identifier: GPL-2.0-only
"""A client that is refused after it has said a session's name must not keep that name from others
while its path comes to its end, which the client can draw out."""
description = ("a session that was refused keeps its name from nobody; a path that is never "
               "completed has one deadline, however many connections it makes")
crowd = True
vms = 3
deadline = 180

DRAIN = "/sys/kernel/debug/ibtrs/server/drain"


def check_name(t):
    c, s, d = t.client, t.server, t.client2
    user = s.serves_user()
    dev = c.sh("map ram0 access_mode=ro")
    if not user:
        s.sh(f"echo delay=20000 > {DRAIN}")
    c.fails("map ram0 sessname=s2 access_mode=ro", "max_memory_mb", timeout=60)
    if user:        # a path that was refused ends within two seconds there
        c.sh(f"unmap {dev}")
    else:
        s.sh("server_set max_memory_mb=300")
    other = d.sh("map ram0 sessname=s2 access_mode=ro", timeout=60)
    if not user:
        s.sh(f"echo off > {DRAIN}")
        c.sh(f"unmap {dev}")
    d.sh(f"unmap {other}")


def check_deadline(t):
    """A connection every three seconds, and a deadline of eight, or ten of ibnbd-serverd."""
    c, s = t.client, t.server
    if not s.serves_user():
        s.sh("server_set handshake_timeout_s=8")
    jobs = [c.spawn("knock 10.0.0.2 session=7 path=7 nr=30 hold=60")]
    t.wait(lambda: jobs[0].out(), 10, "the first connection")
    answers = []
    for cid in range(1, 6):
        c.sh("sleep 3")
        jobs.append(c.spawn(f"knock 10.0.0.2 session=7 path=7 nr=30 cid={cid} hold=60"))
        t.wait(lambda: jobs[-1].out(), 10, f"the answer to connection {cid}")
        answers.append(jobs[-1].out().split()[0])
    for job in jobs:
        job.kill()
    t.eq(answers[0], "accepted", f"the second connection, in time: {answers}")
    t.eq(answers[-1], "refused", f"the last one, long after the deadline: {answers}")
    t.match(s.server_news(), "did not complete the handshake in time", "the server's log")


def run(t):
    t.server.sh("ram_disks 1 16; serve max_memory_mb=100")
    check_name(t)
    check_deadline(t)
