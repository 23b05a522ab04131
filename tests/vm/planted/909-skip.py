# SPDX-License-Identifier: GPL-2.0-only
description = "planted: a case that cannot run"
vms = 1


def run(t):
    t.skip("planted")
