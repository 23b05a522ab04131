# SPDX-License-Identifier: GPL-2.0-only
description = "planted: a mount is left that tidying does not know"
vms = 1


def run(t):
    t.client.sh("mkdir -p /srv; mount -t tmpfs none /srv")
