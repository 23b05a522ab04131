# SPDX-License-Identifier: GPL-2.0-only
"""What one client may have of a server at most: the table of docs/security.md, in small numbers."""
description = ("one client's share of memory and of sessions ends in words that name the "
               "parameter, also when it asks twice at once, and the next client has its own; what "
               "is kept for one that was lost does not go to another that has much")
crowd = True
vms = 3
deadline = 180
needs = ["ibnbd-slowfn"]

SLOW = "/sys/module/ibnbd_slowfn/parameters"


def run(t):
    """Each session takes 3.4 MB."""
    c, s, d = t.client, t.server, t.client2
    user = s.serves_user()
    s.sh("ram_disks 1 16; serve sess_queue_depth=24")
    s.sh("server_set max_memory_per_peer_mb=8")
    devs = [c.sh(f"map ram0 access_mode=ro sessname=m{i}") for i in range(2)]
    c.fails("map ram0 access_mode=ro sessname=m2", "max_memory_per_peer_mb", timeout=60)
    d.sh("unmap $(map ram0 access_mode=ro sessname=m2)", timeout=60)
    s.sh("server_set max_memory_per_peer_mb=0 max_sessions_per_peer=2")
    c.sh("for s in m0 m1; do wait_for 30 paths_up $s 1; done", timeout=60)
    c.fails("map ram0 access_mode=ro sessname=m2", "max_sessions_per_peer", timeout=60)
    d.sh("unmap $(map ram0 access_mode=ro sessname=m2)", timeout=60)
    s.sh("server_set max_sessions_per_peer=64")
    c.sh("for s in m0 m1; do wait_for 30 paths_up $s 1; done", timeout=60)
    c.sh("; ".join(f"unmap {dev}" for dev in devs))

    t.log("--- two at once, of which one fits")
    if not user:
        s.sh(f"modprobe ibnbd-slowfn func=ibtrs_srv_chunk_get; echo 700 > {SLOW}/ms")
    s.sh("server_set max_memory_per_peer_mb=5")
    out = c.sh("for i in 3 4; do { map ram0 access_mode=ro sessname=m$i 2>&1 || echo NOT IN; } & "
               "done; wait", timeout=60)
    if not user:
        s.sh(f"echo 0 > {SLOW}/ms; modprobe -r ibnbd-slowfn; server_set max_memory_per_peer_mb=0")
    t.eq(out.count("NOT IN"), 1, "refused: " + out)
    t.match(out, "max_memory_per_peer_mb", "the reason")
    c.sh("for d in /dev/ibnbd[0-9]*; do unmap $d; done")
    if user:        # it keeps no memory for a client that was lost
        return

    t.log("--- a client that was lost, and another that wants all there is")
    s.sh("server_set max_memory_mb=14")
    dev = c.sh("map ram0 access_mode=ro sessname=lost")
    d.sh("for i in 0 1 2; do map ram0 access_mode=ro sessname=g$i; done", timeout=60)
    path = "$(echo /sys/class/ibtrs-client/lost/paths/*)"
    c.sh(f"echo 1 > {path}/disconnect")
    d.fails("map ram0 access_mode=ro sessname=g3", "max_memory_mb", timeout=60)
    c.sh(f"echo 1 > {path}/reconnect; dd if={dev} of=/dev/null bs=64k count=8 iflag=direct "
         f"status=none; unmap {dev}", timeout=60)
    d.sh("for d in /dev/ibnbd[0-9]*; do unmap $d; done")

    t.log("--- a client that comes back for more than it had")
    tell = "/sys/module/ibnbd_stranger/parameters"
    s.sh("unload $OUR_MODULES; serve sess_queue_depth=64 max_chunk_size=8192; "
         "server_set max_memory_mb=4")
    c.sh("modprobe ibnbd-stranger to=ip:10.0.0.2")
    # each path has 512 KiB of chunks, 110 of queues for its first connection, and 80 for each other
    d.sh("for i in 0 1 2 3; do map ram0 access_mode=ro sessname=g$i; done", timeout=60)
    for words, want in (("path 2; open 0; wait", "let in"), ("path 10", "max_memory_mb"),
                        ("path 2", "let in")):
        said = c.sh(f"echo '{words}' > {tell}/tell || true; cat {tell}/said", timeout=60)
        t.match(said, want, words)
    c.sh("modprobe -r ibnbd-stranger")
    d.sh("for d in /dev/ibnbd[0-9]*; do unmap $d; done")
