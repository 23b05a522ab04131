# SPDX-License-Identifier: GPL-2.0-only
"""Seen by a client without a block layer, which offers DURABILITY (features 6) and says what it
likes; beside it a client that offers nothing, as those of the kernel do."""
description = ("when a disk's cache is lost, nothing succeeds for a client that knows of epochs "
               "until it has heard of the new one")
crowd = True
deadline = 180

SAY = "/sys/module/ibnbd_speak/parameters/say"
EPOCH = "/sys/module/ibnbd_speak/parameters/epoch"
P = "/sys/module/ibnbd_testdisk/parameters"
CTL = "/sys/class/ibnbd-server/ctl/devices"
WRITE, FLUSH = "dir=w rw=0x1 bytes=4096 len=4096", "dir=r rw=0x702 bytes=0 len=0"
READ = "dir=r rw=0x100 bytes=4096 len=4096"
FUA = "dir=w rw=0x301 bytes=4096 len=4096"
GONE = "Transport endpoint is not connected"


def run(t):
    c, s = t.client, t.server

    def said():
        return c.sh(f"cat {EPOCH}").split()

    def speak(**words):
        c.sh("modprobe ibnbd-speak " + " ".join(f"{k}={v}" for k, v in words.items()))

    def say(words, answer=""):
        if answer:
            c.fails(f"echo '{words}' > {SAY}", answer)
        else:
            c.sh(f"echo '{words}' > {SAY}")

    def again():
        c.sh(f"wait_for 10 eval 'echo 1 > {EPOCH}' 2> /dev/null")

    t.allow("I/O error, dev testdisk")
    s.sh("modprobe ibnbd-testdisk nr_disks=2; truncate -s 1M /tmp/f; "
         "ln -sfn /tmp/f /dev/file; serve")
    speak(to="ip:10.0.0.2", disk="testdisk0", features=6)
    epoch, volatile = said()
    t.eq(volatile, "1", "a disk with a write cache")
    t.eq(s.sh(f"cat {CTL}/testdisk0/cache_epoch"), epoch, "the same in sysfs")
    for words in (WRITE, FUA, FLUSH):
        say(words)
    again()
    t.eq(said()[0], epoch, "opened again")

    t.log("--- somebody says that it was lost")
    s.sh(f"echo 1 > {CTL}/testdisk0/cache_lost")
    for words in (READ, WRITE, FUA, FLUSH):
        say(words, GONE)
    t.eq(said()[0], epoch, "the client has not asked yet")
    again()
    t.ok(said()[0] != epoch, "it has asked, and heard of another one")
    epoch = said()[0]
    for words in (WRITE, FLUSH):
        say(words)

    t.log("--- a flush, or a write through the cache, fails once")
    for kind, words in ("flush", FLUSH), ("write", FUA):
        s.sh(f"echo {kind} > {P}/fail; echo 1 > {P}/fail_times")
        say(words, "Input/output error")
        s.sh("wait_for 10 eval '[ \"$(cat " + CTL + f"/testdisk0/cache_epoch)\" != {epoch} ]'")
        for words in (WRITE, FUA, FLUSH):
            say(words, GONE)
        again()
        t.ok(said()[0] != epoch, "the client has asked, and heard of another epoch")
        epoch = said()[0]
        for words in (WRITE, FUA, FLUSH):
            say(words)

    t.log("--- a flush fails that another client has sent to another partition of the disk")
    c.sh("modprobe -r ibnbd-speak")
    s.sh("printf 'start=2048,size=8192\\n,\\n' | sfdisk -q /dev/testdisk1; "
         "wait_for 5 test -b /dev/testdisk1p2")
    speak(to="ip:10.0.0.2", disk="testdisk1p2", features=6)
    part = said()[0]
    dev = c.sh("map testdisk1p1 unflushed=ignore")
    flush = f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct conv=fsync status=none"
    c.sh(flush)
    say(FLUSH)
    s.sh(f"echo flush > {P}/fail; echo 1 > {P}/fail_times")
    c.fails(flush, "Input/output error")
    say(FLUSH, GONE)
    again()
    t.ok(said()[0] != part, "the client has asked, and heard of another epoch")
    say(FLUSH)
    c.sh(f"modprobe -r ibnbd-speak; unmap {dev}")
    speak(to="ip:10.0.0.2", disk="testdisk0", features=6)
    t.eq(said()[0], epoch, "another disk's is as it was")

    t.log("--- while a flush, or a read, is under way")
    for slow, words, why in (("flush_ms", FLUSH, "it has covered nothing"),
                             ("read_ms", READ, "it may have found what was there before")):
        say(WRITE)
        s.sh(f"echo 5000 > {P}/{slow}")
        job = c.spawn(f"echo '{words}' > {SAY}")
        s.sh(f"sleep 1.5; echo 1 > {CTL}/testdisk0/cache_lost; echo 0 > {P}/{slow}")
        t.ok(job.wait(30) != 0, why)
        t.match(job.out(), GONE, "and its client is to ask")
        again()
        t.ok(said()[0] != epoch, "another epoch")
        epoch = said()[0]
    c.sh("modprobe -r ibnbd-speak")

    t.log("--- a write cache that is switched on")
    s.sh("wait_for 10 eval '[ -z \"$(ls " + CTL + ")\" ]'; "
         "echo write through > /sys/block/testdisk0/queue/write_cache")
    speak(to="ip:10.0.0.2", disk="testdisk0", features=6)
    epoch, volatile = said()
    t.eq(volatile, "0", "switched off")
    say(FLUSH)
    s.sh("echo write back > /sys/block/testdisk0/queue/write_cache; wait_for 10 eval "
         f"'[ \"$(cat {CTL}/testdisk0/cache_epoch)\" != {epoch} ]'")
    say(FLUSH, GONE)
    again()
    t.ok(said()[0] != epoch and said()[1] == "1", f"the client has heard: {said()}")
    c.sh("modprobe -r ibnbd-speak")

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
    speak(to="ip:10.0.0.2", disk="file", features=6)
    t.eq(said()[1], "1", "a file")
    c.sh("modprobe -r ibnbd-speak")
    for features in (0, 2):
        speak(to="ip:10.0.0.2", disk="testdisk1", features=features)
        t.eq(said(), ["0" * 16, "0"], f"features {features}")
        s.sh(f"echo 1 > {CTL}/testdisk1/cache_lost")
        s.sh(f"echo flush > {P}/fail; echo 1 > {P}/fail_times")
        say(FLUSH, "Input/output error")
        for words in (WRITE, FUA, FLUSH):
            say(words)
        c.sh("modprobe -r ibnbd-speak")
    c.fails("modprobe ibnbd-speak to=ip:10.0.0.2 disk=testdisk1 features=4", "rotocol error")
    s.sh("rm /dev/file")
