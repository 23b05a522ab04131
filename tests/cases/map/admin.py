# SPDX-License-Identifier: GPL-2.0-only
description = ("what administrators do to a mapped disk: "
               "grow it on either side, take it away here and there, bring it back, learn why")
crowd = True
deadline = 240
import re

EXPORT = "/sys/class/ibnbd-server/ctl/devices/loop0"
READ = "dd if={} of=/dev/null bs=4k count=4 iflag=direct status=none"


def size(g, dev):
    return int(g.sh(f"blockdev --getsize64 {dev}"))


def file(dev, name):
    return f"/sys/block/{dev[5:]}/ibnbd/{name}"


def check_grown_meanwhile(t):
    """The server's disk grows after OPEN was answered, and before the client has made a disk of
    the answer. Returns the device."""
    c, s = t.client, t.server
    c.sh("modprobe ibnbd-client; echo delay=3000 times=1 > /sys/kernel/debug/ibtrs/client/news")
    job = c.spawn("map disk")
    t.wait(lambda: s.rc(f"test -e {EXPORT}")[0] == 0, 20, "the disk is open on the server")
    s.sh(f"truncate -s 20M /tmp/disk; losetup -c /dev/loop0; echo 1 > {EXPORT}/resize")
    t.ok(not c.sh("ls /sys/block | grep ibnbd || true"), "there is no disk yet")
    t.eq(job.wait(30), 0, "map: " + job.out())
    dev = job.out().strip()
    t.wait(lambda: size(c, dev) == 20 << 20, 5, "the client sees the new size")
    return dev


def check_resize(t, dev):
    c, s = t.client, t.server
    # the server's disk grows, its administrator says so, and the client follows by itself
    s.sh(f"truncate -s 24M /tmp/disk; losetup -c /dev/loop0; echo 1 > {EXPORT}/resize")
    t.wait(lambda: size(c, dev) == 24 << 20, 5, "the client sees the new size")
    t.eq(s.sh(f"cat {EXPORT}/size"), str(24 << 11), "size on the server")
    c.sh(f"echo tail | dd of={dev} bs=4k seek=6143 conv=sync oflag=direct status=none")
    t.eq(s.sh("dd if=/dev/loop0 bs=4k skip=6143 count=1 iflag=direct status=none | head -c 4"),
         "tail", "the new end")
    # by hand, on the client alone: a smaller view, and back
    c.sh(f"echo 0x8000 > {file(dev, 'resize')}")
    t.eq(size(c, dev), 16 << 20, "size after a local resize")
    for bad in ("0", "1x", "-1", "18014398509481984"):
        c.fails(f"echo {bad} > {file(dev, 'resize')}", "Invalid argument|out of range")
    # beyond the server's end: the node is larger, and the server refuses what is not there
    c.sh(f"echo {32 << 11} > {file(dev, 'resize')}")
    c.fails(f"dd if={dev} of=/dev/null bs=4k skip=6144 count=1 iflag=direct status=none",
            "Input/output error")
    c.sh(f"echo {24 << 11} > {file(dev, 'resize')}")
    c.sh(READ.format(dev))


def check_shrink(t, dev):
    """The server's disk shrinks while it is in use: whoever goes on would write beyond its end."""
    c, s = t.client, t.server
    s.sh(f"truncate -s 16M /tmp/disk; losetup -c /dev/loop0; echo 1 > {EXPORT}/resize")
    t.wait(lambda: c.sh(f"cat {file(dev, 'state_detail')}") == "fenced", 5, "the client knows")
    t.eq(c.sh(f"cat {file(dev, 'reason')}"), "the disk shrank", "reason")
    c.fails(READ.format(dev), "Input/output error")
    s.sh("truncate -s 24M /tmp/disk; losetup -c /dev/loop0")
    c.sh(f"echo 1 > {file(dev, 'remap_device')}; {READ.format(dev)}")
    t.eq((size(c, dev), c.sh(f"cat {file(dev, 'reason')}")), (24 << 20, ""),
         "size and reason after remap_device")


def check_force_close(t, dev):
    """The server takes the mapping away: definite errors, a reason, and
    remap_device as the way back."""
    c, s = t.client, t.server
    s.sh(f"echo 1 > {EXPORT}/sessions/s1/force_close")
    t.wait(lambda: c.sh(f"cat {file(dev, 'state_detail')}") == "fenced", 5, "the client knows")
    t.eq(c.sh(f"cat {file(dev, 'state')}"), "closed", "state")
    t.match(c.sh(f"cat {file(dev, 'reason')}"), "the server closed the export", "reason")
    c.fails(READ.format(dev), "Input/output error")
    c.fails(f"echo 1 > {file(dev, 'resize')}", "No such file")
    s.sh("wait_for 5 test ! -e " + EXPORT)
    c.sh(f"echo 1 > {file(dev, 'remap_device')}; {READ.format(dev)}")
    t.eq(c.sh(f"cat {file(dev, 'state')}"), "open", "state after remap_device")
    t.eq(c.sh(f"cat {file(dev, 'reason')}"), "", "reason")
    c.fails(f"echo 2 > {file(dev, 'remap_device')}", "Invalid argument")
    t.match(c.sh("cat $(ctl)/last_error"), "remap_device takes 1", "last_error")
    c.fails(f"echo 1 > {file(dev, 'remap_device')}", "already in progress")
    t.eq(c.sh("cat $(ctl)/last_error"), "", "an earlier refusal explains no later error")


def check_other_disk(t, dev):
    """Another disk behind the same name is never taken for the old one."""
    c, s = t.client, t.server
    s.sh(f"ln -sfn /dev/loop1 /exp/disk; echo 1 > {EXPORT}/sessions/s1/force_close; "
         f"wait_for 5 test ! -e {EXPORT}")
    t.wait(lambda: c.sh(f"cat {file(dev, 'state_detail')}") == "fenced", 5, "the client knows")
    user = c.spawn(f"exec 5< {dev}; sleep 100")
    c.sh("sleep 1")
    refused = lambda why: (
        c.fails(f"echo 1 > {file(dev, 'remap_device')}", "busy"),
        t.match(c.sh("cat $(ctl)/last_error"), "is in use: unmount it, or take it out of its "
                f"array, before remapping: {why}", "last_error"))
    refused("the server closed the export")
    # nor is the right one, while anybody has it open
    s.sh("ln -sfn /dev/loop0 /exp/disk")
    refused("the server closed the export")
    t.eq(s.sh("ls /sys/class/ibnbd-server/ctl/devices"), "", "the server was not asked")
    s.sh("ln -sfn /dev/loop1 /exp/disk")
    user.kill()
    # by an administrator's word, with nobody on it, it is
    c.sh(f"wait_for 5 sh -c 'echo 1 > {file(dev, 'remap_device')}'; {READ.format(dev)}")
    t.eq(size(c, dev), 8 << 20, "the other disk's size")
    s.sh("ln -sfn /dev/loop0 /exp/disk")


def check_disconnect(t, dev):
    """The server drops the path: the client returns by itself, and nobody sees an error."""
    c, s = t.client, t.server
    pulse = c.spawn(f"iopulse {dev} 1 500 r 5000")
    c.sh("sleep 1")
    s.sh("echo 1 > $(echo /sys/class/ibtrs-server/s1/paths/*/disconnect)")
    t.wait(lambda: c.sh("cut -d' ' -f1 /sys/class/ibtrs-client/s1/paths/*/stats/reconnects") == "1",
           10, "it came back")
    t.wait(lambda: c.sh(f"cat {file(dev, 'state')}") == "open", 5, "the device is open again")
    c.sh("sleep 1; pkill -TERM iopulse")
    t.eq(pulse.wait(10), 0, "no error: " + pulse.out()[-500:])


def check_unmap(t, dev):
    c, s = t.client, t.server
    user = c.spawn(f"exec 5< {dev}; sleep 100")
    c.sh("sleep 1")
    c.fails(f"echo normal > {file(dev, 'unmap_device')}", "busy")
    c.sh(f"unmap {dev} force")
    t.eq(c.sh("ls $(ctl)/devices"), "", "links")
    s.sh("wait_for 5 test ! -e /sys/class/ibnbd-server/ctl/devices/loop1")
    user.kill()
    # with I/O that hangs in the server's disk: five seconds of patience,
    # then the path is broken under it
    s.sh("modprobe ibnbd-testdisk delay_ms=12000; ln -sfn /dev/testdisk0 /exp/disk")
    dev = c.sh("map disk")
    writer = c.spawn(f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none")
    # it is open, and does not answer: how long it has been so is told
    t.wait(lambda: int(c.sh(f"cat {file(dev, 'oldest_ms')}")) >= 2000, 10, "the oldest request")
    t.eq(c.sh(f"cat {file(dev, 'state')}"), "open", "state meanwhile")
    took = float(c.sh(f"a=$(uptime_s); unmap {dev} force; since $a"))
    t.below(took, 12, "seconds of unmap force under hanging I/O")
    t.ok(writer.wait(10) != 0, "the hanging write ended with an error")
    s.sh("echo 0 > /sys/module/ibnbd_testdisk/parameters/delay_ms; "
         "wait_for 20 sh -c '[ -z \"$(ls /sys/class/ibnbd-server/ctl/devices)\" ]'")


def check_words(t):
    """Each side says in its last_error what it refused, whom, and what to do."""
    c, s = t.client, t.server
    c.fails("map nosuch", "No such file")
    t.match(c.sh("cat $(ctl)/last_error"),
            r"cannot open nosuch on session s1 \(-2\): "
            r"the server says: there is no such name; put a symbolic link")
    t.match(s.sh("cat /sys/class/ibnbd-server/ctl/last_error"),
            r"session s1: nosuch refused: .* put a symbolic link .* \(-2\)")
    s.sh("echo > /sys/module/ibnbd_server/parameters/dev_search_path")
    c.fails("map disk", "Permission denied|refused|reset")
    s.sh("echo /exp > /sys/module/ibnbd_server/parameters/dev_search_path")


def run(t):
    c, s = t.client, t.server
    s.sh("modprobe loop max_loop=2; truncate -s 16M /tmp/disk; truncate -s 8M /tmp/disk1; "
         "mkdir -p /exp; ln -sfn /dev/loop0 /exp/disk; "
         "losetup /dev/loop0 /tmp/disk; losetup /dev/loop1 /tmp/disk1; serve dev_search_path=/exp")
    t.allow(r"I/O error, dev ibnbd0")
    dev = check_grown_meanwhile(t)
    monitor = c.spawn("exec ibnbd monitor > /h/monitor")
    told = lambda what: t.wait(
        lambda: re.search(f"device +{dev[5:]} {what}", c.sh("cat /h/monitor")), 5,
        f"a uevent says: {what}")
    c.sh("sleep 1")
    check_resize(t, dev)
    told("change resized")
    check_shrink(t, dev)
    told("offline fenced: the disk shrank")
    check_force_close(t, dev)
    told("offline fenced: the server closed the export")
    told("online open")
    check_disconnect(t, dev)
    told("offline held: no path to the server is up")
    monitor.kill()
    check_other_disk(t, dev)
    check_unmap(t, dev)
    check_words(t)
