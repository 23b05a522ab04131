# SPDX-License-Identifier: GPL-2.0-only
description = "planted: the kernel warned before the machine was killed and booted again"
vms = 1


def run(t):
    t.client.sh("echo '<4>WARNING: CPU: 0 PID: 1 at planted' > /dev/kmsg; sleep 1")
    t.client.kill()
    t.client.boot()
    t.client.sh("true")
