# SPDX-License-Identifier: GPL-2.0-only
description = "the faults of ours under the kernel's own rnbd: rows beside ours, whatever they say"
links = 2
disk = 64
faults = True
long = True
target = "check-faults"
fresh = True
deadline = 5400
needs = ["rnbd-client", "rnbd-server"]
import peers


def run(t):
    peers.run(t, peers.Rnbd())
