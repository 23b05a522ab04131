# SPDX-License-Identifier: GPL-2.0-only
"""What two implementations have to say to each other: the talk that the cases 030 to 039 let every pair hold.

A pair is a client family and a server family, "ibnbd" (ours) or "rnbd" (the kernel's); the disks behind the server
are ibnbd-testdisk's, which count what reaches them.  Everything is done through the block device and the sysfs
files that both families have, so that one text tests all pairs.
"""
import re
import case, vm

COUNTS = "/sys/module/ibnbd_testdisk/parameters/counts"
OURS, KERNEL = "ibnbd", "rnbd"
NEEDS = ["rnbd-client", "rnbd-server", "ibnbd-testdisk"]

# 512 B to 128 KiB at any sector; few at a time: soft-RoCE may lose its way after a retransmission of a memory registration
MIXED = "--bsrange=512-128k --blockalign=512 --iodepth=4 --output=/dev/null"


# soft-RoCE repeats a memory registration when it repeats the packets after it, refuses its own repetition, and leaves
# a queue pair that neither works nor says so
LOST_MR = r"rxe_reg_fast_mr: .* not free"


def with_kernel_client(t, talk):
    """Hold a talk that has the kernel's client in it, which waits for ever for such a queue pair.  (Ours must not.)"""
    try:
        talk()
    except (case.Failed, vm.VMError):
        if not any(re.search(LOST_MR, g.kernel_news()) for g in t.guests):
            raise
        for g in t.guests:
            g.kill()
        t.skip("soft-RoCE lost a memory registration under the kernel's client")


def counts(t):
    return {k: int(v) for k, v in (w.split("=") for w in t.server.sh(f"cat {COUNTS}").split())}


class Pair:
    def __init__(self, t, client, server):
        self.t, self.c, self.s = t, t.client, t.server
        self.client, self.server = f"FAMILY={client};", f"FAMILY={server};"
        self.ours, self.peer = (client == OURS), (server == KERNEL)
        self.modules = "$PEER_MODULES" if server == KERNEL else "$OUR_MODULES"

    def serve(self, words=""):
        self.s.sh(f"{self.server} serve {words}")

    def stop(self):
        self.s.sh(f"unload {self.modules}")

    def map(self, words):
        return self.c.sh(f"{self.client} map {words}")

    def unmap(self, *devs):
        self.c.sh(f"{self.client} " + "; ".join(f"unmap {d}" for d in devs))

    def no_map(self, words, pattern):
        self.c.fails(f"{self.client} map {words}", pattern)

    def attr(self, dev, name):
        return self.c.sh(f"cat /sys/block/{dev[5:]}/{name}")

    def reset(self):
        self.s.sh(f"echo 0 > {COUNTS}")

    def verify(self, dev, size="2m", more=""):
        self.c.sh(f"fio_verify {dev} {size} {MIXED} {more}", timeout=45)

    def check_io(self, dev):
        """What is written is read back, here and at the disk itself, and nothing else changes."""
        c, s, t = self.c, self.s, self.t
        t.eq(c.sh(f"blockdev --getsize64 {dev}"), str(64 << 20), "size")
        self.verify(dev)
        c.sh(f"dd if=/dev/urandom of=/tmp/r bs=512 count=1031 status=none; "
             f"dd if=/tmp/r of={dev} bs=128k seek=64 oflag=direct status=none")
        want = c.sh("md5sum < /tmp/r")
        t.eq(s.sh("dd if=/dev/testdisk0 bs=512 skip=16384 count=1031 status=none | md5sum"), want, "what arrived")
        t.eq(c.sh(f"dd if={dev} bs=512 skip=16384 count=1031 status=none | md5sum"), want, "what returns")

    def check_flush(self, dev):
        t = self.t
        t.eq(self.attr(dev, "queue/write_cache"), "write back", "the disk's cache is announced")
        self.reset()
        self.c.sh(f"fio --name=f --filename={dev} --rw=write --bs=4k --size=128k --fsync=4 --end_fsync=1 --ioengine=psync "
                  "--output=/dev/null")
        got = counts(t)
        t.ok(got["flush"] >= 8, f"8 fsyncs are at least 8 flushes at the disk: {got}")
        t.eq(got["errors"], 0, "errors at the disk")
        self.reset()
        self.c.sh(f"fio --name=d --filename={dev} --rw=write --bs=4k --size=16k --direct=1 --sync=1 --ioengine=psync "
                  "--output=/dev/null")
        got = counts(t)
        t.ok(got["fua"] + got["flush"] >= 4, f"each of 4 O_DSYNC writes is FUA or flushed: {got}")

    def check_discard(self, dev):
        c, t = self.c, self.t
        c.sh(f"(yes one || true) | dd of={dev} bs=128k count=4 iflag=fullblock oflag=direct status=none")
        self.reset()
        c.sh(f"blkdiscard -o 128k -l 128k {dev}")
        got = counts(t)
        t.ok(got["discard"] >= 1 and got["write"] == 0, f"a discard arrived: {got}")
        self.holds("one", "", "one", "one")

    def check_zeroes(self, dev, ordered):
        """`ordered`: as write-zeroes requests; else the client has none of those, and its kernel writes zeroes."""
        c, t = self.c, self.t
        most = int(self.attr(dev, "queue/write_zeroes_max_bytes"))
        t.eq(most > 0, ordered, f"write zeroes on offer (write_zeroes_max_bytes {most})")
        self.reset()
        c.sh(f"blkdiscard -z -o 256k -l 128k {dev}")
        got = counts(t)
        t.eq((got["zeroes"] > 0, got["write"] > 0), (ordered, not ordered), f"orders, data: {got}")
        self.holds("one", "", "", "one")

    def holds(self, *lines):
        """The disk behind the server begins with pieces of 128 KiB that have nothing but this line, or zeroes for ''."""
        got = self.s.sh(f"for i in $(seq 0 {len(lines) - 1}); do echo \"$(dd if=/dev/testdisk0 bs=128k skip=$i count=1 "
                        "iflag=direct status=none | tr -d '\\0' | uniq)\"; done")
        self.t.eq(got, "\n".join(lines), "pieces of the disk")

    def check_two(self, one):
        """Two disks share a session and do not mix."""
        c, t = self.c, self.t
        two = self.map("testdisk1")
        t.ok(two != one, "another disk")
        t.eq(self.attr(two, self.client[7:-1] + "/session"), "s1", "its session")
        c.sh(f"fio_verify {one} 512k {MIXED} & a=$!; fio_verify {two} 512k {MIXED} --offset=1m & wait $a; wait $!",
             timeout=45)
        c.sh(f"echo one | dd of={one} bs=512 conv=sync oflag=direct status=none; "
             f"echo two | dd of={two} bs=512 conv=sync oflag=direct status=none")
        t.eq(self.s.sh("for i in 0 1; do head -c 3 /dev/testdisk$i; echo; done"), "one\ntwo", "disks")
        self.unmap(two)
        c.sh(f"dd if={one} bs=512 count=1 iflag=direct status=none | grep -q one")

    def check_names(self):
        """With testdisk0 mapped for writing."""
        self.no_map("nosuchdisk", "No such file")
        self.no_map("../dev/testdisk0", "Invalid argument")
        self.no_map("testdisk0", "File exists")
        self.no_map("testdisk0 sessname=s2", "not permitted")

    def check_read_only(self):
        c, t = self.c, self.t
        self.s.sh("echo before | dd of=/dev/testdisk0 bs=512 conv=sync,notrunc oflag=direct status=none")
        dev = self.map("testdisk0 access_mode=ro")
        t.eq(c.sh(f"blockdev --getro {dev}"), "1", "read-only")
        c.sh(f"head -c 6 {dev} | grep -q before")
        c.fails(f"echo after | dd of={dev} bs=512 conv=sync oflag=direct status=none", "not permitted|Read-only")
        # an administrator of the client can make the node writable; the server is to refuse
        c.rc(f"blockdev --setrw {dev}")
        c.fails(f"echo after | dd of={dev} bs=512 conv=sync oflag=direct status=none", "error|not permitted|Read-only")
        self.s.sh("dd if=/dev/testdisk0 bs=512 count=1 iflag=direct status=none | grep -q before")
        self.unmap(dev)

    def talk(self, always_invalidate, zeroes, whole=True):
        """All of it, on machines without modules of these families; `zeroes` as in check_zeroes.

        Not `whole`: only what has to do with the way data travels.
        """
        self.t.log(f"--- {self.client} {self.server} always_invalidate={always_invalidate}")
        self.serve(f"always_invalidate={always_invalidate}")
        self.s.sh("modprobe ibnbd-testdisk nr_disks=2")
        dev = self.map("testdisk0")
        self.check_io(dev)
        self.check_flush(dev)
        self.check_discard(dev)
        if whole:
            self.check_zeroes(dev, zeroes)
            self.check_two(dev)
            self.check_names()
        self.unmap(dev)
        if whole:
            self.check_read_only()
        self.stop()
        self.s.sh("unload ibnbd_testdisk")
