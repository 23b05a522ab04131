# SPDX-License-Identifier: GPL-2.0-only
description = ("a server's modules go and return under idle disks: "
               "ours resumes by itself, the kernel's after a reconnect")
long = True
deadline = 500
import interop
needs = interop.NEEDS
mem = interop.MEM
programs = interop.PROGRAMS


def restart(t, client, server):
    pair = interop.Pair(t, client, server)
    c, s, transport = t.client, t.server, client.replace("nbd", "trs")
    attr = lambda dev, name: c.sh(f"{pair.client} dev_attr {dev} {name}")

    pair.serve()
    s.sh("modprobe ibnbd-testdisk nr_disks=2")
    devs = [pair.map("testdisk0"), pair.map("testdisk1")]
    for i, dev in enumerate(devs):
        c.sh(f"echo disk{i} | dd of={dev} bs=512 conv=sync oflag=direct status=none")
    pair.stop()
    c.sh(f"{pair.client} wait_for 15 paths_up s1 0")
    pair.serve()
    if client == interop.KERNEL:
        # its next own attempt is half a minute away; devices open with the
        # session, else by remap_device
        c.sh(f"for p in /sys/class/{transport}-client/s1/paths/*; do "
             "wait_for 30 eval \"echo 1 > $p/reconnect\" || exit; done", timeout=60)
        for dev in devs:
            c.sh(f"sleep 1; [ $({pair.client} dev_attr {dev} state) = open ] || "
                 f"echo 1 > /sys/block/{dev[5:]}/{client}/remap_device")
            c.fails(f"echo 1 > /sys/block/{dev[5:]}/{client}/remap_device", "already in progress")
    c.sh(f"{pair.client} wait_for 15 paths_up s1 1")
    for i, dev in enumerate(devs):
        t.wait(lambda: attr(dev, "state") == "open", 15, f"{dev} is open again")
        t.match(c.sh(f"dd if={dev} bs=512 count=1 iflag=direct status=none"), f"^disk{i}",
                "its old content")
        pair.verify(dev, "512k")
    pair.unmap(*devs)
    c.sh(f"wait_for 5 test ! -e /sys/class/{transport}-client/s1")     # goes behind its last disk
    pair.stop()
    s.sh("unload ibnbd_testdisk")


def run(t):
    restart(t, interop.OURS, interop.KERNEL)
    for server in interop.our_servers(t):
        interop.with_kernel_client(t, lambda: restart(t, interop.KERNEL, server))
