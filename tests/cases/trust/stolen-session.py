# SPDX-License-Identifier: GPL-2.0-only
"""
A session's uuid lets its holder add a path to it.  The holder can then send any number for a slot:
that may cost paths, never somebody else's I/O.  On the client's host only root can read the uuid.
"""
description = ("a thief of a session's uuid cannot make its I/O fail: numbers far ahead cost the "
               "thief's path, those that are taken are caught up with; ESTALE costs a path, "
               "no I/O; only root reads the uuid")
crowd = True
vms = 3
links = 2
deadline = 180

SAY = "/sys/module/ibnbd_speak/parameters/say"
FAR = 0xffffffffffffffff
AHEAD = 1 << 24     # of the slot's last number: as far as a server takes it
FAULT = "/sys/kernel/debug/ibtrs/server/request"


def run(t):
    c, s, d = t.client, t.server, t.client2
    s.sh("serve; ram_disks 1 64")
    dev = c.sh("map ram0")
    uuid = c.sh("cat /sys/class/ibtrs-client/s1/uuid").replace("-", "")

    t.log("--- the uuid is root's")
    c.fails("lessen user cat /sys/class/ibtrs-client/s1/uuid", "ermission denied")
    told = c.sh("ibnbd dump; ibnbd dump -J; ibnbd show s1; ibnbd list -J")
    t.ok(uuid not in told.replace("-", ""), "no command tells it")

    t.log("--- a stranger in the session says numbers far ahead, of every slot")
    pulse = c.spawn(f"iopulse {dev} 4 2000 rw")
    d.sh(f"modprobe ibnbd-speak to=ip:10.0.0.2 name=s1 uuid={uuid}")
    ended = "the thief's path is closed: numbers far ahead"
    for slot in range(8):
        d.rc(f"echo 'dir=w slot={slot} token={FAR} len=4096' > {SAY}", timeout=60)
        d.rc("wait_for 10 grep -q '^connected' /sys/class/ibtrs-client/s1/paths/*/state")
    t.match(s.kernel_news(), "a request's number is far ahead of its slot's", ended)

    t.log("--- the thief counts in the owner's name, in slots in use and not yet in use")
    d.sh(f"modprobe -r ibnbd-speak; modprobe ibnbd-speak to=ip:10.0.0.2 name=s1 uuid={uuid}")
    for n in range(1, 7):
        d.sh(f"for i in $(seq 0 15); do echo dir=w slot=$i token={n * AHEAD} len=4096 > {SAY} "
             "2>/dev/null || true; done", timeout=60)
    d.sh("modprobe -r ibnbd-speak")
    c.sh("for i in 1 2 3 4; do "
         f"dd if=/dev/zero of={dev} bs=4k count=64 oflag=direct status=none; done; "
         "for i in $(seq 24); do "
         f"dd if={dev} of=/dev/null bs=4k count=64 iflag=direct status=none & done; wait; "
         "pkill -TERM iopulse")
    t.match(c.kernel_news(), "somebody else counts in this session's name", "the client's log")
    t.eq(pulse.wait(20), 0, "the owner's I/O: " + pulse.out())
    t.eq(c.sh("cat /sys/class/ibtrs-client/s1/paths/*/stats/reconnects"), "0 0\n0 0",
         "the owner's paths")

    t.log("--- a server that takes current requests for old ones")
    s.sh(f"echo 'error=116 times=3' > {FAULT}")
    c.sh(f"dd if=/dev/zero of={dev} bs=4k count=8 oflag=direct status=none; "
         f"dd if={dev} of=/dev/null bs=64k count=8 iflag=direct status=none", timeout=60)
    t.match(c.kernel_news(), "the server takes a current request for an old one",
            "the client's log")
    s.sh(f"echo off > {FAULT}")
    c.sh("wait_for 20 paths_up s1 2; "
         f"dd if={dev} of=/dev/null bs=64k count=8 iflag=direct status=none; "
         f"unmap {dev}")
