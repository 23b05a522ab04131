# SPDX-License-Identifier: GPL-2.0-only
description = ("a disk that comes back smaller, "
               "with other blocks or read-only is not written to until the administrator says so")
crowd = True
links = 1
deadline = 240

LINEAR = "0 {} linear {} 0"


def run(t):
    c, s = t.client, t.server
    s.sh("serve; modprobe ibnbd-testdisk nr_disks=2; modprobe loop; truncate -s 64M /tmp/f; "
         "losetup -b 4096 /dev/loop1 /tmp/f")

    def put(sectors, disk, more=""):
        """What is behind the name, always with the same identity."""
        s.sh("rm -f /dev/mine; wait_for 10 eval '[ ! -e /dev/mapper/d ] || dmsetup remove d'; "
             f"dmsetup create d {more} --uuid T-1 --table '{LINEAR.format(sectors, disk)}'; "
             "[ -e /dev/mapper/d ] || dmsetup mknodes; ln -s /dev/mapper/d /dev/mine")

    good = 131072, "/dev/testdisk0"
    put(*good)
    dev = c.sh("map mine name=mine")
    c.spawn("exec ibnbd monitor > /h/monitor")
    write = f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none"
    c.sh(write)

    for what, words, reason in (("smaller", (65536, "/dev/testdisk0"), "the disk shrank"),
                                ("other blocks", (131072, "/dev/loop1"),
                                 "the logical block size changed"),
                                ("read-only", (*good, "--readonly"),
                                 "the server no longer lets us write|the disk became read-only")):
        t.log(f"--- {what}")
        user = c.spawn(f"exec sleep 1000 < {dev}")
        c.link(0, False)
        t.wait(lambda: c.sh(f"dev_attr {dev} state") == "closed", 15, "the device waits")
        t.wait(lambda: not s.sh("exports"), 30,
               "the server has let it go")
        put(*words)
        c.link(0, True)
        t.wait(lambda: c.sh(f"dev_attr {dev} state_detail") == "fenced", 20, f"{what}: fenced")
        t.match(c.sh(f"dev_attr {dev} reason"), f"^({reason})(: the server says: .*)?$",
                f"{what}: the reason")
        t.match(c.sh("cat /h/monitor"), f"{dev[5:]} offline fenced: ({reason})",
                f"{what}: the uevent")
        c.fails(write, "rror")
        rc, out = c.rc(f"ibnbd remap {dev}")
        t.ok(rc, f"{what}: remap without force is refused while somebody has it open: {out}")
        t.match(out, f"take it out of its array, before remapping: ({reason})",
                f"{what}: and says why")
        put(*good)
        rc, out = c.rc(f"ibnbd remap {dev}")
        t.ok(rc, f"{what}: nor may it be the right one: {out}")
        user.kill()
        c.sh(f"ibnbd remap {dev}; {write}", timeout=30)
        t.eq(c.sh(f"dev_attr {dev} state_detail"), "open", f"{what}: the right disk again")
    # whoever means the other disk says so, with nobody on it
    c.link(0, False)
    t.wait(lambda: c.sh(f"dev_attr {dev} state") == "closed", 15, "the device waits")
    t.wait(lambda: not s.sh("exports"), 30,
           "the server has let it go")
    put(65536, "/dev/testdisk0")
    c.link(0, True)
    c.sh(f"wait_for 30 paths_up s1 1; ibnbd remap --force mine; "
         "udevadm settle 2> /dev/null || true", timeout=60)
    t.eq(c.sh("blockdev --getsize64 $(readlink -f /dev/$(dev_of mine s1))"), str(65536 * 512),
         "the size of the other disk")
    c.sh("dd if=/dev/zero of=/dev/$(dev_of mine s1) bs=4k count=1 oflag=direct status=none")

    t.log("--- the writer who came last in a migration is away, and the other one writes")
    first, last = (c.sh("map testdisk1 sessname=s2 access_mode=migration"),
                   c.sh("map testdisk1 sessname=s3 access_mode=migration"))
    path = "/sys/class/ibtrs-client/s3/paths/*"
    put = ("head -c 4096 /dev/zero | tr '\\0' {} | "
           "dd of={} bs=4k count=1 iflag=fullblock oflag=direct status=none")
    s.sh("echo 3000 > /sys/module/ibnbd_testdisk/parameters/delay_ms")
    job = c.spawn(put.format("O", last))
    t.wait(lambda: int(c.sh(f"cat /sys/block/{last[5:]}/inflight").split()[1]), 10,
           "its write is out")
    c.sh(f"echo 1 > $(echo {path}/disconnect)")
    # the disk ends it, and nobody can be told
    s.sh("wait_for 20 test ! -e /run/sessions/s3; "
         "echo 0 > /sys/module/ibnbd_testdisk/parameters/delay_ms")
    c.sh(put.format("N", first) + f"; echo 1 > $(echo {path}/reconnect)")
    t.wait(lambda: c.sh(f"dev_attr {last} state_detail") == "fenced", 20, "fenced")
    t.match(c.sh(f"dev_attr {last} reason"), "another client|somebody else", "the reason")
    t.ok(job.wait(20) != 0, "its write has failed")
    t.eq(c.sh(f"dd if={first} bs=4k count=1 iflag=direct status=none | head -c 1"), "N",
         "the newer write")
