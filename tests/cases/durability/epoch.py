# SPDX-License-Identifier: GPL-2.0-only
"""The disk is a virtio disk with a serial number, so it has an identity, and it outlives its
machine; the file is carried over.  What clients are told is what stands in the export's
cache_epoch."""
description = ("the cache epoch of a disk is kept over a restart in good order, "
               "and is another one when its cache may be lost")
links = 1
disk = 64
deadline = 300

FILE = "/h/writers"
DISK = "modprobe virtio_blk; wait_for 5 test -b /dev/vda; "
CTL = "/sys/class/ibnbd-server/ctl/devices"


def run(t):
    c, s = t.client, t.server
    put = ("head -c 4096 /dev/zero | tr '\\0' {} | "
           "dd of={} bs=4k count=1 iflag=fullblock oflag=direct status=none")
    epoch = lambda name="vda": s.sh(f"cat {CTL}/{name}/cache_epoch")
    gone = lambda: t.wait(lambda: not s.sh("exports"), 30, "the server has let it go")

    def back(dev):
        t.wait(lambda: c.sh(f"dev_attr {dev} state") == "open" and s.sh("exports"), 40,
               "the client has it again")

    def power_cut():
        s.kill()
        kept = (s.vm.share / "writers").read_bytes()
        s.boot()
        (s.vm.share / "writers").write_bytes(kept)
        s.sh(f"{DISK} serve writer_file={FILE}")

    def is_kept(before, what, name="vda"):
        t.eq(epoch(name), before, what)

    def is_another(before, what, name="vda"):
        now = epoch(name)
        t.match(now, "^[0-9a-f]{16}$", f"{what}: an epoch")
        t.ok(now != before, f"{what}: {before} is not kept")
        return now

    s.sh(f"{DISK} serve writer_file={FILE}")
    dev = c.sh("map vda unflushed=ignore")
    e = is_another("0" * 16, "the first one")
    c.sh(put.format("A", dev))

    t.log("--- in good order")
    c.sh(f"unmap {dev}")
    gone()
    dev = c.sh("map vda unflushed=ignore")
    is_kept(e, "closed and opened again")
    c.sh(put.format("B", dev))
    s.sh(f"unload $OUR_MODULES; serve writer_file={FILE}")
    back(dev)
    is_kept(e, "the module is loaded anew under a client")
    c.sh(put.format("C", dev))
    s.sh("unload $OUR_MODULES; sync")
    power_cut()
    back(dev)
    is_kept(e, "a reboot in good order under a client")

    t.log("--- loss of power")
    power_cut()
    back(dev)
    e = is_another(e, "power loss with a writer")
    c.sh(f"unmap {dev}")
    gone()
    power_cut()
    dev = c.sh("map vda unflushed=ignore")
    is_kept(e, "power loss when nobody had it open")
    c.sh(f"unmap {dev}")
    gone()
    dev = c.sh("map vda access_mode=ro")
    power_cut()
    back(dev)
    is_kept(e, "power loss with a reader")
    c.sh(f"unmap {dev}")
    gone()

    t.log("--- somebody says that the cache was lost")
    dev = c.sh("map vda unflushed=ignore")
    s.fails(f"echo 2 > {CTL}/vda/cache_lost", "nvalid")
    is_kept(e, "nonsense")
    s.sh(f"echo 1 > {CTL}/vda/cache_lost")
    # a client that does nothing does not ask, and nobody has the disk open
    c.sh(f"dd if={dev} of=/dev/null bs=4k count=1 iflag=direct status=none")
    back(dev)
    e = is_another(e, "cache_lost")
    s.sh(f"unload $OUR_MODULES; serve writer_file={FILE}")
    back(dev)
    is_kept(e, "what cache_lost began")
    c.sh(put.format("D", dev))
    c.sh(f"unmap {dev}")
    gone()

    t.log("--- the default file cannot be written: "
          "what it may say when power is lost is nobody's epoch")
    s.sh("unload $OUR_MODULES; mkdir -p /var/lib/ibnbd; "
         "mount -t tmpfs none /var/lib/ibnbd; serve")
    dev = c.sh("map vda unflushed=ignore")
    e = epoch()
    c.sh(f"unmap {dev}")
    gone()
    s.sh("mount -o remount,ro /var/lib/ibnbd")
    dev = c.sh("map vda unflushed=ignore")
    e = is_another(e, "a writer whose coming could not be recorded")
    s.sh("mount -o remount,rw /var/lib/ibnbd")
    c.sh(f"unmap {dev}")
    gone()
    dev = c.sh("map vda unflushed=ignore")
    is_kept(e, "it is recorded as soon as it can be")

    t.log("--- the end could not be recorded")
    s.sh("mount -o remount,ro /var/lib/ibnbd; unload $OUR_MODULES; "
         "mount -o remount,rw /var/lib/ibnbd; serve")
    back(dev)
    is_another(e, "nobody knows that it ended clean")
    c.sh(f"unmap {dev}")
    gone()
    s.sh("unload $OUR_MODULES; umount /var/lib/ibnbd")

    t.log("--- a file of a server that knew no epochs")
    s.sh(f"serve writer_file={FILE}")
    dev = c.sh("map vda unflushed=ignore")
    e = epoch()
    c.sh(f"unmap {dev}")
    gone()
    s.sh(f"unload $OUR_MODULES; truncate -s 262144 {FILE}; dmesg -C; serve writer_file={FILE}")
    t.eq(s.sh("dmesg | grep damaged || true"), "", "it is as good as any")
    dev = c.sh("map vda unflushed=ignore")
    is_another(e, "an epoch that nobody wrote down")
    c.sh(f"unmap {dev}")
    gone()
    s.sh("unload $OUR_MODULES")

    t.log("--- without an identity: the same as long as it is the same disk of one boot")
    s.sh(f"modprobe ibnbd-testdisk; serve writer_file={FILE}")
    dev = c.sh("map testdisk0 unflushed=fence")
    e = epoch("testdisk0")
    c.sh(put.format("S", dev))
    s.sh(f"unload $OUR_MODULES; serve writer_file={FILE}")
    back(dev)
    is_kept(e, "the module is loaded anew under a client", "testdisk0")
    t.eq((c.sh(f"dev_attr {dev} unflushed_bytes"), c.sh(f"dev_attr {dev} losses")), ("4096", "0"),
         "its unflushed write costs it nothing")
    c.sh(f"unmap {dev}")
    gone()
    s.sh("unload $OUR_MODULES; modprobe -r ibnbd-testdisk; modprobe ibnbd-testdisk; "
         f"serve writer_file={FILE}")
    dev = c.sh("map testdisk0 unflushed=ignore")
    is_another(e, "another disk of that name", "testdisk0")
    c.sh(f"unmap {dev}")
    gone()
    s.sh("unload $OUR_MODULES; modprobe -r ibnbd-testdisk")

    t.log("--- without a file, or without an identity")
    s.sh("serve writer_file=; modprobe ibnbd-testdisk")
    dev = c.sh("map vda unflushed=ignore")
    e = epoch()
    c.sh(f"unmap {dev}")
    gone()
    dev = c.sh("map vda unflushed=ignore")
    is_kept(e, "no file: within one life of the module")
    s.sh("unload $OUR_MODULES; serve writer_file=")
    back(dev)
    is_another(e, "no file: the next life")
    c.sh(f"unmap {dev}")
    gone()
    dev = c.sh("map testdisk0 unflushed=ignore")
    e = is_another("0" * 16, "a disk without identity", "testdisk0")
    c.sh(put.format("T", dev))
    c.sh(f"unmap {dev}")
    gone()
    dev = c.sh("map testdisk0 unflushed=ignore")
    is_kept(e, "a disk without identity, within one life", "testdisk0")
    c.sh(put.format("U", dev))
    s.sh("echo flush > /sys/module/ibnbd_testdisk/parameters/fail")
    c.sh(f"unmap {dev}")
    gone()
    s.sh("echo none > /sys/module/ibnbd_testdisk/parameters/fail; "
         "dmesg | grep 'the flush after its last writer failed'")
    dev = c.sh("map testdisk0 unflushed=ignore")
    is_another(e, "the flush behind the last writer has failed", "testdisk0")
    c.sh(f"unmap {dev}")
