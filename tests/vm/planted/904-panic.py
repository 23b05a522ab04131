# SPDX-License-Identifier: GPL-2.0-only
description = "planted: the machine dies"
vms = 1


def run(t):
    t.client.rc("echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger", timeout=20)
