# SPDX-License-Identifier: GPL-2.0-only
description = ("what may befall one path, and all, with user space at either end or both: "
               "no I/O fails, and nothing is lost, doubled or late")
long = True
deadline = 1200
links = 2
import interop
needs = ["ibnbd-testdisk"]
programs = interop.PROGRAMS


def run(t):
    if not interop.has_user(t):
        t.skip("make lib serverd; tests/setup.sh")
    for pair in (interop.Pair(t, interop.OURS, interop.USER),
                 interop.UserClient(t, interop.OURS), interop.UserClient(t, interop.USER)):
        t.log(f"--- {pair.client} {pair.server}")
        pair.serve(interop.FEW)
        t.server.sh("modprobe ibnbd-testdisk size_mb=16 cache=0")
        dev = pair.map("testdisk0")
        pair.faults(dev)
        pair.strangers(dev)
        pair.unmap(dev)
        pair.stop()
        t.server.sh("unload ibnbd_testdisk")
