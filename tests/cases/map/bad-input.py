# SPDX-License-Identifier: GPL-2.0-only
description = ("wrong names, addresses and options: "
               "an errno and a line that names the bad word, and nothing is left behind")
crowd = True
deadline = 180

GOOD = "sessname=s1 path=ip:10.0.0.1@ip:10.0.0.2 device_path=ram0"
BAD = [     # request, error of the write, what last_error and the log say
    ("", "Invalid argument", "sessname"),
    ("sessname=s1", "Invalid argument", "device_path"),
    ("device_path=ram0 path=ip:10.0.0.2", "Invalid argument", "sessname"),
    ("sessname=s1 device_path=ram0", "No such device or address", "path"),
    (GOOD + " polcy=rr", "Invalid argument", "polcy"),
    (GOOD + " access_mode=RW", "Invalid argument", "RW"),
    (GOOD + " dest_port=65536", "Invalid argument", "65536"),
    (GOOD + " nr_poll_queues=-2", "Invalid argument", "-2"),
    (GOOD + " sessname=s2", "Invalid argument", "sessname"),
    ("sessname=a/b path=ip:10.0.0.2 device_path=ram0", "Invalid argument", "a/b"),
    ("sessname=s1 path=10.0.0.300 device_path=ram0", "Invalid argument", "10.0.0.300"),
    ("sessname=s1 path=host device_path=ram0", "Invalid argument|Protocol not supported", "host"),
    ("sessname=s1 path=tcp:10.0.0.2 device_path=ram0", "Protocol not supported", "tcp:"),
    ("sessname=s1 path=ip:10.0.0.1@ip:fd00:0::2 device_path=ram0", "Invalid argument", "fd00"),
    ("sessname=s1 " + "path=ip:10.0.0.2 " * 7 + "device_path=ram0",
     "Cannot allocate memory|Invalid argument", "path"),
    (f"sessname={'s' * 255} path=ip:10.0.0.2 device_path=ram0", "Invalid argument", "sessname"),
    (f"{GOOD[:-4]}{'d' * 255}", "Invalid argument", "device_path"),
    (GOOD[:-4] + "nosuch", "No such file or directory", "nosuch"),
    (GOOD[:-4] + "../etc/passwd", "Invalid argument", r"\.\."),
    (GOOD[:-4] + "null", "Block device required|Invalid argument|No such device", "null"),
    ("sessname=s1 path=ip:10.0.0.1@ip:10.0.0.2 dest_port=7 device_path=ram0",
     "Connection refused|reset", "10.0.0.2"),
]


def run(t):
    c, s = t.client, t.server

    s.sh("serve; ram_disks 1 16")
    c.sh("modprobe ibnbd-client")
    for line, errno, word in BAD:
        out = c.fails(f"map_line '{line}'", errno)
        t.match(out, word, f"explanation of '{line}'")
        t.eq(c.sh("ls /sys/class/ibtrs-client; ls $(ctl)/devices"), "", f"left behind by '{line}'")
    dev = c.sh("map ram0")
    c.fails("map_line 'sessname=s1 device_path=ram0'", "File exists")
    b = f"/sys/block/{dev[5:]}/ibnbd"
    for attr, word, errno in (("unmap_device", "now", "Invalid argument"),
                              ("remap_device", "2", "Invalid argument"),
                              ("remap_device", "1", "Operation already in progress"),
                              ("resize", "big", "Invalid argument")):
        c.fails(f"echo {word} > {b}/{attr}", errno)
    c.sh(f"exec 5< {dev}; ! echo normal > {b}/unmap_device; exec 5<&-")
    p = "/sys/class/ibtrs-client/s1"
    for attr, word, errno in (("mpath_policy", "best", "Invalid argument"),
                              ("max_reconnect_attempts", "10000", "Invalid argument"),
                              ("add_path", "ip:10.0.0", "Invalid argument"),
                              ("paths/*/reconnect", "0", "Invalid argument"),
                              ("add_path", "ip:10.0.0.1@ip:10.0.0.2", "File exists"),
                              ("paths/*/stats/reset_all", "0", "Invalid argument")):
        c.fails(f"echo {word} > $(echo {p}/{attr})", errno)
    c.sh(f"dd if={dev} of=/dev/null bs=4k count=16 iflag=direct status=none; unmap {dev}")
    symlinks(t)


def symlinks(t):
    """Whose a link is, and whose the directory in which it is relative: who may change that could
    move a link of root's to where it means another disk."""
    c, s = t.client, t.server
    s.sh("unload $OUR_MODULES; rm -rf /exp; mkdir -p /exp/tenant; chown 1000 /exp/tenant; "
         "ln -s ../dev/ram0 /exp/mine; ln -s ../../dev/ram0 /exp/tenant/moved; "
         "ln -s /dev/ram0 /exp/tenant/absolute; ln -s /dev/ram0 /exp/tenant/his; "
         "chown -h 1000 /exp/tenant/his; mkdir -p /exp/tenant/roots /exp/roots; "
         "ln -s ../../../dev/ram0 /exp/tenant/roots/below; ln -s ../../dev/ram0 /exp/roots/below; "
         "serve dev_search_path=/exp")
    for name in "mine", "tenant/absolute", "roots/below":
        c.sh(f"unmap $(map {name})")
    relative = "relative, in a directory that others than root can change"
    for name, why in (("tenant/moved", relative), ("tenant/roots/below", relative),
                      ("tenant/his", "does not belong to root")):
        c.fails(f"map {name}", "Permission denied")
        t.match(s.sh("cat /sys/class/ibnbd-server/ctl/last_error"), why, f"why {name} is refused")
    s.sh("rm -rf /exp")
