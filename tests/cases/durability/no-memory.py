# SPDX-License-Identifier: GPL-2.0-only
"""Each third allocation of the client fails while the disk loses its cache: what is sent again
needs memory of its own, and gets it in the end."""
description = "a replay that has no memory starts over until it comes through, and loses nothing"
crowd = True
deadline = 120
needs = ["ibnbd-failnth"]

P = "/sys/module/ibnbd_testdisk/parameters"
CTL = "/sys/class/ibnbd-server/ctl/devices/testdisk0"
LOSE = (f"echo 1000 > {P}/open_ms; echo 1 > {CTL}/cache_lost; echo 1 > {P}/power_cut; "
        f"echo 0 > {P}/open_ms")


def run(t):
    c, s = t.client, t.server
    attr = lambda name: c.sh(f"dev_attr {dev} {name}")
    put = lambda char: c.sh(f"head -c 131072 /dev/zero | tr '\\0' {char} | dd of={dev} "
                            "bs=64k iflag=fullblock oflag=direct status=none")
    got = lambda: s.sh("dd if=/dev/testdisk0 bs=128k count=1 iflag=direct status=none | "
                       "tr '\\0' 0 | tr -s A-Z0")
    touch = lambda: c.spawn(f"dd if={dev} of=/dev/null bs=4k count=1 iflag=direct status=none")
    s.sh("modprobe ibnbd-testdisk; serve")
    dev = c.sh("map testdisk0 unflushed=replay hold=-1")

    put("A")
    c.sh("fail_nth 3 ibnbd_client ibtrs_client again=1 first=0")
    s.sh(LOSE)
    job = touch()
    # its state does not tell: without memory the path may be lost, and not come up before the end
    t.wait(lambda: c.rc("dmesg | grep -q -e '-> replaying'")[0] == 0, 30, "it has tried")
    c.sh("sleep 2; cat /sys/module/ibnbd_failnth/parameters/hit; fail_nth 0")
    t.eq(job.wait(60), 0, f"what was held: {job.out()}")
    t.eq((attr("state"), attr("losses"), attr("kept"), attr("replays").split()[0]),
         ("open", "0", "whole", "1"), "all was sent again")
    t.eq(got(), "A", "the disk has it")
    c.sh(f"unmap {dev}")
