# SPDX-License-Identifier: GPL-2.0-only
"""docs/mirror.md as it stands there: one leg from each of two servers,
each in a session of its own. One server falls silent; then a leg is unmapped by force."""
import faults as F, mirrors as M
description = ("an md mirror over two servers: the rule drops a lost leg, "
               "nobody above sees an error, the bitmap brings it back")
long = True
vms = 3
links = 2               # each server has its own
deadline = 120
programs = M.PROGRAMS
HOLD, SIZE = M.DROP, M.SIZE     # seconds, MiB


def run(t):
    c, s1, s2 = t.client, t.server, t.client2

    M.machines(t)
    for s in s1, s2:
        M.serve(s)
    legs = [c.sh(f"map testdisk0 sessname=s{i + 1} hold=-1 path=ip:10.0.{i}.1@ip:10.0.{i}.{i + 2}")
            for i in (0, 1)]
    c.sh("mdadm --create /dev/md0 --run --assume-clean --level=1 --raid-devices=2 --metadata=1.2 "
         f"--bitmap=internal --bitmap-chunk=1M --failfast {' '.join(legs)}")
    c.sh("wait_for 10 test -b /dev/md0; udevadm settle --timeout=20")

    name = legs[1][5:]
    leg = f"/sys/block/md0/md/dev-{name}"
    state = lambda: c.rc(f"cat {leg}/state")[1]
    written = lambda: int(c.sh(f"awk '{{ print $7 }}' /sys/block/{name}/stat")) >> 11
    whole = lambda: c.rc("[ \"$(cat /sys/block/md0/md/degraded)\" = 0 ] && "
                         f"grep -q in_sync {leg}/state")[0] == 0
    t.ok("failfast" in state(), f"the leg is failfast: {state()}")

    w = F.Work(t, c, "/dev/md0", session="s2")
    before = written()
    row = w.fault("M1", "one server of a mirror: silence", lambda: s2.link(1, False),
                  lambda: (t.wait(lambda: "faulty" in state(), 12, "md drops the leg"),
                           s2.link(1, True)),
                  hold=HOLD, down=[0])
    w.limit(row, Nerr=0, Tdet=6, Tstall=6 + HOLD + 3)
    t.ok(row["Tstall"] > HOLD - 1, f"I/O waited for the leg: {row}")
    t.wait(whole, 20, "the rule takes the leg back")
    copied = written() - before
    t.ok(0 < copied < SIZE - 4,
         f"MiB written to a leg that came back to a mirror of {SIZE}: "
         f"{copied}, only what had changed")

    # unmapped by force while md has it: the number is the leg's until md lets go, which udev's late
    # "remove" makes it do; were the number given away at once, that would fail the new leg
    c.sh(f"udevadm control --stop-exec-queue; unmap {legs[1]} force")
    old, legs[1] = legs[1], c.sh("map testdisk0 sessname=s2 hold=-1 path=ip:10.0.1.1@ip:10.0.1.3")
    t.ok(old != legs[1], f"md has {old}, and the new mapping is that, too")
    gone, name = leg, legs[1][5:]
    leg = f"/sys/block/md0/md/dev-{name}"
    c.sh("udevadm control --start-exec-queue; udevadm settle --timeout=20; "
         f"wait_for 10 test ! -e {gone}")
    c.sh(f"mdadm --zero-superblock {legs[1]}; mdadm /dev/md0 --add --failfast {legs[1]}; sleep 2; "
         "udevadm settle --timeout=20")
    t.wait(whole, 20, "the new leg is whole, and stays")

    # both legs have it all (stamp writes to the first 8 MiB): what each server's
    # disk holds behind md's superblock
    w.stop()
    offset = int(c.sh(f"cat {leg}/offset")) * 512
    c.sh(f"mdadm --stop /dev/md0; unmap {legs[0]}; unmap {legs[1]}")
    sums = set()
    for s in s1, s2:
        s.sh("modprobe loop")
        loop = s.sh(f"losetup -f --show -o {offset} /dev/testdisk0")
        F.prove(t, s, loop, [w], w.blocks)
        sums.add(s.sh(f"dd if={loop} bs=1M count=12 status=none | sha1sum; losetup -d {loop}"))
        w.rows = []
    t.eq(len(sums), 1, f"what the legs hold: {sums}")
    M.leave(t)
