# SPDX-License-Identifier: GPL-2.0-only
"""A user without rights asks 128 times a second to prove a key, and proves none. It does so from
another host, on the client's own, and on the server's. Its address has places for 16 a second, and
an emulated CPU does nothing else if it has to answer many more."""
description = ("a flood of those who prove nothing keeps no client with a key out, and holds up "
               "no I/O of one that is in")
vms = 3
long = True
deadline = 300
import keys
import vm

PATH = "/sys/class/ibtrs-client/s1/paths/*"
PARAMS = "/sys/module/ibtrs_server/parameters"


def back(c):
    """Seconds until a path that was taken away is up again."""
    c.sh(f"echo 1 > {PATH}/disconnect; nap")
    return float(c.sh(f"t0=$(uptime_s); echo 1 > {PATH}/reconnect 2> /dev/null || true; "
                      "wait_for 60 paths_up s1 1; since $t0", timeout=90))


def run(t):
    c, s, d = t.client, t.server, t.client2
    s.sh("ram_disks 2 64; serve auth=required")
    keys.share("db-1", c, s)
    dev = c.sh("map ram0 auth=db-1 hold=600", timeout=60)
    other = c.sh("map ram1 sessname=in auth=db-1", timeout=60)
    user = s.serves_user()
    if not user:
        t.match(s.kernel_news(), "session s1: .*path up on .*, let in by key db-1", "the log")
    for what, host in (("another host", d), ("the client's host", c), ("the server's host", s)):
        t.log(f"--- from {what}")
        pulse = c.spawn(f"iopulse {other} 1 1000 rw 20000")
        flood = host.spawn("lessen user knock 10.0.0.2 auth=1 flood=64")
        c.sh("sleep 2")
        took = [back(c) for _ in range(2)]
        host.sh("pkill -TERM knock", timeout=60)
        c.sh("pkill -TERM iopulse")
        t.eq(flood.wait(60), 0, flood.out())
        t.log(flood.out().strip())
        t.eq(pulse.wait(60), 0, pulse.out())
        longest = int(pulse.out().split("longest_ms=")[-1].split()[0])
        t.log(f"the path was back after {took} s; the longest I/O took {longest} ms")
        t.below(max(took), 3 * vm.SLOW, f"seconds until the path is back, flood from {what}")
        t.below(longest, 1000 * vm.SLOW, f"milliseconds of the longest I/O, flood from {what}")
    if not user:
        t.match(s.sh(f"cat {PARAMS}/auth_keys"), "^db-1 [0-9]+ [0-9]+$", "what the key let in")
        t.match(s.sh("ibnbd metrics"), 'ibnbd_server_key_let_in_total{key="db-1"} [0-9]+',
                "metrics")
    c.sh(f"unmap {dev}; unmap {other}", timeout=60)

    t.log("--- who was in is let in again by a list that has it, and closed by one that has not")
    dev = c.sh("map ram0 auth=db-1 hold=600", timeout=60)
    s.sh("server_set allow=10.0.0.0/24; sleep 1")
    c.sh("paths_up s1 1")
    s.sh("server_set allow=10.0.0.3")
    t.match(s.server_news(), "session s1: .*: closed: the parameter allow does not allow it any",
            "the log")
    c.sh("wait_for 20 grep -q 'not on the allow-list' "
         f"{PATH}/state_detail", timeout=60)
    s.sh("server_set allow=10.0.0.3,session:s1; sleep 1; server_set allow=")
    c.sh(f"wait_for 20 paths_up s1 1; unmap {dev}", timeout=60)
