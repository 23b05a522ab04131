# SPDX-License-Identifier: GPL-2.0-only
"""A client that is refused after it has said a session's name must not keep that name from others
while its path comes to its end, which the client can draw out."""
description = ("a session that was refused keeps its name from nobody; a path that is never "
               "completed has one deadline, however many connections it makes")
crowd = True
vms = 3
deadline = 180

PARAMS = "/sys/module/ibtrs_server/parameters"
DRAIN = "/sys/kernel/debug/ibtrs/server/drain"


def check_name(t):
    c, s, d = t.client, t.server, t.client2
    dev = c.sh("map ram0 access_mode=ro")
    s.sh(f"echo delay=20000 > {DRAIN}")
    c.fails("map ram0 sessname=s2 access_mode=ro", "max_memory_mb", timeout=60)
    s.sh(f"echo 300 > {PARAMS}/max_memory_mb")
    other = d.sh("map ram0 sessname=s2 access_mode=ro", timeout=60)
    s.sh(f"echo off > {DRAIN}")
    d.sh(f"unmap {other}")
    c.sh(f"unmap {dev}")


def check_deadline(t):
    """A connection every three seconds, and a deadline of eight."""
    c, s = t.client, t.server
    s.sh(f"echo 8 > {PARAMS}/handshake_timeout_s")
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
    t.match(s.kernel_news(), "did not complete the handshake in time", "the server's log")


def run(t):
    t.server.sh("ram_disks 1 16; serve max_memory_mb=100")
    check_name(t)
    check_deadline(t)
