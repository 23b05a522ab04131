# SPDX-License-Identifier: GPL-2.0-only
description = ("modules in use refuse to go; without users they go, come again, "
               "and their memory comes back; and after killed maps")
long = True
deadline = 300

ROUNDS = 8
MAPS = 50
# in each round; the kernel itself keeps 10 to 15 (page tables of modules, for the most part)
LEAK_KIB = 100

# the disk is gone for all to see, so nothing is left that could be in use
GONE_AND_UNLOADED = """
for i in $(seq {}); do
	dev=$(map ram0)
	echo normal > /sys/block/${{dev#/dev/}}/$FAMILY/unmap_device
	while [ -e /sys/block/${{dev#/dev/}} ]; do :; done
	rmmod ibnbd_client
done
"""


# Whoever maps may be killed at any point of it: then it is not mapped, or
# it is, and goes as every other.
KILLED = """
modprobe ibnbd-client
words="sessname=s1 device_path=ram0 $(paths)"
t=$(uptime_s)
tee $(ctl)/map_device <<< "$words" > /dev/null
ms=$(since $t | awk '{{ print int(1000 * $1) + 10 }}')
n=0
for i in $(seq {}); do
	d=$(dev_of ram0 s1) && echo force > /sys/block/$d/ibnbd/unmap_device &&
		wait_for 20 test ! -e /sys/block/$d
	tee $(ctl)/map_device <<< "$words" > /dev/null 2>&1 &
	usleep $((RANDOM % ms * 1000))
	rc=0
	kill $! 2> /dev/null || true
	wait $! || rc=$?
	[ $rc != 143 ] || n=$((n + 1))
done
gone() {{
	[ -z "$(ls $(ctl)/devices)" ] ||
		echo force > /sys/block/$(dev_of ram0 s1)/ibnbd/unmap_device
}}
wait_for 20 gone 2> /dev/null
wait_for 20 test ! -e /sys/class/ibtrs-client/s1
echo "killed $n of {}, within $ms ms"
"""


def growth(t, g, script):
    """KiB that ROUNDS more rounds take, once the kernel has filled its caches.  A kernel that looks
    for leaks itself keeps what was freed, and takes its time: there two rounds do, and the leaks
    step of the runner judges them."""
    rounds = "for i in $(seq {}); do {}; done; sleep 2; memory_kib"
    if t.image.debug:
        g.sh(rounds.format(2, script), timeout=90)
        return 0
    before, after = (int(g.sh(rounds.format(n, script), timeout=90).split()[-1])
                     for n in (4, ROUNDS))
    return before - after


def run(t):
    c, s = t.client, t.server

    s.sh("serve; ram_disks 1 16")
    dev = c.sh("map ram0")
    for m in ("ibnbd_client", "ibtrs_client", "ibtrs_core"):
        c.fails(f"rmmod {m}", "in use|busy|unavailable")
    c.sh(f"dd if={dev} of=/dev/null bs=1M count=8 iflag=direct status=none; unmap {dev}")
    c.sh("unload ibnbd_client ibtrs_client ibtrs_core; "
         "[ ! -e /sys/class/ibnbd-client ] && [ ! -e /sys/class/ibtrs-client ]")
    s.sh("unload ibnbd_server ibtrs_server ibtrs_core; "
         "[ ! -e /sys/class/ibnbd-server ] && [ ! -e /sys/class/ibtrs-server ]")

    t.below(growth(t, s, "serve; unload ibnbd_server ibtrs_server ibtrs_core"), ROUNDS * LEAK_KIB,
            f"KiB gone in {ROUNDS} rounds of the server")
    s.sh("serve")
    # it releases a disk late, by design, and whoever frees its module sooner is told to wait
    if not t.image.debug:
        c.sh(GONE_AND_UNLOADED.format(ROUNDS))
    t.below(growth(t, c, "unmap $(map ram0); unload ibnbd_client ibtrs_client ibtrs_core"),
            ROUNDS * LEAK_KIB,
            f"KiB gone in {ROUNDS} rounds of the client")

    # the server goes while a client has a disk mapped: the client holds its I/O and resumes
    dev = c.sh("map ram0")
    s.sh("unload ibnbd_server ibtrs_server ibtrs_core", timeout=20)
    reader = c.spawn(f"dd if={dev} of=/dev/null bs=4k count=1 iflag=direct status=none")
    s.sh("serve")
    t.eq(reader.wait(20), 0, "the read that waited for the server")
    c.sh(f"unmap {dev}")
    s.sh("unload ibnbd_server ibtrs_server ibtrs_core; serve sess_queue_depth=16")

    out = c.sh(KILLED.format(MAPS, MAPS) + "unload ibnbd_client ibtrs_client ibtrs_core",
               timeout=110)
    t.ok(int(out.split()[1]) >= MAPS // 5, f"a good part of them was killed: {out}")
    s.sh("wait_for 20 eval '[ -z \"$(ls /sys/class/ibnbd-server/ctl/devices)\" ]'; "
         "unload ibnbd_server ibtrs_server ibtrs_core")
