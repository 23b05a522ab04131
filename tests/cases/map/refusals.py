# SPDX-License-Identifier: GPL-2.0-only
"""A user reads ctl/last_error of his own host, and nobody else's log.  What a server refuses is
told there in the server's words."""
description = ("what the server refuses, the client tells in the server's words; "
               "a disk without a size is mapped, and grows")
crowd = True
vms = 3
deadline = 180
import re

LOOP = "/dev/loop7"


def said(g):
    return g.sh("cat $(ctl)/last_error")


def check_opens(t):
    """Each refusal of an OPEN: on the client as in the server's own last_error."""
    c, s, d = t.client, t.server, t.client2
    s.sh("rm -rf /exp; mkdir -p /exp/tenant; chown 1000 /exp/tenant; ln -s /dev/ram0 /exp/disk; "
         "ln -s /dev/nosuch /exp/gone; ln -s /dev/null /exp/char; ln -s /dev/ram0 /exp/his; "
         "chown -h 1000 /exp/his; ln -s ../dev/ram0 /exp/tenant/moved; "
         "blockdev --setro /dev/ram1; ln -s /dev/ram1 /exp/ro; head -c 100 /dev/zero > /exp/tiny; "
         "serve dev_search_path=/exp max_maps=2")
    rw = d.sh("map disk sessname=s2")
    for name, errno, words in (
            ("nosuch", "No such file", "put a symbolic link to the disk into dev_search_path"),
            ("gone", "No such file", "the symbolic link of the export leads nowhere"),
            ("char", "Block device required", "neither a block device nor a regular file"),
            ("his", "Permission denied", "does not belong to root"),
            ("tenant/moved", "Permission denied",
             "relative, in a directory that others than root can change"),
            ("ro", "Permission denied", "the device is read-only; map it with access_mode=ro"),
            ("tiny", "Invalid argument", "the file is smaller than one block"),
            ("disk", "not permitted", "")):
        c.fails(f"map {name}", errno)
        server = (s.sh("cat /sys/class/ibnbd-server/ctl/last_error")
                  .split(" refused: ")[1].rsplit(" (", 1)[0])
        t.match(server, words, f"{name}: on the server")
        t.match(said(c),
                f"^cannot open {name} on session s1 \\(-[0-9]+\\): the server says: "
                f"{re.escape(server)}$", f"{name}: on the client")
    a, b = c.sh("map disk access_mode=ro"), c.sh("map ro access_mode=ro")
    for name in "/disk", "//disk":
        c.fails(f"map {name} access_mode=ro", "File exists")
        t.match(said(c), "open under the same name with other slashes", f"{name}: an alias")
    c.fails("map disk2 access_mode=ro", "Too many open files")
    t.match(said(c), "the server says: .*max_maps", "a full table")
    t.eq(c.sh(f"dev_attr {a} features"), "zeroes identity durability words")
    c.sh(f"unmap {a}; unmap {b}")

    # a device that waits for its disk says why, in the same words
    held = c.sh("map disk access_mode=ro hold=60")
    s.sh("rm /exp/disk")
    c.sh("for p in /sys/class/ibtrs-client/s1/paths/*; do echo 1 > $p/disconnect; done; sleep 1")
    s.sh("wait_for 20 eval '! ls -d /sys/class/ibtrs-server/s1 2> /dev/null'")
    c.sh("for p in /sys/class/ibtrs-client/s1/paths/*; do echo 1 > $p/reconnect; done")
    c.sh(f"wait_for 15 eval 'dev_attr {held} reason | "
         "grep -q \"the server says: there is no such name\"'")
    s.sh("ln -s /dev/ram0 /exp/disk")
    c.sh(f"wait_for 15 eval '[ \"$(dev_attr {held} state)\" = open ]'; "
         f"[ -z \"$(dev_attr {held} reason)\" ]; unmap {held}")
    d.sh(f"unmap {rw}")


def check_empty(t):
    """An unbound loop device and an empty file have no size, and get one."""
    c, s = t.client, t.server
    s.sh(f"modprobe loop max_loop=8; [ -b {LOOP} ]; ln -s {LOOP} /exp/loop; : > /exp/file; "
         "truncate -s 16M /exp/back; "
         "printf 'start=2048, size=4096\\n' | sfdisk -q /exp/back 2> /dev/null || true")
    for name, grow in (("loop", f"losetup -b 4096 {LOOP} /exp/back"),
                       ("file", "truncate -s 16M /exp/file")):
        # without an identity the disk has another cache epoch after the restart below
        dev = c.sh(f"map {name} unflushed=ignore")
        t.eq(c.sh(f"blockdev --getsize64 {dev}"), "0", f"{name}: its size")
        t.eq(c.sh(f"dev_attr {dev} state"), "open", f"{name}: its state")
        t.eq(c.sh(f"dd if={dev} bs=4k count=1 iflag=direct status=none | wc -c"), "0",
             f"{name}: nothing to read")
        watch = c.spawn("exec udevadm monitor -k --property --subsystem-match=block")
        # the monitor takes its time to listen: it hears an event of ours first
        t.wait(lambda: (c.sh(f"echo change > /sys/block/{dev[5:]}/uevent"),
                        "SYNTH_UUID" in watch.out())[1], 20, f"{name}: the monitor listens")
        s.sh(grow)
        t.wait(lambda: c.sh(f"blockdev --getsize64 {dev}") == str(16 << 20), 10,
               f"{name}: the size arrives")
        t.wait(lambda: "RESIZE=1" in watch.out(), 5, f"{name}: udev hears of it")
        watch.kill()
        c.sh(f"fio_verify {dev} 8m > /dev/null")
        t.eq(c.sh(f"dev_attr {dev} state_detail"), "open", f"{name}: fine")
        if name == "loop":
            t.eq(c.sh(f"blockdev --getss {dev}"), "4096", "the block size came with it")
            # without its disk after a restart of the server: waits, and
            # is not taken for another disk
            s.sh(f"unload ibnbd_server; losetup -d {LOOP}; serve dev_search_path=/exp")
            t.wait(lambda: "has no size" in c.sh(f"dev_attr {dev} reason"), 20,
                   "it waits for its disk")
            s.sh(f"losetup -b 4096 {LOOP} /exp/back")
            t.wait(lambda: c.sh(f"dev_attr {dev} state_detail") == "open", 20, "and has it again")
        c.sh(f"unmap {dev}")


def run(t):
    s = t.server
    s.sh("ram_disks 2 16")
    check_opens(t)
    check_empty(t)
    s.sh("unload $OUR_MODULES; losetup -D; rm -rf /exp; blockdev --setrw /dev/ram1")
