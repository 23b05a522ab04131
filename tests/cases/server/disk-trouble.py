# SPDX-License-Identifier: GPL-2.0-only
"""stamp runs on a neighbour of the disk in trouble, in the same session: it must not feel
anything.  And on the disk in trouble itself, which may fail what it is asked, but not
lose what it has acknowledged."""
description = ("the disk behind the server fails, is slow, goes away, grows, is exchanged: "
               "the client hears exactly that")
links = 2
disk = 64
faults = True
long = True
deadline = 240
import time
import faults as F

P = "/sys/module/ibnbd_testdisk/parameters"
WRITE = "dd if=/dev/zero of={} bs=4k count=1 oflag=direct status=none"
READ = "dd if={} of=/dev/null bs=4k count=1 iflag=direct status=none"
REASON = "another disk is behind this name now"


def run(t):
    c, s = t.client, t.server

    s.sh("ram_disks 1 16; modprobe ibnbd-testdisk nr_disks=3; modprobe loop; "
         "truncate -s 16M /tmp/f; losetup /dev/loop0 /tmp/f;"
         "modprobe sd_mod; modprobe scsi_debug dev_size_mb=16 delay=0; "
         "wait_for 10 test -b /dev/sda;"
         "for i in 1 2; do "
         "dmsetup create d$i --uuid T-$i --table \"0 131072 linear /dev/testdisk$i 0\"; done;"
         "[ -e /dev/mapper/d1 ] || dmsetup mknodes; ln -sfn /dev/mapper/d1 /dev/mine; serve")
    near = c.sh("map ram0")
    far, gone, grows, mine = (c.sh(f"map {d}") for d in ("testdisk0", "sda", "loop0", "mine"))
    c.spawn("exec ibnbd monitor > /h/monitor")
    w = F.Work(t, c, near)
    own = F.Work(t, c, far, writer=2, threads=2, think_us=20000)
    free = far + " seek=4000"           # beyond what stamp has

    def trouble(number, what, act, note=""):
        begin = time.monotonic()
        row = w.fault(number, what, act, hold=0.5, note=note)
        t.eq([x for x in w.watch.changes if x[0] >= begin], [], f"{number}: news of the paths")
        w.limit(row, Nerr=0, Tstall=3)
        return row

    def codes():
        for errno, text in F.CODES:
            for kind, script in ("write", WRITE.format(free)), ("read", READ.format(far)):
                s.sh(f"echo {errno} > {P}/fail_errno; echo {kind} > {P}/fail")
                c.fails(script, text)
        s.sh(f"echo none > {P}/fail")
        c.sh(WRITE.format(free) + "; " + READ.format(far))
    n = len(F.CODES)
    trouble("F16", "disk answers with errors", codes,
            f"{n} of {n} error codes arrive, of writes and of reads")
    t.wait(own.flows, 10, "I/O of the disk that is well again")

    def slow():
        s.sh(f"echo 9000 > {P}/delay_ms")
        took = float(c.sh(f"t=$(uptime_s); {WRITE.format(free)}; since $t"))
        t.ok(took > 8, f"the slow write took its {took} s")
        s.sh(f"echo 0 > {P}/delay_ms")
    errors = len(own.read_logs().failed)
    trouble("F17", "disk needs 9 s for a write", slow, "no path was given up")
    t.wait(own.flows, 20, "I/O of the disk that is quick again")
    t.eq(len(own.read_logs().failed), errors, "writes that failed because the disk was slow")
    # a mapping that wants its path broken for that says so (law L19): the other one then, and
    # I/O of the neighbour goes there
    c.sh(f"echo 3 > /sys/block/{far[5:]}/ibnbd/io_timeout")
    row = w.fault("F17", "the same, with io_timeout=3",
                  lambda: s.sh(f"echo 9000 > {P}/delay_ms; sleep 1; echo 0 > {P}/delay_ms"), hold=9)
    c.sh(f"echo 0 > /sys/block/{far[5:]}/ibnbd/io_timeout")
    t.match(c.kernel_news(), "path lost: .*io_timeout|not answered", "the path was broken")
    w.limit(row, Nerr=0)

    def remove():
        s.sh("echo 1 > /sys/block/sda/device/delete")
        c.fails(WRITE.format(gone), "error|No such device|not permitted")
    trouble("F18", "disk is taken out", remove)

    def grow():
        job = c.spawn(f"until [ $(blockdev --getsize64 {grows}) = {24 << 20} ]; "
                      "do usleep 20000; done")
        s.sh("truncate -s 24M /tmp/f; losetup -c /dev/loop0")
        t0 = time.monotonic()
        t.eq(job.wait(5), 0, "the client sees the disk grow")
        t.below(time.monotonic() - t0, F.within(1), "seconds until the client sees it")
    trouble("F19", "disk grows", grow, "the client knows")

    zeros = "cmp -n 1048576 /dev/mapper/d2 /dev/zero"
    s.sh(zeros)
    c.sh(f"(yes mine || true) | head -c 4096 | dd of={mine} bs=4k oflag=direct status=none")

    def exchange():
        [c.link(i, False) for i in (0, 1)]
        t.wait(lambda: c.sh(f"dev_attr {mine} state") == "closed", 10, "the device waits")
        # till then it has the old one open
        s.sh("wait_for 20 test ! -e /run/sessions/s1; ln -sfn /dev/mapper/d2 /dev/mine")
        [c.link(i, True) for i in (0, 1)]
    row = w.fault("F20", "another disk behind the name", exchange, hold=0)
    t.wait(lambda: "fenced" in c.sh(f"dev_attr {mine} state_detail"), 15,
           "the client refuses the other disk")
    t.eq(c.sh(f"dev_attr {mine} reason"), REASON, "the reason")
    t.wait(lambda: f"{mine[5:]} offline fenced: {REASON}" in c.sh("cat /h/monitor"), 5,
           "the uevent")
    c.fails(WRITE.format(mine), "rror")
    s.sh(zeros)
    row["note"] = "fenced, nothing was written to it"
    s.sh("ln -sfn /dev/mapper/d1 /dev/mine")
    c.sh(f"wait_for 10 eval 'echo 1 > /sys/block/{mine[5:]}/ibnbd/remap_device'")
    t.match(c.sh(f"dd if={mine} bs=4k count=1 iflag=direct status=none"), "^mine",
            "the right disk again")
    w.end("/dev/ram0")
    own.end("/dev/testdisk0", errors_expected=True)
