# SPDX-License-Identifier: GPL-2.0-only
description = "paths are torn down at random under a slow disk, with both schedulers: no copy of a write comes late"
links = 2
disk = 64
faults = True
deadline = 300
import faults as F

ROUNDS, SECONDS = 1000, 240     # small sessions come back quickly

LOOP = """
    cd /sys/class/ibtrs-client/s1/paths
    n=0
    while [ $n -lt @ROUNDS@ ]; do
        [ $((RANDOM % 20)) -gt 0 ] || echo $([ $((RANDOM % 2)) = 0 ] && echo none || echo mq-deadline) > /sys/block/@DISK@/queue/scheduler
        p=ip:10.0.@I@.1@ip:10.0.@I@.2
        echo 1 > $p/disconnect || true
        usleep $((RANDOM % 30000))
        wait_for 15 eval "echo 1 > $p/reconnect" 2> /dev/null
        wait_for 15 eval '[ "$(cat '$p'/state)" = connected ]'
        usleep $((RANDOM % 30000))
        n=$((n + 1))
    done
    echo $n"""


def run(t):
    c, s = t.client, t.server

    s.sh("serve sess_queue_depth=32 max_chunk_size=16384; modprobe ibnbd-testdisk cache=0")
    dev = c.sh("map testdisk0")
    w = F.Work(t, c, dev, blocks=128, threads=4, think_us=1000, max=2)
    loops = [c.spawn(LOOP.replace("@ROUNDS@", str(ROUNDS // 2)).replace("@DISK@", dev[5:]).replace("@I@", str(i))) for i in (0, 1)]
    job = s.spawn(f"while :; do echo $((RANDOM % 60)) > /sys/module/ibnbd_testdisk/parameters/delay_ms; usleep 50000; done")
    for i, loop in enumerate(loops):
        t.eq(loop.wait(SECONDS), 0, f"rounds of path {i}: " + loop.out()[-1000:])
    done = sum(int(loop.out().split()[-1]) for loop in loops)
    job.kill()
    s.sh("echo 0 > /sys/module/ibnbd_testdisk/parameters/delay_ms")
    t.eq(done, ROUNDS, "rounds")
    t.ok(w.flows(1), "I/O flows afterwards")
    moved = c.sh("cat /sys/class/ibtrs-client/s1/paths/*/stats/rdma")
    t.ok(sum(int(l.split()[-1]) for l in moved.splitlines()), f"requests moved to the other path: {moved}")
    w.rows.append(dict(fault="T37", what="paths torn down at random, slow disk", stack="ibnbd", Nerr=0, note=f"{done} rounds"))
    w.end("/dev/testdisk0")
