# SPDX-License-Identifier: GPL-2.0-only
"""What one client may have of a server at most: the table of docs/security.md, in small numbers."""
description = ("one client's share of memory and of sessions ends in words that name the "
               "parameter, and the next client has its own")
crowd = True
vms = 3
deadline = 180

PARAMS = "/sys/module/ibtrs_server/parameters"


def run(t):
    """Each session takes 3.4 MB."""
    c, s, d = t.client, t.server, t.client2
    s.sh("ram_disks 1 16; serve sess_queue_depth=24")
    s.sh(f"echo 8 > {PARAMS}/max_memory_per_peer_mb")
    devs = [c.sh(f"map ram0 access_mode=ro sessname=m{i}") for i in range(2)]
    c.fails("map ram0 access_mode=ro sessname=m2", "max_memory_per_peer_mb", timeout=60)
    d.sh("unmap $(map ram0 access_mode=ro sessname=m2)", timeout=60)
    s.sh(f"echo 0 > {PARAMS}/max_memory_per_peer_mb; echo 2 > {PARAMS}/max_sessions_per_peer")
    c.fails("map ram0 access_mode=ro sessname=m2", "max_sessions_per_peer", timeout=60)
    d.sh("unmap $(map ram0 access_mode=ro sessname=m2)", timeout=60)
    s.sh(f"echo 64 > {PARAMS}/max_sessions_per_peer")
    c.sh("; ".join(f"unmap {dev}" for dev in devs))
