# SPDX-License-Identifier: GPL-2.0-only
"""The aims of blktests' block/003 (discards), 004 (flushes), 005 (elevators), 008 (CPUs that go),
012 (read-only), 036 (a partition table that cannot be read), 042 (odd direct I/O), dm/001 (a map
over itself) and dm/002 (bad blocks: the test disk's, and dm-dust's where the kernel has it)."""
description = ("what block layer tests do to a disk: "
               "odd sizes, floods of flushes, elevators and CPUs that change under I/O, dm on top")
long = True
crowd = True
deadline = 300
smp = 4
P = "/sys/module/ibnbd_testdisk/parameters"


def queue_attributes(t, dev):
    """Reading every attribute and writing back what it says must not hurt, with I/O under way."""
    t.client.sh(f"""
        cd /sys/block/{dev[5:]}
        for i in 1 2 3; do
            for f in $(find queue/ -maxdepth 1 -type f -perm -u=w); do
                v=$(cat $f 2> /dev/null) || continue
                case $f in *scheduler) v=$(sed 's/.*\\[\\(.*\\)\\].*/\\1/' $f) ;; esac
                echo "$v" > $f 2> /dev/null || true
            done
            cat queue/* stat inflight size ro > /dev/null 2>&1 || true
        done""")


def elevators(t, dev):
    c = t.client
    first = c.sh(f"cat /sys/block/{dev[5:]}/queue/scheduler")
    t.ok("[none]" in first, f"no elevator is chosen for a new disk (law L1): {first}")
    have = first.replace("[", "").replace("]", "").split()
    t.ok("none" in have and "mq-deadline" in have, f"elevators: {have}")
    io = c.spawn(f"fio_verify {dev} 16m --bsrange=4k-32k --numjobs=2 "
                 "--offset_increment=16m --output=/dev/null")
    c.sh(f"""
        q=/sys/block/{dev[5:]}/queue
        for i in $(seq 12); do
            for e in {' '.join(have)}; do
                echo $e > $q/scheduler
                echo $((4 + i)) > $q/nr_requests 2> /dev/null || true
            done
        done
        echo none > $q/scheduler""", timeout=60)
    queue_attributes(t, dev)
    t.eq(io.wait(90), 0, "I/O under changing elevators: " + io.out()[-1000:])


def processors(t, dev):
    c = t.client
    io = c.spawn(f"fio --name=reads --filename={dev} --direct=1 --ioengine=libaio --iodepth=8 "
                 "--rw=randread --bs=4k --size=8m --numjobs=4 --time_based --runtime=8 "
                 "--norandommap --output=/dev/null")
    c.sh("""
        cd /sys/devices/system/cpu
        for i in $(seq 16); do
            echo $((RANDOM % 2)) > cpu$((RANDOM % 3 + 1))/online
            sleep 0.$((RANDOM % 6))
        done
        for n in 0 1; do
            for i in 1 2 3; do echo $n > cpu$i/online; done
            sleep 0.5
        done""", timeout=60)
    t.eq(io.wait(90), 0, "I/O under CPUs that come and go: " + io.out()[-1000:])


def odd_io(t, dev):
    c = t.client
    c.sh(f"fio --name=odd --filename={dev} --direct=1 --ioengine=libaio --iodepth=8 --rw=randrw "
         "--bsrange=512-31k --blockalign=512 --iomem_align=512 --size=8m --io_size=4m "
         "--randrepeat=0 --output=/dev/null", timeout=60)
    for offset, length in (("512", "1536"), ("3584", "9216"), ("130560", "131584")):
        c.sh(f"xfs_io -d -c 'pwrite -S 0x5a {offset} {length}' {dev} > /dev/null; "
             f"xfs_io -d -c 'pread -v {offset} {length}' {dev} | grep -c '5a 5a 5a 5a' | "
             "grep -vx 0 > /dev/null")
    # vectors whose pieces do not meet at page boundaries, so that each is a request of its own
    for vectors, size, offset in ((16, 512, 4096), (3, 1536, 512), (7, 4096 - 512, 7680)):
        total = vectors * size * 8
        c.sh("xfs_io -d "
             f"-c 'pwrite -V {vectors} -b {size} -S 0x41 {offset} {total}' {dev} > /dev/null")
        t.eq(t.server.sh("blockdev --flushbufs /dev/testdisk0; dd if=/dev/testdisk0 bs=512 "
                         f"skip={offset // 512} count={total // 512} status=none | "
                         "tr -d A | wc -c"), "0",
             f"bytes that {vectors} pieces of {size} missed")
        c.sh(f"xfs_io -d -c 'pread -V {vectors} -b {size} {offset} {total}' {dev} > /dev/null")
    for offset, length in (("1", "512"), ("0", "513"), ("256", "512")):
        c.fails(f"xfs_io -d -c 'pwrite {offset} {length}' {dev}", "Invalid argument")
    size = int(c.sh(f"blockdev --getsize64 {dev}"))
    c.sh(f"dd if=/dev/zero of={dev} bs=512 count=1 seek={size // 512 - 1} oflag=direct status=none")
    c.fails(f"dd if=/dev/zero of={dev} bs=512 count=1 seek={size // 512} oflag=direct status=none",
            "No space left")


def partition_table(t, dev):
    """One that cannot be read is an error, not an empty one; and it is there
    again when the disk is well."""
    c, s = t.client, t.server
    name = dev[5:]
    c.sh(f"echo ',4M' | sfdisk -q --no-tell-kernel {dev}; blockdev --flushbufs {dev}; "
         f"blockdev --rereadpt {dev}; wait_for 5 test -e /sys/block/{name}/{name}p1")
    s.sh(f"echo read > {P}/fail")
    c.sh(f"blockdev --flushbufs {dev}")
    c.fails(f"dd if={dev} of=/dev/null bs=4k count=1 iflag=direct status=none",
            "Input/output error")
    rc, out = c.rc(f"blockdev --rereadpt {dev}")
    if kernel(t) >= (6, 10):            # kernels before that say that all is well
        t.ok(rc and "Input/output error" in out,
             f"the table could not be read, and it says: {rc} {out}")
    s.sh(f"echo none > {P}/fail")
    c.sh(f"blockdev --rereadpt {dev}; wait_for 5 test -e /sys/block/{name}/{name}p1; "
         f"wipefs -qa {dev}; blockdev --rereadpt {dev}; "
         f"wait_for 5 test ! -e /sys/block/{name}/{name}p1")


def kernel(t):
    return tuple(int(n) for n in t.image.kver.split(".")[:2])


def map_over_itself(t, dev):
    c = t.client
    c.sh(f"dmsetup create self --table '0 8192 linear {dev} 0'; "
         "[ -e /dev/mapper/self ] || dmsetup mknodes; dmsetup suspend self")
    if kernel(t) >= (6, 2):             # kernels before that take it
        c.fails("dmsetup reload self --table '0 8192 linear /dev/mapper/self 0'",
                "Invalid argument|failed")
    c.sh("dmsetup resume self; dd if=/dev/mapper/self of=/dev/null bs=64k count=4 iflag=direct "
         "status=none; dmsetup remove self")


def dust(t, dev):
    """Blocks that are bad, below the exported disk or, by dm, above ours, cannot be
    read until they are written."""
    c, s = t.client, t.server
    some = f"dd if={dev} of=/dev/null bs=512 iflag=direct status=none"
    s.sh(f"echo 60,67,72 > {P}/bad")
    for where in "skip=60 count=1", "skip=67 count=1", "bs=64k count=1":
        c.fails(f"{some} {where}", "No data available")
    c.sh(f"{some} skip=61 count=6; {some} skip=68 count=4; "
         f"dd if=/dev/zero of={dev} bs=512 seek=67 count=1 oflag=direct status=none; "
         f"{some} skip=61 count=11")
    c.fails(f"{some} skip=72 count=1", "No data available")
    c.sh(f"dd if=/dev/zero of={dev} bs=64k count=1 oflag=direct status=none; {some} count=128")
    if c.rc("modprobe dm-dust")[0]:
        t.log("no dm-dust in this kernel")
        return
    c.sh(f"dmsetup create dust --table \"0 $(blockdev --getsz {dev}) dust {dev} 0 512\"; "
         "[ -e /dev/mapper/dust ] || dmsetup mknodes; for b in 60 67 72; do "
         "dmsetup message dust 0 addbadblock $b; done; dmsetup message dust 0 enable")
    c.fails("dd if=/dev/mapper/dust of=/dev/null bs=512 skip=67 count=1 iflag=direct status=none",
            "Input/output error")
    c.sh("dd if=/dev/mapper/dust of=/dev/null bs=512 skip=61 count=6 iflag=direct status=none; "
         "dd if=/dev/zero of=/dev/mapper/dust bs=512 count=128 oflag=direct status=none; "
         "dd if=/dev/mapper/dust of=/dev/null bs=512 count=128 iflag=direct status=none; "
         "dmsetup remove dust")


def device_mapper(t, dev):
    """A map with a hole over the disk, closed under I/O."""
    c = t.client
    n = int(c.sh(f"blockdev --getsz {dev}"))
    c.sh(f"printf '%s\n' '0 64 linear {dev} 0' '64 8 error' '72 {n - 72} linear {dev} 72' | "
         "dmsetup create top; [ -e /dev/mapper/top ] || dmsetup mknodes")
    c.fails("dd if=/dev/mapper/top of=/dev/null bs=512 skip=64 count=1 iflag=direct status=none",
            "Input/output error")
    io = c.spawn("fio_verify /dev/mapper/top 4m --offset=1m --output=/dev/null")
    c.sh(f"echo '0 {n} linear {dev} 0' | dmsetup reload top; "
         "dmsetup suspend top; dmsetup resume top")
    c.sh("dd if=/dev/zero of=/dev/mapper/top bs=512 seek=64 count=1 oflag=direct status=none; "
         "dd if=/dev/mapper/top of=/dev/null bs=512 skip=64 count=1 iflag=direct status=none")
    t.eq(io.wait(60), 0, "I/O over a map that changes")
    c.sh(f"dmsetup remove top; unmap {dev}")


def run(t):
    c, s = t.client, t.server

    s.sh("serve; modprobe ibnbd-testdisk")
    dev = c.sh("map testdisk0")
    odd_io(t, dev)
    c.sh(f"fio --name=flush --filename={dev} --direct=1 --ioengine=psync --rw=randwrite --bs=4k "
         "--fsync=1 --numjobs=4 --size=256k --offset_increment=256k --randrepeat=0 "
         "--output=/dev/null", timeout=60)
    c.sh(f"fio --name=trim --filename={dev} --direct=1 --ioengine=psync --rw=randtrim "
         "--bsrange=512-256k --blockalign=512 --size=8m --randrepeat=0 --output=/dev/null",
         timeout=60)
    elevators(t, dev)
    processors(t, dev)

    c.sh(f"blockdev --setro {dev}")
    c.fails(f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none",
            "not permitted|Read-only|Input/output")
    c.sh(f"blockdev --setrw {dev}; dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none")
    partition_table(t, dev)
    map_over_itself(t, dev)
    dust(t, dev)
    device_mapper(t, dev)
