# SPDX-License-Identifier: GPL-2.0-only
"""The disk keeps in its machine's memory what no flush has carried to the virtual disk behind it:
power cuts take it along.  Behind a block device, and behind files, with and without direct I/O."""
description = ("a disk that forgets what was not flushed when its server loses power: "
               "its clients hear of another cache epoch, and what was flushed is there")
links = 1
disk = 64
long = True
deadline = 400

P = "/sys/module/ibnbd_testdisk/parameters"
CTL = "/sys/class/ibnbd-server/ctl/devices"
DISK = ("modprobe virtio_blk; wait_for 5 test -b /dev/vda; "
        "modprobe ibnbd-testdisk backing=/dev/vda size_mb=48; ")
MOUNT = "mkdir -p /mnt /exp; mount {} /dev/testdisk0 /mnt; ln -sfn /mnt/disk /exp/disk; "
SERVE = "serve dev_search_path={} writer_file=/h/writers"


def run(t):
    c, s = t.client, t.server

    def counts():
        return dict((k, int(v)) for k, v in
                    (w.split("=") for w in s.sh(f"cat {P}/counts").split()))

    def put(dev, char, seek, flag=""):
        c.sh(f"head -c 65536 /dev/zero | tr '\\0' {char} | dd of={dev} bs=4k seek={seek} "
             f"iflag=fullblock oflag=direct {flag} status=none")

    def there(dev, seek):
        return c.sh(f"dd if={dev} bs=4k skip={seek} count=16 iflag=direct status=none | "
                    "tr -d '\\0' | fold -w 1 | sort -u | tr -d '\\n'; echo", timeout=60)

    def power_cut(up):
        s.kill()
        kept = (s.vm.share / "writers").read_bytes()
        s.boot()
        (s.vm.share / "writers").write_bytes(kept)
        s.sh(up)

    def epoch():
        return s.sh(f"cat {CTL}/*/cache_epoch")

    def scene(what, name, up, soft):
        """`soft`: what is not flushed does not even reach the disk."""
        t.log(f"--- {what}")
        dev = c.sh(f"map {name} unflushed=ignore")
        put(dev, "A", 0, "conv=fsync")
        c.sh(f"fio --name=f --filename={dev} --rw=write --bs=4k --size=64k --offset=64k "
             "--ioengine=psync --direct=1 --sync=1 --buffer_pattern=0x42 > /dev/null")
        s.sh(f"echo 0 > {P}/counts")
        put(dev, "C", 32)
        if soft:
            t.eq(counts()["write"], 0, f"{what}: the server's memory has it")
        else:
            t.ok(counts()["write"] > 0, f"{what}: the disk has it: {counts()}")
        t.eq(counts()["flush"] + counts()["fua"], 0, f"{what}: nothing was flushed")
        t.eq(there(dev, 32), "C", f"{what}: as long as there is power")
        before = epoch()
        power_cut(up)
        t.wait(lambda: c.sh(f"dev_attr {dev} state") == "open" and s.sh("exports"), 40,
               f"{what}: the client has it again")
        t.eq(there(dev, 0), "A", f"{what}: what was flushed")
        t.eq(there(dev, 16), "B", f"{what}: what was written with FUA")
        t.eq(there(dev, 32), "", f"{what}: what was not")
        t.ok(epoch() != before, f"{what}: the epoch {before} has ended")
        before = epoch()
        put(dev, "D", 32)
        s.sh("unload $OUR_MODULES")
        s.sh(SERVE.format("/exp" if name == "disk" else "/dev"))
        t.wait(lambda: c.sh(f"dev_attr {dev} state") == "open" and s.sh("exports"), 40,
               f"{what}: the client has it again")
        t.eq(epoch(), before, f"{what}: the module was loaded anew, and the disk is known")
        c.sh(f"unmap {dev}")
        t.wait(lambda: not s.sh("exports"), 30, "the server has let it go")

    up = DISK + SERVE.format("/dev")
    s.sh(up)
    scene("a block device", "testdisk0", up, False)
    power_cut(DISK + SERVE.format("/dev"))
    dev = c.sh("map testdisk0 unflushed=ignore")
    t.eq(there(dev, 32), "D", "what a server that stopped had flushed behind its last writer")
    c.sh(f"unmap {dev}")
    s.sh("unload $OUR_MODULES; "
         "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 /dev/testdisk0")
    for what, options, soft in (("a file, direct", "-o commit=300", False),
                                ("a file, buffered", "-o data=journal,commit=300", True)):
        up = MOUNT.format(options) + SERVE.format("/exp")
        s.sh("mkdir -p /mnt; mount /dev/testdisk0 /mnt; rm -f /mnt/disk; "
             "dd if=/dev/zero of=/mnt/disk bs=1M count=16 conv=fsync status=none; umount /mnt; "
             "echo 3000000 > /proc/sys/vm/dirty_writeback_centisecs; " + up)
        scene(what, "disk", DISK + up, soft)
        s.sh("unload $OUR_MODULES; umount /mnt")
