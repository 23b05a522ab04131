# SPDX-License-Identifier: GPL-2.0-only
"""The network lets packets below 2000 bytes through, and drops all larger ones: handshakes and
heartbeats pass, requests do not.  L12: a read of more than 8 KiB does not survive a
retransmission on soft-RoCE whatever the driver does, so the load is 64 KiB writes when they are
lost, and reads when answers are.  Nothing limits its rate: what a stall costs must be missing."""
description = ("a path that connects and then swallows requests: "
               "it is tried before it is used, rests longer each time, and is called marginal")
long = True
links = 2
deadline = 320
import time

MARGINAL = "marginal"
STALL = 1.5


def run(t):
    c, s = t.client, t.server
    drop = lambda m, i: m.sh(f"tc qdisc replace dev eth{i} root tbf rate 1gbit "
                             "burst 2000 limit 1000000")
    heal = lambda m, i: m.sh(f"net_fifo eth{i}")
    path = "/sys/class/ibtrs-client/s1/paths/ip:10.0.{0}.1@ip:10.0.{0}.2"
    detail = lambda i: c.sh(f"cat {path.format(i)}/state_detail")

    s.sh("serve; ram_disks 1 64")

    # the only path: nothing is shown that swallows the first large request
    for m, what in ((c, "what the client sends"), (s, "what the server sends")):
        drop(m, 0)
        begin = time.monotonic()
        out = c.fails("map ram0 path=ip:10.0.0.2", "MTU")
        t.log(f"{what} is lost: refused after {time.monotonic() - begin:.1f} s: {out[-200:]}")
        t.eq(c.sh("ls /sys/class/block | grep -c ibnbd || true"), "0", "disks")
        t.match(c.sh("cat /sys/class/ibnbd-client/ctl/last_error"), "MTU", "last_error")
        heal(m, 0)

    dev = c.sh("map ram0")
    t.eq([detail(i) for i in (0, 1)], ["up", "up"], "states")

    def reconnects():
        return int(c.sh(f"cut -d' ' -f2 {path.format(1)}/stats/reconnects"))

    def flow(seconds):
        """Requests per second, and the longest time without one that ended; on the guest's clock,
        and with nothing started but sleep."""
        out = c.sh(f"end=$(($(cut -d. -f1 /proc/uptime) + {seconds}))\n"
                   "while read -r now _ < /proc/uptime; [ ${now%.*} -le $end ]; do\n"
                   f"    read -r r _ _ _ w _ < /sys/block/{dev[5:]}/stat; echo $now $((r + w))\n"
                   "    sleep 0.1\ndone", seconds + 60)
        seen = [(float(now), int(n)) for now, n in (line.split() for line in out.split("\n"))]
        changed = [seen[0][0]] + [b[0] for a, b in zip(seen, seen[1:]) if a[1] != b[1]]
        (t0, n0), (t1, n1) = seen[0], seen[-1]
        return ((n1 - n0) / (t1 - t0),
                max(b - a for a, b in zip(changed, changed[1:] + [t1])))

    def round(m, rw, what):
        """Is the path cheap, ten seconds after it died?"""
        load = c.spawn(f"fio --name=l --filename={dev} --rw={rw} --bs=64k --iodepth=4 --direct=1 "
                       "--ioengine=libaio --time_based --runtime=300 --size=32m")
        t.wait(lambda: flow(2)[0] > 10, 20, "I/O flows")
        before = flow(10)
        drop(m, 1)
        time.sleep(10)
        seen = reconnects()
        after, words = flow(20), detail(1)
        t.match(words, MARGINAL, "state_detail of the half-dead path")
        t.match(words, "MTU", "and why")
        t.eq(detail(0), "up", "state_detail of the other one")
        more = reconnects() - seen
        t.ok(more <= 2, f"it rests between its attempts: {more} in 20 s")
        c.sh(f"echo 1 > {path.format(1)}/disconnect")
        alone = flow(10)
        load.kill()
        heal(m, 1)
        # a person need not wait for the end of the rest
        c.sh(f"echo 1 > {path.format(1)}/reconnect")
        t.match(detail(1), "^up marginal", "up again, not trusted yet")
        # as a new path it starts without marks
        c.sh(f"echo 1 > {path.format(1)}/remove_path; "
             "echo ip:10.0.1.1@ip:10.0.1.2 > /sys/class/ibtrs-client/s1/add_path")
        t.eq(detail(1), "up", "a new path")
        t.log(f"{what} of full size are lost: " + "; ".join(
            f"{when} {n:.0f} IOPS, at most {s:.1f} s without one" for when, (n, s) in (
                ("before", before), ("after 10 s", after), ("without that path", alone))) +
            f"; {words}")
        # a request that the path swallowed is missed after a heartbeat at the earliest
        return (after[0] >= .85 * min(before[0], alone[0]) and
                after[1] <= max(before[1], alone[1]) + STALL)

    # What else the host does comes and goes, and moves the rates by half; what a path costs comes
    # again.
    for m, rw, what in ((c, "randwrite", "requests"), (s, "randread", "answers")):
        t.ok(round(m, rw, what) or round(m, rw, what),
             f"{what} of full size are lost: a half-dead path costs 15 % or more, or stalls")

    # the last path is used all the same, by whatever comes through
    c.sh(f"echo 1 > {path.format(1)}/disconnect")
    drop(c, 0)
    c.sh(f"echo 1 > {path.format(0)}/reconnect || true")
    t.wait(lambda: c.sh("paths_up s1 1 && echo up || true") == "up", 12,
           "the last path comes up without its trial")
    t.match(detail(0), "^up marginal", "and says so")
    c.sh(f"dd if={dev} of=/dev/null bs=1k count=4 iflag=direct", 20)
    heal(c, 0)
    c.sh(f"echo 1 > {path.format(0)}/reconnect")
    t.eq(detail(0), "up", "its trial has passed")
