# SPDX-License-Identifier: GPL-2.0-only
description = ("IPv6 paths, link-local ones too, carry I/O alone and beside IPv4; "
               "gid: paths are refused in words where no InfiniBand is")
crowd = True
deadline = 180

V4, V6 = "ip:10.0.0.1@ip:10.0.0.2", "ip:fd00::1@ip:fd00::2"


def names(g, side):
    return g.sh(f"ls /sys/class/ibtrs-{side}/s1/paths").split()


def moved(t, path, script):
    """Reads and writes that the path carried meanwhile."""
    stats = f"cut -d' ' -f1,3 /sys/class/ibtrs-client/s1/paths/{path}/stats/rdma"
    before = [int(n) for n in t.client.sh(stats).split()]
    t.client.sh(script, timeout=60)
    return [int(n) - b for n, b in zip(t.client.sh(stats).split(), before)]


def run(t):
    c, s = t.client, t.server
    s.sh("serve sess_queue_depth=64; ram_disks 1 16")

    dev = c.sh("map ram0 path=ip:fd00:0::1@ip:fd00:0::2")
    t.eq(names(c, "client"), [V6], "path on the client")
    t.eq(names(s, "server"), [V6], "path on the server")
    for file, want in (("src_addr", V6.split("@")[0]), ("dst_addr", V6.split("@")[1]),
                       ("state", "connected")):
        t.eq(c.sh(f"cat /sys/class/ibtrs-client/s1/paths/{V6}/{file}"), want, file)
    reads, writes = moved(t, V6, f"fio_verify {dev} 2m --output=/dev/null")
    t.ok(reads > 20 and writes > 20, f"the path carried {reads} reads and {writes} writes")

    # one session, both families; then IPv4 alone, then IPv6 alone again
    c.sh(f"echo {V4} > /sys/class/ibtrs-client/s1/add_path; paths_up s1 2")
    t.eq(sorted(names(s, "server")), sorted([V4, V6]), "paths on the server")
    c.sh(f"fio_verify {dev} 2m --output=/dev/null")
    c.sh(f"echo 1 > /sys/class/ibtrs-client/s1/paths/{V6}/disconnect")
    t.ok(all(moved(t, V4, f"fio_verify {dev} 1m --output=/dev/null")), "IPv4 alone")
    c.sh(f"echo 1 > /sys/class/ibtrs-client/s1/paths/{V6}/reconnect; "
         f"echo 1 > /sys/class/ibtrs-client/s1/paths/{V4}/remove_path")
    t.ok(all(moved(t, V6, f"fio_verify {dev} 1m --output=/dev/null")), "IPv6 alone")
    c.sh(f"unmap {dev}")

    # no source: it is found by the route
    dev = c.sh("map ram0 path=ip:fd00:0::2")
    t.eq(c.sh("cat /sys/class/ibtrs-client/s1/paths/*/src_addr"), "ip:fd00::1",
         "source by the route")
    c.sh(f"dd if={dev} of=/dev/null bs=64k count=4 iflag=direct status=none; unmap {dev}")

    # link-local: an address that means nothing without its interface
    lladdr = s.sh("ip -6 -o addr show dev eth0 scope link | sed 's/.*inet6 //; s,/.*,,'")
    dev = c.sh(f"map ram0 path=ip:{lladdr}%eth0")
    t.eq(c.sh("cat /sys/class/ibtrs-client/s1/paths/*/dst_addr"), f"ip:{lladdr}%eth0",
         "scope is kept")
    c.sh(f"fio_verify {dev} 1m --output=/dev/null; unmap {dev}")
    c.fails(f"map_line 'sessname=s1 device_path=ram0 path=ip:{lladdr}%nosuch0'",
            "No such device|Invalid argument|not assign")

    # GIDs need InfiniBand's own addressing, which no Ethernet has
    c.fails("map_line 'sessname=s1 device_path=ram0 path=gid:fe80::1@gid:fe80::2'",
            "no RDMA device here leads to that address")
    c.fails("map_line 'sessname=s1 device_path=ram0 path=gid:fe80:::2'", "Invalid argument")
    c.fails("map_line 'sessname=s1 device_path=ram0 path=gid:fe80::1@ip:fd00::2'",
            "Invalid argument")
    t.eq(c.sh("ls /sys/class/ibtrs-client"), "", "left behind")
