# SPDX-License-Identifier: GPL-2.0-only
description = "path policies: each sends requests where it says; nothing is counted as in flight that is not, also after a failover"
links = 2
deadline = 150

PATHS = "/sys/class/ibtrs-client/s1/paths"


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
        c.sh(f"echo {policy} > /sys/class/ibtrs-client/s1/mpath_policy")
        before = reads()
        c.sh(f"fio --name=x --filename={dev} --direct=1 --ioengine=libaio --iodepth=8 --rw=randread --bs=4k --size=16m "
             "--time_based --runtime=2 --output=/dev/null", timeout=30)
        a, b = (now - was for now, was in zip(reads(), before))
        t.log(f"{policy}: {a} over link 0, {b} over link 1")
        t.ok(a + b > 50, f"{policy}: hardly any I/O: {a} + {b}")
        return a / (a + b)

    t.ok(0.45 < share("rr") < 0.55, "round robin halves")
    c.sh("tc qdisc replace dev eth1 root netem limit 10000 delay 60ms; sleep 4")
    latency = {line.split()[0][-8:]: int(line.split()[1]) for line in c.sh("path_attr s1 cur_latency").splitlines()}
    t.log(latency)
    t.ok(share("ml") > 0.9, "min-latency leaves the slow link alone")
    t.ok(share("mi") > 0.6, "min-inflight prefers the link that answers faster")
    t.ok(0.3 < share("rr") < 0.7, "round robin does not care")
    t.ok(max(latency.values()) > 50_000_000, f"the slow link is known to be slow: {latency}")
    c.sh("tc qdisc replace dev eth1 root pfifo limit 10000")
    t.eq(inflight(), [0, 0], "in flight when nothing is")

    pulse = c.spawn(f"iopulse {dev} 4 500 rw")
    for link in 0, 1:
        c.sh("sleep 1")
        c.link(link, False)
        t.wait(lambda: c.sh("paths_up s1 1 && echo yes || true") == "yes", 5, "one path left")
        c.link(link, True)
        t.wait(lambda: c.sh("paths_up s1 2 && echo yes || true") == "yes", 10, "both paths again")
    c.sh("sleep 1; pkill -TERM iopulse")
    t.eq(pulse.wait(20), 0, "iopulse: " + pulse.out())
    t.eq(inflight(), [0, 0], "in flight after failovers")
    failovers = [int(line.split()[6]) for line in c.sh("path_attr s1 stats/rdma").splitlines()]
    t.log(f"failovers {failovers}")
    t.ok(sum(failovers) > 0, "failovers were counted")
