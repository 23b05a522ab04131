# SPDX-License-Identifier: GPL-2.0-only
"""What ibnbd-suspend.service does, by hand: the machines of the rig have no systemd.  The kernel
goes as far into a suspend as the freezer and comes back (pm_test): what waits for a server that is
gone stands in its way before that."""
import time
import vm
description = ("a suspend waits for a lost server no longer than ibnbd-suspend.service says, "
               "and hold= is put back after it")
long = True


def run(t):
    c, s = t.client, t.server

    if c.rc("grep -qw freezer /sys/power/pm_test && grep -qw freeze /sys/power/state")[0]:
        t.skip("this kernel cannot try a suspend (CONFIG_PM_DEBUG)")
    s.sh("serve; ram_disks 1 16")
    dev = c.sh("map ram0 hold=-1")
    c.sh("echo freezer > /sys/power/pm_test; echo 1 > /sys/module/suspend/parameters/pm_test_delay")
    hold = lambda: c.sh(f"dev_attr {dev} hold")
    freeze = "echo freeze > /sys/power/state"

    def lose():
        c.link(0, False)
        t.wait(lambda: c.sh(f"dev_attr {dev} state") == "closed", 10, "the device holds its I/O")

    def back():
        c.link(0, True)
        c.sh(f"wait_for 15 eval '[ \"$(dev_attr {dev} state)\" = open ]'")
        c.sh(f"dd if={dev} of=/dev/null bs=4k count=1 iflag=direct status=none")

    # with the server nothing stands in the way
    c.sh(freeze)

    # a process waits for I/O, and cannot be frozen
    lose()
    c.sh("echo 0 > /sys/power/sync_on_suspend; echo 3000 > /sys/power/pm_freeze_timeout")
    reader = c.spawn(f"exec dd if={dev} of=/dev/null bs=4k count=1 skip=100 iflag=direct")
    c.sh("wait_for 5 pgrep -x dd; sleep 1")
    t.allow("Freezing .* failed after .*1 tasks refusing to freeze")
    c.fails(freeze, "busy")
    c.sh("ibnbd maps release --remember")
    t.eq(hold(), "5", "hold= in the suspend")
    t.ok(reader.wait(10) != 0, "the reader was given an error")
    c.sh(freeze)
    c.sh("ibnbd maps restore")
    t.eq(hold(), "-1", "hold= after the suspend")
    back()

    # a dirty page, which the kernel writes back before it freezes anything
    c.sh("echo 1 > /sys/power/sync_on_suspend; echo 20000 > /sys/power/pm_freeze_timeout")
    lose()
    t.allow("Buffer I/O error on dev ibnbd0.*lost async page write")
    writer = c.spawn(f"exec 5<> {dev}; head -c 4096 /dev/zero >&5; echo dirty; exec sleep 300")
    t.wait(lambda: "dirty" in writer.out(), 5, "a dirty page")
    suspend = c.spawn(freeze)
    time.sleep(8)
    t.eq(suspend.rc, None, "the suspend waits for the page with hold=-1")
    t0 = time.monotonic()
    c.sh("ibnbd maps release --remember")
    t.eq(suspend.wait(20), 0, "the suspend: " + suspend.out())
    t.below(time.monotonic() - t0, 5 * vm.SLOW, "seconds until the suspend was over")
    c.sh("ibnbd maps restore")
    t.eq(hold(), "-1", "hold= after the suspend")
    writer.kill()
    back()

    # as the unit does it: first the release, then the suspend
    lose()
    writer = c.spawn(f"exec 5<> {dev}; head -c 4096 /dev/zero >&5; echo dirty; exec sleep 300")
    t.wait(lambda: "dirty" in writer.out(), 5, "a dirty page")
    t0 = time.monotonic()
    c.sh(f"ibnbd maps release --remember; {freeze}; ibnbd maps restore", timeout=25)
    t.below(time.monotonic() - t0, 10 * vm.SLOW,
            "seconds that the suspend took, 5 of them for hold=")
    t.eq(hold(), "-1", "hold= after the suspend")
    writer.kill()
    back()
    c.sh("echo none > /sys/power/pm_test")
