# SPDX-License-Identifier: GPL-2.0-only
"""When unmap_device returns, disk and number are gone; a number is taken as long as anybody has the
old disk, by name or open, as with sd and nvme."""
description = ("unmap and map give the same number, and never one that somebody still has open, "
               "whatever udev has not heard yet")
crowd = True
deadline = 180

P = "/sys/module/ibnbd_testdisk/parameters"
UNMAP = "echo {} > /sys/block/{}/ibnbd/unmap_device"


def again(t):
    """The store returns: no waiting in here."""
    t.client.sh("""
        words="sessname=s1 device_path=ram0 $(paths)"
        for i in $(seq 20); do
            for how in normal force; do
                echo $how > /sys/block/ibnbd0/ibnbd/unmap_device
                [ ! -e /sys/block/ibnbd0 ] && [ ! -e /dev/ibnbd0 ] || fail "still there"
                map_line "$words"
                [ -e /sys/block/ibnbd0 ] && [ ! -e /sys/block/ibnbd1 ] ||
                    fail "another number: $(ls /sys/block)"
            done
        done""", timeout=60)


def held(t, what, hold, release):
    """The old disk is somebody's still: its number is, too, until that ends."""
    c = t.client
    keeper = hold()
    c.sh(UNMAP.format("force", "ibnbd0") + "; [ ! -e /sys/block/ibnbd0 ] && [ ! -e /dev/ibnbd0 ]")
    t.eq(c.sh("map ram0"), "/dev/ibnbd1", f"the next disk, while {what}")
    t.match("\n".join(c.kernel_news().splitlines()[-20:]), "ibnbd0: still open")
    c.sh("dd if=/dev/zero of=/dev/ibnbd1 bs=4k count=1 oflag=direct status=none; " +
         UNMAP.format("normal", "ibnbd1"))
    c.fails("rmmod ibnbd_client", "in use|busy|unavailable")
    t.eq(c.sh("map ram0"), "/dev/ibnbd1", f"the one after, while {what}")
    c.sh(UNMAP.format("normal", "ibnbd1"))
    release(keeper)
    # the last reference may go a moment after the opener
    c.sh("d=; for i in $(seq 20); do d=$(map ram0); [ $d != /dev/ibnbd0 ] || break; unmap $d; "
         "sleep 0.1; done; [ $d = /dev/ibnbd0 ]")


def open_fd(t):
    keeper = t.client.spawn("exec 5<> /dev/ibnbd0; touch /tmp/opened; exec sleep 100")
    t.client.sh("wait_for 5 test -e /tmp/opened; rm /tmp/opened")
    return keeper


def mapper(t):
    t.client.sh("modprobe dm-mod; dmsetup create keeper --table '0 1024 linear /dev/ibnbd0 0'")


HANGS = ("dd if=/dev/zero of=/dev/{0} bs=4k count=1 oflag=direct status=none & wait_for 10 "
         "eval '[[ $(< /sys/block/{0}/inflight) = *\ 1 ]]'")


def ends(t):
    """A removal that takes its time, for a write is not answered: who waits for it, who is killed
    in it, and who comes meanwhile."""
    c, s = t.client, t.server
    s.sh(f"modprobe ibnbd-testdisk cache=0; echo 4000 > {P}/delay_ms")
    t.eq(c.sh("map testdisk0"), "/dev/ibnbd1", "the second disk")
    c.sh(HANGS.format("ibnbd1") + """
        file=/sys/block/ibnbd1/ibnbd/unmap_device
        state() { [ "$(dev_attr ibnbd1 state)" = unmapped ]; }
        echo force > $file & first=$!
        wait_for 5 state
        ! echo force 2> /tmp/err > $file || fail "unmapped twice"
        ! rmmod ibnbd_client 2> /dev/null || fail "unloaded under a removal"
        kill -9 $first
        rc=0; wait $first || rc=$?
        [ $rc = 137 ] && state || fail "killed with $rc, $(dev_attr ibnbd1 state)"
        """)
    t.eq(c.sh("map testdisk0"), "/dev/ibnbd1",
         "who maps it again waits for the removal, and gets the number")
    s.sh(f"echo 0 > {P}/delay_ms")
    c.sh(UNMAP.format("normal", "ibnbd1"))


def late_news(t):
    """udev hears of the removal when the next disk is there: by name it must not be that one."""
    c = t.client
    if c.rc("type udevadm > /dev/null")[0]:
        c.sh("unmap ibnbd0")
        return "no udevadm in the machines: nobody has heard late"
    c.sh("""
        mkdir -p /run/udev/rules.d
        echo 'ACTION=="remove", KERNEL=="ibnbd*", RUN+="/bin/touch /tmp/removed-%k"' \\
            > /run/udev/rules.d/99-test.rules
        udev_start""", timeout=60)
    keeper = open_fd(t)
    c.sh("udevadm control --stop-exec-queue; " + UNMAP.format("force", "ibnbd0"))
    t.eq(c.sh("map ram0"), "/dev/ibnbd1", "the next disk")
    c.sh("udevadm control --start-exec-queue; udevadm settle --timeout=20; "
         "wait_for 5 test -e /tmp/removed-ibnbd0; [ ! -e /tmp/removed-ibnbd1 ]", timeout=60)
    keeper.kill()
    c.sh("unmap ibnbd1; udevadm settle --timeout=20; udevadm control --exit; "
         "rm -f /run/udev/rules.d/99-test.rules", timeout=60)


def command(t):
    """`ibnbd unmap` says what the store says, and --wait is what it waits at most."""
    c, s = t.client, t.server
    if c.rc("type ibnbd > /dev/null")[0]:
        return "no ibnbd command in the machines: make tools"
    t.eq(c.sh("map ram0"), "/dev/ibnbd0", "a disk for the command")
    c.sh("ibnbd unmap ibnbd0; [ ! -e /sys/block/ibnbd0 ]")
    s.sh(f"echo 4500 > {P}/delay_ms")
    t.eq(c.sh("map testdisk0"), "/dev/ibnbd0", "a disk that hangs")
    out = c.sh(HANGS.format("ibnbd0") + """
        ibnbd unmap ibnbd0 --force --wait 0
        [ -e /sys/block/ibnbd0 ] || fail "it has waited"
        ! ibnbd unmap ibnbd0 --force --wait 1 2>&1 || fail "it has not waited"
        ibnbd unmap ibnbd0 --force
        [ ! -e /sys/block/ibnbd0 ] || fail "it has not waited long enough"
        """, timeout=60)
    t.match(out, "still there after 1 seconds")
    s.sh(f"echo 0 > {P}/delay_ms")


def run(t):
    c, s = t.client, t.server
    s.sh("serve; ram_disks 1 16")
    t.eq(c.sh("map ram0"), "/dev/ibnbd0", "the first disk")
    again(t)
    held(t, "a process has it open", lambda: open_fd(t), lambda keeper: keeper.kill())
    held(t, "the device mapper has it open", lambda: mapper(t),
         lambda _: c.sh("dmsetup remove keeper"))
    ends(t)
    skipped = [why for why in (late_news(t), command(t)) if why]
    if skipped:         # the rest has passed, and that is not all of it
        t.skip("; ".join(skipped))
