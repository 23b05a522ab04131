# SPDX-License-Identifier: GPL-2.0-only
"""What was decided when a session came up is decided again for each path that joins it, and a name
is kept until its client has opened something again."""
description = ("a further path is judged by the allow-list and the policy in force, and a session "
               "that opens nothing does not use up a name that is kept")
crowd = True
vms = 3
links = 2

FIRST, SECOND = (f"ip:10.0.{i}.1@ip:10.0.{i}.2" for i in (0, 1))
THIRD = "ip:10.0.0.3@ip:10.0.0.2"          # alone: with two paths either may say why
SESSION = "/sys/class/ibtrs-client/s1"


def refused(t, why):
    t.client.fails(f"echo {SECOND} > {SESSION}/add_path", "Permission denied", timeout=60)
    t.match(t.client.sh(f"cat {SESSION}/last_error"), why, "the reason")


def joins(t):
    t.client.sh(f"echo {SECOND} > {SESSION}/add_path; wait_for 10 paths_up s1 2; "
                f"p={SESSION}/paths/{SECOND}; echo 1 > $p/remove_path", timeout=60)


def run(t):
    c, s, d = t.client, t.server, t.client2
    user = s.serves_user()
    s.sh("serve; ram_disks 2 16")
    dev = c.sh(f"map ram0 path={FIRST}")

    t.log("--- nor does udev hear of it")
    heard = s.sh("cat /sys/kernel/uevent_seqnum")
    joins(t)
    c.sh("unmap $(map ram1 sessname=s2)", timeout=60)
    t.eq(s.sh("cat /sys/kernel/uevent_seqnum"), heard, "uevents of paths and sessions")

    t.log("--- the allow-list")
    s.sh("server_set allow=session:s2")
    refused(t, "the session's name or address is not on the allow-list" if user else
            "the session's name is not on the allow-list")
    s.sh("server_set allow=")
    joins(t)
    c.sh(f"unmap {dev}")

    t.log("--- a second writer is let in by address")
    s.sh(r"printf 'ram0 addr:10.0.0.1 migration\nram0 session:s2 rw\n' | policy")
    other = d.sh("map ram0 sessname=s2")
    dev = c.sh(f"map ram0 path={FIRST} access_mode=migration")
    # and before it gets memory: there is none for its chunks of 66 MiB
    if not user:
        s.sh("server_set max_memory_per_peer_mb=100")
    refused(t, "policy allows less from this address than the session has open")
    if not user:
        s.sh("server_set max_memory_per_peer_mb=0")
    d.sh(f"unmap {other}")
    joins(t)                            # nobody else writes

    t.log("--- a name that is kept")
    uuid = c.sh(f"cat {SESSION}/uuid").replace("-", "")
    for link in 0, 1:
        c.link(link, False)
    s.sh("wait_for 30 eval '[ ! -e /run/sessions/s1 ]'", timeout=60)
    kept = "the session name is kept for ip:10.0.0.1"
    d.fails(f"map ram1 path={THIRD}", kept, timeout=60)
    # it is back, and is lost before it opens its disk
    d.sh(f"modprobe ibnbd-speak to=ip:10.0.0.2 name=s1 uuid={uuid}; modprobe -r ibnbd-speak; "
         "sleep 1", timeout=60)
    d.fails(f"map ram1 path={THIRD}", kept, timeout=60)
    for link in 0, 1:
        c.link(link, True)
    t.wait(lambda: c.sh(f"dev_attr {dev} state") == "open", 30, "its client has it again")
    c.sh(f"unmap {dev}")
    d.sh("unmap $(map ram1)", timeout=60)
