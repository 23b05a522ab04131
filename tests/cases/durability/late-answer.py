# SPDX-License-Identifier: GPL-2.0-only
"""The answer to a polled write is being taken by a CPU that stands still, just before the write
gets into the account of what no flush has covered.  Meanwhile the disk loses its cache, and the
other CPU hears of another epoch: with nothing in the account, nothing would be sent again."""
description = ("a write that was answered before its disk's cache was lost is sent again, "
               "although nobody has heard of the answer yet")
deadline = 120
needs = ["ibnbd-slowfn"]

SLOW = "/sys/module/ibnbd_slowfn/parameters"
P = "/sys/module/ibnbd_testdisk/parameters"
CTL = "/sys/class/ibnbd-server/ctl/devices/testdisk0"
MS = 3000


def run(t):
    c, s = t.client, t.server
    attr = lambda name: c.sh(f"dev_attr {dev} {name}")
    got = lambda: s.sh("dd if=/dev/testdisk0 bs=4k count=1 iflag=direct status=none | "
                       "tr '\\0' 0 | tr -s A-Z0")
    s.sh("modprobe ibnbd-testdisk; serve")
    dev = c.sh("modprobe ibnbd-slowfn func=sg_pcopy_to_buffer; "
               "map testdisk0 unflushed=replay nr_poll_queues=2; "
               "for i in /proc/irq/*/smp_affinity; do echo 2 > $i 2> /dev/null || true; done"
               ).split()[0]
    write = c.spawn(f"echo {MS} > {SLOW}/ms; fio --name=w --filename={dev} --direct=1 "
                    "--ioengine=io_uring --hipri=1 --rw=write --bs=4k --size=4k --cpus_allowed=0 "
                    "--buffer_pattern=0x41 --output=/dev/null")
    t.wait(lambda: got() == "A", 20, "the disk has it")
    s.sh(f"echo 1 > {P}/power_cut; echo 1 > {CTL}/cache_lost")
    t.eq(got(), "0", "and has lost it")
    c.sh(f"taskset -c 1 dd if={dev} of=/dev/null bs=4k skip=1 count=1 iflag=direct status=none",
         timeout=60)
    t.eq(write.wait(60), 0, f"the write: {write.out()}")
    t.ok(int(c.sh(f"echo 0 > {SLOW}/ms; cat {SLOW}/hits")) > 0, "the answer was slow")
    t.eq(attr("state"), "open", "it goes on")
    t.eq(attr("replays"), "1 4096", "it was sent again")
    t.eq(got(), "A", "the disk has it again")
    c.sh(f"unmap {dev}; modprobe -r ibnbd-slowfn")
