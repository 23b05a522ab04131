# SPDX-License-Identifier: GPL-2.0-only
"""Each fault that is soon over; heals, both-dark, fenced-remap, other-writer and stale-boot have
what each of them is like at length, and two-faults the rest."""
description = ("a mirror heals by itself from each fault, one after the other: no error, a short "
               "pause, no write lost, equal halves")
vms = 3
links = 2
disk = 64
deadline = 300
import mirror_faults, mirrors
programs = mirrors.PROGRAMS


def run(t):
    r = mirror_faults.Round(t)
    for n, (name, leg) in enumerate((("link", r.b), ("disk", r.a), ("cache", r.a), ("writer", r.b),
                                     ("power", r.b), ("dark", r.a), ("client", r.a)), 10):
        r.strikes(f"M{n}", (name, leg))
    r.end()
