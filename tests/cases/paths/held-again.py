# SPDX-License-Identifier: GPL-2.0-only
"""What the paths do meanwhile makes no difference: to a request that has not been completed for
hold= seconds, and to how soon a path is used again."""
description = ("hold= bounds a request that path after path loses; "
               "a path that was silent for long is used soon while others carry I/O")
long = True
links = 2
deadline = 170
import time
import faults as F

HOLD = 12


def run(t):
    c, s = t.client, t.server
    path = "/sys/class/ibtrs-client/s1/paths/ip:10.0.{0}.1@ip:10.0.{0}.2"
    drop = lambda m, i: m.sh(f"tc qdisc replace dev eth{i} root tbf rate 1gbit "
                             "burst 2000 limit 1000000")
    heal = lambda m, i: m.sh(f"net_fifo eth{i}")

    s.sh("serve; ram_disks 1 64")
    dev = c.sh("map ram0")

    # a fault far longer than any back-off
    load = c.spawn(f"fio --name=l --filename={dev} --rw=randrw --bs=4k --iodepth=2 --direct=1 "
                   "--ioengine=libaio --rate_iops=50 --time_based --runtime=90 --size=32m")
    t.wait(lambda: int(c.sh(f"cut -d' ' -f1 {path.format(1)}/stats/rdma")) > 10, 20, "I/O flows")
    s.link(1, False)
    t.wait(lambda: c.sh("paths_up s1 1 && echo down || true") == "down", 12, "one path is lost")
    time.sleep(25)
    s.link(1, True)
    took = t.wait(lambda: c.sh("paths_up s1 2 && echo up || true") == "up", 15, "it is back")
    t.below(took, F.within(3.2), "seconds until it is used again")
    load.kill()

    # the only path comes up again and again, and swallows each large request
    c.sh(f"echo {HOLD} > /sys/block/{dev[5:]}/ibnbd/hold; echo 1 > {path.format(1)}/remove_path")
    drop(c, 0)
    job = c.spawn(f"t=$(uptime_s); dd if=/dev/zero of={dev} bs=64k count=1 oflag=direct "
                  "2> /dev/null && exit 1; since $t")
    t.eq(job.wait(4 * HOLD), 0, "the write fails: " + job.out())
    took = float(job.out().split()[-1])
    ups = c.sh(f"cat {path.format(0)}/stats/reconnects")
    t.log(f"failed after {took:.1f} s, {ups} connects that worked or did not")
    t.ok(int(ups.split()[0]) >= 1, f"the path came up meanwhile: {ups}")
    t.ok(took > HOLD - 1, f"the write was held: {took:.1f} s")
    # a swallowed request is noticed within 6 s
    t.below(took, HOLD + 9, "seconds until it failed")
    heal(c, 0)
    t.wait(lambda: c.sh(f"dev_attr {dev} state") == "open", 20, "the device is open again")
    t.wait(lambda: c.rc(f"dd if=/dev/zero of={dev} bs=64k count=1 oflag=direct")[0] == 0, 20,
           "writes work again")
