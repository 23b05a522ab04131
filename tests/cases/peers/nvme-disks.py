# SPDX-License-Identifier: GPL-2.0-only
description = ("who has the disk, and its troubles, under nvme-rdma: "
               "rows beside ours, whatever they say")
vms = 3
links = 2
disk = 64
faults = True
long = True
target = "check-faults"
fresh = True
deadline = 5400
needs = ["nvme-rdma", "nvmet-rdma"]
import peer_disks, peers


def run(t):
    peer_disks.run(t, peers.Nvme())
