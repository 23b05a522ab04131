# SPDX-License-Identifier: GPL-2.0-only
description = "planted: a machine that cannot boot"
vms = 1
append = "rdinit=/none root=/dev/none"


def run(t):
    t.client.sh("true")
