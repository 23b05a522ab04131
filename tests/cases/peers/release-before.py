# SPDX-License-Identifier: GPL-2.0-only
description = ("an upgrade of machines in use: who still runs the release before works with who "
               "runs this one, both ways, drivers and commands")
links = 2
fresh = True
long = True
deadline = 900
disk = 64       # it has an identity, by which a server's file of writers knows it
import subprocess
from pathlib import Path
import image

OURS = "ibtrs-core ibtrs-client ibtrs-server ibnbd-client ibnbd-server"
# as `ibnbd server start` of both does it
SERVE = "serve writer_file=/var/lib/ibnbd/writers"
UPDATES = "/lib/modules/$(uname -r)/updates"


def bring(t, before):
    """Both releases to both machines: /before and /this."""
    for m in t.client, t.server:
        (m.share / "before").mkdir()
        for f in Path(before).iterdir():
            m.put(f"before/{f.name}", f.read_bytes())
        m.sh(f"mkdir /before /this; cp /h/before/* /before; for m in {OURS}; do "
             f"cp {UPDATES}/$m.ko /this; done; cp /bin/ibnbd /this; chmod 755 /before/ibnbd")


def install(m, release):
    """As a package does it: what runs goes on."""
    m.sh(f"cp /{release}/*.ko {UPDATES}/; cp /{release}/ibnbd /bin/ibnbd.new; "
         "mv /bin/ibnbd.new /bin/ibnbd; depmod", timeout=120)


def source(m, module):
    return m.sh(f"cat /sys/module/{module}/srcversion; "
                f"modinfo -F srcversion {module}").split()


def exercise(t, dev, what):
    """I/O over the loss of a path, a flush, and what the commands of both releases say and do."""
    t.log(what)
    c, s = t.client, t.server
    c.sh("wait_for 20 paths_up s1 2")
    io = c.spawn(f"fio_verify {dev} 8m --fsync=16 --output=/dev/null")
    c.link(0, False)
    c.sh("wait_for 20 paths_up s1 1")
    c.link(0, True)
    t.eq(io.wait(120), 0, f"{what}: verified I/O over the loss of a path")
    c.sh("wait_for 20 paths_up s1 2")
    for release in "before", "this":
        cmd = f"/{release}/ibnbd"
        for words in "list", "show ibnbd0", "session list", "path list", "stat", "list --json":
            c.sh(f"{cmd} {words}")
        s.sh(f"{cmd} server list; {cmd} doctor || [ $? -le 2 ]")
        second = c.sh(f"{cmd} doctor > /dev/null || [ $? -le 2 ]; "
                      f"{cmd} map ram1 s1 10.0.0.2 --name second --hold 30")
        c.sh(f"dd if=/dev/urandom of={second} bs=64k count=4 oflag=direct status=none; "
             f"{cmd} remap --force second; "
             f"{cmd} path remove s1 10.0.1.2; {cmd} path add s1 10.0.1.2; "
             f"wait_for 20 paths_up s1 2; {cmd} unmap second", timeout=90)


def run(t):
    c, s = t.client, t.server
    made = subprocess.run([image.REPO / "tests/packages/before.sh"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=1800)
    if made.returncode:
        t.skip(made.stderr.strip())
    bring(t, made.stdout.split()[-1])
    s.sh(f"modprobe virtio_blk; wait_for 10 test -b /dev/vda; {SERVE}; ram_disks 2 32")
    dev = c.sh("map vda hold=120")

    # the client's package is replaced under a disk in use (here by the older one)
    io = c.spawn(f"fio_verify {dev} 8m --output=/dev/null")
    install(c, "before")
    t.eq(io.wait(120), 0, "I/O goes on over the upgrade of the package")
    runs, there = source(c, "ibnbd_client")
    t.ok(runs != there, "another driver is installed than runs")
    said = c.sh("/this/ibnbd list 2>&1; /this/ibnbd doctor || [ $? -le 2 ]")
    t.match(said, r"(?s)warning: driver ibnbd_client \S+ runs, .* installed: ibnbd doctor"
            r".*driver ibnbd_client \S+ runs, .*hint: the next boot", "list and doctor")

    # a planned switch
    c.sh(f"unmap {dev}; unload ibnbd_client ibtrs_client ibtrs_core")
    dev = c.sh("map vda hold=120")
    t.eq(len(set(source(c, "ibnbd_client"))), 1, "the switch takes what is installed")
    t.match(c.sh("/this/ibnbd list 2>&1"), r"\A(?!.*runs)", "nothing to say any more")
    exercise(t, dev, "client of the release before, server of this one")

    # the server is switched under a disk that is mapped: its client waits
    install(s, "before")
    s.sh("unload ibnbd_server ibtrs_server ibtrs_core; " + SERVE)
    t.wait(lambda: c.sh(f"dev_attr {dev} state") == "open", 40, f"{dev} is open again")
    c.sh("wait_for 20 paths_up s1 2")
    install(c, "this")
    c.sh(f"unmap {dev}; unload ibnbd_client ibtrs_client ibtrs_core")
    dev = c.sh("map vda hold=120")
    exercise(t, dev, "client of this release, server of the one before")

    install(s, "this")
    io = c.spawn(f"fio_verify {dev} 8m --output=/dev/null")
    s.sh("unload ibnbd_server ibtrs_server ibtrs_core; " + SERVE)
    t.eq(io.wait(120), 0, "I/O waits for the server's switch, and goes on")
    t.eq(len(set(source(s, "ibnbd_server"))), 1, "the server runs what is installed")
