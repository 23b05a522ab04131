# SPDX-License-Identifier: GPL-2.0-only
"""a holds a write; b comes, writes, flushes and goes; then the server goes, and what comes back at
its address, with the same disk, is another machine, or does not remember otherwise.  The disk is a
virtio disk with a serial number, and for disks without an identity a RAM disk."""
description = ("what a client held is never written over what somebody else has flushed, if what "
               "comes back does not remember who wrote")
links = 1
disk = 64
deadline = 150

DISK = "modprobe virtio_blk; wait_for 5 test -b /dev/vda; "
FILE = "/var/lib/ibnbd/writers"
PATH = "/sys/module/ibnbd_server/parameters/dev_search_path"
FORGETS = "the server has no record of whether another client wrote meanwhile"


def run(t):
    c, s = t.client, t.server
    put = ("head -c 4096 /dev/zero | tr '\\0' {} | "
           "dd of={} bs=4k count=1 iflag=fullblock oflag=direct conv=fsync status=none")
    first = lambda name: s.sh(f"dd if=/dev/{name} bs=4k count=1 iflag=direct status=none | "
                              "head -c 1")
    state = lambda dev: c.sh(f"dev_attr {dev} state_detail")
    gone = lambda: t.wait(lambda: not s.sh("exports"), 30,
                          "the server has let it go")
    waiting = lambda: int(c.sh("cat /proc/[0-9]*/stat 2> /dev/null | "
                               "grep -c '(dd) D ' || true"))

    def wrote(name):
        dev = c.sh(f"map {name} hold=-1 sessname=a")
        c.sh(put.format("A", dev))
        return dev

    def down(dev):
        c.sh("echo 1 > $(echo /sys/class/ibtrs-client/a/paths/*)/disconnect")
        t.wait(lambda: state(dev).startswith("held"), 20, "a waits")
        gone()

    def hold(dev):
        """a holds a write that is newer than A; the server has let it go."""
        down(dev)
        before = waiting()
        job = c.spawn(put.format("O", dev))
        t.wait(lambda: waiting() > before, 10, "a holds a write")
        return job

    def other(name):
        """b comes, writes and goes."""
        dev = c.sh(f"map {name} sessname=b")
        c.sh(put.format("B", dev) + f"; unmap {dev}")
        gone()

    def back():
        # it may do so by itself
        c.sh("echo 1 > $(echo /sys/class/ibtrs-client/a/paths/*)/reconnect 2> /dev/null || true")

    def is_back(dev):
        back()
        t.wait(lambda: state(dev) == "open" and s.sh("exports"), 30,
               "nobody has it open: it is opened again")

    def fenced(what, name, dev, job, reason):
        back()
        t.wait(lambda: state(dev) in ("fenced", "open"), 30, f"{what}: it is back")
        t.eq((state(dev), first(name)), ("fenced", "B"), f"{what}: what b wrote stays")
        t.match(c.sh(f"dev_attr {dev} reason"), reason, f"{what}: the reason")
        t.ok(job.wait(20) != 0, f"{what}: its write has failed")
        c.sh(f"echo 1 > /sys/block/{dev[5:]}/ibnbd/remap_device; " + put.format("A", dev))
        t.eq(first(name), "A", f"{what}: remapped")
        c.sh(f"unmap {dev}")
        gone()

    def scene(what, then, name="vda", reason=FORGETS):
        t.log(f"--- {what}")
        dev = wrote(name)
        job = hold(dev)
        other(name)
        then()
        fenced(what, name, dev, job, reason)

    def another_machine():
        """What it had in /var is not there, and the server is loaded by hand."""
        s.kill()
        (s.vm.share / "state/writers").unlink()
        s.boot()
        s.sh(f"{DISK} modprobe ibnbd-server dev_search_path=/dev")

    reload = lambda how="": s.sh(f"unload $OUR_MODULES; {how} serve")

    t.allow("I/O error, dev ibnbd|Buffer I/O error on dev ibnbd")
    s.sh(f"{DISK} ram_disks 1 16; serve")
    scene("its file was lost", lambda: reload(f"rm -f {FILE};"))
    scene("a disk without an identity", reload, "ram0",
          "^another client may have written meanwhile$")

    t.log("--- nobody else came, and it remembers")
    dev = wrote("vda")
    job = hold(dev)
    reload()
    back()
    t.eq((job.wait(40), first("vda")), (0, "O"), f"it goes on: {job.out()}")
    c.sh(f"unmap {dev}")
    gone()

    t.log("--- it was closed, and another server had the disk and the file meanwhile")
    dev = wrote("vda")
    s.sh(f"cp {FILE} /tmp/early")
    down(dev)
    other("vda")
    s.sh(f"unload $OUR_MODULES; cp {FILE} /tmp/late; cp /tmp/early {FILE}; serve")
    is_back(dev)
    job = hold(dev)
    s.sh(f"echo > {PATH}; cp /tmp/late {FILE}; wait_for 20 eval 'echo /dev > {PATH}'")
    fenced("closed", "vda", dev, job, "^another client may have written meanwhile$")

    t.log("--- nothing at large: it opens, whoever comes back")
    dev = c.sh("map vda sessname=a")
    reload(f"rm -f {FILE};")
    is_back(dev)
    c.sh(put.format("A", dev) + f"; unmap {dev}")
    gone()

    t.log("--- no place for a file: said once; remembered while loaded")
    s.sh("unload $OUR_MODULES; rm /var/lib/ibnbd; dmesg -C; serve")
    t.eq(s.sh("dmesg | grep -c 'ibnbd/writers: its directory does not exist .-2.: after a restart "
              "of this server, clients that hold writes are fenced' || true"), "1", "the log")
    t.eq(s.sh("cat /sys/module/ibnbd_server/parameters/writer_file"), "", "the parameter")
    scene("loaded anew", reload)
    s.sh("ln -s /h/state /var/lib/ibnbd")

    t.log("--- none: nothing is promised, and nobody fenced")
    s.sh("unload $OUR_MODULES; serve writer_file=none")
    dev = wrote("vda")
    job = hold(dev)
    other("vda")
    s.sh("unload $OUR_MODULES; serve writer_file=none")
    back()
    t.eq((job.wait(40), first("vda")), (0, "O"), f"it goes on: {job.out()}")
    c.sh(f"unmap {dev}")
    gone()

    reload()
    scene("another machine at its address", another_machine)
