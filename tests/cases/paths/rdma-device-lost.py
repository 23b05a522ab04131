# SPDX-License-Identifier: GPL-2.0-only
"""Not here: an interface that is set down (ip link set down).  soft-RoCE then loses a
datagram of its QP 1, for whose end the kernel's CM waits for ever, whoever asked (rping
hangs as well; log: cm_destroy_id_wait_timeout).  A cable that is out is cases
paths/port-down and paths/one-path-lost."""
description = ("RDMA devices are taken out and put back, addresses go and return: "
               "paths follow by themselves")
links = 2
disk = 64
faults = True
long = True
deadline = 240
import time
import faults as F


def run(t):
    c, s = t.client, t.server
    add = lambda m, *links: m.sh("".join(f"rdma link add rxe{i} type rxe netdev eth{i}; "
                                         f"wait_for 5 net_gids {i};" for i in links))

    def delete(m, *links):
        t0 = time.monotonic()
        m.sh("".join(f"rdma link delete rxe{i};" for i in links), timeout=20)
        t.below(time.monotonic() - t0, 10, f"seconds until {m.name} let its RDMA devices go")

    s.sh("serve; modprobe ibnbd-testdisk cache=0")
    dev = c.sh("map testdisk0")
    w = F.Work(t, c, dev)
    for who, links in ((c, [0]), (c, [0, 1]), (s, [1]), (s, [0, 1])):
        row = w.fault("F21", f"{who.name}: {len(links)} of 2 RDMA devices removed",
                      lambda: delete(who, *links),
                      lambda: add(who, *links), hold=3, down=links, from_healed=True)
        w.limit(row, Trec=5, Nerr=0)
    row = w.fault("F22", "client's address taken away",
                  lambda: c.sh("ip addr del 10.0.0.1/24 dev eth0"),
                  lambda: c.sh("ip addr add 10.0.0.1/24 dev eth0"), hold=10, down=[0], detect=30)
    w.limit(row, Trec=5, Nerr=0)
    w.end("/dev/testdisk0")
