# SPDX-License-Identifier: GPL-2.0-only
"""A flush that fails is told once: the next one would succeed, although what the first should have
written is dropped.  So it is with a disk (`fail_loses`), and with pages of a file whose write-back
has failed.  Both are met here with each unflushed=, and with a flush that the client sent by
itself, of which nobody above has heard."""
description = ("a flush that fails on the server: what it dropped is sent again, or told, "
               "and no later flush covers it")
crowd = True
long = True
deadline = 240

P = "/sys/module/ibnbd_testdisk/parameters"
# A journal does not outlive the failure of its own flush, so it has nothing to flush.
FILES = ("modprobe ext4; mkdir -p /exp; ln -sfn /dev/testdisk0 /exp/disk; "
         "d=0; for f in direct buffered; do d=$((d + 1)); mkdir -p /mnt/$f; "
         "mkfs.ext4 -q -F /dev/testdisk$d; "
         "mount -o noatime,lazytime,nodelalloc,commit=300 /dev/testdisk$d /mnt/$f; "
         "dd if=/dev/zero of=/mnt/$f/f bs=1M count=4 conv=fsync status=none; "
         "ln -sfn /mnt/$f/f /exp/$f; done; "
         "echo 3000000 > /proc/sys/vm/dirty_writeback_centisecs; ")
# Opened while it has its data in the journal, it goes through the page cache until it is closed.
JOURNAL = "chattr {}j /mnt/buffered/f; sync"


def run(t):
    c, s = t.client, t.server
    attr = lambda dev, name: c.sh(f"dev_attr {dev} {name}")

    def put(dev, char, at=0, flag=""):
        return c.rc(f"head -c 65536 /dev/zero | tr '\\0' {char} | dd of={dev} bs=64k seek={at} "
                    f"iflag=fullblock oflag=direct {flag} status=none", timeout=90)[0]

    flush = lambda dev: c.rc(f"dd if=/dev/zero of={dev} bs=512 count=0 conv=fsync,notrunc "
                             "status=none", timeout=90)[0]

    def there(kind, blocks=1):
        """What is safe on the server."""
        path = "/dev/testdisk0" if kind == "disk" else f"/mnt/{kind}/f"
        return s.sh(f"echo 3 > /proc/sys/vm/drop_caches; dd if={path} bs=64k count={blocks} "
                    "status=none | tr '\\0' 0 | tr -s A-Z0")

    def fail(kind, times=1):
        what = "write" if kind == "buffered" else "flush"
        disk = ("disk", "direct", "buffered").index(kind)
        s.sh(f"echo {disk} > {P}/fail_disk; echo {what} > {P}/fail; echo {times} > {P}/fail_times")

    def repair():
        s.sh(f"echo none > {P}/fail; echo 0 > {P}/fail_times; echo -1 > {P}/fail_disk")

    def open_kind(kind, how):
        if kind == "buffered":
            s.sh(JOURNAL.format("+"))
        dev = c.sh(f"map {kind} unflushed={how} hold=-1 retain_mb=1")
        if kind == "buffered":
            s.sh(JOURNAL.format("-"))
        return dev

    def ends(dev, what):
        c.sh(f"unmap {dev}")
        t.wait(lambda: not s.sh("exports"), 30, f"{what}: closed")
        repair()

    t.allow("I/O error, dev testdisk|lost async page write|EXT4-fs warning .device testdisk2")
    s.sh("modprobe ibnbd-testdisk nr_disks=3 size_mb=32 fail_loses=1; " + FILES
         + "serve dev_search_path=/exp")
    # ibnbd-serverd writes past the page cache when the file allows it, however it was opened
    user = s.serves_user()
    for kind in ("disk", "direct") if user else ("disk", "buffered", "direct"):
        t.log(f"--- {kind}: sent again, and nobody hears of it")
        dev = open_kind(kind, "replay")
        t.eq(put(dev, "A"), 0, f"{kind}: written")
        fail(kind)
        t.eq(flush(dev), 0, f"{kind}: the flush")
        t.eq(there(kind), "A", f"{kind}: what it covers")
        t.eq(c.sh("; ".join(f"dev_attr {dev} {name}" for name in (
            "state", "losses", "kept", "unflushed_bytes", "replays"))).splitlines(),
             ["open", "0", "whole", "0", "1 65536"], f"{kind}: it was sent again, and goes on")

        ends(dev, kind)

        t.log(f"--- {kind}: the client's own flush fails, and nobody does anything")
        dev = open_kind(kind, "replay")
        fail(kind)
        t.eq(c.rc(f"head -c 589824 /dev/zero | tr '\\0' B | dd of={dev} bs=64k seek=1 "
                  "iflag=fullblock oflag=direct status=none", timeout=90)[0], 0, f"{kind}: written")
        t.wait(lambda: attr(dev, "replays").split()[0] == "1", 30, f"{kind}: it was sent again")
        t.eq(flush(dev), 0, f"{kind}: the flush")
        t.eq(there(kind, 10), "AB", f"{kind}: what it covers")

        ends(dev, kind)

        t.log(f"--- {kind}: it fails again")
        dev = open_kind(kind, "replay")
        t.eq(put(dev, "C"), 0, f"{kind}: written")
        fail(kind, 0)
        t.ok(flush(dev) != 0, f"{kind}: the flush has failed")
        t.wait(lambda: attr(dev, "state_detail") == "fenced", 20, f"{kind}: fenced")
        t.match(attr(dev, "reason"), r"cannot be repeated \(-5\): remap_device accepts",
                f"{kind}: the reason")
        repair()
        c.sh(f"echo 1 > /sys/block/{dev[5:]}/ibnbd/remap_device")
        t.eq((put(dev, "D"), flush(dev), there(kind)), (0, 0, "D"), f"{kind}: the loss is taken")
        ends(dev, kind)

        t.log(f"--- {kind}: told")
        dev = open_kind(kind, "fence")
        put(dev, "E")
        fail(kind)
        t.ok(flush(dev) != 0, f"{kind}: the flush has failed")
        t.wait(lambda: attr(dev, "state_detail") == "fenced", 20, f"{kind}: fenced")
        t.match(attr(dev, "reason"), "^a flush failed on the server, which may have dropped "
                "the unwritten data, and the last 1 MiB written were not flushed",
                f"{kind}: the reason")
        t.ok(flush(dev) != 0, f"{kind}: no later one succeeds")
        ends(dev, kind)
        dev = open_kind(kind, "ignore")
        put(dev, "F")
        fail(kind)
        t.ok(flush(dev) != 0, f"{kind}: ignore: the flush has failed")
        t.eq((put(dev, "G"), flush(dev), there(kind)), (0, 0, "G"), f"{kind}: ignore: goes on")
        ends(dev, kind)
