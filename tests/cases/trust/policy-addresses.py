# SPDX-License-Identifier: GPL-2.0-only
"""Whoever knows the uuid of a session may ask to add a path to it."""
description = ("a session may do what it may from each of its addresses: a path from where less is "
               "allowed than it has open is refused, with words")
crowd = True
links = 2

PATHS = "/sys/class/ibtrs-client/s1/paths"


def run(t):
    c, s = t.client, t.server
    first, second = (f"ip:10.0.{i}.1@ip:10.0.{i}.2" for i in (0, 1))
    put = lambda dev: f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none"
    add = f"echo {second} > /sys/class/ibtrs-client/s1/add_path"
    ups = lambda: c.sh("path_attr s1 state").count(" connected")

    s.sh("serve; ram_disks 2 16; echo 'ram0 addr:10.0.1.0/24 ro' | policy")
    dev = c.sh(f"map ram0 path={first}")
    c.fails(add, "")
    less = "policy allows less from this address than the session has open"
    t.match(c.sh("cat /sys/class/ibtrs-client/s1/last_error"), less, "add_path")
    t.match(s.server_news(), f"ip:10.0.1.1: session s1: path refused: the server's {less}"
            if s.serves_user() else f"session s1: ip:10.0.1.1.*: path refused: the server's {less}",
            "the server's log")
    c.sh(put(dev))
    c.sh(f"unmap {dev}")

    t.log("--- it has nothing open that is not allowed there")
    dev = c.sh(f"map ram1 path={first}")
    c.sh(f"[ -e {PATHS}/{second} ] || {add}")
    t.wait(lambda: ups() == 2, 20, "both paths")
    c.fails("map ram0", "only read")
    ro = c.sh("map ram0 access_mode=ro")
    c.sh(f"echo 1 > {PATHS}/{second}/remove_path")
    t.wait(lambda: "10.0.1.1" not in s.sh("ls /run/sessions/s1/paths"), 20,
           "the server has let it go")
    c.sh(f"unmap {ro}; {put('$(map ram0)')}; {put(dev)}")
