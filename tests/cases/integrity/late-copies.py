# SPDX-License-Identifier: GPL-2.0-only
"""Writes are late at the disk, some of all requests before they get there, so that answers
of reads are late, too: one that came for a page which had been given back would spoil the
next block that is read or written from there.  A second scene without fences shows that
late copies are met and seen."""
description = ("paths are torn down at random under a slow disk, with both schedulers: "
               "no copy of a write, nor an answer, comes late")
long = True
crowd = True
links = 2
disk = 64
faults = True
deadline = 360
import time
import faults as F
import late

ROUNDS, SECONDS = 1000, 240     # small sessions come back quickly
POINT = "/sys/kernel/debug/ibtrs/server/request"

LOOP = """
    cd /sys/class/ibtrs-client/s1/paths
    n=0
    while [ $n -lt @ROUNDS@ -a ! -e /tmp/enough ]; do
        if [ $((RANDOM % 20)) = 0 ]; then
            [ $((RANDOM % 2)) = 0 ] && elevator=none || elevator=mq-deadline
            echo $elevator > /sys/block/@DISK@/queue/scheduler
        fi
        p=ip:10.0.@I@.1@ip:10.0.@I@.2
        echo 1 > $p/disconnect || true
        usleep $((RANDOM % 30000))
        wait_for 15 eval "echo 1 > $p/reconnect" 2> /dev/null
        wait_for 15 eval '[ "$(cat '$p'/state)" = connected ]'
        usleep $((RANDOM % 30000))
        n=$((n + 1))
    done
    echo $n"""


def tear(t, w, rounds, delay, enough=lambda: False):
    """Each path is torn down half of the rounds, or until it is enough; how many there were."""
    c, s = t.client, t.server
    c.sh("rm -f /tmp/enough")
    loops = [c.spawn(LOOP.replace("@ROUNDS@", str(rounds // 2))
                     .replace("@DISK@", w.dev[5:]).replace("@I@", str(i)))
             for i in (0, 1)]
    job = s.spawn(f"while :; do echo $(({delay})) "
                  "> /sys/module/ibnbd_testdisk/parameters/delay_ms; usleep 50000; done")
    while not enough() and any(loop.rc is None for loop in loops):
        t.ok(time.monotonic() - loops[0].started < SECONDS * F.vm.SLOW,
             f"{rounds} rounds in {SECONDS} s")
        time.sleep(0.2)
    c.sh("touch /tmp/enough")
    for i, loop in enumerate(loops):
        t.eq(loop.wait(40), 0, f"rounds of path {i}: " + loop.out()[-1000:])
    job.kill()
    s.sh("echo 0 > /sys/module/ibnbd_testdisk/parameters/delay_ms")
    return sum(int(loop.out().split()[-1]) for loop in loops)


def run(t):
    c, s = t.client, t.server
    serve = "serve sess_queue_depth=32 max_chunk_size={}; modprobe ibnbd-testdisk cache=0"

    s.sh(f"{serve.format(16384)}; echo delay=30 every=4 > {POINT}")
    w = F.Work(t, c, c.sh("map testdisk0"), blocks=128, threads=4, think_us=1000, max=2)
    done = tear(t, w, ROUNDS, "RANDOM % 60")
    t.ok(" hits=0" not in s.sh(f"cat {POINT}; echo off > {POINT}"), "requests were late")
    t.eq(done, ROUNDS, "rounds")
    t.ok(w.flows(1), "I/O flows afterwards")
    moved = c.sh("cat /sys/class/ibtrs-client/s1/paths/*/stats/rdma")
    t.ok(sum(int(l.split()[-1]) for l in moved.splitlines()),
         f"requests moved to the other path: {moved}")
    w.rows.append(dict(fault="T37", what="paths torn down at random, slow disk", stack="ibnbd",
                       Nerr=0, note=f"{done} rounds"))
    w.end("/dev/testdisk0")

    t.log("--- without fences, until a read has found an older write: "
          "writes in a few places, so that many a late copy finds a newer one in its own")
    s.sh(f"unload ibnbd_server ibtrs_server ibnbd_testdisk; {serve.format(65536)}; "
         f"{late.SWITCH.format('no_fence')}")
    w = F.Work(t, c, c.sh("map testdisk0"), writer=2, blocks=128, threads=4, think_us=1000, max=16)
    done = tear(t, w, ROUNDS // 2, "RANDOM % 3 ? 0 : 400",
                lambda: any("\nV " in p.read_text() for p in c.vm.share.glob(f"{w.name}.[0-9]*")))
    t.log(f"{done} rounds")
    w.stop()
    c.sh(f"unmap {w.dev}")
    verdict = F.prove(t, s, "/dev/testdisk0", [w], w.blocks, must_fail=True)
    t.eq(verdict.wrong, 0, "wrong blocks without fences")
