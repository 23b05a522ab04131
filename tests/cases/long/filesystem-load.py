# SPDX-License-Identifier: GPL-2.0-only
description = ("ext4, xfs and btrfs under loads that check themselves, over the loss of a path; "
               "then fsck, and the same files")
deadline = 480
links = 2
mem = 1536
long = True
programs = ["/usr/bin/stress-ng"]

KINDS = {   # make, check
    "ext4": ("mkfs.ext4 -q -F", "e2fsck -fn"),
    "xfs": ("mkfs.xfs -q -f", "xfs_repair -n"),
    "btrfs": ("mkfs.btrfs -q -f", "btrfs check"),
}
LOAD = ("stress-ng --temp-path /mnt --verify --timeout {s} --metrics-brief --hdd 2 --hdd-bytes 16m "
        "--hdd-opts direct,wr-rnd,rd-rnd --fallocate 1 --fallocate-bytes 16m --rename 1 --link 1 "
        "--dentry 1 --dentries 64 --dir 1 --dir-dirs 64 --xattr 1 "
        "--sync-file 1 --sync-file-bytes 8m")


def run(t):
    c, s = t.client, t.server
    seconds = 20

    if c.rc("stress-ng --version")[0]:
        t.fail("no stress-ng: tests/vm/setup.sh installs it")
    # fileops must find a byte that somebody else changed
    c.fails("fileops /tmp/planted 20 1 & while kill -0 $! 2> /dev/null; do printf X | "
            "dd of=/tmp/planted bs=1 seek=$RANDOM conv=notrunc status=none; done; wait $!",
            "should be|bytes, should have")
    s.sh("serve; ram_disks 1 400")
    dev = c.sh("map ram0")
    for kind, (make, check) in KINDS.items():
        c.sh(f"modprobe {kind}; {make} {dev} > /dev/null; mkdir -p /mnt; "
             f"mount -t {kind} {dev} /mnt", timeout=60)
        c.sh("mkdir /mnt/d; for i in 1 2 3 4 5 6 7 8; do "
             "head -c ${i}00k /dev/urandom > /mnt/d/$i; done; (cd /mnt/d; md5sum *) > /tmp/sums")
        load = c.spawn(LOAD.format(s=seconds))
        verify = c.spawn("fio --name=f --directory=/mnt --size=8m --rw=randrw --bsrange=512-64k "
                         "--blockalign=512 --ioengine=psync --fsync=16 --verify=crc32c "
                         f"--verify_fatal=1 --runtime={seconds} --time_based --numjobs=2 "
                         "--randrepeat=0 --output=/dev/null")
        ops = [c.spawn(f"fileops /mnt/ops{seed} {seconds} {seed}") for seed in (1, 2)]
        c.sh("sleep 4")
        c.link(0, False)
        c.sh("wait_for 12 paths_up s1 1; sleep 2")
        c.link(0, True)
        t.eq(load.wait(120), 0, f"{kind}: stress-ng: {load.out()[-2000:]}")
        t.eq(verify.wait(120), 0, f"{kind}: fio: {verify.out()[-2000:]}")
        for op in ops:
            t.eq(op.wait(120), 0, f"{kind}: {op.out()[-3000:]}")
            t.log(op.out())
        c.sh("umount /mnt; echo 3 > /proc/sys/vm/drop_caches", timeout=60)
        c.sh(f"{check} {dev} > /tmp/check 2>&1 || {{ cat /tmp/check; exit 1; }}", timeout=90)
        c.sh(f"mount -t {kind} {dev} /mnt; (cd /mnt/d; md5sum -c /tmp/sums) > /tmp/check || "
             "{ cat /tmp/check; exit 1; }; umount /mnt", timeout=60)
    c.sh(f"unmap {dev}")
