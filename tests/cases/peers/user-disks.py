# SPDX-License-Identifier: GPL-2.0-only
"""The writers of tests/stamp run through all of it: what each end acknowledged is proven on the
server's disk."""
description = ("disks with user space at one end, over RDMA: a disk moves between the kernel's "
               "server and ibnbd-serverd, which is killed; nbdkit with the kernel's server")
crowd = True
links = 2
disk = 64
deadline = 300
import re
import faults as F
import image
BUILD = image.REPO / "build"
programs = [BUILD / "serverd/ibnbd-serverd", BUILD / "lib/ibnbd-ping",
            BUILD / "lib/nbdkit-ibnbd-plugin.so",
            *filter(None, map(image.which, ("nbdkit", "nbd-client")))]
DISK = "modprobe virtio_blk; wait_for 5 test -b /dev/vda; "


def pings(t, c):
    """Its sessions have one name, from two addresses: each comes while the one before it ends."""
    for _ in range(3):
        said = c.sh("ibnbd-ping ip:10.0.0.2 ip:10.0.1.2 -d vda")
        t.match(said, r"ip:10.0.0.2: .*, up in (.|\n)*ip:10.0.1.2: .*, up in (.|\n)*"
                      rf"vda: {64 << 20} bytes", "ibnbd-ping")


def kernel_client(t):
    """Its disk is served by the kernel, then by ibnbd-serverd, then by the kernel again."""
    c, s = t.client, t.server
    attr = lambda name: c.sh(f"dev_attr {dev} {name}")
    s.sh(DISK + "serve")
    dev = c.sh("map vda")
    identity = attr("identity")
    t.match(identity, "^hardware ", "the disk's identity")
    w = F.Work(t, c, dev, flush=20)

    def goes_on(what):
        t.wait(lambda: attr("state") == "open" and w.flows(), 30, f"{what}: I/O flows")
        t.eq(attr("identity"), identity, f"{what}: the same disk")

    def ends(signal):
        s.sh(f"pkill -{signal} -x ibnbd-serverd")
        t.wait(lambda: "ended with" in s.sh("cat /run/serverd.log"), 30, "ibnbd-serverd ends")

    s.sh("unload $OUR_MODULES; serve_user")
    goes_on("from the kernel to ibnbd-serverd")
    t.match(s.sh("ibnbd server list"), r"vda +s1 .*rw", "ibnbd-serverd has the session")
    # (what of a ring is registered is in its fdinfo, as address/length)
    registered = lambda: s.sh("cat /proc/$(pgrep -x ibnbd-serverd)/fdinfo/*")
    t.wait(lambda: len(re.findall(r"\n *\d+: 0x[0-9a-f]+/\d{6,}", registered())) == 2, 30,
           "io_uring has the memory of both paths")
    for n in range(2):
        ends("KILL")
        s.sh("sleep 1; serve_user")
        goes_on(f"killed and started again, {n + 1}")
    s.link(0, False)
    t.wait(lambda: not w.up(w.watch.state[0]), 30, "a path is down")
    goes_on("one path to ibnbd-serverd")
    s.link(0, True)
    t.wait(w.all_up, 40, "both paths are back")
    pings(t, c)
    s.sh("ibnbd server disconnect s1")
    t.wait(lambda: s.sh("cat /run/serverd.log").count("closed by order") == 2, 10, "both paths")
    goes_on("its paths were closed by order")
    t.wait(w.all_up, 20, "both paths are back from that")
    ends("TERM")
    t.match(s.sh("cat /run/serverd.log"), "ended with status 0", "ibnbd-serverd")
    s.sh("serve")
    goes_on("back to the kernel's server")
    w.end("/dev/vda")
    s.sh("blkdiscard -z /dev/vda")


def closed(t):
    """An administrator of ibnbd-serverd takes the disk away."""
    c, s = t.client, t.server
    s.sh("unload $OUR_MODULES; serve_user")
    dev = c.sh("map vda")
    t.wait(lambda: "vda" in s.sh("ibnbd server list"), 5, "ibnbd-serverd says what is open")
    s.sh("ibnbd server close vda --force")
    t.wait(lambda: c.sh(f"dev_attr {dev} state_detail") == "fenced", 10, "the client knows")
    t.eq(c.sh(f"dev_attr {dev} reason"), "the server closed the export", "reason")
    t.wait(lambda: not s.sh("exports"), 5, "nothing is open")
    c.sh(f"unmap {dev}")
    s.sh("unload $OUR_MODULES; serve")


def user_client(t):
    """The kernel's nbd, nbdkit and libibnbd have a disk of the kernel's server."""
    c, s = t.client, t.server
    pings(t, c)
    c.fails("ibnbd-ping ip:10.0.0.2 -d nosuchdisk", "nosuchdisk: ")
    c.sh("nbd_disk 0 device=vda path=ip:10.0.0.2 path=ip:10.0.1.2")
    t.match(s.sh("cat /sys/class/ibnbd-server/ctl/devices/vda/sessions/nbd0/access_mode"), "^rw$",
            "the kernel's server has the session")
    w = F.Work(t, c, "/dev/nbd0", writer=2, stack="libibnbd", flush=20,
               states="/sys/block/nbd0/size")
    paths = lambda: s.sh("ls /sys/class/ibtrs-server/nbd0/paths").count("@")
    t.eq(paths(), 2, "paths")
    s.link(0, False)
    t.wait(lambda: paths() == 1, 30, "a path is lost")
    t.wait(w.flows, 20, "one path: I/O flows")
    s.link(0, True)
    t.wait(lambda: paths() == 2, 40, "both paths are back")
    s.sh("unload $OUR_MODULES; sleep 1; serve")
    t.wait(w.flows, 60, "the server's modules were loaded again: I/O flows")
    # the next client of that host has the name, and the disk, at once
    c.sh("pkill -KILL -x nbdkit; nbd-client -d /dev/nbd0")
    w.stop(errors_expected=True)
    c.sh("rm /run/nbd0; nbd_disk 0 device=vda path=ip:10.0.0.2 path=ip:10.0.1.2")
    after = F.Work(t, c, "/dev/nbd0", writer=3, stack="libibnbd", flush=20,
                   states="/sys/block/nbd0/size")
    t.wait(lambda: after.size() > 20000, 30, "a further client writes")
    after.stop()
    c.sh("nbd-client -d /dev/nbd0")
    c.sh("pkill -TERM -x nbdkit; wait_for 20 bash -c '! pgrep -x nbdkit'")
    F.prove(t, s, "/dev/vda", [w, after], w.blocks)


def run(t):
    c, s = t.client, t.server
    for machine, needed in (s, "ibnbd-serverd"), (c, "nbdkit"), (c, "nbd-client"):
        if machine.rc(f"command -v {needed}")[0]:
            t.skip(f"there is no {needed}: make lib serverd; tests/setup.sh")
    for machine in c, s:
        machine.sh("modprobe rdma_ucm")
    kernel_client(t)
    closed(t)
    user_client(t)
