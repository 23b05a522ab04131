# SPDX-License-Identifier: GPL-2.0-only
description = ("both stacks on the same machines: "
               "two clients times two servers, four sessions at a time")
long = True
deadline = 400
import interop
needs = interop.NEEDS
mem = interop.MEM

PORTS = {interop.OURS: 1234, interop.KERNEL: 1235}


def run(t):
    interop.repeat(t, lambda: both(t))


def both(t):
    c, s = t.client, t.server

    s.sh("modprobe ibnbd-testdisk nr_disks=4 size_mb=16")
    for family, port in PORTS.items():
        s.sh(f"FAMILY={family}; serve always_invalidate=N port_nr={port}")
    pairs = [(client, server) for client in PORTS for server in PORTS]
    devs = []
    for i, (client, server) in enumerate(pairs):
        devs.append(c.sh(f"FAMILY={client}; "
                         f"map testdisk{i} sessname=s{i} dest_port={PORTS[server]} $(paths)"))
    t.eq(devs, ["/dev/ibnbd0", "/dev/ibnbd1", "/dev/rnbd0", "/dev/rnbd1"], "disks")
    t.eq(c.sh("cd /sys/class; ls -d [ir]*trs-client/*"),
         "ibtrs-client/s0\nibtrs-client/s1\nrtrs-client/s2\nrtrs-client/s3",
         "sessions of the clients")
    t.eq(s.sh("cd /sys/class; ls -d [ir]*trs-server/*"),
         "ibtrs-server/s0\nibtrs-server/s2\nrtrs-server/s1\nrtrs-server/s3",
         "sessions of the servers")

    # one after the other and 4 KiB only, so that packets do not wait
    # and no registration is repeated
    for dev, (client, server) in zip(devs, pairs):
        verify = lambda: c.sh(f"fio_verify {dev} 256k --bsrange=4k-4k --iodepth=4 "
                              "--output=/dev/null", timeout=45)
        verify() if client == interop.OURS else interop.excused(t, verify)
    for i, dev in enumerate(devs):
        c.sh(f"echo pair{i} | dd of={dev} bs=512 conv=sync oflag=direct status=none")
    t.eq(s.sh("for i in 0 1 2 3; do head -c 5 /dev/testdisk$i; echo; done"),
         "pair0\npair1\npair2\npair3", "disks")
    for dev, (client, server) in zip(devs, pairs):
        c.sh(f"FAMILY={client}; unmap {dev}")
    s.sh("unload $PEER_MODULES; ls /sys/class/ibnbd-server/ctl/devices")
