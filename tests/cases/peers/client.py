# SPDX-License-Identifier: GPL-2.0-only
description = ("the kernel's client and our servers, always_invalidate Y and N: "
               "I/O, flush, discard, zeroes, ro, wrong names")
crowd = True
deadline = 700
import interop
needs = interop.NEEDS
mem = interop.MEM
programs = interop.PROGRAMS


def run(t):
    pair, user = (interop.Pair(t, interop.KERNEL, s) for s in (interop.OURS, interop.USER))

    def talk():
        # op 5 of an unknown client may be write-same: none on offer until told
        pair.talk("Y", zeroes=False)
        pair.talk("N", zeroes=False, whole=False)
        pair.quota()

    def talk_user():
        user.talk("-", zeroes=False)
        user.quota()

    interop.with_kernel_client(t, talk)
    if interop.has_user(t):
        interop.with_kernel_client(t, talk_user)
