# SPDX-License-Identifier: GPL-2.0-only
"""The disk forgets what no flush has covered when it is told to, and the server says so: no machine
has to be killed.  Between the client's writes and that moment somebody else has written."""
description = ("what a client has kept is never sent again over what somebody else has written "
               "since, and remap_device gives up nothing that is kept")
crowd = True
deadline = 180

P = "/sys/module/ibnbd_testdisk/parameters"
FLUSH_MS = 5000
CTL = "/sys/class/ibnbd-server/ctl/devices"
PATH = "/sys/class/ibtrs-client/{}/paths/*"


def run(t):
    c, s = t.client, t.server
    attr = lambda dev, name: c.sh(f"dev_attr {dev} {name}")
    put = lambda dev, char, how="oflag=direct": c.sh(
        f"head -c 4096 /dev/zero | tr '\\0' {char} | dd of={dev} bs=4k iflag=fullblock {how} "
        "status=none")
    got = lambda: s.sh("dd if=/dev/testdisk0 bs=4k count=1 iflag=direct status=none | "
                       "tr '\\0' 0 | tr -s A-Z0")
    gone = lambda: t.wait(lambda: not s.sh("exports"), 30, "the server has let it go")
    down = lambda sess="s1": c.sh(f"echo 1 > $(echo {PATH.format(sess)})/disconnect")
    up = lambda sess="s1": c.sh(f"echo 1 > $(echo {PATH.format(sess)})/reconnect || true")

    def is_(dev, state, what):
        t.wait(lambda: attr(dev, "state_detail") == state, 40, f"{what}: {state}")

    def lose(*devs):
        """The disk forgets, and a read makes the client ask."""
        s.sh(f"echo 1 > {P}/power_cut; echo 1 > {CTL}/testdisk0/cache_lost")
        for dev in devs:
            c.sh(f"dd if={dev} of=/dev/null bs=4k skip=1 count=1 iflag=direct status=none || true",
                 timeout=60)

    def somebody_writes(char):
        other = c.sh("map testdisk0 sessname=s2 unflushed=ignore")
        put(other, char, "oflag=direct conv=fsync")
        c.sh(f"unmap {other}")

    t.allow("I/O error, dev ibnbd|Buffer I/O error on dev ibnbd")
    s.sh("modprobe ibnbd-testdisk; mkdir -p /exp; ln -sfn /dev/testdisk0 /exp/testdisk0; "
         "serve dev_search_path=/exp")

    t.log("--- nobody has it open: it goes on, and what it had kept is of no use any more")
    dev = c.sh("map testdisk0 unflushed=replay hold=-1")
    put(dev, "A")
    t.eq((attr(dev, "kept"), attr(dev, "unflushed_bytes"), attr(dev, "other_writers")),
         ("whole", "4096", "0"), "to begin with")
    c.spawn("exec ibnbd monitor > /h/monitor")
    down()
    up()
    is_(dev, "open", "nobody else has written")
    t.eq(attr(dev, "other_writers"), "0", "a link that is lost is no other writer")
    down()
    gone()
    somebody_writes("B")
    up()
    is_(dev, "open", "the same disk")
    t.eq((attr(dev, "kept"), attr(dev, "unflushed_bytes")), ("gap", "4096"), "what it had kept")
    t.eq(attr(dev, "other_writers"), "1", "that somebody else has written is counted")
    t.wait(lambda: f"{dev[5:]} change another client has written (other_writers 1)" in
           c.sh("cat /h/monitor"), 5, "and told, though nobody has it open and nothing is fenced")
    lose(dev)
    is_(dev, "fenced", "its write may be lost")
    t.match(attr(dev, "reason"), "were not flushed", "the reason")
    t.eq(got(), "B", "nothing is put over what somebody else wrote")
    c.sh(f"echo 1 > /sys/block/{dev[5:]}/ibnbd/remap_device")
    t.eq(attr(dev, "losses"), "1", "told")

    t.log("--- somebody has it open: fenced; and remapped behind him, it is the same")
    put(dev, "C")
    user = c.spawn(f"exec 3< {dev}; wait_for 90 test -e /tmp/enough")
    down()
    gone()
    somebody_writes("D")
    up()
    is_(dev, "fenced", "writes may be waiting above")
    t.eq(attr(dev, "other_writers"), "2", "counted, too")
    c.fails(f"echo 1 > /sys/block/{dev[5:]}/ibnbd/remap_device", "busy")
    t.match(c.sh("cat $(ctl)/last_error"), "is in use: unmount it, or take it out of its array, "
            "before remapping: another client may have written", "why not")
    c.sh("touch /tmp/enough")
    t.eq(user.wait(30), 0, f"its user: {user.out()}")
    c.sh(f"echo 1 > /sys/block/{dev[5:]}/ibnbd/remap_device")
    is_(dev, "open", "remapped")
    lose(dev)
    is_(dev, "fenced", "its write may be lost")
    t.eq(got(), "D", "nothing is put over what somebody else wrote")
    c.sh(f"rm /tmp/enough; unmap {dev}")
    gone()

    t.log("--- a reader stays when another epoch begins behind the last writer")
    reader = c.sh("map testdisk0 access_mode=ro sessname=s3")
    dev = c.sh("map testdisk0 unflushed=replay hold=1")
    put(dev, "E", "oflag=direct conv=fsync")
    before = s.sh(f"cat {CTL}/testdisk0/cache_epoch")
    s.sh(f"echo flush > {P}/fail; echo 1 > {P}/fail_times")
    put(dev, "F")
    s.sh(f"rm /exp/testdisk0; echo 1 > {P}/fail_loses")
    down()
    is_(dev, "failed", "the link is gone, and hold= over")
    t.wait(lambda: s.sh(f"cat {CTL}/testdisk0/cache_epoch || true") != before, 30,
           "another epoch, or nobody who has it open")
    s.sh("ln -sfn /dev/testdisk0 /exp/testdisk0")
    t.eq(c.sh(f"dd if={reader} bs=4k count=1 iflag=direct status=none | tr -s A-Z", timeout=60),
         "E", "what the reader reads")

    t.log("--- remap_device of a device that has failed, and has kept what was lost")
    s.sh("rm /exp/testdisk0")
    up()
    t.wait(lambda: "No such file" in attr(dev, "reason") or attr(dev, "reason"), 20, "it asks")
    c.sh("sleep 1")
    s.sh("ln -sfn /dev/testdisk0 /exp/testdisk0")
    c.sh(f"echo 1 > /sys/block/{dev[5:]}/ibnbd/remap_device || [ $(dev_attr {dev} state) = open ]",
         timeout=60)
    is_(dev, "open", "remapped")
    t.eq((got(), attr(dev, "losses"), attr(dev, "replays").split()[0]), ("F", "0", "1"),
         "it is sent again, and nothing given up")
    c.sh(f"unmap {dev}; unmap {reader}")

    t.log("--- a migration: both write, and the older write is not put over the newer one")
    old = c.sh("map testdisk0 access_mode=migration unflushed=replay hold=-1")
    put(old, "G")
    new = c.sh("map testdisk0 access_mode=migration sessname=s2 unflushed=replay hold=-1")
    put(new, "H")
    lose(old, new)
    for dev in old, new:
        t.wait(lambda: attr(dev, "state_detail") in ("open", "fenced"), 40, f"{dev}: it knows")
    found = {dev: (attr(dev, "state_detail"), attr(dev, "reason")) for dev in (old, new)}
    t.log(f"on the disk {got()}; {found}")
    t.eq(found[old][0], "fenced", "the old one has lost a write, and another one has written")
    t.ok(got() != "G", "the older write")
    t.ok(got() == "H" or found[new][0] == "fenced", "the newer write is there, or its loss is told")
    c.sh(f"unmap {old}; unmap {new}")

    t.log("--- a migration: the one who leaves has flushed over what the other one has kept")
    old = c.sh("map testdisk0 access_mode=migration unflushed=ignore")
    new = c.sh("map testdisk0 access_mode=migration sessname=s2 unflushed=replay hold=-1")
    put(new, "J")
    put(old, "K", "oflag=direct conv=fsync")
    t.eq(attr(new, "kept"), "whole", "nobody has left")
    c.sh(f"unmap {old}")
    t.wait(lambda: attr(new, "kept") == "gap", 20, "the other one has heard of it")
    lose(new)
    is_(new, "fenced", "its write may be lost")
    t.eq(got(), "K", "what the other one has flushed")
    c.sh(f"unmap {new}")

    t.log("--- the flush behind a writer that got no place, and one who writes meanwhile")
    limit = "/sys/module/ibnbd_server/parameters/max_maps"
    at = lambda function: f"wait_for 20 grep -qs {function} /proc/[0-9]*/stack"
    s.sh(f"ram_disks 1 16; ln -sfn /dev/ram0 /exp/ram0; echo 1 > {limit}; echo 1 > {P}/shut")
    late = c.spawn("map testdisk0 access_mode=migration")
    s.sh(at("td_open"))
    full = c.sh("map ram0")
    s.sh(f"echo {FLUSH_MS} > {P}/flush_ms; echo 0 > {P}/shut; {at('blkdev_issue_flush')}")
    dev = c.sh("wait_for 30 eval 'map testdisk0 access_mode=migration sessname=s2 "
               "unflushed=replay hold=-1 2> /dev/null'")
    put(dev, "I")
    down("s2")
    s.sh(f"wait_for 30 test ! -e {CTL}/testdisk0; "
         f"echo 0 > {P}/flush_ms; echo 1024 > {limit}; echo 1 > {P}/power_cut")
    t.ok(late.wait(30) != 0, f"the session has all it may have: {late.out()}")
    up("s2")
    is_(dev, "open", "it is back")
    c.sh(f"dd if=/dev/zero of={dev} bs=512 count=0 conv=fsync,notrunc status=none")
    t.eq(got(), "I", "what the flush covers")
    c.sh(f"unmap {dev}; unmap {full}")
