# SPDX-License-Identifier: GPL-2.0-only
"""docs/mirror.md as it stands there: one leg from each of two servers,
each in a session of its own. One server falls silent; then a leg is unmapped by force."""
import faults as F, mirrors as M
description = ("an md mirror over two servers: the rule drops a lost leg, "
               "nobody above sees an error, the bitmap brings it back")
long = True
vms = 3
links = 2               # each server has its own
deadline = 120
programs = M.PROGRAMS
HOLD = M.DROP           # seconds


def run(t):
    c, (s1, s2) = t.client, M.machines(t)
    m = M.Mirror(t, (s1, s2), chunk="1M")
    written = lambda: int(c.sh(f"awk '{{ print $7 }}' /sys/block/{m.b.name}/stat")) >> 11
    t.match(m.state(m.b), "failfast")

    w = F.Work(t, c, "/dev/md0", session="b")
    before = written()
    row = w.fault("M1", "one server of a mirror: silence", lambda: s2.link(1, False),
                  lambda: (m.dropped(m.b, 12), s2.link(1, True)), hold=HOLD, down=[0])
    w.limit(row, Nerr=0, Tdet=6, Tstall=6 + HOLD + 3)
    t.ok(row["Tstall"] > HOLD - 1, f"I/O waited for the leg: {row}")
    t.ok(m.healed(), "the rule takes the leg back")
    copied = written() - before
    t.ok(0 < copied < M.SIZE - 4,
         f"MiB written to a leg that came back to a mirror of {M.SIZE}: "
         f"{copied}, only what had changed")

    # unmapped by force while md has it: the number is the leg's until md lets go, which udev's late
    # "remove" makes it do; were the number given away at once, that would fail the new leg
    c.sh(f"udevadm control --stop-exec-queue; unmap {m.b.dev} force")
    gone = m.b
    m.b = m.legs[1] = M.Leg(s2, "b", M.map_of(c, s2, "b"))
    t.ok(gone.dev != m.b.dev, f"md has {gone.dev}, and the new mapping is that, too")
    c.sh("udevadm control --start-exec-queue; udevadm settle --timeout=20; "
         f"wait_for 10 test ! -e {gone.md}")
    c.sh(f"mdadm --zero-superblock {m.b.dev}; mdadm /dev/md0 --add --failfast {m.b.dev}")
    t.ok(m.healed(), "the new leg is whole, and stays")
    w.stop()
    t.eq(m.compare("a new leg"), "", "the halves")
    m.prove(w)
    c.sh("".join(f"unmap {leg.dev}; " for leg in m.legs))
    M.leave(t)
