# SPDX-License-Identifier: GPL-2.0-only
"""The disk is a virtio disk, a file of the host: while its machine is off, what it had only cached
is taken out of it again."""
description = ("unflushed=replay: no acknowledged write is lost by a power cut of the server, "
               "whatever its disk forgets")
crowd = True
disk = 64
deadline = 480
from concurrent.futures import ThreadPoolExecutor

SERVE = "modprobe virtio_blk; wait_for 5 test -b /dev/vda; serve"
DD = "head -c {} /dev/zero | tr '\\0' {} | dd of={} bs=64k seek={} iflag=fullblock {} status=none"


def fill(dev, mib, at, char, how="oflag=direct"):
    return DD.format(mib << 20, char, dev, at * 16, how)


def forget(s, *places):
    """The machine is off: these MiB had never left the disk's cache."""
    with open(s.vm.disk, "r+b") as f:
        for at in places:
            f.seek(at << 20)
            f.write(bytes(1 << 20))


def check_cut_off(t, put, got, attr, back):
    """The link, and the server with it, goes while it is sent again: from the start."""
    c, s = t.client, t.server
    dev = c.sh("map vda unflushed=replay retain_mb=32")
    put(dev, 12, 8, "g")
    s.kill()
    forget(s, *range(8, 20))
    s.boot()
    with ThreadPoolExecutor(1) as pool:
        served = pool.submit(s.sh, SERVE)
        t.wait(lambda: attr(dev, "state_detail") == "replaying", 60, "it is sent again")
        served.result()
    t.wait(lambda: int(attr(dev, "replays").split()[1]) > 0, 10, "some of it is there")
    s.kill()
    t.eq(attr(dev, "replays").split()[0], "0", "replays that came to their end")
    forget(s, *range(8, 20))
    s.boot()
    s.sh(SERVE)
    back(dev, "cut off")
    t.eq([got(i) for i in range(8, 20)], ["g"] * 12, "on the disk")
    times, size = map(int, attr(dev, "replays").split())
    t.eq(times, 1, "replays that came to their end")
    t.ok(size > 12 << 20, f"it started over: {size} bytes")
    c.sh(f"unmap {dev}")


def check_other_writer(t, put, got, attr):
    c, s = t.client, t.server
    dev = c.sh("map vda unflushed=replay")
    put(dev, 1, 0, "k")
    s.kill()        # first: a server whose client goes flushes what that wrote, and remembers it
    c.sh("echo 1 > $(echo /sys/class/ibtrs-client/s1/paths/*)/disconnect")
    s.boot()
    s.sh(SERVE)
    other = c.sh("map vda sessname=s2 unflushed=ignore")
    put(other, 1, 0, "l", "oflag=direct conv=fsync")
    c.sh(f"unmap {other}; echo 1 > $(echo /sys/class/ibtrs-client/s1/paths/*)/reconnect || true")
    t.wait(lambda: attr(dev, "state_detail") == "fenced", 40, "another has written: fenced")
    t.match(attr(dev, "reason"), "another client may have written", "the reason")
    t.eq(got(0), "l", "nothing is put over what the other one wrote")
    c.sh(f"unmap {dev} force")


def run(t):
    c, s = t.client, t.server
    attr = lambda dev, name: c.sh(f"dev_attr {dev} {name}")
    put = lambda *how: c.sh(fill(*how))
    got = lambda at: s.sh(f"dd if=/dev/vda bs=1M skip={at} count=1 iflag=direct status=none | "
                          "tr '\\0' 0 | tr -s a-z0")

    def through(dev, size, at, char):
        c.sh(f"fio --name=f --filename={dev} --rw=write --bs=64k --size={size} --offset={at} "
             "--ioengine=psync --direct=1 --sync=1 "
             f"--buffer_pattern=0x{ord(char):02x} > /dev/null")

    def power_cut(places=(), meanwhile=lambda: None):
        s.kill()
        forget(s, *places)
        meanwhile()
        s.boot()
        s.sh(SERVE)

    def back(dev, what):
        t.wait(lambda: attr(dev, "state") == "open", 60, f"{what}: goes on")

    s.sh(SERVE)
    dev = c.sh("map vda unflushed=replay retain_mb=16")
    t.eq([attr(dev, name) for name in ("unflushed", "kept", "replays")],
         ["replay", "whole", "0 0"], "to begin with")

    t.log("--- what was flushed, written through, and neither of both")
    put(dev, 1, 0, "a", "oflag=direct conv=fsync")
    through(dev, "1m", "2m", "d")
    put(dev, 1, 1, "b")
    put(dev, 1, 1, "c")         # over the other one: the order counts
    put(dev, 1, 3, "e")
    put(dev, 1, 4, "x")
    c.sh(f"blkdiscard -z -o {4 << 20} -l {1 << 20} {dev}")
    held = []
    power_cut((1, 3, 4), lambda: held.append(
        c.spawn(fill(dev, 1, 5, "f", "oflag=direct conv=fsync"))))
    back(dev, "replay")
    t.eq(held[0].wait(60), 0, f"what was held: {held[0].out()}")
    t.eq([got(i) for i in range(6)], ["a", "c", "d", "e", "0", "f"], "on the disk")
    times, size = map(int, attr(dev, "replays").split())
    t.eq([attr(dev, name) for name in ("losses", "kept", "unflushed_bytes")], ["0", "whole", "0"],
         "it is told")
    t.ok(times == 1 and 4 << 20 <= size <= 8 << 20, f"{size} bytes were sent again, {times} time")

    t.log("--- nothing older is put over what was written through")
    put(dev, 1, 6, "o")
    through(dev, "64k", "6m", "n")
    power_cut()
    back(dev, "written through")
    t.eq(got(6), "no", "the new one, and the old one behind it")

    t.log("--- more than the pool: it flushes by itself at half of it")
    put(dev, 32, 16, "h")
    t.wait(lambda: attr(dev, "kept") == "whole" and int(attr(dev, "unflushed_bytes")) < 16 << 20,
           20, "flushes of its own")
    power_cut()
    back(dev, "more than the pool")
    t.eq([got(i) for i in (16, 47)], ["h", "h"], "on the disk")
    c.sh(f"unmap {dev}")

    t.log("--- the link goes while it is sent again")
    check_cut_off(t, put, got, attr, back)
    t.log("--- somebody else has written meanwhile")
    check_other_writer(t, put, got, attr)
