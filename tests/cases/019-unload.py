# SPDX-License-Identifier: GPL-2.0-only
description = "modules in use refuse to go; without users they go, and come again, and their memory comes back"
deadline = 240


def run(t):
    c, s = t.client, t.server

    s.sh("serve; ram_disks 1 16")
    dev = c.sh("map ram0")
    for m in ("ibnbd_client", "ibtrs_client", "ibtrs_core"):
        c.fails(f"rmmod {m}", "in use|busy|unavailable")
    c.sh(f"dd if={dev} of=/dev/null bs=1M count=8 iflag=direct status=none; unmap {dev}")
    c.sh("unload ibnbd_client ibtrs_client ibtrs_core; [ ! -e /sys/class/ibnbd-client ] && [ ! -e /sys/class/ibtrs-client ]")
    s.sh("unload ibnbd_server ibtrs_server ibtrs_core; [ ! -e /sys/class/ibnbd-server ] && [ ! -e /sys/class/ibtrs-server ]")

    loop = "for i in $(seq 8); do {}; done"
    s.sh(loop.format("serve; unload ibnbd_server ibtrs_server ibtrs_core"), timeout=60)
    s.sh("serve")
    c.sh("unmap $(map ram0); unload ibnbd_client ibtrs_client ibtrs_core")
    # coarse: one session is 6 MiB here, so 8 leaked ones show; what is smaller is kmemleak's to find
    rounds = loop.format("unmap $(map ram0); unload ibnbd_client ibtrs_client ibtrs_core")
    before = int(c.sh("sleep 2; memory_kib"))
    c.sh(rounds, timeout=90)
    t.below(before - int(c.sh("sleep 2; memory_kib")), 32768, "KiB gone in 8 rounds")

    # the server goes while a client has a disk mapped: the client holds its I/O and resumes
    dev = c.sh("map ram0")
    s.sh("unload ibnbd_server ibtrs_server ibtrs_core", timeout=20)
    reader = c.spawn(f"dd if={dev} of=/dev/null bs=4k count=1 iflag=direct status=none")
    s.sh("serve")
    t.eq(reader.wait(20), 0, "the read that waited for the server")
