# SPDX-License-Identifier: GPL-2.0-only
description = "paths are torn down at random under a slow disk, with both schedulers: no copy of a write comes late"
links = 2
disk = 64
faults = True
deadline = 150
import faults as F

ROUNDS, SECONDS = 200, 30


def run(t):
    c, s = t.client, t.server

    s.sh("serve; modprobe ibnbd-testdisk cache=0")
    dev = c.sh("map testdisk0")
    w = F.Work(t, c, dev, blocks=128, threads=4, think_us=1000, max=2)
    rounds = c.spawn(f"""
        cd /sys/class/ibtrs-client/s1/paths
        n=0 end=$((SECONDS + {SECONDS}))
        while [ $n -lt {ROUNDS} ] && [ $SECONDS -lt $end ]; do
            [ $((RANDOM % 20)) -gt 0 ] || echo $([ $((RANDOM % 2)) = 0 ] && echo none || echo mq-deadline) > /sys/block/{dev[5:]}/queue/scheduler
            p=ip:10.0.$((n % 2)).1@ip:10.0.$((n % 2)).2
            echo 1 > $p/disconnect || true
            usleep $((RANDOM % 30000))
            wait_for 15 eval "echo 1 > $p/reconnect" 2> /dev/null
            n=$((n + 1))
        done
        echo $n""")
    job = s.spawn(f"while :; do echo $((RANDOM % 60)) > /sys/module/ibnbd_testdisk/parameters/delay_ms; usleep 50000; done")
    t.eq(rounds.wait(SECONDS + 40), 0, "rounds: " + rounds.out()[-1000:])
    done = int(rounds.out().split()[-1])
    job.kill()
    s.sh("echo 0 > /sys/module/ibnbd_testdisk/parameters/delay_ms")
    t.ok(done >= 20, f"only {done} rounds in {SECONDS} s")
    t.ok(w.flows(1), "I/O flows afterwards")
    moved = c.sh("cat /sys/class/ibtrs-client/s1/paths/*/stats/rdma")
    t.ok(sum(int(l.split()[-1]) for l in moved.splitlines()), f"requests moved to the other path: {moved}")
    w.rows.append(dict(fault="T37", what="paths torn down at random, slow disk", stack="ibnbd", Nerr=0, note=f"{done} rounds"))
    w.end("/dev/testdisk0")
