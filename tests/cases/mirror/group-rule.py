# SPDX-License-Identifier: GPL-2.0-only
"""The rule of a group in the driver, below an md that nothing looks after: this case says which leg
is in sync, as `ibnbd mirror watch` does.  An application writes and flushes all the time."""
description = ("a dark leg fails what md can do without, after failfast= and only while another "
               "leg is open and in sync; a flush neither hangs nor fails; what is held "
               "meanwhile is not lost")
vms = 3
links = 2
long = True
deadline = 240
import time
import mirrors as M
programs = M.PROGRAMS
FAILFAST = M.DROP
# a write and its flush, again and again: when it ended, how long it took, and its exit status
WRITER = """i=0; while [ ! -e /tmp/enough ]; do read a _ < /proc/uptime
	dd if=/dev/urandom of=/dev/md/data bs=4k count=1 seek=$((i % 64)) oflag=direct \
		conv=notrunc,fsync status=none 2>> /tmp/errors && rc=0 || rc=$?
	read b _ < /proc/uptime; echo "$b $a $rc" >> /tmp/log; i=$((i + 1)); done"""


class Writer:
    def __init__(self, t):
        self.t, self.c = t, t.client
        self.c.sh("rm -f /tmp/enough /tmp/log /tmp/errors; touch /tmp/log /tmp/errors")
        self.job = self.c.spawn(WRITER)
        t.wait(lambda: len(self.rows()) > 5, 20, "the application writes")

    def rows(self):
        return [[float(x) for x in row.split()] for row in self.c.sh("cat /tmp/log").splitlines()]

    def goes_on(self, seconds, what):
        """It writes again within that time."""
        n = len(self.rows())
        self.t.wait(lambda: len(self.rows()) > n + 3, seconds, what)

    def stop(self):
        """Returns how long the longest write with its flush took."""
        self.c.sh("touch /tmp/enough")
        self.job.wait(60)
        self.t.eq(self.c.sh("cat /tmp/errors"), "", "errors of the application")
        self.t.eq({rc for _, _, rc in self.rows()}, {0.0}, "exit status of each write and flush")
        return max(end - start for end, start, _ in self.rows())


def run(t):
    c = t.client
    m = M.Mirror(t, M.machines(t))
    state = lambda leg: m.attr(leg, "state_detail")
    says = lambda leg, value: c.sh(f"echo {value} > /sys/block/{leg.kname}/ibnbd/in_sync")

    def back(leg):
        """Dropped, and taken back by hand."""
        m.is_(leg, "open", "the link is back")
        c.sh(f"echo re-add > {leg.md}/state")
        t.ok(m.healed(), "the leg is taken back")
        says(leg, 1)

    # nobody has said that a leg is in sync: everything waits, whatever says FAILFAST
    w = Writer(t)
    c.link(1, False)
    m.is_(m.b, "held", "the link is dark")
    time.sleep(FAILFAST + 3)
    t.eq((state(m.b), "in_sync" in m.state(m.b)), ("held", True), "a leg that nobody stands for")
    c.link(1, True)
    w.goes_on(20, "the application goes on when the link is back")
    w.stop()

    # one leg is dark, the other one stands for it
    for leg in m.legs:
        says(leg, 1)
    w = Writer(t)
    c.link(1, False)
    m.dropped(m.b, FAILFAST + 6)
    t.eq((state(m.b), m.attr(m.b, "in_sync"), m.attr(m.a, "in_sync")), ("failfast", "0", "1"))
    w.goes_on(5, "the mirror goes on with one leg")
    t.below(w.stop(), FAILFAST + 3, "seconds that a write and its flush took")
    c.fails(f"echo 1 > /sys/block/{m.b.kname}/ibnbd/in_sync", "busy")
    # a direct read of the dark leg fails; a write that says no FAILFAST waits, and comes through
    c.fails(f"dd if={m.b.dev} of=/dev/null bs=4k count=1 skip=5000 iflag=direct status=none",
            "severed")
    write = c.spawn(f"dd if=/dev/zero of={m.b.dev} bs=512 count=1 seek=1 oflag=direct "
                    "conv=notrunc status=none")
    time.sleep(2)
    t.eq(state(m.b), "failfast")
    c.link(1, True)
    t.eq(write.wait(30), 0, "a write that was put aside comes through")
    back(m.b)

    # a flush alone, behind writes that both legs have answered: md writes its superblock soon
    c.sh("dd if=/dev/urandom of=/dev/md/data bs=4k count=4 oflag=direct conv=notrunc status=none")
    c.link(1, False)
    m.is_(m.b, "held", "the link is dark")
    start = time.monotonic()
    c.sh("dd if=/dev/zero of=/dev/md/data bs=512 count=0 conv=fsync,notrunc status=none",
         timeout=60)
    t.below(time.monotonic() - start, FAILFAST + 4, "seconds of a flush alone")
    c.link(1, True)
    back(m.b)

    # both are dark: nothing is let go, however long, and nobody sees an error
    w = Writer(t)
    c.link(1, False)
    time.sleep(1)
    c.link(0, False)
    time.sleep(20)
    t.eq([(state(leg), m.attr(leg, "in_sync"), "in_sync" in m.state(leg)) for leg in m.legs],
         [("held", "1", True)] * 2, "both legs in the dark")
    c.link(0, True)
    c.link(1, True)
    for leg in m.legs:
        m.is_(leg, "open", "the links are back", 20)
    w.goes_on(10, "the application goes on")
    w.stop()
    t.ok(m.healed(), "no leg was lost")

    # the leg that stood for the other one goes, too: what is left waits, and is not lost
    w = Writer(t)
    c.link(1, False)
    m.dropped(m.b, FAILFAST + 6)
    c.link(0, False)
    m.is_(m.a, "held", "the last leg")
    m.is_(m.b, "held", "nobody stands for the other one any more")
    time.sleep(FAILFAST + 3)
    # the dropped leg is open again, but it has let requests fail: it stands for nobody
    c.link(1, True)
    m.is_(m.b, "open", "the dropped leg is there")
    time.sleep(FAILFAST + 3)
    t.eq((state(m.a), "in_sync" in m.state(m.a)), ("held", True), "the last leg still waits")
    c.link(0, True)
    w.goes_on(20, "the application goes on")
    w.stop()
    back(m.b)
    t.eq(m.compare("the group rule"), "", "the halves")

    # a leg that is let go can be unmapped by force
    c.link(1, False)
    m.is_(m.b, "held", "the link is dark")
    job = c.spawn(f"dd if=/dev/zero of={m.b.dev} bs=512 count=1 seek=1 oflag=direct "
                  "conv=notrunc status=none")
    m.is_(m.b, "failfast", "let go", 20)
    c.sh(f"unmap {m.b.dev} force")
    t.ok(job.wait(20) != 0, "a write that was put aside ends with an error")
    c.link(1, True)
    c.sh(f"mdadm --stop {m.dev}; unmap {m.a.dev}")
    M.leave(t)
