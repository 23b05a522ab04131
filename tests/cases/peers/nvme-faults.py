# SPDX-License-Identifier: GPL-2.0-only
description = ("the faults of ours under nvme-rdma with native multipath: "
               "rows beside ours, whatever they say")
links = 2
disk = 64
faults = True
long = True
target = "check-faults"
fresh = True
deadline = 5400
needs = ["nvme-rdma", "nvmet-rdma"]
import peers


def run(t):
    peers.run(t, peers.Nvme())
