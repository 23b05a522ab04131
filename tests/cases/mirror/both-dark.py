# SPDX-License-Identifier: GPL-2.0-only
"""The links of a client go dark, first one and then both, as when its switch restarts.  When they
come back the second one does so late."""
description = ("a client that sees neither server of its mirror waits for them without an error; "
               "while one is there the other leg is dropped, and it is taken back by the bitmap")
vms = 3
links = 2
long = True
deadline = 120
import faults as F, mirrors as M
programs = M.PROGRAMS
DARK = M.DROP + 5
STATE = "/sys/class/ibtrs-client/{}/paths/*/state"


def run(t):
    c, servers = t.client, M.machines(t)
    m = M.Mirror(t, servers, chunk="1M").watch()
    w = F.Work(t, c, m.dev, states=" ".join(map(STATE.format, "ab")))
    written = lambda: int(c.sh(f"awk '{{ print $7 }}' /sys/block/{m.b.kname}/stat")) >> 11
    before = written()

    def dropped():
        m.dropped(m.b, 12)
        t.eq(m.record(), ["data-a"], "the record, before b is back")
        c.link(1, True)
    row = w.fault("M2", "one link of a mirror's client: carrier down", lambda: c.link(1, False),
                  dropped, hold=M.DROP, down=[1])
    w.limit(row, Nerr=0, Tstall=M.DROP + 4)
    t.ok(m.healed(), "the watch takes the leg back")
    m.said("data-b is back: what was written meanwhile is copied")
    t.below(written() - before, M.SIZE - 4, "MiB written to a leg that came back")
    t.wait(lambda: m.record() == ["data-a", "data-b"], 20, "both are recorded again")

    def heal():
        t.eq(["in_sync" in m.state(leg) for leg in m.legs], [True, True], "both legs in the dark")
        c.link(0, True)
        m.dropped(m.b, 20)
        c.link(1, True)
    row = w.fault("M3", "both links of a mirror's client: carrier down",
                  lambda: (c.link(0, False), c.link(1, False)), heal, hold=DARK, down=[0, 1])
    w.limit(row, Nerr=0, Tstall=DARK + M.DROP + 10)
    t.ok(m.healed(), "the watch takes the late leg back")
    t.eq(c.rc(f"cat /sys/block/{m.md0}/md/dev-*/bad_blocks")[1], "", "bad blocks")
    w.stop()
    t.eq(m.compare("both dark"), "", "the halves")
    m.prove(w)
    M.leave(t)
