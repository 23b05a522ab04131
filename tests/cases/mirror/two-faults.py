# SPDX-License-Identifier: GPL-2.0-only
"""The second fault strikes while the resync of the first one runs, which is slow here."""
description = ("a mirror heals by itself from two faults at a time: of the leg that is being "
               "copied, of the only whole one, of all of them")
vms = 3
links = 2
disk = 64
long = True
deadline = 2400
import mirror_faults, mirrors
programs = mirrors.PROGRAMS


def run(t):
    r = mirror_faults.Round(t)
    a, b = r.a, r.b
    for name, leg in ("link", a), ("disk", b), ("writer", a), ("power", a), ("stale", b), \
            ("stale", a):       # what each-fault leaves out
        r.strikes("M18", (name, leg))
    for first, second in (
            (("link", b), ("link", a)), (("link", b), ("link", b)), (("link", b), ("dark", b)),
            (("link", a), ("power", b)), (("power", b), ("power", b)), (("power", a), ("disk", a)),
            (("disk", a), ("link", b)), (("cache", a), ("power", b)), (("cache", a), ("cache", a)),
            (("writer", b), ("link", a)), (("writer", a), ("writer", a)),
            (("link", b), ("client", b)), (("cache", a), ("client", a))):
        r.strikes("M20", first, second)
    r.end()
