# SPDX-License-Identifier: GPL-2.0-only
description = "planted: the kernel warns, and the case does not look"
vms = 1


def run(t):
    t.client.sh("echo '<4>WARNING: CPU: 0 PID: 1 at planted' > /dev/kmsg")
