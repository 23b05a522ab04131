# SPDX-License-Identifier: GPL-2.0-only
"""What mirror/heals does to a mirror of `ibnbd mirror`, done to md alone on two mapped disks: no
group, no watch, each request waits for hold=5 at most, and somebody types --re-add as soon as a leg
is open again.  Its rows stand beside those of mirror/heals in docs/performance.md, 6."""
description = ("md alone on two disks: it survives one server at a time with somebody who re-adds, "
               "and not the dark")
vms = 3
links = 2
disk = 64
long = True
deadline = 300
import faults as F, mirrors as M
programs = M.PROGRAMS
DARK = 20
STATE = "/sys/class/ibtrs-client/{}/paths/*/state"
SERVE = "modprobe virtio_blk; wait_for 5 test -b /dev/vda; "
FAST = "hold=5 hb_interval_ms=200"


def run(t):
    c, (one, two) = t.client, M.machines(t, size=64)
    two.sh(SERVE)
    legs = [c.sh(f"map {disk} sessname={session} {FAST} "
                 f"{M.path_of(c, s).replace(',', '@')}", timeout=60).strip()
            for s, session, disk in ((one, "a", "testdisk0"), (two, "b", "vda"))]
    dev = "/dev/md0"
    c.sh(f"mdadm --create {dev} --run --level=1 --raid-devices=2 --metadata=1.2 "
         f"--bitmap=internal --bitmap-chunk=4M --failfast {' '.join(legs)}", timeout=60)
    md = "/sys/block/md0/md"
    in_sync = lambda i: "in_sync" in c.rc(f"cat {md}/dev-{legs[i][5:]}/state")[1]
    whole = lambda: (in_sync(0) and in_sync(1)
                     and c.sh(f"cat {md}/sync_action").strip() == "idle")
    t.wait(whole, 120, "made")
    w = F.Work(t, c, dev, flush=4, states=" ".join(map(STATE.format, "ab")), lenient=True)

    def re_add(i):
        t.wait(lambda: c.rc(f"dev_attr {legs[i]} state_detail")[1] == "open", 40,
               f"leg {i} is open")
        c.sh(f"mdadm {dev} --remove {legs[i]}; mdadm {dev} --re-add {legs[i]}", timeout=30)

    def boot():
        t.wait(lambda: not in_sync(1), 25, "md drops b")
        two.boot()
        two.sh(SERVE + "serve")
        re_add(1)
    row = w.fault("P4", "md alone: one server is killed, and boots", two.kill, boot, down=[1],
                  from_healed=True, recover=60, up=whole)
    w.limit(row, Nerr=0)

    def power():
        c.link(0, False)
        one.sh(f"echo 1 > {M.P}/power_cut; echo 1 > {M.CTL}/testdisk0/cache_lost")

    def light():
        t.wait(lambda: not in_sync(0), 25, "md drops a")
        c.link(0, True)
        re_add(0)
    w.limit(w.fault("P5", "md alone: the other one loses its power", power, light, down=[0],
                    recover=60, up=whole), Nerr=0)

    row = w.fault("P6", "md alone: both links are dark",
                  lambda: (c.link(0, False), c.link(1, False)),
                  lambda: (c.link(0, True), c.link(1, True)), hold=DARK, down=[0, 1], recover=30)
    t.ok(row["Nerr"], "errors in the dark, of which mirror/heals has none")
    t.log(c.rc(f"cat /proc/mdstat {md}/array_state")[1])
    rc, _ = c.rc(f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct conv=notrunc", timeout=30)
    t.ok(rc, "md takes no write after the dark")
    w.job.kill()
    w.watch.end()
    M.leave(t)
