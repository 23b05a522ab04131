# SPDX-License-Identifier: GPL-2.0-only
description = ("path policies: each sends requests where it says; "
               "nothing is counted as in flight that is not, also after a failover")
long = True
links = 2
deadline = 150

PATHS = "/sys/class/ibtrs-client/s1/paths"
POLICY = "/sys/class/ibtrs-client/s1/mpath_policy"
POLICIES = ["rr", "mi", "ml"]


def run(t):
    c, s = t.client, t.server
    s.sh("serve; ram_disks 1 32")
    dev = c.sh("map ram0")
    c.sh("paths_up s1 2")

    def reads():
        """requests by path, in order of the links"""
        lines = c.sh("path_attr s1 stats/rdma").splitlines()
        return [int(line.split()[1]) for line in sorted(lines)]

    def inflight():
        return [int(line.split()[5]) for line in c.sh("path_attr s1 stats/rdma").splitlines()]

    def share(policy):
        """of the reads, how many went over link 0"""
        c.sh(f"echo {policy} > {POLICY}")
        before = reads()
        c.sh(f"fio --name=x --filename={dev} --direct=1 --ioengine=libaio --iodepth=8 "
             "--rw=randread --bs=4k --size=16m --time_based --runtime=2 --output=/dev/null",
             timeout=30)
        a, b = (now - was for now, was in zip(reads(), before))
        t.log(f"{policy}: {a} over link 0, {b} over link 1")
        t.ok(a + b > 50, f"{policy}: hardly any I/O: {a} + {b}")
        return a / (a + b)

    t.ok(0.45 < share("rr") < 0.55, "round robin halves")
    c.sh("tc qdisc replace dev eth1 root netem limit 10000 delay 60ms; sleep 4")
    latency = {line.split()[0][-8:]: int(line.split()[1])
               for line in c.sh("path_attr s1 cur_latency").splitlines()}
    t.log(latency)
    t.ok(share("ml") > 0.9, "min-latency leaves the slow link alone")
    t.ok(share("mi") > 0.6, "min-inflight prefers the link that answers faster")
    t.ok(0.3 < share("rr") < 0.7, "round robin does not care")
    t.ok(max(latency.values()) > 50_000_000, f"the slow link is known to be slow: {latency}")
    c.sh("tc qdisc replace dev eth1 root pfifo limit 10000")
    t.eq(inflight(), [0, 0], "in flight when nothing is")

    # each policy loses each path under load, and the next one takes over from it
    failovers = lambda: sum(int(line.split()[6])
                            for line in c.sh("path_attr s1 stats/rdma").splitlines())
    for policy, then in zip(POLICIES, POLICIES[1:] + POLICIES[:1]):
        before = failovers()
        c.sh(f"echo {policy} > {POLICY}")
        pulse = c.spawn(f"iopulse {dev} 4 500 rw")
        for link in 0, 1:
            c.sh("sleep 1")
            c.link(link, False)
            t.wait(lambda: c.sh("paths_up s1 1 && echo yes || true") == "yes", 5, "one path left")
            c.link(link, True)
            t.wait(lambda: c.sh("paths_up s1 2 && echo yes || true") == "yes", 10,
                   "both paths again")
        c.sh(f"for i in $(seq 20); do for p in {then} {policy}; do echo $p > {POLICY}; "
             "usleep 20000; done; done")
        c.sh("pkill -TERM iopulse")
        t.eq(pulse.wait(20), 0, "iopulse: " + pulse.out())
        t.eq(inflight(), [0, 0], f"{policy}: in flight after failovers and changes of the policy")
        t.log(f"{policy}: failovers {failovers() - before}")
        # the path of the lower latency may each time have been the other one
        t.ok(failovers() > before or policy == "ml", f"{policy}: failovers were counted")

    # each request that is answered on another CPU than it was sent from counts on both
    def moved(way):
        lines = c.sh(f"path_attr s1 stats/cpu_migration_{way}").splitlines()
        return [[int(n) for n in line.split()[1:]] for line in sorted(lines)]
    c.sh(f"echo rr > {POLICY}; for p in {PATHS}/*; do echo 1 > $p/stats/reset_all; done")
    for cpu in 0, 1:        # on one of them the answers do not arrive, or on neither alone
        was = moved("from")
        c.sh(f"taskset {1 << cpu} fio --name=x --filename={dev} --direct=1 --ioengine=libaio "
             "--iodepth=8 --rw=randread --bs=4k --size=16m --time_based --runtime=2 "
             "--output=/dev/null", timeout=30)
        news = [now[cpu] - old[cpu] for now, old in zip(moved("from"), was)]
        t.log(f"reads {reads()}, on CPU {cpu} sent and answered elsewhere: {news}; "
              f"from {moved('from')} to {moved('to')}")
        for sent, answered, n in zip(moved("from"), moved("to"), reads()):
            t.eq((sent[1], sent[0]), (answered[0], answered[1]),
                 "requests that moved from CPU 1 to CPU 0, and the other way")
            t.ok(sum(sent) <= n, f"no more moved than there were: {sent} of {n}")
    t.ok(sum(map(sum, moved("from"))) > 50, "requests that moved were counted")
