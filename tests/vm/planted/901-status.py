# SPDX-License-Identifier: GPL-2.0-only
description = "planted: a job in the middle of a script fails"
vms = 1


def run(t):
    t.client.sh("true; false; true")
