# SPDX-License-Identifier: GPL-2.0-only
"""Two sessions of one client: a holds writes, b writes meanwhile; the server is restarted
between.  The disk is a virtio disk with a serial number, so it has an identity, and it outlives
its machine; the file is carried over."""
description = ("after a restart the server still knows who wrote last: "
               "what a client held meanwhile is not written over that")
long = True
links = 1
disk = 64
deadline = 300

FILE = "/h/writers"
DISK = "modprobe virtio_blk; wait_for 5 test -b /dev/vda; "
SLOT = 64


def run(t):
    c, s = t.client, t.server
    serve = f"{DISK} serve writer_file={FILE}"
    put = ("head -c 4096 /dev/zero | tr '\\0' {} | "
           "dd of={} bs=4k count=1 iflag=fullblock oflag=direct status=none")
    first = lambda: s.sh("dd if=/dev/vda bs=4k count=1 iflag=direct status=none | head -c 1")
    state = lambda dev: c.sh(f"dev_attr {dev} state_detail")
    path = lambda name, word: c.sh(f"for p in /sys/class/ibtrs-client/{name}/paths/*; do "
                                   f"echo 1 > $p/{word}; done")
    gone = lambda: t.wait(lambda: not s.sh("exports"), 30,
                          "the server has let it go")

    def restart():
        s.sh("unload $OUR_MODULES")
        s.sh(serve)

    def power_cut(meanwhile=lambda: None):
        s.kill()
        meanwhile()
        kept = (s.vm.share / "writers").read_bytes()
        s.boot()
        (s.vm.share / "writers").write_bytes(kept)
        s.sh(serve)

    def hold(name, dev, char):
        """The session loses its link, and then somebody writes."""
        path(name, "disconnect")
        t.wait(lambda: state(dev).startswith("held"), 20, f"{name} waits")
        waiting = lambda: int(c.sh("cat /proc/[0-9]*/stat 2> /dev/null | "
                                   "grep -c '(dd) D ' || true"))
        before = waiting()
        job = c.spawn(put.format(char, dev))
        t.wait(lambda: waiting() > before, 10, f"{name} holds a write")
        return job

    def fenced(name, dev, job, what, reason="another client may have written meanwhile$"):
        # it may do so by itself
        c.sh(f"echo 1 > $(echo /sys/class/ibtrs-client/{name}/paths/*)/reconnect 2> /dev/null "
             "|| true")
        t.wait(lambda: state(dev) == "fenced", 30, f"{what}: fenced")
        t.match(c.sh(f"dev_attr {dev} reason"), f"^{reason}", f"{what}: the reason")
        t.ok(job.wait(20) != 0, f"{what}: its write has failed")

    def other(char, before_it_goes=lambda: None):
        """b comes, writes and goes."""
        dev = c.sh("map vda unflushed=ignore sessname=b")
        c.sh(put.format(char, dev))
        before_it_goes()
        c.sh(f"unmap {dev} force")

    s.sh(serve)
    for what, between in (("b, then a restart", (lambda: other("1"), restart)),
                          ("b, and a power cut before it goes", (lambda: other("2", power_cut),)),
                          ("a restart, b, another one", (restart, lambda: other("3"), restart))):
        t.log(f"--- {what}")
        a = c.sh("map vda unflushed=ignore sessname=a")
        c.sh(put.format("A", a))
        job = hold("a", a, "O")
        gone()
        for do in between:
            do()
        fenced("a", a, job, what)
        t.match(first(), "^[123]$", f"{what}: what b wrote")
        c.sh(f"unmap {a} force")

    t.log("--- who wrote last itself writes on, whatever became of the server")
    a = c.sh("map vda unflushed=ignore sessname=a access_mode=migration")
    for char, do in (("R", restart), ("P", power_cut)):
        job = hold("a", a, char)
        do()
        path("a", "reconnect")
        t.eq(job.wait(40), 0, f"its write: {job.out()}")
        t.eq(first(), char, "what it held")

    t.log("--- two writers of a migration: one of them may have written last")
    b = c.sh("map vda unflushed=ignore sessname=b access_mode=migration")
    c.sh(put.format("M", a))
    # they go out before anybody misses a heartbeat: what waits before a disk for
    # two is not known to its driver
    c.sh("rm -f /tmp/go")
    jobs = {dev: c.spawn(f"until [ -e /tmp/go ]; do usleep 20000; done; {put.format('O', dev)}")
            for dev in (a, b)}
    out = " && ".join(f"grep -qE \"[1-9]$\" /sys/block/{dev[5:]}/inflight" for dev in (a, b))
    c.sh(f"sleep 1; net_loss 0 100; touch /tmp/go; wait_for 10 eval '{out}'; "
         "echo 1 > $(echo /sys/class/ibtrs-client/a/paths/*/disconnect)")
    power_cut(lambda: c.sh("net_loss 0 0"))
    fenced("b", b, jobs[b], "migration, b")
    fenced("a", a, jobs[a], "migration, a")
    t.eq(first(), "M", "what was written before")
    c.sh(f"unmap {a} force; unmap {b} force")
    gone()

    t.log("--- a damaged file: who holds writes is fenced, and it is said")
    a = c.sh("map vda unflushed=ignore sessname=a")
    c.sh(put.format("D", a))
    job = hold("a", a, "O")
    gone()
    s.sh(f"unload $OUR_MODULES; [ $(stat -c %s {FILE}) -ge {2 * SLOT} ]; "
         f"printf x | dd of={FILE} bs=1 seek={SLOT + 40} conv=notrunc status=none; dmesg -C; "
         f"{serve}; dmesg | grep 'is damaged'; unload $OUR_MODULES; {serve}")
    fenced("a", a, job, "damaged", "the server has no record")
    t.eq(first(), "D", "what was written before")
    c.sh(f"unmap {a} force")
    gone()

    t.log("--- the default file cannot be written: "
          "disks can still be mapped, and it is written as soon as it can be")
    there = "/var/lib/ibnbd"
    s.sh(f"unload $OUR_MODULES; mkdir -p {there}; mount -t tmpfs none {there}; "
         f"serve; mount -o remount,ro {there}; dmesg -C")
    a = c.sh("map vda unflushed=ignore sessname=a")
    c.sh(put.format("W", a))
    record = f"[ $(dd if={there}/writers bs={SLOT} skip=1 count=1 | tr -d '\\0' | wc -c)"
    s.sh(f"dmesg | grep 'cannot write {there}/writers'; "
         f"{record} = 0 ]; mount -o remount,rw {there}")
    c.sh(f"unmap {a}")
    other("4")
    s.sh(f"{record} != 0 ]; unload $OUR_MODULES; umount {there}")

    t.log("--- a file that was named cannot be written: readers come, a new writer is refused, "
          "one that comes back waits")
    s.sh("mkdir -p /mnt/w; mount -t tmpfs none /mnt/w; serve writer_file=/mnt/w/writers; "
         "mount -o remount,ro /mnt/w")
    c.fails("map vda unflushed=ignore sessname=a", "", timeout=60)
    t.match(c.sh("cat $(ctl)/last_error"), "the server cannot record that it is written to", "why")
    c.sh("unmap $(map vda access_mode=ro sessname=r)")
    s.sh("mount -o remount,rw /mnt/w")
    a = c.sh("map vda unflushed=ignore sessname=a")
    s.sh("mount -o remount,ro /mnt/w")
    job = hold("a", a, "N")
    gone()
    path("a", "reconnect")
    t.wait(lambda: "cannot record" in c.sh(f"dev_attr {a} reason"), 20, "it hears why")
    t.match(state(a), "^held", "it waits")
    s.sh("mount -o remount,rw /mnt/w")
    t.eq(job.wait(30), 0, "its write")
    t.eq(first(), "N", "what it held")
    c.sh(f"unmap {a}")
    gone()
    s.sh("unload $OUR_MODULES; umount /mnt/w")

    t.log("--- what is not such a file is refused, and left as it is")
    s.sh("echo mine > /h/mine; ln -s mine /h/link; mkdir /h/dir")
    for file, why in (("/h/mine", "not an absolute path to a file that this module has written"),
                      ("writers", "not an absolute path"),
                      ("/h/link", "cannot be used .-40"), ("/h/dir", "cannot be used .-21"),
                      ("/h/none/x", "its directory does not exist .-2")):
        s.sh("dmesg -C")
        s.fails(f"serve writer_file={file}", "could not insert")
        t.match(s.sh("dmesg"), f"writer_file={file}: {why}", file)
    t.eq(s.sh("cat /h/mine"), "mine", "a stranger's file")
    s.sh("serve writer_file=")
