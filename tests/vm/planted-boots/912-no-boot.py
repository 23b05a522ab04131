# SPDX-License-Identifier: GPL-2.0-only
description = "planted: a machine that can not boot"
vms = 1
append = "rdinit=/none root=/dev/none"


def run(t):
    t.client.sh("true")
