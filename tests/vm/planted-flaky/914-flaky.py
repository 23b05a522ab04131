# SPDX-License-Identifier: GPL-2.0-only
description = "fails the first time, and passes when it is run again"
vms = 0
runs = []


def run(t):
    runs.append(t)
    t.eq(len(runs), 2, "number of this run")
