# SPDX-License-Identifier: GPL-2.0-only
description = "a mistake in the rig ends what runs the cases"
vms = 2
links = None


def run(t):
    pass
