# SPDX-License-Identifier: GPL-2.0-only
description = "planted: nothing wrong"
vms = 1


def run(t):
    t.eq(t.client.sh("echo one"), "one")
    t.client.fails("false")
