# SPDX-License-Identifier: GPL-2.0-only
"""A disk that nobody can open for a while (its host recovers from an error) is opened anew when its client comes back.  The client's other disks do not wait
for that: not when they are opened, and not when the path is lost once more (law L4 would fail them after 10 s)."""
description = "a disk takes 40 s to be opened when its client comes back: his other disks are there at once, each time, and new ones too"
deadline = 240
import time
import vm

OPEN = 40
P = "/sys/module/ibnbd_testdisk/parameters/open_ms"


def run(t):
    c, s = t.client, t.server
    s.sh("serve; modprobe ibnbd-testdisk cache=0; ram_disks 2 16")
    slow, near = c.sh("map testdisk0"), c.sh("map ram0")
    state = lambda dev, what: c.sh(f"dev_attr {dev} {what}")
    s.sh(f"echo {OPEN * 1000} > {P}")
    pulse = c.spawn(f"iopulse {near} 2 500 rw")

    def blink(why):
        c.link(0, False)
        t.wait(lambda: state(near, "state") == "closed", 15, f"{why}: the path is lost")
        c.link(0, True)
        took = t.wait(lambda: state(near, "state") == "open", 8, f"{why}: the neighbour is open again")
        t.log(f"{why}: open after {took:.1f} s; the other: {state(slow, 'state_detail')}")
    blink("the disk has to be opened")
    t0 = time.monotonic()
    new = c.sh("wait_for 5 eval 'map ram1 > /tmp/dev 2>&1'; tail -1 /tmp/dev")
    c.sh(f"dd if={new} of=/dev/null bs=4k count=1 iflag=direct status=none; unmap {new}")
    t.match(state(slow, "state"), "closed", "the slow disk")
    blink("and is being opened")
    s.sh(f"echo 0 > {P}")
    t.wait(lambda: state(slow, "state_detail").startswith("failed"), 20, "the slow disk gives up its I/O")
    t.ok(time.monotonic() - t0 < OPEN - 5, "the disk is still being opened")
    t.wait(lambda: state(slow, "state") == "open", OPEN + 10, "it is open in the end")
    t.ok(time.monotonic() - t0 > OPEN - 5 * vm.SLOW, "not before it can be")
    c.sh(f"dd if=/dev/zero of={slow} bs=4k count=1 oflag=direct status=none; pkill -TERM iopulse")
    t.eq(s.sh("ls /sys/class/ibnbd-server/ctl/devices/testdisk0/sessions | wc -l"), "1", "mappings of it on the server")
    t.eq(pulse.wait(20), 0, "the neighbour saw no error: " + pulse.out()[-500:])
