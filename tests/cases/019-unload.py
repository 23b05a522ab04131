# SPDX-License-Identifier: GPL-2.0-only
description = "modules in use refuse to go; without users they go, and come again, and their memory comes back"
deadline = 240

ROUNDS = 8
LEAK_KIB = 100      # in each round; the kernel itself keeps 10 to 15 (page tables of modules, for the most part)

# the disk is gone for all to see, so nothing is left that could be in use
GONE_AND_UNLOADED = """
for i in $(seq {}); do
	dev=$(map ram0)
	echo normal > /sys/block/${{dev#/dev/}}/$FAMILY/unmap_device
	while [ -e /sys/block/${{dev#/dev/}} ]; do :; done
	rmmod ibnbd_client
done
"""


def growth(t, g, script):
    """KiB that ROUNDS more rounds take, once the kernel has filled its caches.  A kernel that looks for leaks itself keeps what was
    freed, and takes its time: there two rounds do, and the leaks step of the runner judges them."""
    rounds = "for i in $(seq {}); do {}; done; sleep 2; memory_kib"
    if t.image.debug:
        g.sh(rounds.format(2, script), timeout=90)
        return 0
    before, after = (int(g.sh(rounds.format(n, script), timeout=90).split()[-1]) for n in (4, ROUNDS))
    return before - after


def run(t):
    c, s = t.client, t.server

    s.sh("serve; ram_disks 1 16")
    dev = c.sh("map ram0")
    for m in ("ibnbd_client", "ibtrs_client", "ibtrs_core"):
        c.fails(f"rmmod {m}", "in use|busy|unavailable")
    c.sh(f"dd if={dev} of=/dev/null bs=1M count=8 iflag=direct status=none; unmap {dev}")
    c.sh("unload ibnbd_client ibtrs_client ibtrs_core; [ ! -e /sys/class/ibnbd-client ] && [ ! -e /sys/class/ibtrs-client ]")
    s.sh("unload ibnbd_server ibtrs_server ibtrs_core; [ ! -e /sys/class/ibnbd-server ] && [ ! -e /sys/class/ibtrs-server ]")

    t.below(growth(t, s, "serve; unload ibnbd_server ibtrs_server ibtrs_core"), ROUNDS * LEAK_KIB, f"KiB gone in {ROUNDS} rounds of the server")
    s.sh("serve")
    if not t.image.debug:   # it releases a disk late, by design, and whoever frees its module sooner is told to wait
        c.sh(GONE_AND_UNLOADED.format(ROUNDS))
    t.below(growth(t, c, "unmap $(map ram0); unload ibnbd_client ibtrs_client ibtrs_core"), ROUNDS * LEAK_KIB,
            f"KiB gone in {ROUNDS} rounds of the client")

    # the server goes while a client has a disk mapped: the client holds its I/O and resumes
    dev = c.sh("map ram0")
    s.sh("unload ibnbd_server ibtrs_server ibtrs_core", timeout=20)
    reader = c.spawn(f"dd if={dev} of=/dev/null bs=4k count=1 iflag=direct status=none")
    s.sh("serve")
    t.eq(reader.wait(20), 0, "the read that waited for the server")
