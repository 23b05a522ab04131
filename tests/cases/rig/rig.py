# SPDX-License-Identifier: GPL-2.0-only
description = "the rig itself: two machines speak RDMA, links fall and rise, clocks are right"
vms = 2
links = 2
long = True     # every other case shows most of it


def run(t):
    if t.image.debug == "debug":
        t.eq([g.sh("cat /proc/sys/kernel/panic_on_warn") for g in t.guests], ["1"] * vms,
             "a warning ends the machine")
    c, s = t.client, t.server

    for i in range(t.links):
        c.sh(f"ping -q -c 1 -W 2 10.0.{i}.2; ping -q -c 1 -W 2 fd00:{i}::2")
        server = s.spawn(f"ib_write_bw -d rxe{i} -x 1 -n 50 -s 4096 -F")
        c.sh(f"wait_for 10 ib_write_bw -d rxe{i} -x 1 -n 50 -s 4096 -F 10.0.{i}.2")
        t.eq(server.wait(10), 0, f"status of ib_write_bw's server on link {i}")
        t.ok(int(c.sh(f"hw_counter {i} sent_pkts")) >= 50, "packets were sent by soft-RoCE")

    # by its words: rping's status is that of a race at its end
    for address in ("10.0.0.2", "fd00:1::2"):
        server = s.spawn(f"rping -s -P -a {address} -v")
        c.sh(f"pings() {{ timeout $((5 * SLOW)) rping -c -a {address} -C 20 -v > /tmp/ping; "
             "grep -q 'rdma-ping-19:' /tmp/ping; }\nwait_for 10 pings")
        server.kill()
        t.wait(lambda: server.rc is not None, 10, "rping's server is killed")

    c.link(0, False)
    t.wait(lambda: c.sh("cat /sys/class/net/eth0/carrier") == "0", 5,
           "the client sees its carrier go")
    t.eq(s.sh("cat /sys/class/net/eth0/carrier"), "1", "the server's carrier")
    c.fails("ping -q -c 1 -W 1 10.0.0.2", "100% packet loss|unreachable")
    c.sh("ping -q -c 1 -W 2 10.0.1.2")
    c.link(0, True)
    c.sh("wait_for 10 ping -q -c 1 -W 1 10.0.0.2")

    s.link(1, False)
    t.eq(c.sh("cat /sys/class/net/eth1/carrier"), "1",
         "the client's carrier when the server's went")
    c.fails("ping -q -c 1 -W 1 10.0.1.2", "100% packet loss")
    s.link(1, True)
    c.sh("wait_for 10 ping -q -c 1 -W 1 10.0.1.2; net_loss 1 100")
    c.fails("ping -q -c 1 -W 1 10.0.1.2", "100% packet loss")
    c.sh("net_loss 1 0; wait_for 5 ping -q -c 1 -W 1 10.0.1.2")

    s.pause()
    c.fails("ping -q -c 1 -W 1 10.0.0.2", "100% packet loss")
    s.resume()
    c.sh("wait_for 10 ping -q -c 1 -W 1 10.0.0.2")

    s.kill()
    c.fails("ping -q -c 1 -W 1 10.0.0.2")
    s.boot()
    c.sh("ping -q -c 1 -W 2 10.0.0.2")

    for g in (c, s):
        skew = g.clock_skew()
        t.ok(0.8 < skew < 1.25, f"{g.name}'s clock goes at {skew:.2f} of the host's")
        g.sh("ram_disks 1 16; fio_verify /dev/ram0 8m")
