# SPDX-License-Identifier: GPL-2.0-only
"""Each allocation of the pool of kept writes fails, one after the other, and then all of them."""
description = ("no memory for what unflushed=replay keeps: the disk is mapped, says so, "
               "and a loss is told instead of made good")
crowd = True
deadline = 180
needs = ["ibnbd-failnth"]
allow = ["vmalloc error", "page allocation failure"]

FAIL = "/sys/module/ibnbd_failnth/parameters"
P = "/sys/module/ibnbd_testdisk/parameters"
CTL = "/sys/class/ibnbd-server/ctl/devices/testdisk0"
POOL = "ibnbd_clt_kept_pool_get"
# from the function to whatever is behind it
RANGE = f"""
sort /proc/kallsyms | awk '$3 == "{POOL}" {{ a = $1; next }}
	a != "" && $1 != a {{ print "0x" a ",0x" $1; exit }}' > {FAIL}/range
echo 10 > {FAIL}/depth
"""


def run(t):
    c, s = t.client, t.server
    attr = lambda name: c.sh(f"dev_attr {dev} {name}")
    s.sh("modprobe ibnbd-testdisk; serve")
    c.sh("modprobe ibnbd-client; modprobe ibnbd-failnth; " + RANGE)
    kept = []
    for n in range(1, 40):     # a debug kernel allocates more often
        dev = c.sh(f"echo 0 > {FAIL}/again; echo 3 > {FAIL}/first; echo {n} > {FAIL}/nth; "
                   "map testdisk0 unflushed=replay hold=-1 retain_mb=4")
        hit = c.sh(f"echo 0 > {FAIL}/nth; cat {FAIL}/hit")
        kept.append(attr("kept"))
        c.sh(f"unmap {dev}; wait_for 15 test ! -e /sys/class/ibtrs-client/s1")
        if not hit:
            break
    t.log(f"kept: {kept}")
    t.ok(len(kept) > 1 and "no" in kept[:-1] and kept[-1] == "whole", f"kept: {kept}")

    c.kernel_news()
    dev = c.sh(f"echo 1 > {FAIL}/again; echo 0 > {FAIL}/first; echo 1 > {FAIL}/nth; "
               "map testdisk0 unflushed=replay hold=-1 retain_mb=4")
    c.sh(f"echo 0 > {FAIL}/nth")
    t.match(c.kernel_news(), "no memory for retain_mb=4: a device that may have lost writes is "
            "fenced", "it is told")
    t.eq((attr("kept"), attr("state")), ("no", "open"), "it is mapped")
    c.sh(f"dd if=/dev/urandom of={dev} bs=64k count=1 oflag=direct status=none")
    t.eq(attr("unflushed_bytes"), "65536", "the account is kept")
    s.sh(f"echo 1 > {CTL}/cache_lost; echo 1 > {P}/power_cut")
    c.fails(f"dd if={dev} of=/dev/null bs=4k count=1 iflag=direct status=none", "rror")
    t.eq(attr("state_detail"), "fenced", "a loss is told")
    t.match(attr("reason"), "the last 1 MiB written were not flushed", "the reason")
    c.sh(f"unmap {dev} force; wait_for 15 test ! -e /sys/class/ibtrs-client/s1")
    dev = c.sh("map testdisk0 unflushed=replay retain_mb=4")
    t.eq(attr("kept"), "whole", "another session has its pool")
    c.sh(f"unmap {dev}; modprobe -r ibnbd-failnth")
