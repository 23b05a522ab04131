# SPDX-License-Identifier: GPL-2.0-only
"""Disks that nobody can open for a while (their host recovers from an error) are opened anew when
their client comes back.  The client's other disks do not wait for that: not when they are opened,
and not when the path is lost once more.  The slow ones are held meanwhile (law L4)."""
description = ("a dozen disks take 40 s to be opened when their client comes back: "
               "its other disks are there at once, each time, and new ones too")
long = True
deadline = 240
import time
import vm

OPEN = 40
SLOW = 12
FORCE = 10
UNCLAIMED = 20      # OPEN_UNCLAIMED of ibnbd/server/session.c
P = "/sys/module/ibnbd_testdisk/parameters/open_ms"


def run(t):
    c, s = t.client, t.server
    s.sh(f"serve; modprobe ibnbd-testdisk cache=0 nr_disks={SLOW} size_mb=4; ram_disks 2 16")
    *slow, near = [c.sh(f"map {d}") for d in (*(f"testdisk{i}" for i in range(SLOW)), "ram0")]
    state = lambda dev, what: c.sh(f"dev_attr {dev} {what}")
    s.sh(f"echo {OPEN * 1000} > {P}")
    pulse = c.spawn(f"iopulse {near} 2 500 rw 5000")

    def blink(why):
        c.link(0, False)
        t.wait(lambda: state(near, "state") == "closed", 15, f"{why}: the path is lost")
        c.link(0, True)
        took = t.wait(lambda: state(near, "state") == "open", 8,
                      f"{why}: the neighbour is open again")
        t.log(f"{why}: open after {took:.1f} s; the others: {state(slow[0], 'state_detail')}")
    blink("the disks have to be opened")
    t0 = time.monotonic()
    new = c.sh("wait_for 5 eval 'map ram1 > /tmp/dev 2>&1'; tail -1 /tmp/dev")
    c.sh(f"dd if={new} of=/dev/null bs=4k count=1 iflag=direct status=none; unmap {new}")
    for dev in slow:
        t.match(state(dev, "state"), "closed", "a slow disk")
    # an administrator need not wait for one of them, nor who writes to it
    dev = slow.pop()
    job = c.spawn(f"exec dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none")
    begin = time.monotonic()
    c.sh(f"sleep 1; unmap {dev} force")
    gone = f"testdisk{len(slow)}"
    t.eq(job.wait(5), 1, "the task that wrote to it has ended")
    t.below(time.monotonic() - begin, FORCE * vm.SLOW if vm.SLOW > 2 else FORCE,
            "seconds until a disk that is being opened was gone")
    blink("and are being opened")
    s.sh(f"echo 0 > {P}")
    time.sleep(max(0, t0 + 15 - time.monotonic()))
    for dev in slow:
        t.match(state(dev, "state_detail"), "^held", "nothing but hold= limits that")
    t.ok(time.monotonic() - t0 < OPEN - 5, "the disks are still being opened")
    for dev in slow:
        t.wait(lambda: state(dev, "state") == "open", OPEN + 10, "it is open in the end")
    t.ok(time.monotonic() - t0 > OPEN - 5 * vm.SLOW, "not before it can be")
    for dev in slow:
        c.sh(f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none")
    c.sh("pkill -TERM iopulse")
    opens = s.sh("ls -d /run/devices/testdisk*/sessions/*")
    for i, dev in enumerate(slow):
        t.match(opens, f"/testdisk{i}/sessions/s1$", f"the server has {dev} open")
    # the server opened the one that was taken away, for nobody, and lets others have it
    c.sh(f"wait_for {UNCLAIMED + 10} eval 'map {gone} sessname=s2 > /tmp/dev 2>&1'; "
         "unmap $(tail -1 /tmp/dev)", timeout=60)
    t.wait(lambda: s.rc(f"ls -d /run/devices/{gone}")[0], 5, f"nobody has {gone} open")
    t.eq(pulse.wait(20), 0, "the neighbour saw no error: " + pulse.out()[-500:])
