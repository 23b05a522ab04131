# SPDX-License-Identifier: GPL-2.0-only
description = ("the server's address moves to another machine that exports another disk "
               "by that name: not a byte is written to it")
vms = 3
links = 1
faults = True
long = True
deadline = 150
import time
import faults as F

EXPORT = ("modprobe ibnbd-testdisk cache=0; "
          "dmsetup create d --uuid {} --table '0 131072 linear /dev/testdisk0 0'; "
          "[ -e /dev/mapper/d ] || dmsetup mknodes; ln -sfn /dev/mapper/d /dev/mine; serve")
MOVE = "ip addr {} 10.0.0.2/24 dev eth0"
WRITES = "tr ' ' '\\n' < /sys/module/ibnbd_testdisk/parameters/counts | sed -n 's/^write=//p'"


def run(t):
    c, s, c2 = t.client, t.server, t.client2

    def move(old, new):
        old.sh(MOVE.format("del"))
        new.sh(MOVE.format("add") + "; "
               "wait_for 5 grep -q ffff:0a00:0002 -r /sys/class/infiniband/rxe0/ports/1/gids; "
               "arping -U -I eth0 -c 2 10.0.0.2 > /dev/null || true")
        c.sh("ip neigh flush dev eth0")

    s.sh(EXPORT.format("T-right"))
    c2.sh(EXPORT.format("T-wrong"))
    dev = c.sh("map mine")
    w = F.Work(t, c, dev, closes=True)      # a fenced device is remapped without users only

    def strike():
        move(s, c2)
        t.wait(lambda: "fenced" in c.sh(f"dev_attr {dev} state_detail"), 30,
               "the client refuses the other machine's disk")
        t.log(c.sh(f"dev_attr {dev} state_detail"))

    def heal():
        time.sleep(2)
        t.eq(c2.sh(WRITES), "0", "writes to the wrong disk")
        move(c2, s)
        c.sh(f"wait_for 30 eval 'echo 1 > /sys/block/{dev[5:]}/ibnbd/remap_device' 2> /dev/null",
             timeout=40)
    row = w.fault("F24", "another server at the same address", strike, heal, hold=3)
    row["note"] = "fenced until remap_device, nothing was written to it"
    t.eq(c2.sh(WRITES), "0", "writes to the wrong disk")
    t.ok(row["Nerr"], "a fenced device fails its I/O")
    w.end("/dev/testdisk0", errors_expected=True)
