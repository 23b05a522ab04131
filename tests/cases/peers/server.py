# SPDX-License-Identifier: GPL-2.0-only
description = ("our client and the kernel's server, always_invalidate Y and N: "
               "I/O, flush, discard, zeroes, ro, wrong names")
crowd = True
deadline = 180
import interop
needs = interop.NEEDS
mem = interop.MEM


def run(t):
    pair = interop.Pair(t, interop.OURS, interop.KERNEL)
    # nothing in its answers says what its op 5 means: no write zeroes until told
    pair.talk("Y", zeroes=False)
    pair.talk("N", zeroes=False, whole=False)
