# SPDX-License-Identifier: GPL-2.0-only
"""The network lets packets below 2000 bytes through, and drops all larger ones: handshakes and
heartbeats pass, requests do not.  L12: a read of more than 8 KiB does not survive a
retransmission on soft-RoCE whatever the driver does, so the load is 64 KiB writes when they are
lost, and reads when answers are."""
description = ("a path that connects and then swallows requests: "
               "it is tried before it is used, rests longer each time, and is called marginal")
long = True
links = 2
deadline = 170
import time

MARGINAL = "marginal"
IOPS = 40           # far less than a busy host can do, so that what is missing is the path's fault


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

    def rate(seconds=5):        # on the guest's clock
        look = f"echo $(uptime_s) $(awk '{{ print $1 + $5 }}' /sys/block/{dev[5:]}/stat)"
        t0, n0, t1, n1 = (float(w) for w in c.sh(f"{look}; sleep {seconds}; {look}", 60).split())
        return (n1 - n0) / (t1 - t0)

    for m, rw, what in ((c, "randwrite", "requests"), (s, "randread", "answers")):
        load = c.spawn(f"fio --name=l --filename={dev} --rw={rw} --bs=64k --iodepth=4 --direct=1 "
                       f"--ioengine=libaio --rate_iops={IOPS} --time_based --runtime=60 --size=32m")
        t.wait(lambda: rate(1) > 10, 20, "I/O flows")
        healthy = min(rate(), IOPS)       # it may still catch up with what it missed before
        drop(m, 1)
        time.sleep(10)
        after, words = rate(8), detail(1)
        t.log(f"{what} of full size are lost: "
              f"{healthy:.0f} IOPS before, {after:.0f} after 10 s; {words}")
        t.ok(after >= .85 * healthy,
             f"{what}: {after:.0f} IOPS after 10 s, {healthy:.0f} while all was well")
        t.match(words, MARGINAL, "state_detail of the half-dead path")
        t.match(words, "MTU", "and why")
        t.eq(detail(0), "up", "state_detail of the other one")
        if m is c:
            seen = int(c.sh(f"cut -d' ' -f2 {path.format(1)}/stats/reconnects"))
            time.sleep(6)
            more = int(c.sh(f"cut -d' ' -f2 {path.format(1)}/stats/reconnects")) - seen
            t.ok(more <= 1, f"it rests between its attempts: {more} in 6 s")
        load.kill()
        heal(m, 1)
        # a person need not wait for the end of the rest
        c.sh(f"echo 1 > {path.format(1)}/reconnect")
        t.match(detail(1), "^up marginal", "up again, not trusted yet")
        # as a new path it starts without marks
        c.sh(f"echo 1 > {path.format(1)}/remove_path; "
             "echo ip:10.0.1.1@ip:10.0.1.2 > /sys/class/ibtrs-client/s1/add_path")
        t.eq(detail(1), "up", "a new path")

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
