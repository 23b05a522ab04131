# SPDX-License-Identifier: GPL-2.0-only
description = ("the kernel's client and our server, always_invalidate Y and N: "
               "I/O, flush, discard, zeroes, ro, wrong names")
crowd = True
deadline = 500
import interop
needs = interop.NEEDS
mem = interop.MEM


def run(t):
    pair = interop.Pair(t, interop.KERNEL, interop.OURS)

    def talk():
        # op 5 of an unknown client may be write-same: none on offer until told
        pair.talk("Y", zeroes=False)
        pair.talk("N", zeroes=False, whole=False)

    interop.with_kernel_client(t, talk)
