# SPDX-License-Identifier: GPL-2.0-only
"""Clients that begin a handshake and go no further share a small budget. A client that was let in
before, and has lost its paths, draws on no budget of theirs."""
description = ("while strangers hold all half-open paths that they may have, I/O goes on, and who "
               "was in comes back in at once")
vms = 3
links = 2
deadline = 240

PATHS = "/sys/class/ibtrs-client/s1/paths/*"
OK, FULL, NO_MEMORY = "accepted depth 512 flags 0", "refused 28", "refused 12"


def run(t):
    c, s, d = t.client, t.server, t.client2
    user = s.serves_user()      # its handshake_timeout_s is 10
    s.sh(f"ram_disks 1 64; serve {'' if user else 'handshake_timeout_s=120'} max_paths_half_open=8")
    dev = c.sh("map ram0 hold=60")
    write = f"dd if=/dev/zero of={dev} bs=4k count=300 oflag=direct status=none"
    took = lambda: float(c.sh(f"t0=$(uptime_s); {write}; since $t0", timeout=60))
    took()
    # the machines share processors: a stranger's costs there are none of the server's
    busy = d.spawn("while :; do :; done & while :; do :; done")
    before = min(took(), took())
    busy.kill()

    t.log("--- strangers take all half-open paths")
    flood = d.spawn("knock 10.0.0.2 count=12 hold=200")
    t.wait(lambda: len(flood.out().splitlines()) == 12, 20, "twelve knocks")
    t.eq(flood.out().splitlines(), [OK] * 8 + [FULL] * 4, "the strangers' answers")
    storm = d.spawn("while :; do knock 10.0.0.2 count=50 > /dev/null || true; done")
    c.sh(f"for p in {PATHS}; do echo 1 > $p/disconnect; done; {write} & "
         f"sleep 1; for p in {PATHS}; do echo 1 > $p/reconnect; done; wait", timeout=60)
    t.eq(c.sh(f"cat {PATHS}/state"), "connected\nconnected", "the paths of who was in")
    # the other one comes later, from an address that had no part in the session's new life
    c.sh(f"set -- {PATHS}; for p in $1 $2; do echo 1 > $p/disconnect; done; "
         "for p in $1 $2; do echo 1 > $p/reconnect; sleep 1; done; wait_for 20 paths_up s1 2",
         timeout=90)
    t.below(min(took(), took()), 2 * before + 0.5,
            "seconds for 300 writes while they go on knocking")
    storm.kill()
    flood.kill()
    if not user:
        check_memory(t, write)
    c.sh(f"unmap {dev}")


def check_memory(t, write):
    """ibnbd-serverd counts connections in its place."""
    c, s, d = t.client, t.server, t.client2
    t.log("--- and all the memory that is for them")
    s.sh("sleep 6")     # what was said of the storm is over, and the log has room again
    s.sh("server_set max_memory_half_open_mb=1 max_paths_half_open=64")
    flood = d.spawn("knock 10.0.0.2 count=12 hold=200")
    t.wait(lambda: len(flood.out().splitlines()) == 12, 20, "twelve knocks")
    t.match(flood.out().splitlines()[-1], NO_MEMORY, "the last of them")
    t.match(s.kernel_news(), "a quarter of max_memory_half_open_mb", "the server says why")
    s.sh("server_set max_memory_half_open_mb=0")
    c.sh(f"for p in {PATHS}; do echo 1 > $p/disconnect; echo 1 > $p/reconnect; done; {write}",
         timeout=60)
    flood.kill()
