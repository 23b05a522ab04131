# SPDX-License-Identifier: GPL-2.0-only
description = ("our clients and the kernel's server, always_invalidate Y and N: "
               "I/O, flush, discard, zeroes, ro, wrong names")
crowd = True
deadline = 400
import interop
needs = interop.NEEDS
mem = interop.MEM
programs = interop.PROGRAMS


def run(t):
    pair = interop.Pair(t, interop.OURS, interop.KERNEL)
    # nothing in its answers says what its op 5 means: no write zeroes until told
    pair.talk("Y", zeroes=False)
    pair.talk("N", zeroes=False, whole=False)
    if interop.has_user(t):
        user = interop.UserClient(t)
        user.talk("Y", zeroes=False)
        user.talk("N", zeroes=False)
