# SPDX-License-Identifier: GPL-2.0-only
description = "planted: a wrong value"
vms = 1


def run(t):
    t.eq(1, 2, "planted")
