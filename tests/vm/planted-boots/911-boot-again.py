# SPDX-License-Identifier: GPL-2.0-only
description = "planted: the machine is gone before its boot is done; the next boot goes well"
vms = 1


def run(t):
    t.client.kill()
    t.client.start()
    t.client.vm.process.kill()
    t.client.ready()
    t.eq(t.client.vm.boots, 3)
    t.client.sh("true")
