# SPDX-License-Identifier: GPL-2.0-only
"""Seen by a client without a block layer, which offers DURABILITY (features 6) and says what it
likes; beside it a client that offers nothing, as those of the kernel do."""
description = ("when a disk's cache is lost, nothing succeeds for a client that knows of epochs "
               "until it has heard of the new one")
crowd = True
deadline = 180
import errno
import messages
programs = [messages.PROGRAM]

P = "/sys/module/ibnbd_testdisk/parameters"
CTL = "/sys/class/ibnbd-server/ctl/devices"
WRITE, FLUSH = "dir=w rw=0x1 bytes=4096 len=4096", "dir=r rw=0x702 bytes=0 len=0"
READ = "dir=r rw=0x100 bytes=4096 len=4096"
FUA = "dir=w rw=0x301 bytes=4096 len=4096"
GONE = "Transport endpoint is not connected"


def run(t):
    c, s = t.client, t.server

    def say(words, answer=""):
        if answer:
            peer.refused(words, answer)
        else:
            peer.accepted(words)

    def again():
        t.wait(lambda: peer.open() == 0, 10, "the disk is opened again")

    t.allow("I/O error, dev testdisk")
    s.sh("modprobe ibnbd-testdisk nr_disks=2; truncate -s 1M /tmp/f; "
         "ln -sfn /tmp/f /dev/file; serve")
    peer = messages.Speaker(c, "testdisk0", messages.DURABILITY)
    epoch = peer.epoch
    t.eq(peer.volatile, 1, "a disk with a write cache")
    t.eq(s.sh(f"cat {CTL}/testdisk0/cache_epoch"), f"{epoch:016x}", "the same in sysfs")
    for words in (WRITE, FUA, FLUSH):
        say(words)
    again()
    t.eq(peer.epoch, epoch, "opened again")

    t.log("--- somebody says that it was lost")
    s.sh(f"echo 1 > {CTL}/testdisk0/cache_lost")
    for words in (READ, WRITE, FUA, FLUSH):
        say(words, GONE)
    t.eq(peer.epoch, epoch, "the client has not asked yet")
    again()
    t.ok(peer.epoch != epoch, "it has asked, and heard of another one")
    epoch = peer.epoch
    for words in (WRITE, FLUSH):
        say(words)

    t.log("--- a flush, or a write through the cache, fails once")
    for kind, words in ("flush", FLUSH), ("write", FUA):
        s.sh(f"echo {kind} > {P}/fail; echo 1 > {P}/fail_times")
        say(words, "Input/output error")
        s.sh("wait_for 10 eval '[ \"$(cat " + CTL + f"/testdisk0/cache_epoch)\" != {epoch:016x} ]'")
        for words in (WRITE, FUA, FLUSH):
            say(words, GONE)
        again()
        t.ok(peer.epoch != epoch, "the client has asked, and heard of another epoch")
        epoch = peer.epoch
        for words in (WRITE, FUA, FLUSH):
            say(words)

    t.log("--- a flush fails that another client has sent to another partition of the disk")
    peer.end()
    s.sh("printf 'start=2048,size=8192\\n,\\n' | sfdisk -q /dev/testdisk1; "
         "wait_for 5 test -b /dev/testdisk1p2")
    peer = messages.Speaker(c, "testdisk1p2", messages.DURABILITY)
    part = peer.epoch
    dev = c.sh("map testdisk1p1 unflushed=ignore")
    flush = f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct conv=fsync status=none"
    c.sh(flush)
    say(FLUSH)
    s.sh(f"echo flush > {P}/fail; echo 1 > {P}/fail_times")
    c.fails(flush, "Input/output error")
    say(FLUSH, GONE)
    again()
    t.ok(peer.epoch != part, "the client has asked, and heard of another epoch")
    say(FLUSH)
    peer.end()
    c.sh(f"unmap {dev}")
    peer = messages.Speaker(c, "testdisk0", messages.DURABILITY)
    t.eq(peer.epoch, epoch, "another disk's is as it was")

    t.log("--- while a flush, or a read, is under way")
    for slow, words, why in (("flush_ms", FLUSH, "it has covered nothing"),
                             ("read_ms", READ, "it may have found what was there before")):
        say(WRITE)
        s.sh(f"echo 5000 > {P}/{slow}")
        peer.send(peer.message(words))
        s.sh(f"sleep 1.5; echo 1 > {CTL}/testdisk0/cache_lost; echo 0 > {P}/{slow}")
        t.eq(peer.answer()[0], errno.ENOTCONN, f"{why}, and its client is to ask")
        again()
        t.ok(peer.epoch != epoch, "another epoch")
        epoch = peer.epoch
    peer.end()

    t.log("--- a write cache that is switched on")
    s.sh("wait_for 10 eval '[ -z \"$(ls " + CTL + ")\" ]'; "
         "echo write through > /sys/block/testdisk0/queue/write_cache")
    peer = messages.Speaker(c, "testdisk0", messages.DURABILITY)
    epoch = peer.epoch
    t.eq(peer.volatile, 0, "switched off")
    say(FLUSH)
    s.sh("echo write back > /sys/block/testdisk0/queue/write_cache; wait_for 10 eval "
         f"'[ \"$(cat {CTL}/testdisk0/cache_epoch)\" != {epoch:016x} ]'")
    say(FLUSH, GONE)
    again()
    t.ok(peer.epoch != epoch and peer.volatile == 1, "the client has heard")
    peer.end()

    t.log("--- one that is switched off, and on again, while the disk is open")
    s.sh("wait_for 10 eval '[ -z \"$(ls " + CTL + ")\" ]'")
    reader = c.sh("map testdisk0 access_mode=ro sessname=s3")
    s.sh("echo write through > /sys/block/testdisk0/queue/write_cache")
    dev = c.sh("map testdisk0 unflushed=fence")
    cache = lambda: c.sh(f"cat /sys/block/{dev[5:]}/queue/write_cache")
    write = f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none"
    t.eq(cache(), "write through", "switched off")
    c.sh(write)
    s.sh("echo write back > /sys/block/testdisk0/queue/write_cache")
    t.wait(lambda: cache() == "write back", 10, "the client has heard, and sends flushes")
    t.eq(c.sh(f"dev_attr {dev} state"), "open", "nothing is lost")
    c.sh(f"{write} conv=fsync; unmap {dev}; unmap {reader}")

    t.log("--- two disks with one identity")
    for disk in "testdisk0", "testdisk1":
        s.sh("printf 'label: gpt\nstart=2048, size=8192, "
             "uuid=6e36b1a1-5d5b-4b6c-9b0e-1d1f3a0c0f01\n' | "
             f"sfdisk -q --wipe always /dev/{disk}; wait_for 5 test -b /dev/{disk}p1")
    c.sh("unmap $(map testdisk1p1)")
    one, two = c.sh("map testdisk0p1 access_mode=ro"), c.sh("map testdisk1p1 sessname=s2")
    first, second = (s.sh(f"cat {CTL}/{disk}/cache_epoch") for disk in ("testdisk0p1",
                                                                        "testdisk1p1"))
    t.ok(first != second, f"their epochs: {first}")
    c.sh(f"unmap {one}; unmap {two}")

    t.log("--- a file always has a cache; who offers nothing hears nothing, and is left alone")
    peer = messages.Speaker(c, "file", messages.DURABILITY)
    t.eq(peer.volatile, 1, "a file")
    peer.end()
    for features in (0, 2):
        peer = messages.Speaker(c, "testdisk1", features)
        t.eq((peer.epoch, peer.volatile), (0, 0), f"features {features}")
        s.sh(f"echo 1 > {CTL}/testdisk1/cache_lost")
        s.sh(f"echo flush > {P}/fail; echo 1 > {P}/fail_times")
        say(FLUSH, "Input/output error")
        for words in (WRITE, FUA, FLUSH):
            say(words)
        peer.end()
    told = c.sh(f"echo '{messages.hello(4)}' | ibtrs-peer say ip:10.0.0.2").split()
    t.eq((told[0], told[1][32:48]), ("0", "0" * 16), "no epochs without identities")
    s.sh("rm /dev/file")
