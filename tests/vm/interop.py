# SPDX-License-Identifier: GPL-2.0-only
"""What two implementations have to say to each other:
the talk that the cases of peers/ let every pair hold.

A pair is a client family and a server family, "ibnbd" (ours), "rnbd" (the kernel's) or "user" (ours
in user space: ibnbd-serverd; libibnbd by nbdkit and nbd, class UserClient); the disks behind the
server are ibnbd-testdisk's, which count what reaches them.  Everything is done through the block
device and the sysfs files that both families have, so that one text tests all pairs.
"""
import re, time
import case, faults as F, image, vm

COUNTS = "/sys/module/ibnbd_testdisk/parameters/counts"
OURS, KERNEL, USER = "ibnbd", "rnbd", "user"
# where they are built and installed; without, a pair with user space is left out
PROGRAMS = [image.REPO / "build/serverd/ibnbd-serverd", image.REPO / "build/lib/ibnbd-ping",
            image.REPO / "build/lib/nbdkit-ibnbd-plugin.so",
            *filter(None, map(image.which, ("nbdkit", "nbd-client")))]
NEEDS = ["rnbd-client", "rnbd-server", "ibnbd-testdisk"]
MEM = 3072          # soft-RoCE of 5.10 takes more than 1 GiB for what the kernel's server registers

# 512 B to 128 KiB at any sector; few at a time: soft-RoCE may lose its way after a retransmission
# of a memory registration
MIXED = "--bsrange=512-128k --blockalign=512 --iodepth=4 --output=/dev/null"


# soft-RoCE repeats a memory registration when it repeats the packets after it, refuses its own
# repetition, and leaves a queue pair that neither works nor says so.  The kernel's client waits for
# ever for such a one, and so does whoever waits for an answer of the kernel's server.  (Our ends
# must not have one.)
LOST_MR = r"rxe_reg_fast_mr: .* not free"
# That of 5.10 frees a queue pair whose last reference goes in an interrupt, a packet's, while the
# work that is to clean it up still waits: the work runs in freed memory.  Our client waits for
# packets at a dark port, and net_ping() sees to those that wait for an address; others may still
# hold one.
LOST_QP = (r"Workqueue: events rxe_qp_do_cleanup|BUG: kernel NULL pointer dereference(.*\n){1,20}?"
           r".*Workqueue: +0x0 .*\n.*RIP: 0010:process_one_work")
STUCK = r"no end after \d+ s of|gave up waiting for|is still there after unmap|not within \d+ s"
CLOSED = "path closed: a send queue is stuck"
TRIES = 3
NOT_SENT, NOT_SENT_TRIES = "RTRS failed to transfer IO, err: -103", 8
FEW, FULL = "max_paths_half_open=8", "refused 28"


class Lost(Exception):
    """soft-RoCE got in the way of a talk."""


def excused(t, talk, guests=None):
    """Hold a talk of the kernel's client, or server, which is one of the guests.  That it got stuck
    while soft-RoCE lost a registration there is no failure, but Lost, and so is what a client fails
    when our server has closed that path for it; that a machine died or data is wrong is one, and so
    is what was lost before the talk began."""
    news = news_from_here(t, guests)
    try:
        talk()
    except (case.Failed, vm.JobTimeout) as e:
        if re.search(r"lost \d+, ghosts \d+", str(e)) or not re.search(LOST_MR, news()) or \
                not re.search(STUCK, str(e)) and CLOSED not in news():
            raise
        raise Lost("a memory registration under the kernel's end") from e


def repeat(t, talk):
    """Hold a talk, with excused() in it if the kernel's client has part in it, again from the
    beginning on new machines when soft-RoCE got in its way."""
    for n in range(TRIES):
        news, figures = news_from_here(t), len(t.figures)
        lost, why = None, None
        try:
            talk()
        except Lost as e:
            lost, why = str(e), e.__cause__
        except (case.Failed, vm.VMError) as e:
            why = e
        if series(t) == (5, 10) and re.search(LOST_QP, news()):
            lost = "a queue pair, as it does on 5.10"
        if not lost:
            if why:
                raise why
            return
        t.log(f"soft-RoCE lost {lost}: {why}\n{news()}")
        del t.figures[figures:]
        t.anew()
        for g in t.guests:
            g.heard()
    t.fail(f"soft-RoCE lost something each of {TRIES} times; the last time {lost}")


def news_from_here(t, guests=None):
    """A function: what the kernels have logged since;
    the last words of one that died are on its console alone."""
    guests = guests or t.guests
    before = {g: (len(g.vm.kernel_log()), len(g.vm.console_log())) for g in guests}
    return lambda: "\n".join(g.vm.kernel_log()[n:] + g.vm.console_log()[m:]
                             for g, (n, m) in before.items())


def with_kernel_client(t, talk):
    repeat(t, lambda: excused(t, talk))


def with_kernel_server(t, talk):
    repeat(t, lambda: excused(t, talk, [t.server]))


def series(t):
    """The kernel's series as (major, minor); its rnbd is one of four dialects:
    5.10, 6.1, 6.12 and 7.2."""
    return tuple(int(n) for n in t.image.kver.split(".")[:2])


def has_user(t):
    """Both programs of ours, and those that the client's needs."""
    missing = [p for p in ("ibnbd-serverd", "nbdkit", "nbd-client")
               if t.client.rc(f"command -v {p}")[0]]
    if missing:
        t.log(f"no pair with user space: there is no {', '.join(missing)}")
    return not missing


def our_servers(t):
    return (OURS, USER) if has_user(t) else (OURS,)


def counts(t):
    return {k: int(v) for k, v in (w.split("=") for w in t.server.sh(f"cat {COUNTS}").split())}


class Pair:
    def __init__(self, t, client, server):
        self.t, self.c, self.s = t, t.client, t.server
        self.client, self.server = f"FAMILY={client};", f"FAMILY={server};"
        self.family, self.session = client, "nbd0" if client == USER else "s1"
        self.user = server == USER
        self.ours, self.peer = (client == OURS), (server == KERNEL)
        self.modules = "$PEER_MODULES" if server == KERNEL else "$OUR_MODULES"

    def serve(self, words=""):
        if self.user:       # its chunks may always be written to, and it has no word for that
            words = re.sub(r"always_invalidate=\S*", "", words)
        self.s.sh(f"serve_user {words}" if self.user else f"{self.server} serve {words}")

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
        t.eq(s.sh("dd if=/dev/testdisk0 bs=512 skip=16384 count=1031 status=none | md5sum"), want,
             "what arrived")
        t.eq(c.sh(f"dd if={dev} bs=512 skip=16384 count=1031 status=none | md5sum"), want,
             "what returns")

    def check_flush(self, dev):
        t = self.t
        t.eq(self.attr(dev, "queue/write_cache"), "write back", "the disk's cache is announced")
        self.reset()
        self.c.sh(f"fio --name=f --filename={dev} --rw=write --bs=4k --size=128k --fsync=4 "
                  "--end_fsync=1 --ioengine=psync --output=/dev/null")
        got = counts(t)
        t.ok(got["flush"] >= 8, f"8 fsyncs are at least 8 flushes at the disk: {got}")
        t.eq(got["errors"], 0, "errors at the disk")
        self.reset()
        self.c.sh(f"fio --name=d --filename={dev} --rw=write --bs=4k --size=16k --direct=1 "
                  "--sync=1 --ioengine=psync --output=/dev/null")
        got = counts(t)
        t.ok(got["fua"] + got["flush"] >= 4, f"each of 4 O_DSYNC writes is FUA or flushed: {got}")

    def check_discard(self, dev):
        c, t = self.c, self.t
        c.sh(f"(yes one || true) | dd of={dev} bs=128k count=4 iflag=fullblock oflag=direct "
             "status=none")
        self.reset()
        c.sh(f"blkdiscard -o 128k -l 128k {dev}")
        got = counts(t)
        t.ok(got["discard"] >= 1 and got["write"] == 0, f"a discard arrived: {got}")
        self.holds("one", "", "one", "one")

    def check_zeroes(self, dev, ordered):
        """`ordered`: as write-zeroes requests;
        else the client has none of those, and its kernel writes zeroes."""
        c, t = self.c, self.t
        most = int(self.attr(dev, "queue/write_zeroes_max_bytes"))
        t.eq(most > 0, ordered, f"write zeroes on offer (write_zeroes_max_bytes {most})")
        self.reset()
        c.sh(f"blkdiscard -z -o 256k -l 128k {dev}")
        got = counts(t)
        t.eq((got["zeroes"] > 0, got["write"] > 0), (ordered, not ordered), f"orders, data: {got}")
        self.holds("one", "", "", "one")

    def check_blocks(self, lbs, pbs=0):
        """A disk of such blocks: the client shows them, nothing smaller passes,
        and what it holds is right."""
        c, s, t = self.c, self.s, self.t
        t.log(f"--- {self.client} {self.server} blocks of {lbs} and {pbs or lbs}")
        s.sh(f"modprobe ibnbd-testdisk size_mb=16 lbs={lbs} pbs={pbs}")
        dev = self.map("testdisk0")
        # 64 KiB is 0 in the 16 bits of the answer: ours says 32 KiB instead, and takes the kernel's
        # 0 for the logical size
        want = (pbs or lbs) if pbs < 65536 else lbs if self.peer else 32768
        t.eq((self.attr(dev, "queue/logical_block_size"),
              self.attr(dev, "queue/physical_block_size")),
             (str(lbs), str(want)), "logical and physical block size")
        c.sh(f"fio_verify {dev} 1m --bsrange={lbs}-128k --blockalign={lbs} --iodepth=4 "
             "--output=/dev/null", timeout=45)
        if lbs > 512:
            c.fails(f"xfs_io -d -c 'pwrite 512 512' {dev}", "Invalid argument")
        c.sh(f"echo last | dd of={dev} bs={lbs} seek={(16 << 20) // lbs - 1} conv=sync "
             "oflag=direct status=none")
        t.eq(s.sh(f"tail -c {lbs} /dev/testdisk0 | head -c 4"), "last", "the disk's last block")
        self.unmap(dev)
        s.sh("unload ibnbd_testdisk")

    def check_power_cut(self, dev):
        """Data that was flushed survives what the disk's volatile cache does not."""
        c, t = self.c, self.t
        c.sh(f"(yes kept-up || true) | dd of={dev} bs=4k count=8 iflag=fullblock oflag=direct "
             "conv=fsync status=none")
        c.sh(f"(yes lost-it || true) | dd of={dev} bs=4k count=8 seek=8 iflag=fullblock "
             "oflag=direct status=none")
        self.s.sh("echo 1 > /sys/module/ibnbd_testdisk/parameters/power_cut")
        t.eq(c.sh(f"dd if={dev} bs=4k count=8 iflag=direct status=none | sort -u"), "kept-up",
             "flushed data")
        t.eq(c.sh(f"dd if={dev} bs=4k count=8 skip=8 iflag=direct status=none "
                  "| grep -ac lost-it || true"), "0",
             "lines that were in the lost cache")

    def check_journal(self, dev):
        """A journal's commit is a write with PREFLUSH and FUA;
        the block layer makes of it what the disk can do."""
        c, t = self.c, self.t
        c.sh(f"mkfs.ext4 -q -F {dev}; mkdir -p /mnt; mount -t ext4 {dev} /mnt", timeout=45)
        self.reset()
        c.sh("for i in 1 2 3 4; do "
             "dd if=/dev/zero of=/mnt/$i bs=64k count=2 conv=fsync status=none; done", timeout=45)
        got = counts(t)
        t.ok(got["flush"] >= 4 and got["errors"] == 0, f"each of 4 files has its commit: {got}")
        c.sh(f"umount /mnt; e2fsck -fn {dev} > /tmp/fsck 2>&1 || {{ cat /tmp/fsck; exit 1; }}",
             timeout=45)

    def holds(self, *lines):
        """The disk behind the server begins with pieces of 128 KiB that have nothing
        but this line, or zeroes for ''."""
        got = self.s.sh(f"for i in $(seq 0 {len(lines) - 1}); do echo \"$("
                        "dd if=/dev/testdisk0 bs=128k skip=$i count=1 iflag=direct status=none "
                        "| tr -d '\\0' | uniq)\"; done")
        self.t.eq(got, "\n".join(lines), "pieces of the disk")

    def verify_two(self, *devs):
        """Verified I/O on two disks of a session at a time.  The kernel's client of 7.2 fails some
        that it has not sent (docs/protocol.md 10.8); what it has sent is to be right."""
        tries = NOT_SENT_TRIES if self.family == KERNEL and series(self.t) >= (7, 2) else 1
        for left in reversed(range(tries)):
            news = news_from_here(self.t, [self.c])
            rc, out = self.c.rc("fio_verify {} 512k {} & a=$!; fio_verify {} 512k {} --offset=1m & "
                                "wait $a; wait $!".format(devs[0], MIXED, devs[1], MIXED), 45)
            if not (rc and left and "Input/output error" in out and NOT_SENT in news()):
                break
            self.t.log(f"not sent: {out}")
        self.t.eq(rc, 0, f"verified I/O on both: {out}")

    def check_two(self, one):
        """Two disks share a session and do not mix."""
        c, t = self.c, self.t
        two = self.map("testdisk1")
        t.ok(two != one, "another disk")
        t.eq(self.attr(two, self.client[7:-1] + "/session"), "s1", "its session")
        self.verify_two(one, two)
        c.sh(f"echo one | dd of={one} bs=512 conv=sync oflag=direct status=none; "
             f"echo two | dd of={two} bs=512 conv=sync oflag=direct status=none")
        t.eq(self.s.sh("for i in 0 1; do head -c 3 /dev/testdisk$i; echo; done"), "one\ntwo",
             "disks")
        self.unmap(two)
        c.sh(f"dd if={one} bs=512 count=1 iflag=direct status=none | grep -q one")

    def check_names(self):
        """With testdisk0 mapped for writing."""
        self.no_map("nosuchdisk", "No such file")
        self.no_map("../dev/testdisk0", "Invalid argument")
        self.no_map("testdisk0", "File exists")
        # the client of 5.10 maps a name once, whatever the session
        once = not self.ours and series(self.t) == (5, 10)
        self.no_map("testdisk0 sessname=s2", "File exists" if once else "not permitted")

    def check_read_only(self):
        c, t = self.c, self.t
        self.s.sh("echo before | dd of=/dev/testdisk0 bs=512 conv=sync,notrunc oflag=direct "
                  "status=none")
        dev = self.map("testdisk0 access_mode=ro")
        t.eq(c.sh(f"blockdev --getro {dev}"), "1", "read-only")
        c.sh(f"head -c 6 {dev} | grep -q before")
        c.fails(f"echo after | dd of={dev} bs=512 conv=sync oflag=direct status=none",
                "not permitted|Read-only")
        # an administrator of the client can make the node writable; the server is to refuse
        c.rc(f"blockdev --setrw {dev}")
        # it answers them with success; whether they reach the disk is not looked at
        if self.peer and series(t) == (5, 10):
            t.log(c.rc(f"echo after | dd of={dev} bs=512 conv=sync oflag=direct status=none"),
                  self.s.rc("head -c 6 /dev/testdisk0"))
            self.unmap(dev)
            return
        c.fails(f"echo after | dd of={dev} bs=512 conv=sync oflag=direct status=none",
                "error|not permitted|Read-only")
        self.s.sh("dd if=/dev/testdisk0 bs=512 count=1 iflag=direct status=none | grep -q before")
        self.unmap(dev)

    def paths(self):
        """How many paths the server has of the client."""
        return int(self.s.sh(f"set -- /run/sessions/{self.session}/paths/*; "
                             "[ -e \"$1\" ] || shift; echo $#"))

    def healed(self, dev):
        """The kernel's client looks for a lost path every half minute only, so it is told.  The
        disk is open again with its session, or when it is told.  5.10 knows that a path is lost
        when it tries it again: it is told of all at once, or none is the last that it loses."""
        if self.family == KERNEL:
            self.c.sh(f"{self.client} "
                      "tell() { for p in /sys/class/rtrs-client/s1/paths/*; do "
                      "grep -qx connected $p/state || echo 1 > $p/reconnect & done; "
                      "wait; paths_up s1 2; }; wait_for 100 tell; "
                      f"opened() {{ [ $(dev_attr {dev} state) = open ] || "
                      f"{{ echo 1 > /sys/block/{dev[5:]}/rnbd/remap_device || :; false; }}; }}; "
                      "wait_for 60 opened", timeout=300)

    def faults(self, dev):
        """What may befall one of two paths, and both, under the integrity checker.  No end of ours
        lets I/O fail; nothing is lost, doubled or late, whoever is at the other end."""
        c, s, t = self.c, self.s, self.t
        peer = self.family == KERNEL
        link = lambda m, up, *links: lambda: [m.link(i, up) for i in links]
        small = lambda m, most: lambda: m.sh(f"net_small 1 {most}")

        def flap():
            for i in range(16):
                c.link(1, bool(i & 1))
                time.sleep(1)
        # Large requests, or answers: who sends them has to notice (decision 16), which the kernel's
        # ends do not.
        deaf = ["large requests are lost"] * peer + ["large answers are lost"] * self.peer
        rows = [("F1", "one of two paths: carrier down", link(c, False, 1), link(c, True, 1),
                 [1], 4, dict(Tdet=1, Tstall=2)),
                ("F2", "one of two paths: silence", link(s, False, 1), link(s, True, 1),
                 [1], 4, dict(Tdet=6, Tstall=7)),
                ("F3", "one of two paths: answers are lost", lambda: s.sh("net_loss 0 100"),
                 lambda: s.sh("net_loss 0 0"), [0], 4, dict(Tdet=6, Tstall=7)),
                ("F3", "one of two paths: large requests are lost", small(s, 2000), small(s, ""),
                 [], 12, dict(Tstall=9)),
                ("F3", "one of two paths: large answers are lost", small(c, 2000), small(c, ""),
                 [], 12, dict(Tstall=9)),
                ("F7", "one of two links: 1 s on, 1 s off", flap, link(c, True, 1), [], 16,
                 dict(Tstall=7)),
                ("F5", "all paths: carrier down", link(c, False, 0, 1), link(c, True, 0, 1),
                 [0, 1], 15, dict(Trec=3)),
                # nothing tells that the way is free, so it takes as long as the next attempt
                ("F5", "all paths: silence", link(s, False, 0, 1), link(s, True, 0, 1),
                 [0, 1], 15, dict(Trec=6))]
        rows = [row for row in rows if row[1].split(": ")[1] not in deaf]
        # from the third on some of its I/O fails
        for part in (rows[:2], rows[2:]) if peer else (rows,):
            self.strike(dev, part)

    def work(self, dev):
        """Writers of the integrity checker on the disk, of which they know each block."""
        user = self.family == USER
        self.c.sh(f"dd if=/dev/zero of={dev} bs=8k count=1024 oflag=direct status=none", timeout=60)
        states = f"/sys/class/{self.family.replace('nbd', 'trs')}-client/s1/paths/*/state"
        return F.Work(self.t, self.c, dev, stack="libibnbd" if user else self.family,
                      flush=20 if user else 0, lenient=self.family == KERNEL,
                      states="/sys/block/nbd0/size" if user else states)

    def strike(self, dev, rows):
        """Those faults, one after the other, and what the disk has then."""
        s, t = self.s, self.t
        user, peer = self.family == USER, self.family == KERNEL
        w = self.work(dev)
        t.wait(lambda: self.paths() == 2, 20, "both paths")
        for number, what, strike, heal, lost, hold, limits in rows:
            def heal_all():
                t.wait(lambda: self.paths() <= 2 - len(lost), 60, "the server has noticed")
                heal()
                self.healed(dev)
            row = w.fault(number, what, strike, heal_all, hold=hold, down=[] if user else lost,
                          up=(lambda: self.paths() == 2) if user else None, recover=60,
                          from_healed=True)
            if user:        # no file tells the states of its paths
                limits.pop("Tdet", 0)
            if not peer:
                w.limit(row, Nerr=0, **limits)
        w.stop(errors_expected=peer)
        # The kernel's client says of some writes that were refused that they succeeded: 10.8 of
        # docs/protocol.md.
        F.prove(t, s, "/dev/testdisk0", [w], w.blocks,
                lenient=peer and any(row["Nerr"] for row in w.rows))

    def sent_away(self, dev):
        """The server closes all paths, and they come back."""
        gone = f"! ls /run/sessions/{self.session}/paths/* > /dev/null 2>&1"
        self.s.sh(f"ibnbd server disconnect {self.session}; wait_for 3 eval '{gone}' || :",
                  timeout=30)
        self.healed(dev)
        self.t.wait(lambda: self.paths() == 2, 40, "both paths are back")

    def strangers(self, dev):
        """While strangers hold all paths in the handshake that are for them (FEW), a client that
        was in, and has lost its paths, comes back in."""
        c, s, t = self.c, self.s, self.t
        t.wait(lambda: self.paths() == 2, 40, "both paths")
        c.sh("ip addr add 10.0.0.9/24 dev eth0; "
             "wait_for 5 grep -q ffff:0a00:0009 /sys/class/infiniband/rxe0/ports/1/gids/*")
        storm = c.spawn("while :; do knock 10.0.0.2 src=10.0.0.9 count=12 hold=3; done")
        t.wait(lambda: FULL in storm.out(), 20, "strangers hold all places that are for them")
        self.sent_away(dev)
        before = storm.out().count(FULL)
        t.wait(lambda: storm.out().count(FULL) > before, 20, "and the strangers are there")
        c.sh(f"dd if={dev} of=/dev/null bs=4k count=64 iflag=direct status=none")
        storm.kill()
        c.sh("pkill -x knock || true; ip addr del 10.0.0.9/24 dev eth0")

    def overheard(self, dev):
        """The client's paths come back; the uuid of the session in the CONN_REQ (protocol 2.2) of
        one of them, as it goes over the network."""
        c, dump = self.c, self.c.dir / "dump"
        c.qmp("object-add", **{"qom-type": "filter-dump", "id": "dump", "netdev": "n0",
                               "file": str(dump)})
        self.sent_away(dev)
        c.qmp("object-del", id="dump")
        packets = dump.read_bytes()
        magic = packets.index(bytes.fromhex("bd1b0002"))
        return packets[magic + 26:magic + 42].hex()

    def thief(self, dev):
        """Somebody has the uuid of the session. In the words of our clients it is refused; in those
        of the kernel's it gets a path, which it never uses. The owner's I/O goes on."""
        c, t, uuid = self.c, self.t, self.overheard(dev)
        visit = "/sys/module/ibnbd_stranger/parameters"
        io = c.spawn(f"fio_verify {dev} 1m --bsrange=4k-4k --iodepth=4 --time_based --runtime=8 "
                     "--output=/dev/null")
        # a path with the addresses of the owner's would be refused for these
        c.sh("modprobe ibnbd-stranger to=ip:fd00:0::2")
        for how, answer in (("plain", "refused 104 another set of extensions than the session's"),
                            ("old", "accepted\ncid 1: accepted\n")):
            said = c.sh(f"echo 'uuid={uuid} conn={how} next={how}' > {visit}/visit; "
                        f"cat {visit}/said")
            t.ok(f"{said}\n".startswith(f"cid 0: {answer}"), f"{how}: {said}")
        t.eq(io.wait(60), 0, f"verified I/O beside a thief of the uuid: {io.out()[-1000:]}")
        c.sh("modprobe -r ibnbd-stranger")
        t.wait(lambda: self.paths() == 2, 40, "the owner's paths, and no other")

    def quota(self):
        """Two sessions, and no more: the third is refused, and the others go on."""
        self.serve("max_sessions_per_peer=2")
        self.s.sh("modprobe ibnbd-testdisk nr_disks=3")
        devs = [self.map("testdisk0"), self.map("testdisk1 sessname=s2")]
        self.c.fails(f"{self.client} map testdisk2 sessname=s3", timeout=60)
        for dev in devs:
            self.verify(dev, "256k")
        self.unmap(*devs)
        self.stop()
        self.s.sh("unload ibnbd_testdisk")

    def check_whole(self, dev, zeroes):
        self.check_zeroes(dev, zeroes)
        self.check_two(dev)
        self.check_names()

    def talk(self, always_invalidate, zeroes, whole=True):
        """All of it, on machines without modules of these families; `zeroes` as in check_zeroes.

        Not `whole`: only what has to do with the way data travels.
        """
        self.t.log(f"--- {self.client} {self.server} always_invalidate={always_invalidate}")
        # a server that takes proofs serves those who know none, too
        auth = " auth=optional" if always_invalidate == "N" and not self.peer else ""
        self.serve(f"always_invalidate={always_invalidate}{auth}")
        self.s.sh("modprobe ibnbd-testdisk nr_disks=2")
        dev = self.map("testdisk0")
        self.check_io(dev)
        self.check_flush(dev)
        self.check_discard(dev)
        if whole:
            self.check_whole(dev, zeroes)
        self.unmap(dev)
        if whole:
            self.check_read_only()
        self.stop()
        self.s.sh("unload ibnbd_testdisk")


class UserClient(Pair):
    """libibnbd at the kernel's server, or another: /dev/nbd0, whose plugin knows the options of a
    mapping."""
    def __init__(self, t, server=KERNEL):
        super().__init__(t, USER, server)

    def map(self, words):
        self.c.sh(f"nbd_disk 0 $(paths | sed 's/path=[^ ]*@/path=/g') device={words}")
        return "/dev/nbd0"

    def unmap(self, *devs):
        self.c.sh("nbd-client -d /dev/nbd0; pkill -TERM -x nbdkit; "
                  "wait_for 20 bash -c '! pgrep -x nbdkit'; rm /run/nbd0")

    def check_whole(self, dev, zeroes):
        self.check_journal(dev)
        self.c.fails("ibnbd-ping ip:10.0.0.2 -d nosuchdisk",
                     "the server exports nothing of that name")

    def check_read_only(self):
        dev = self.map("testdisk0 access_mode=ro")
        self.t.eq(self.c.sh(f"blockdev --getro {dev}"), "1", "read-only")
        self.unmap(dev)
