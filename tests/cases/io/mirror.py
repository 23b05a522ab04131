# SPDX-License-Identifier: GPL-2.0-only
"""docs/mirror.md as it stands there: one leg from each of two servers,
each in a session of its own."""
import faults as F, image
description = ("an md mirror over two servers: a lost leg is dropped after hold=, "
               "nobody above sees an error, the bitmap brings it back")
long = True
vms = 3
links = 2               # each server has its own
deadline = 120
MDADM = image.CACHE / "mdadm"
programs = [MDADM / "mdadm", image.REPO / "build/tools/ibnbd-udev"]
HOLD, SIZE = 5, 64      # seconds, MiB


def run(t):
    c, s1, s2 = t.client, t.server, t.client2

    if not (MDADM / "mdadm").exists():
        t.skip("no mdadm: tests/vm/mdadm.sh")
    if c.rc("modprobe raid1")[0]:
        t.skip("this kernel has no raid1")
    for s in s1, s2:
        s.sh(f"serve; ram_disks 1 {SIZE}")
    for f in "udev/60-ibnbd.rules", "udev/65-ibnbd-md.example", "udev/md-readd":
        c.put(f.split("/")[1], (image.REPO / f).read_bytes())
    for f in "63-md-raid-arrays.rules", "64-md-raid-assembly.rules":
        c.put(f, (MDADM / f).read_bytes())
    c.sh("mkdir -p /usr/share/ibnbd; cp /h/*.rules /lib/udev/rules.d/; "
         "cp /bin/ibnbd-udev /lib/udev/; ln -sf ../bin/mdadm /sbin/mdadm\n"
         "cp /h/md-readd /usr/share/ibnbd/; chmod 755 /usr/share/ibnbd/md-readd; udev_start")
    legs = [c.sh(f"map ram0 sessname=s{i + 1} hold={HOLD} path=ip:10.0.{i}.1@ip:10.0.{i}.{i + 2}")
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

    def lost(row):
        t.match(c.sh(f"dmesg | grep 'md/raid1:md0: Disk failure on {name}' | tail -n 1"),
                "Disk failure")
        w.limit(row, Nerr=0)
        t.ok(row["Tstall"] > HOLD - 1, f"I/O waited for the leg: {row}")

    w = F.Work(t, c, "/dev/md0", session="s2")

    # by hand
    row = w.fault("M1", "one server of a mirror: silence", lambda: s2.link(1, False),
                  lambda: (t.wait(lambda: "faulty" in state(), 12, "md drops the leg"),
                           s2.link(1, True)),
                  hold=HOLD, down=[0])
    lost(row)
    w.limit(row, Tdet=6, Tstall=6 + HOLD + 2)
    c.sh(f"wait_for 10 grep -qx open /sys/block/{name}/ibnbd/state")
    before = written()
    c.sh(f"mdadm /dev/md0 --remove {legs[1]}; mdadm /dev/md0 --re-add {legs[1]}")
    t.wait(whole, 20, "the leg is whole again")
    copied = written() - before
    t.ok(0 < copied < SIZE // 3,
         f"MiB written to a leg that came back to a mirror of {SIZE}: "
         f"{copied}, only what had changed")

    # by the rule
    c.sh("mkdir -p /etc/udev/rules.d; "
         "cp /h/65-ibnbd-md.example /etc/udev/rules.d/65-ibnbd-md.rules; udevadm control --reload")
    before = written()
    row = w.fault("M2", "one server of a mirror: carrier down", lambda: c.link(1, False),
                  lambda: (t.wait(lambda: "faulty" in state(), 12, "md drops the leg"),
                           c.link(1, True)),
                  hold=HOLD, down=[0])
    lost(row)
    w.limit(row, Tdet=1, Tstall=HOLD + 2.5)
    t.wait(whole, 20, "the rule brings the leg back")
    t.below(written() - before, SIZE // 3, "MiB written to a leg that came back by the rule")

    # unmapped by force while md has it: the number is the leg's until md lets go, which udev's late
    # "remove" makes it do; were the number given away at once, that would fail the new leg
    c.sh(f"udevadm control --stop-exec-queue; unmap {legs[1]} force")
    old, legs[1] = legs[1], c.sh(f"map ram0 sessname=s2 hold={HOLD} path=ip:10.0.1.1@ip:10.0.1.3")
    t.ok(old != legs[1], f"md has {old}, and the new mapping is that, too")
    gone, name = leg, legs[1][5:]
    leg = f"/sys/block/md0/md/dev-{name}"
    c.sh("udevadm control --start-exec-queue; udevadm settle --timeout=20; "
         f"wait_for 10 test ! -e {gone}")
    c.sh(f"mdadm /dev/md0 --re-add {legs[1]}; sleep 2; udevadm settle --timeout=20")
    t.wait(whole, 20, "the new leg is whole, and stays")

    # both legs have it all (stamp writes to the first 8 MiB): what each server's
    # disk holds behind md's superblock
    w.stop()
    offset = int(c.sh(f"cat {leg}/offset")) * 512
    c.sh(f"mdadm --stop /dev/md0; unmap {legs[0]}; unmap {legs[1]}; udevadm control --exit")
    sums = set()
    for s in s1, s2:
        s.sh("modprobe loop")
        loop = s.sh(f"losetup -f --show -o {offset} /dev/ram0")
        F.prove(t, s, loop, [w], w.blocks)
        sums.add(s.sh(f"dd if={loop} bs=1M count=12 status=none | sha1sum; losetup -d {loop}"))
        w.rows = []
    t.eq(len(sums), 1, f"what the legs hold: {sums}")
