# SPDX-License-Identifier: GPL-2.0-only
import csv, shutil
import hardware as H

description = ("tests/hardware/run.sh on two machines: it measures, verifies and reports, refuses "
               "disks that are somebody's, and leaves the machines as they were")
long = True
fresh = True
door = True
links = 2
disk = 96
mem = 1536
deadline = 900
needs = ["rnbd-client", "rnbd-server", "nvme-rdma", "nvmet-rdma", "null_blk"]
programs = [H.DROPBEAR]
allow = [r"null_blk: .*", r"nvmet?: .*"]


def refused(t):
    """Disks that are somebody's; nothing of the kit but its look at disks runs."""
    s = t.server
    check = H.SOURCE + "check_disk /dev/vda"
    s.sh("ls /dev/vda; " + check)
    s.fails(H.SOURCE + "check_disk /dev/nosuch", "no block device")
    s.sh("mkfs.ext4 -q /dev/vda")
    s.fails(check, "has a signature: ext4")
    s.sh("mkdir -p /mnt; modprobe ext4; mount /dev/vda /mnt")
    s.fails(check, "/dev/vda is mounted on /mnt")
    s.sh("umount /mnt; wipefs -qa /dev/vda")
    s.fails(check, "has data in its first or last MiB")
    s.sh("dd if=/dev/zero of=/dev/vda bs=1M count=1 conv=notrunc status=none; " + check)
    s.sh("echo x | dd of=/dev/vda bs=1 seek=$((96 * 1048576 - 600)) conv=notrunc status=none")
    s.fails(check, "has data in its first or last MiB")
    s.sh("dd if=/dev/zero of=/dev/vda bs=1M count=96 conv=notrunc status=none; "
         "echo 1M,8M | sfdisk -q /dev/vda; wait_for 5 test -b /dev/vda1")
    s.fails(check, "has partitions, or something is built on it: vda1")
    s.sh("sfdisk -q --delete /dev/vda; wipefs -qa /dev/vda; "
         "dd if=/dev/zero of=/dev/vda bs=1M count=96 conv=notrunc status=none; "
         "blockdev --rereadpt /dev/vda; mkswap /dev/vda > /dev/null; swapon /dev/vda")
    s.fails(check, "is swapped to")
    s.sh("swapoff /dev/vda; dd if=/dev/zero of=/dev/vda bs=1M count=1 conv=notrunc status=none; "
         "sleep 100 < /dev/vda & echo $! > /tmp/holder")
    s.fails(check, r"is open in process \d+, sleep")
    s.sh("kill $(cat /tmp/holder)")
    s.sh("echo 0 64 linear /dev/vda 0 | (modprobe dm-mod; dmsetup create hold)")
    s.fails(check, "something is built on it: hold|is in use by dm-")
    s.sh("wait_for 5 dmsetup remove hold; " + check)


def whole_run(t, hw, before):
    """All stacks, links, the disk: what the report must have."""
    rc, said = hw.run("--scratch", "/dev/vda", "--destroy", "another", *H.SMALL)
    t.eq(rc, 1, "a disk that is not the one that was named")
    t.match(said, "/dev/vda is rig-disk, not another: nothing is written to it")
    rc, said = hw.run("--scratch", "/dev/vda", "--dry-run", *H.SMALL)
    t.eq(rc, 0, "dry run")
    t.match(said, "ALL DATA ON IT IS LOST")
    t.match(said, r"paths: 10\.0\.0\.1@10\.0\.0\.2, 10\.0\.1\.1@10\.0\.1\.2")
    t.match(said, "stacks: local, ibnbd, rnbd, nvme")
    H.same(t, before, "dry run")
    t.eq(list(hw.dir.glob("report*")), [], "reports of runs that did nothing")
    rc, said = hw.run("--scratch", "/dev/vda", "--destroy", "rig-disk", *H.SMALL)
    t.eq(rc, 0, f"exit status; {said[-800:]}")
    H.same(t, before, "a whole run")
    t.server.sh(H.SOURCE + "check_disk /dev/vda")
    text = hw.report()
    t.match(text, r"Result: \*\*passed\*\*")
    t.match(text, r"\| kernel \| 6\.")
    with open(hw.out / "speed.csv") as f:
        rows = list(csv.DictReader(f))
    for stack in ("local", "ibnbd", "rnbd", "nvme"):
        for disk in ("null_blk", "/dev/vda"):
            some = [r for r in rows if (r["stack"], r["disk"]) == (stack, disk)]
            t.eq(len(some), 6, f"measurements of {stack} on {disk}")
            t.eq([r["note"] for r in some if r["note"]], [], f"{stack} on {disk}")
            t.ok(all(float(r["iops"]) > 0 and float(r["p99.9"]) >= float(r["p50"]) > 0
                     for r in some), f"rates and latencies of {stack} on {disk}: {some}")
    with open(hw.out / "verify.csv") as f:
        rows = list(csv.DictReader(f))
    t.eq([r["result"] for r in rows], 8 * ["ok"], "verified: each stack on two disks")
    with open(hw.out / "perftest.csv") as f:
        t.ok(any(r["value"] for r in csv.DictReader(f)), "perftest has run")
    if shutil.which("gnuplot"):
        t.eq(len(list(hw.out.glob("*.svg"))), 8, "plots")
    t.ok(hw.out.with_name(hw.out.name + ".tar.gz").stat().st_size > 1000, "one file to send")


def run(t):
    hw = H.Hardware(t)
    try:
        refused(t)
        whole_run(t, hw, H.look(t))
    finally:
        hw.close()
