# SPDX-License-Identifier: GPL-2.0-only
import selftest

description = ("the runner boots a machine again that was gone before its boot was done, "
               "keeps what the last boot said, and gives up on one that cannot boot")
vms = 0
long = True
deadline = 400

PLANTED = {
    "910-old-boot": r"WARNING: CPU: 0 PID: 1 at planted",
    "911-boot-again": None,
    "912-no-boot": (r"(?s)the rig did not start: client did not boot: "
                    r"QEMU ended with status 0.*Unable to mount root"),
}


def run(t):
    out = selftest.run(t, "planted-boots", PLANTED)
    t.eq(out.count("rig: client is booted again: QEMU ended with status"), 3, "boots begun again")
