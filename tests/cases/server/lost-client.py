# SPDX-License-Identifier: GPL-2.0-only
"""The fences of what a disk still works on outlive everything; the client's other
disks, and its name, need not."""
description = ("a client dies while one of its disks hangs: "
               "its other disks, and its name, go to others all the same")
vms = 3
links = 1
long = True
deadline = 360
import time

DELAY = 100     # the kernel reports who waits for 120 s
P = "/sys/module/ibnbd_testdisk/parameters"
# of a test disk: behind it a device made of bios keeps the server's completion
# waiting, and so the drain of the path
TAGS = 128


def run(t):
    c, s, c2 = t.client, t.server, t.client2
    s.sh("serve name_keep_s=0; modprobe ibnbd-testdisk nr_disks=2 cache=0; ram_disks 2 16; "
         "dmsetup create d "
         "--table \"0 $(blockdev --getsz /dev/testdisk1) linear /dev/testdisk1 0\"; "
         "[ -e /dev/mapper/d ] || dmsetup mknodes; ln -sfn /dev/mapper/d /dev/volume")
    hung, full, near = c.sh("map testdisk0"), c.sh("map volume"), c.sh("map ram0")
    c.sh(f"dd if=/dev/zero of={near} bs=64k count=4 oflag=direct status=none")
    uuid = c.sh("cat /sys/class/ibtrs-client/s1/uuid").replace("-", "")
    s.sh(f"echo {DELAY * 1000} > {P}/delay_ms")
    c.spawn(f"dd if=/dev/zero of={hung} bs=4k count=1 oflag=direct status=none")
    c.spawn(f"exec fio --name=f --filename={full} --rw=randwrite --bs=4k --size=4m --io_size=1m "
            "--ioengine=libaio --iodepth=256 --direct=1 --thread --numjobs=1 > /tmp/fio 2>&1")
    writes = lambda dev: int(c.sh(f"cat /sys/block/{dev[5:]}/inflight").split()[1])
    t.wait(lambda: writes(hung) and writes(full) > TAGS + 32, 10,
           "one disk has a write, the other more than it can take")
    t0 = time.monotonic()
    s.sh(f"sleep 1; echo 0 > {P}/delay_ms")
    c.kill()
    t.wait(lambda: "busy" in c2.rc("map ram0 sessname=s2")[1], 30,
           "the server has seen that the client is gone, and waits whether it comes back")
    # ibnbd-serverd counts from the loss of the last path, not from the last attempt to come back
    took = t.wait(lambda: c2.rc("map ram0 sessname=s2")[0] == 0, 80 if s.serves_user() else 60,
                  "its other disk is free")
    t.log(f"free after {took:.1f} s")
    t.ok(time.monotonic() - t0 < DELAY - 10, "the disk still hangs")
    c2.sh("wait_for 10 eval 'map ram1 sessname=s1 > /dev/null 2>&1'", timeout=30)        # the name
    # what is left of the session is known by its first name; the server's log may be silent about
    # it, since this client has been refused so often
    c2.rc(f"modprobe ibnbd-speak to=ip:10.0.0.2 name=other uuid={uuid}")
    why = ("the session's other paths have another name" if s.serves_user() else
           "the session had another name before")
    t.match(c2.kernel_news(), f"the server says: {why}", "the refusal")
    for disk in "testdisk0", "volume":
        c2.fails(f"map {disk} sessname=s2", "the disk has not ended all its requests|busy")
    c2.sh("dd if=/dev/zero of=/dev/$(dev_of ram0 s2) bs=64k count=4 oflag=direct status=none")
    t.ok(time.monotonic() - t0 < DELAY, "the disk still hung")
    for disk in "testdisk0", "volume":
        t.wait(lambda: c2.rc(f"map {disk} sessname=s2")[0] == 0, DELAY + 20,
               f"{disk} has ended its requests")
        c2.sh(f"dd if=/dev/zero of=/dev/$(dev_of {disk} s2) bs=64k count=4 "
              "oflag=direct status=none")
