# SPDX-License-Identifier: GPL-2.0-only
description = "planted: a job does not end"
vms = 1


def run(t):
    t.client.sh("echo before; sleep 1000", timeout=3)
