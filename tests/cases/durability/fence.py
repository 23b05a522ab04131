# SPDX-License-Identifier: GPL-2.0-only
"""The disk is a virtio disk with a cache that it announces.  What it really loses is another
case's matter: here the client must fence, or not, by what it knows: what was acknowledged and
flushed, and that the server's machine has lost its power."""
description = ("the server loses its power: a client with writes that no flush had covered is "
               "fenced and told, any other goes on")
disk = 64
crowd = True
deadline = 420

SERVE = ("modprobe virtio_blk; wait_for 5 test -b /dev/vda; "
         "modprobe brd rd_nr=1 rd_size=16384; serve")
REASON = ("^the server may have lost its disk's write cache, and "
          "the last {} MiB written were not flushed: remap_device accepts the loss")
PARAMS = "/sys/module/ibnbd_testdisk/parameters"
FLUSH = "dd if=/dev/zero of={} bs=512 count=0 conv=fsync,notrunc status=none"


def check_account_of_failures(t, attr, put):
    """A flush that fails covers nothing, nor does one what was written beside it."""
    c, s = t.client, t.server
    s.sh("modprobe ibnbd-testdisk")
    dev = c.sh("map testdisk0 unflushed=fence")
    put(dev, 1)
    s.sh(f"echo flush > {PARAMS}/fail; echo 1 > {PARAMS}/fail_times")
    put(dev, 1, 1, "oflag=direct conv=fsync 2>&1 && exit 1 || true")
    t.wait(lambda: attr(dev, "state_detail") == "fenced", 20, "a flush has failed: fenced")
    t.eq((attr(dev, "unflushed_bytes"), attr(dev, "losses")), (str(2 << 20), "0"), "the account")
    c.sh(f"echo 1 > /sys/block/{dev[5:]}/ibnbd/remap_device; unmap {dev}")
    dev = c.sh("map testdisk0")
    put(dev, 1)
    s.sh(f"echo flush > {PARAMS}/fail; echo 1 > {PARAMS}/fail_times")
    put(dev, 1, 1, "oflag=direct conv=fsync")
    t.eq((attr(dev, "unflushed_bytes"), attr(dev, "replays").split()[0]), ("0", "1"),
         "what is kept is sent again, and the flush behind it")
    s.sh(f"echo 3000 > {PARAMS}/flush_ms")
    flush = c.spawn(FLUSH.format(dev))
    c.sh("sleep 1")
    put(dev, 1)
    t.eq(flush.wait(30), 0, f"the flush: {flush.out()}")
    t.eq(attr(dev, "unflushed_bytes"), str(1 << 20),
         "what was written beside a flush is not covered by it")
    s.sh(f"echo 0 > {PARAMS}/flush_ms")
    c.sh(f"unmap {dev}")


def check_given_up(t, attr, put):
    """A flush that the client gives up has covered nothing, and has not failed either."""
    c, s = t.client, t.server
    dev = c.sh("map testdisk0 unflushed=fence hold=1")
    put(dev, 1)
    s.sh(f"echo 5000 > {PARAMS}/flush_ms")
    flush = c.spawn(FLUSH.format(dev))
    c.sh("sleep 1")
    c.link(0, False)
    t.ok(flush.wait(60) != 0, "the flush is given up")
    c.link(0, True)
    s.sh(f"echo 0 > {PARAMS}/flush_ms")
    t.wait(lambda: attr(dev, "state_detail") in ("open", "fenced"), 40, "the link is back")
    t.eq((attr(dev, "state_detail"), attr(dev, "unflushed_bytes")), ("open", str(1 << 20)),
         "it goes on, with what is not flushed")
    put(dev, 1, 1, "oflag=direct conv=fsync")
    t.eq(attr(dev, "unflushed_bytes"), "0", "a flush")
    c.sh(f"unmap {dev}")


def run(t):
    c, s = t.client, t.server
    attr = lambda dev, name: c.sh(f"dev_attr {dev} {name}")
    put = lambda dev, mib, at=0, how="oflag=direct": c.sh(
        f"dd if=/dev/zero of={dev} bs=1M count={mib} seek={at} {how} status=none")
    unflushed = lambda dev: int(attr(dev, "unflushed_bytes"))

    def power_cut(meanwhile=lambda: None):
        s.kill()
        meanwhile()
        s.boot()
        s.sh(SERVE)

    def comes_back(dev, what):
        t.wait(lambda: attr(dev, "state") == "open", 40, f"{what}: goes on")

    def is_fenced(dev, what, mib):
        t.wait(lambda: attr(dev, "state_detail") == "fenced", 40, f"{what}: fenced")
        t.match(attr(dev, "reason"), REASON.format(mib), f"{what}: the reason")

    s.sh(SERVE)
    t.eq(s.sh("cat /sys/block/vda/queue/write_cache"), "write back", "the disk's cache")
    dev = c.sh("map vda unflushed=fence")
    other = c.sh("map ram0")
    t.ok("durability" in attr(dev, "features"), f"the server tells: {attr(dev, 'features')}")
    t.eq((unflushed(dev), attr(dev, "losses")), (0, "0"), "to begin with")

    t.log("--- the account")
    put(dev, 3)
    t.eq(unflushed(dev), 3 << 20, "written, not flushed")
    put(dev, 1, 3, "oflag=direct conv=fsync")
    t.eq(unflushed(dev), 0, "flushed")
    c.sh(f"fio --name=f --filename={dev} --rw=write --bs=64k --size=1m --offset=4m "
         "--ioengine=psync --direct=1 --sync=1 > /dev/null")
    t.eq(unflushed(dev), 0, "written through")
    put(other, 1)
    t.eq(unflushed(other), 0, "a RAM disk has no cache")

    t.log("--- all is flushed: goes on, with what came meanwhile")
    jobs = []
    power_cut(lambda: jobs.append(c.spawn(f"dd if=/dev/zero of={dev} bs=1M count=1 seek=9 "
                                          "oflag=direct conv=fsync status=none")))
    comes_back(dev, "all flushed")
    t.eq(jobs[0].wait(60), 0, f"what was held: {jobs[0].out()}")
    t.eq((unflushed(dev), attr(dev, "losses")), (0, "0"), "nothing is lost")

    t.log("--- one of two disks has unflushed writes; a flush is under way when the power goes")
    put(dev, 2)
    c.sh("net_loss 0 100")
    flush = c.spawn(FLUSH.format(dev))
    c.sh("sleep 1")
    power_cut(lambda: c.sh("net_loss 0 0"))
    is_fenced(dev, "2 MiB unflushed", 2)
    comes_back(other, "the RAM disk")
    t.ok(flush.wait(60) != 0, "the flush that was under way has failed")
    put(dev, 1, how="oflag=direct 2>&1 && exit 1 || true")
    t.eq(attr(dev, "state"), "closed", "fenced is closed, for old tools")
    c.sh(f"echo 1 > /sys/block/{dev[5:]}/ibnbd/remap_device")
    t.eq((attr(dev, "state_detail"), attr(dev, "losses"), unflushed(dev), attr(dev, "reason")),
         ("open", "1", 0, ""), "the loss is taken")
    put(dev, 1, 0, "oflag=direct conv=fsync")
    t.match(c.kernel_news(), "remapped: 2048 KiB that no flush had covered count as lost", "log")
    c.sh(f"unmap {dev}")

    t.log("--- unflushed=ignore goes on as if nothing had been")
    dev = c.sh("map vda unflushed=ignore")
    put(dev, 2)
    t.eq(unflushed(dev), 0, "no account")
    power_cut()
    comes_back(dev, "ignore")
    put(dev, 1, 0, "oflag=direct conv=fsync")
    c.sh(f"unmap {dev}")

    t.log("--- a link that is lost is no power cut")
    dev = c.sh("map vda unflushed=fence")
    put(dev, 2)
    path = "$(echo /sys/class/ibtrs-client/s1/paths/*)"
    c.sh(f"echo 1 > {path}/disconnect; echo 1 > {path}/reconnect")
    comes_back(dev, "the link")
    t.eq(unflushed(dev), 2 << 20, "still unflushed")
    put(dev, 1, 0, "oflag=direct conv=fsync")
    t.eq(unflushed(dev), 0, "flushed")
    c.sh(f"unmap {dev}; unmap {other}")

    t.log("--- flushes that fail, or take their time")
    check_account_of_failures(t, attr, put)
    check_given_up(t, attr, put)
