# SPDX-License-Identifier: GPL-2.0-only
"""Since Linux 6.11 whoever writes a limit in sysfs holds a lock that we need for the server's new
limits, and waits for the requests that we hold."""
description = ("a limit is written in sysfs while I/O is held, "
               "and the server comes back with other limits: all goes on, and the new ones count")
long = True
deadline = 120


def run(t):
    c, s = t.client, t.server
    s.sh("serve; modprobe ibnbd-testdisk nr_disks=2")
    dev = c.sh("map testdisk0")
    queue = f"/sys/block/{dev[5:]}/queue"
    t.eq(c.sh(f"cat {queue}/write_cache"), "write back", "the cache of the disk")
    c.link(0, False)
    t.wait(lambda: c.sh(f"dev_attr {dev} state") == "closed", 15, "I/O is held")
    write = c.spawn(f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none")
    c.sh("sleep 1")
    limit = c.spawn(f"echo 64 > {queue}/max_sectors_kb")
    c.sh("sleep 1")
    s.sh("echo 'write through' > /sys/block/testdisk0/queue/write_cache")
    c.link(0, True)
    t.eq(write.wait(15), 0, "the write: " + write.out())
    t.eq(limit.wait(15), 0, "who wrote the limit: " + limit.out())
    t.eq(c.sh(f"dev_attr {dev} state"), "open", "the device")
    t.wait(lambda: c.sh(f"cat {queue}/write_cache") == "write through", 10, "the disk's new limits")
    t.eq(c.sh(f"cat {queue}/max_sectors_kb"), "64", "the limit that was written")
    c.sh(f"dd if={dev} of=/dev/null bs=64k count=4 iflag=direct status=none")
    c.sh(f"unmap {dev}")
    check_cache_appears(t)
    check_abilities(t)


def check_cache_appears(t):
    """A disk without a cache comes back with one: who flushes what was held is not told
    that there is nothing to flush."""
    c, s = t.client, t.server
    counts = "/sys/module/ibnbd_testdisk/parameters/counts"
    flushes = lambda: int(s.sh(f"tr ' ' '\\n' < {counts} | sed -n 's/^flush=//p'"))
    dev = c.sh("map testdisk0")
    t.eq(c.sh(f"cat /sys/block/{dev[5:]}/queue/write_cache"), "write through",
         "a disk without a cache")
    s.sh(f"echo 0 > {counts}")
    fsync = f"dd if=/dev/zero of={dev} bs=4k count=1 conv=fsync status=none"
    c.sh(fsync)
    t.eq(flushes(), 0, "flushes of a disk without a cache")
    c.link(0, False)
    t.wait(lambda: c.sh(f"dev_attr {dev} state") == "closed", 15, "I/O is held")
    held = c.spawn(fsync)
    c.sh("sleep 1")
    s.sh("echo 'write back' > /sys/block/testdisk0/queue/write_cache")
    c.link(0, True)
    t.eq(held.wait(15), 0, "the write that was held: " + held.out())
    t.ok(flushes() > 0, "its fsync has reached the disk")
    t.eq(c.sh(f"cat /sys/block/{dev[5:]}/queue/write_cache"), "write back", "the disk's cache")
    before = flushes()
    c.sh(fsync)
    t.ok(flushes() > before, "the next one, too")
    c.sh(f"unmap {dev}")


def check_abilities(t):
    """What a disk can discard and zero is asked for anew, too: a smaller limit, none
    at all, and all of it again."""
    c, s = t.client, t.server
    dev = c.sh("map testdisk1 unflushed=ignore")
    limits = lambda: [int(c.sh(f"cat /sys/block/{dev[5:]}/queue/{name}_max_bytes"))
                      for name in ("discard", "write_zeroes")]
    before = limits()
    t.ok(min(before) > 1 << 20, f"the disk discards and zeroes: {before}")
    for change, want in (("echo 1048576 > /sys/block/testdisk1/queue/discard_max_bytes",
                          [1 << 20, before[1]]),
                         ("modprobe ibnbd-testdisk nr_disks=2 size_mb=64 discard=0 zeroes=0",
                          [0, 0]),
                         ("modprobe ibnbd-testdisk nr_disks=2 size_mb=64", before)):
        c.link(0, False)
        t.wait(lambda: c.sh(f"dev_attr {dev} state") == "closed", 15, "I/O is held")
        held = c.spawn(f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none")
        if change.startswith("modprobe"):
            s.sh("wait_for 20 test ! -e /sys/class/ibtrs-server/s1; unload ibnbd_testdisk",
                 timeout=60)
        s.sh(change)
        c.link(0, True)
        t.eq(held.wait(15), 0, "the write that was held: " + held.out())
        t.eq(limits(), want, f"bytes that can be discarded and zeroed at a time, after {change}")
    c.sh(f"blkdiscard -o 0 -l 1048576 {dev}; unmap {dev}")
