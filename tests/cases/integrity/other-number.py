# SPDX-License-Identifier: GPL-2.0-only
"""A disk goes and comes back under another number, as after a new login or activation.  One who
wrote to it there has written to the same disk."""
description = ("who wrote last is known of the disk, not of its number: "
               "what a client held meanwhile is not written over that")
long = True
links = 1
deadline = 120


def run(t):
    c, s = t.client, t.server
    number = lambda: s.sh("dmsetup info -c --noheadings -o minor disk")
    put = ("head -c 4096 /dev/zero | tr '\\0' {} | "
           "dd of={} bs=4k count=1 iflag=fullblock oflag=direct status=none")
    create = ("dmsetup create disk --uuid IBNBD-test-1 --table '0 32768 linear /dev/testdisk0 0'; "
              "[ -e /dev/mapper/disk ] || dmsetup mknodes; wait_for 5 test -b /dev/mapper/disk")
    remove = ("wait_for 20 eval '[ -z \"$(ls /run/devices)\" ]'; "
              "dmsetup remove disk; rm -f /dev/mapper/disk")
    path = lambda word: c.sh("for p in /sys/class/ibtrs-client/a/paths/*; do "
                             f"echo 1 > $p/{word}; done")

    s.sh(f"serve; modprobe ibnbd-testdisk cache=0; modprobe dm-mod; {create}")
    first = number()
    a = c.sh("map mapper/disk sessname=a")
    c.sh(put.format("A", a))
    path("disconnect")
    t.wait(lambda: c.sh(f"dev_attr {a} state_detail").startswith("held"), 20, "a waits")
    held = c.spawn(put.format("O", a))
    t.wait(lambda: c.sh("cat /proc/[0-9]*/stat 2> /dev/null | grep -c '(dd) D ' || true") != "0",
           10, "a holds a write")

    s.sh(f"{remove}; dmsetup create other --table '0 8 zero'; {create}", timeout=60)
    t.ok(number() != first, "the disk has another number")
    b = c.sh("map mapper/disk sessname=b")
    c.sh(put.format("B", b) + f"; unmap {b}")
    s.sh(f"{remove}; dmsetup remove other; {create}", timeout=60)
    t.eq(number(), first, "the disk's number, as in the beginning")

    path("reconnect")
    t.wait(lambda: c.sh(f"dev_attr {a} state_detail") == "fenced", 30, "a is fenced")
    t.match(c.sh(f"dev_attr {a} reason"), "^another client may have written meanwhile$",
            "the reason")
    t.ok(held.wait(20) != 0, "its write has failed")
    t.eq(s.sh("dd if=/dev/testdisk0 bs=4k count=1 iflag=direct status=none | head -c 1"), "B",
         "what is on the disk")
    c.sh(f"unmap {a} force")
    s.sh(f"{remove}; unload $OUR_MODULES ibnbd_testdisk", timeout=60)
