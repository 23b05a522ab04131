# SPDX-License-Identifier: GPL-2.0-only
description = "planted: two threads count without a lock, and the case does not look"
vms = 1


def run(t):
    t.client.sh("modprobe ibnbd-planted; echo race > /sys/module/ibnbd_planted/parameters/bug",
                timeout=60)
