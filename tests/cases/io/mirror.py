# SPDX-License-Identifier: GPL-2.0-only
"""A mirror as docs/mirror.md makes it: one leg from each of two servers, each in a session of its
own. One server falls silent; then a leg is unmapped by force, and mapped again."""
import faults as F, mirrors as M
description = ("a mirror over two servers: the driver lets a lost leg go, "
               "nobody above sees an error, the bitmap brings it back")
long = True
vms = 3
links = 2               # each server has its own
deadline = 120
programs = M.PROGRAMS
HOLD = M.DROP           # seconds


def run(t):
    c, (s1, s2) = t.client, M.machines(t)
    m = M.Mirror(t, (s1, s2), chunk="1M").watch()
    written = lambda: int(c.sh(f"awk '{{ print $7 }}' /sys/block/{m.b.kname}/stat")) >> 11
    t.match(m.state(m.b), "failfast")
    t.eq(c.sh("ibnbd mirror check data"), "data: the legs are equal", "the command")

    w = F.Work(t, c, m.dev, session="b")
    before = written()
    row = w.fault("M1", "one server of a mirror: silence", lambda: s2.link(1, False),
                  lambda: (m.dropped(m.b, 12), s2.link(1, True)), hold=HOLD, down=[0])
    w.limit(row, Nerr=0, Tdet=6, Tstall=6 + HOLD + 3)
    t.ok(row["Tstall"] > HOLD - 1, f"I/O waited for the leg: {row}")
    t.ok(m.healed(), "the watch takes the leg back")
    copied = written() - before
    t.ok(0 < copied < M.SIZE - 4,
         f"MiB written to a leg that came back to a mirror of {M.SIZE}: "
         f"{copied}, only what had changed")

    # unmapped by force while md has it: the number is the leg's until md lets go, which udev's late
    # "remove" makes it do; were the number given away at once, that would fail the new leg
    c.sh(f"udevadm control --stop-exec-queue; unmap {m.b.dev} force")
    gone, old = m.b.dev, m.b.md
    # udev does not make its links now, and the command would wait for them
    c.sh(f"map testdisk0 sessname=b name=data-b group=data hold=-1 "
         f"{M.path_of(c, s2).replace(',', '@')}")
    m.b.find()
    t.ok(gone != m.b.dev, f"md has {gone}, and the new mapping is that, too")
    c.sh("udevadm control --start-exec-queue; udevadm settle --timeout=20; "
         f"wait_for 10 test ! -e {old}")
    m.copied("a new leg")
    t.ok(m.healed(), "the new leg is whole, and stays")
    w.stop()
    t.eq(m.compare("a new leg"), "", "the halves")
    m.prove(w)
    c.sh("ibnbd unmap --forget data-a data-b")
    M.leave(t)
