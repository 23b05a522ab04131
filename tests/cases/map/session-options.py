# SPDX-License-Identifier: GPL-2.0-only
description = "heartbeats and reconnects are as often as each mapping asks for"
long = True
links = 2
deadline = 180
import time
import vm

STATE = "cut -d' ' -f1 /sys/class/ibtrs-client/{}/paths/*/state_detail"
TRIES = "cut -d' ' -f2 /sys/class/ibtrs-client/{}/paths/*/stats/reconnects"


def run(t):
    c, s = t.client, t.server
    s.sh("serve; ram_disks 1 32")
    via = lambda link: f"path=ip:10.0.{link}.1@ip:10.0.{link}.2"
    hasty = c.sh(f"map ram0 sessname=hasty access_mode=ro {via(0)} hb_interval=300 hb_misses=2 "
                 "reconnect_delay=100 reconnect_max=200")
    patient = c.sh(f"map ram0 sessname=patient access_mode=ro {via(0)} hb_interval_ms=2000 "
                   "hb_misses=4 reconnect-delay-ms=3000 reconnect_max_ms=3000")
    once = c.sh(f"map ram0 sessname=once access_mode=ro {via(1)} max_reconnect_attempts=3 "
                "reconnect_delay=50 reconnect_max=50 hold=2")
    never = c.sh(f"map ram0 sessname=never access_mode=ro {via(1)} max_reconnect=0 hold=1")

    t.log("--- heartbeats")
    t0 = time.monotonic()
    s.link(0, False)
    found = {}
    # the transport's own retries may tell before the last heartbeat is missed
    for name, soon, late in ("hasty", 0.3, 2.4), ("patient", 2, 14):
        t.wait(lambda: c.sh(STATE.format(name)) != "up", 20, f"{name}: the path is lost")
        found[name] = time.monotonic() - t0
        t.below(found[name], late * max(1, vm.SLOW / 2),
                f"{name}: seconds until silence was noticed")
        t.ok(found[name] > soon, f"{name}: not before its time: {found[name]:.1f} s")

    t.log("--- reconnects")
    s.link(0, True)
    c.sh("for n in hasty patient; do wait_for 20 paths_up $n 1; done", timeout=60)
    s.sh("echo error=12 path=10.0.0. > /sys/kernel/debug/ibtrs/server/cm")
    readers = [c.spawn(f"dd if={dev} of=/dev/null bs=4k count=1 iflag=direct status=none")
               for dev in (hasty, patient)]
    c.sh("for n in hasty patient; do echo 1 > /sys/class/ibtrs-client/$n/paths/*/reconnect || "
         "true; done 2> /dev/null", timeout=60)
    before = {n: int(c.sh(TRIES.format(n))) for n in ("hasty", "patient")}
    time.sleep(9)
    more = {n: int(c.sh(TRIES.format(n))) - before[n] for n in before}
    t.log(f"attempts in 9 s: {more}")
    t.ok(1 <= more["patient"] <= 4, f"patient tries every 3 s: {more}")
    t.ok(more["hasty"] >= 9 / vm.SLOW and more["hasty"] > 2 * more["patient"],
         f"hasty tries several times in a second: {more}")
    s.sh("echo off > /sys/kernel/debug/ibtrs/server/cm")
    for job in readers:
        t.eq(job.wait(30), 0, "a reader: " + job.out())

    t.log("--- attempts")
    # by hand it is always tried
    c.sh("echo 1 > $(echo /sys/class/ibtrs-client/never/paths/*/reconnect); paths_up never 1",
         timeout=40)
    s.sh("echo error=12 path=10.0.1. > /sys/kernel/debug/ibtrs/server/cm")
    first = int(c.sh(TRIES.format("once")))
    c.link(1, False)
    t.wait(lambda: {c.sh(STATE.format(n)) for n in ("once", "never")}.isdisjoint({"up"}), 10,
           "both are lost")
    c.link(1, True)
    t.wait(lambda: "closed" in c.sh(STATE.format("once")), 40, "once gives up")
    t.ok("closed" in c.sh(STATE.format("never")),
         f"never has not tried: {c.sh(STATE.format('never'))}")
    t.eq(int(c.sh(TRIES.format("once"))) - first, 3, "attempts until it gave up")
    t.eq(c.sh(TRIES.format("never")), "0", "attempts of who shall make none")
    t.match(c.kernel_news(), "once: .*gave up after 3 attempts", "the log says so")
    s.sh("echo off > /sys/kernel/debug/ibtrs/server/cm")
    for name, dev in ("once", once), ("never", never):
        c.fails(f"dd if={dev} of=/dev/null bs=4k count=1 iflag=direct status=none", "rror")
        c.sh(f"wait_for 20 eval 'echo 1 > /sys/class/ibtrs-client/{name}/paths/*/reconnect' "
             "2> /dev/null", timeout=40)
        c.sh(f"wait_for 20 eval '[ \"$(dev_attr {dev} state)\" = open ]'; "
             f"dd if={dev} of=/dev/null bs=4k count=1 iflag=direct status=none", timeout=40)
