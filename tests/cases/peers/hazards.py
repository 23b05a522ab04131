# SPDX-License-Identifier: GPL-2.0-only
"""What the version in a handshake does not tell about the kernel's rnbd: the
hazards of docs/protocol.md."""
description = ("what the kernels' rnbd disagree about: "
               "volatile caches, op 5, PREFLUSH, blocks of 512, 4096 and 64 KiB")
long = True
deadline = 600
import interop
needs = interop.NEEDS
mem = interop.MEM


def caches(t, pair):
    """M9: whatever the answer says of a cache, flushed data is safe."""
    pair.s.sh("modprobe ibnbd-testdisk")
    dev = pair.map("testdisk0")
    # the server of 5.10 does not speak of FUA, and its client assumes it
    t.eq(pair.attr(dev, "queue/fua"),
         str(int(pair.client[7:-1] == interop.KERNEL or interop.series(t) > (5, 10))), "FUA")
    pair.check_power_cut(dev)
    pair.check_journal(dev)
    pair.unmap(dev)
    pair.s.sh("unload ibnbd_testdisk; modprobe ibnbd-testdisk cache=0")

    for words in ("", "write_cache=off") if pair.ours else ("",):
        dev = pair.map(f"testdisk0 {words}")
        always = not words if pair.ours else interop.series(t) == (5, 10)
        t.eq(pair.attr(dev, "queue/write_cache"), "write back" if always else "write through",
             f"a disk without a cache {words}")
        pair.verify(dev, "256k", "--fsync=8")
        pair.unmap(dev)
    pair.s.sh("unload ibnbd_testdisk")


def op5(t, pair):
    """M10: to each kernel op 5 is another thing, and on offer only where the administrator
    says that it is write zeroes."""
    known = interop.series(t) >= (6, 12)
    pair.s.sh("modprobe ibnbd-testdisk")
    dev = pair.map("testdisk0" + (" write_zeroes=on" if pair.ours else ""))
    pair.check_discard(dev)
    pair.check_zeroes(dev, ordered=known)
    # only the client of 7.2 says NOUNMAP, and we heed it; nobody says it to
    # a server that may not know it
    t.eq(interop.counts(t)["nounmap"] > 0, known and not pair.ours and interop.series(t) >= (7, 2),
         "zeroes that stay allocated")
    t.eq(interop.counts(t)["errors"], 0, "errors at the disk")
    pair.unmap(dev)
    pair.s.sh("unload ibnbd_testdisk")


def hazards(t, client, server):
    pair = interop.Pair(t, client, server)
    pair.serve("write_zeroes=N" if not pair.peer else "")
    pair.check_blocks(512)
    pair.check_blocks(4096)
    pair.check_blocks(512, 65536)
    caches(t, pair)
    if not pair.peer:
        pair.s.sh("modprobe ibnbd-testdisk")
        dev = pair.map("testdisk0")
        for limit in "write_zeroes_max_bytes", "write_same_max_bytes":
            t.eq(t.client.sh(f"cat /sys/block/{dev[5:]}/queue/{limit} 2> /dev/null || echo 0"), "0",
                 limit)
        pair.unmap(dev)
        pair.s.sh("unload ibnbd_testdisk")
        # a client of 5.10 takes the limit for write-same's, which no program can ask for
        pair.s.sh("echo Y > /sys/module/ibnbd_server/parameters/write_zeroes")
    op5(t, pair)
    pair.stop()


def run(t):
    hazards(t, interop.OURS, interop.KERNEL)
    interop.with_kernel_client(t, lambda: hazards(t, interop.KERNEL, interop.OURS))
