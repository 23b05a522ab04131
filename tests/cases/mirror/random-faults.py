# SPDX-License-Identifier: GPL-2.0-only
"""IBNBD_MIRROR_FAULTS=n IBNBD_SEED=n.  Half of them are two at a time.  The table has one row for
each kind, with the longest pause."""
description = "faults of a mirror picked at random, one or two at a time, 200 rounds"
import os, random
import mirror_faults, mirrors

COUNT = int(os.environ.get("IBNBD_MIRROR_FAULTS") or 200)
SEED = int(os.environ.get("IBNBD_SEED") or random.randrange(1 << 31))
vms = 3
links = 2
disk = 64
long = True
deadline = COUNT * 90 + 300
programs = mirrors.PROGRAMS


def run(t):
    print(f"random-faults: seed {SEED}, {COUNT} rounds", flush=True)
    r, dice = mirror_faults.Round(t), random.Random(SEED)
    every = [(name, leg) for name in mirror_faults.FAULTS for leg in (r.a, r.b)]
    for n in range(COUNT):
        first = dice.choice([one for one in every if r.may(*one)])
        second = [one for one in every if r.may(*one, first)] if dice.randrange(2) else []
        todo = [first, dice.choice(second)] if second else [first]
        t.log(f"seed {SEED}, round {n}: {[(name, leg.session) for name, leg in todo]}")
        r.strikes("M21" if second else "M19", *todo)
    worst = {}
    for row in r.rows:
        have = worst.setdefault((row["fault"], row["what"]), dict(row, n=0))
        have["n"] += 1
        if "Tstall" in row:
            have["Tstall"] = max(have["Tstall"], row["Tstall"])
    r.rows = [dict(row, note=f"{row.pop('n')} times") for _, row in sorted(worst.items())]
    r.end()
