# SPDX-License-Identifier: GPL-2.0-only
"""Our server, and what no block layer sends: a write that is to be preceded by a flush, which
rnbd's protocol has, and messages that make no sense."""
description = ("a client that says anything: "
               "PREFLUSH is heeded by disks and by files, nonsense is refused and reaches no disk")
crowd = True
deadline = 180
import interop
import messages
programs = [messages.PROGRAM]

TESTDISK = "/sys/module/ibnbd_testdisk/parameters"
BLOCKS = 64 << 11       # sectors of the disk
OP = "Operation not supported"
BAD = "Invalid argument"
NONSENSE = (
    # the message, and what the server answers
    # more than was sent: it would write what another one has left in that memory
    ("dir=w rw=0x1 bytes=8192 len=4096", BAD),
    ("dir=w rw=0x1 bytes=4096 len=8192", BAD),
    ("dir=w rw=0x1 bytes=4096 len=0", BAD),
    ("dir=r rw=0x0 bytes=8192 len=4096", BAD),
    # more than was read: it would be sent what another one has left there
    ("dir=r rw=0x0 bytes=4096 len=65536", BAD),
    ("dir=r rw=0x0 bytes=0 len=4096", BAD),
    # a read that is sent as a write, and the other way
    ("dir=w rw=0x0 bytes=4096 len=4096", BAD),
    ("dir=r rw=0x1 bytes=4096 len=4096", BAD),
    ("dir=w rw=0x2 bytes=0 len=0", BAD),
    ("dir=r rw=0x2 bytes=0 len=4096", BAD),
    ("dir=w rw=0x1 bytes=100 len=100", BAD),
    ("dir=w rw=0x1 bytes=0 len=0", BAD),
    ("dir=r rw=0x2 bytes=4096 len=0", BAD),
    ("dir=w rw=0x3 bytes=0 len=0", BAD),
    ("dir=w rw=0x6 bytes=512 len=0", OP),
    ("dir=w rw=0xff bytes=512 len=512", OP),
    ("dir=w rw=0x5 bytes=512 len=512", OP),             # write-same of old clients
    ("dir=w rw=0x1 bytes=4096 len=4096 hdr=8", BAD),
    ("dir=w rw=0x1 bytes=4096 len=4096 hdr=23", BAD),
    ("dir=w type=3 bytes=4096 len=4096", BAD),          # an answer
    ("dir=w type=65535 bytes=4096 len=4096", BAD),
    ("dir=w type=2 len=0", BAD),                        # an OPEN of 32 bytes
    ("dir=w type=5 hdr=4 len=0", BAD),
    (f"dir=w rw=0x1 bytes=4096 len=4096 sector={BLOCKS}", "."),
    (f"dir=w rw=0x1 bytes=4096 len=4096 sector={BLOCKS - 7}", "."),
    ("dir=w rw=0x1 bytes=4096 len=4096 sector=0xffffffffffffffff", "."),
    ("dir=w rw=0x1 bytes=4096 len=4096 sector=0x8000000000000000", "."),
    (f"dir=r rw=0x0 bytes=4096 len=4096 sector={BLOCKS}", "."),
    (f"dir=w rw=0x3 bytes=0xfffffe00 len=0 sector={BLOCKS - 1}", "."),
    ("dir=w rw=0x1 bytes=4096 len=4096 dev=0xffffffff", "."),
    ("dir=w rw=0x1 bytes=4096 len=4096 dev=12345", "."),
)


def run(t):
    c, s = t.client, t.server

    def said(words):
        s.sh(f"echo 0 > {TESTDISK}/counts")
        peer.accepted(words)
        return interop.counts(t)

    s.sh("modprobe ibnbd-testdisk; mkdir -p /mnt /exp; ln -sfn /dev/testdisk0 /exp/raw; "
         "ln -sfn /mnt/disk /exp/disk; serve dev_search_path=/exp")
    for disk in "raw", "disk":
        t.log(f"--- {disk}")
        if disk == "disk":      # a file on that disk
            s.sh("mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 /dev/testdisk0; "
                 "mount /dev/testdisk0 /mnt; "
                 "dd if=/dev/zero of=/mnt/disk bs=1M count=4 conv=fsync status=none")
        peer = messages.Speaker(c, disk)
        write = "dir=w bytes=4096 len=4096 fill=65 rw="
        got = said(write + "0x1")
        t.ok(not got["flush"] or disk != "raw", f"a plain write is not flushed: {got}")
        for rw in "0x401", "0x501", "0x701":
            got = said(write + rw)
            t.ok(got["flush"] >= 1 and got["write"] >= (disk == "raw") and not got["errors"],
                 f"{rw}: a flush before the write: {got}")
        got = said("dir=r rw=0x702 bytes=0 len=0")
        t.ok(got["flush"] == 1 and not got["write"] or disk != "raw", f"a flush is a flush: {got}")
        t.eq(peer.accepted("dir=r rw=0x0 bytes=4096 len=4096"), b"A" * 4096, "what comes back")
        if disk == "raw":
            check_order(t, peer)
            check_nonsense(t, peer)
        peer.end()
    s.sh("wait_for 10 umount /mnt")


def check_order(t, peer):
    """What was written before a write with PREFLUSH is safe, as an empty flush
    would have made it."""
    for first, kept in (("0x1", b"\0"), ("0x401", b"B")):
        peer.accepted("dir=r rw=0x2 bytes=0 len=0")
        peer.accepted("dir=w rw=0x1 bytes=4096 len=4096 fill=66 sector=64")
        peer.accepted(f"dir=w rw={first} bytes=4096 len=4096 fill=67 sector=128")
        t.server.sh(f"echo 1 > {TESTDISK}/power_cut")
        t.eq(peer.accepted("dir=r rw=0x0 bytes=4096 len=4096 sector=64"), kept * 4096,
             f"what was written before a write {first}, after a power cut")


def check_nonsense(t, peer):
    s = t.server
    s.server_news()
    s.sh(f"echo 0 > {TESTDISK}/counts")
    for words, answer in NONSENSE:
        peer.refused(f"{words} fill=88", answer)
    got = interop.counts(t)
    t.eq({k: n for k, n in got.items() if n}, {}, "what reached the disk")
    t.ok("path closed" not in s.server_news(), "the path is still there")
    # a session that had lost its only path would have to open the disk again
    peer.accepted("dir=w rw=0x1 bytes=4096 len=4096 fill=65")
    t.ok(interop.counts(t)["write"] == 1, "sense is still heard")
