# SPDX-License-Identifier: GPL-2.0-only
description = "slots, chunks and requests lie in the memory of the node that the adapter is at"
long = True
crowd = True
deadline = 120
append = "numa=fake=2"
fresh = True

NIC = "/sys/class/net/eth0/device"


def free_mib(machine):
    """Free memory of each node, what lies in the lists of CPUs counted in."""
    machine.sh("echo 3 > /proc/sys/vm/drop_caches")
    kib = [0, 0]
    for line in machine.sh("awk '/^Node/ { node = $2 + 0 } "
                           "/nr_free_pages/ { print node, $2 } "
                           "$1 == \"count:\" { print node, $2 }' /proc/zoneinfo").splitlines():
        node, pages = line.split()
        kib[int(node)] += 4 * int(pages)
    return [k / 1024 for k in kib]


def move_nic(machine, node):
    """The adapter's bus address says where it is; its driver learns that when it starts."""
    machine.sh(f"""
        pci=$(basename "$(readlink -f {NIC}/..)")
        echo $pci > /sys/bus/pci/drivers/virtio-pci/unbind
        echo {node} > /sys/bus/pci/devices/$pci/numa_node
        echo $pci > /sys/bus/pci/drivers/virtio-pci/bind
        wait_for 5 test -e /sys/class/net/eth0
        [ $(< {NIC}/../numa_node) = {node} ]
        ip link set eth0 up; net_up 1""")


def taken(machine, before):
    return [b - a for b, a in zip(before, free_mib(machine))]


def run(t):
    c, s = t.client, t.server
    t.allow("numa_node")
    for m in c, s:
        t.eq(m.sh("cat /sys/devices/system/node/online"), "0-1", "nodes")
    for node in 1, 0:
        for m in c, s:
            move_nic(m, node)
        s.sh("serve; ram_disks 1 16")
        c.sh("modprobe ibnbd-client")
        was_c, was_s = free_mib(c), free_mib(s)
        dev = c.sh("map ram0")
        now_c, now_s = taken(c, was_c), taken(s, was_s)
        t.log(f"adapter at node {node}: client {now_c}, server {now_s} MiB")
        t.ok(now_s[node] >= 66, f"66 MiB of chunks at node {node}: {now_s}")
        t.ok(now_c[node] >= 6, f"4 MiB of bounce buffers and 2 of records at node {node}: {now_c}")
        # the adapter's driver has its queues where it likes: near the CPU
        # that asked, which is at node 0
        t.ok(max(now_c[1], now_s[1]) < 1 if node == 0 else now_s[0] < 10,
             f"nothing at the other node: {now_c} {now_s}")
        c.sh(f"unmap {dev}; unload $OUR_MODULES")
        s.sh("unload $OUR_MODULES")
