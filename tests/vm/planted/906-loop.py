# SPDX-License-Identifier: GPL-2.0-only
description = "planted: the case itself never ends"
vms = 1
deadline = 4


def run(t):
    import time
    while True:
        time.sleep(0.1)
