# SPDX-License-Identifier: GPL-2.0-only
description = "planted: machines after a leftover are clean"
vms = 1


def run(t):
    t.client.fails("grep /srv /proc/mounts")
