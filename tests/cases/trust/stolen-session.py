# SPDX-License-Identifier: GPL-2.0-only
"""
A session's uuid lets its holder add a path to it.  The holder can then send any number for a slot:
that may cost paths, never somebody else's I/O.  On the client's host only root can read the uuid.
To the session of a client that has proved a key nobody adds a path without that key, and nobody
keeps it from its name or its uuid.
"""
import base64
import keys
description = ("a thief of a session's uuid cannot make its I/O fail: numbers far ahead cost the "
               "thief's path, those that are taken are caught up with; ESTALE costs a path, "
               "no I/O; only root reads the uuid; a session and its name belong to the key")
crowd = True
vms = 3
links = 2
deadline = 240

SAY = "/sys/module/ibnbd_speak/parameters/say"
FAR = 0xffffffffffffffff
AHEAD = 1 << 24     # of the slot's last number: as far as a server takes it
FAULT = "/sys/kernel/debug/ibtrs/server/request"
OPEN = "/run/devices/ram0/sessions/s1#2"
VISIT = "/sys/module/ibnbd_stranger/parameters/visit"
PATHS = "/sys/class/ibtrs-client/s1/paths/*"
AWAY = f"for p in {PATHS}; do echo 1 > $p/disconnect; done"
BACK = f"for p in {PATHS}; do echo 1 > $p/reconnect; done"


def sessions(s):
    return s.sh("ls /run/sessions/ | grep -v ctl || true").split()


def away(t):
    t.client.sh(AWAY)
    t.wait(lambda: not sessions(t.server), 20, "the owner's session has ended")


def give_keys(t):
    """The owner has one key, the thief another one, the server both. Returns their bytes in hex."""
    found = []
    for g, name in (t.client, "db-1"), (t.client2, "other"):
        g.sh("modprobe ibnbd-client")       # the keys stay when another module goes
        text = keys.share(name, g, t.server)
        found.append(base64.b64decode(text.split(":")[2])[:32].hex())
    return found


def check_same_path(t, secrets):
    """Two clients say the same session and the same path, and each connects its own."""
    c, d = t.client, t.client2
    visit = "name={} secret={} session=12 path=12 conn=good"
    for g in c, d:
        g.sh("modprobe ibnbd-stranger to=ip:10.0.0.2")
    d.sh(f"echo '{visit.format('other', secrets[1])}' > {VISIT}")
    c.sh(f"echo '{visit.format('db-1', secrets[0])} next=good' > {VISIT}")
    t.match(c.sh("cat /sys/module/ibnbd_stranger/parameters/said"),
            "verdict 0 \ncid 0: accepted, and proved\ncid 1: accepted, and proved",
            "the second connection is of the path of the right one")
    for g in c, d:
        g.sh("modprobe -r ibnbd-stranger")


def check_keys(t):
    c, s, d = t.client, t.server, t.client2
    s.sh("server_set auth=optional")
    secrets = give_keys(t)
    dev = c.sh("map ram0 auth=db-1", timeout=60)
    uuid = c.sh("cat /sys/class/ibtrs-client/s1/uuid").replace("-", "")
    put = f"dd if=/dev/zero of={dev} bs=4k count=8 oflag=direct status=none"
    thief = f"modprobe ibnbd-speak to=ip:10.0.0.2 name=s1 uuid={uuid}"
    for words, keep in ("auth=other", 0), ("", 120):
        t.log(f"--- the owner is away, somebody takes its uuid and its name: {words or 'no key'}")
        s.sh(f"server_set name_keep_s={keep}")
        c.sh("wait_for 30 paths_up s1 2", timeout=60)
        t.wait(lambda: len(sessions(s)) == 1, 10, "the owner's session is there")
        away(t)
        d.sh(f"{thief} {words}")
        if s.serves_user():     # it shows no session that has said nothing
            d.rc(f"echo 'dev=1 bytes=4096 len=4096' > {SAY}")
        c.sh(f"{BACK}; wait_for 20 paths_up s1 2; {put}", timeout=60)
        t.wait(lambda: sessions(s) == ["s1", "s1#2"], 5, "sessions at the server")
        t.eq(s.sh("cd /run/sessions/; head -v s1*/auth | grep db-1 -B1"),
             "==> s1#2/auth <==\ndb-1", "whose they are")
        # and again while both are there, sent away by the name that sysfs has for it
        s.sh("ibnbd server disconnect s1#2")
        c.sh(f"wait_for 20 paths_up s1 2; {put}", timeout=60)
        t.match(s.server_news(), "session s1#2: its paths from ip:10.0.0.1 are closed by order"
                if s.serves_user() else "session s1#2: .* disconnected by the administrator",
                "the log")
        number = s.sh(f"wait_for 5 test -e {OPEN}; cat {OPEN}/device_id")
        d.fails(f"echo 'dev={number} bytes=4096 len=4096' > {SAY}", "not connected")
        d.sh("modprobe -r ibnbd-speak")
        t.wait(lambda: sessions(s) == ["s1#2"], 20, "the thief has gone")
    check_same_path(t, secrets)

    t.log("--- what somebody with its uuid and another key has written is not the owner's")
    away(t)
    job = c.spawn(put)
    c.sh("wait_for 10 pgrep -x dd; sleep 0.3")      # its write is held
    d.sh(f"{thief} auth=other disk=ram0; modprobe -r ibnbd-speak")
    c.sh(BACK)
    t.wait(lambda: c.sh(f"dev_attr {dev} state_detail") == "fenced", 20, "fenced")
    t.ok(job.wait(20) != 0, "the write that was held has failed")
    c.sh(f"unmap {dev}")


def run(t):
    c, s, d = t.client, t.server, t.client2
    user = s.serves_user()
    s.sh("serve; ram_disks 1 64")
    dev = c.sh("map ram0")
    uuid = c.sh("cat /sys/class/ibtrs-client/s1/uuid").replace("-", "")

    t.log("--- the uuid is root's")
    c.fails("lessen user cat /sys/class/ibtrs-client/s1/uuid", "ermission denied")
    told = c.sh("ibnbd dump; ibnbd dump -J; ibnbd show s1; ibnbd list -J")
    t.ok(uuid not in told.replace("-", ""), "no command tells it")

    t.log("--- a stranger in the session says numbers far ahead, of every slot")
    pulse = c.spawn(f"iopulse {dev} 4 2000 rw 20000")
    d.sh(f"modprobe ibnbd-speak to=ip:10.0.0.2 name=s1 uuid={uuid}")
    ended = "the thief's path is closed: numbers far ahead"
    for slot in range(8):
        d.rc(f"echo 'dir=w slot={slot} token={FAR} len=4096' > {SAY}", timeout=60)
        d.rc("wait_for 10 grep -q '^connected' /sys/class/ibtrs-client/s1/paths/*/state")
    if user:
        lost = d.sh("cat /sys/class/ibtrs-client/s1/paths/*/stats/reconnects")
        t.ok(int(lost.split()[0]) > 0, f"{ended}: {lost}")
    else:
        t.match(s.kernel_news(), "a request's number is far ahead of its slot's", ended)

    t.log("--- the thief counts in the owner's name, in slots in use and not yet in use")
    d.sh(f"modprobe -r ibnbd-speak; modprobe ibnbd-speak to=ip:10.0.0.2 name=s1 uuid={uuid}")
    for n in range(1, 7):
        d.sh(f"for i in $(seq 0 15); do echo dir=w slot=$i token={n * AHEAD} len=4096 > {SAY} "
             "2>/dev/null || true; done", timeout=60)
    d.sh("modprobe -r ibnbd-speak")
    c.sh("for i in 1 2 3 4; do "
         f"dd if=/dev/zero of={dev} bs=4k count=64 oflag=direct status=none; done; "
         "for i in $(seq 24); do "
         f"dd if={dev} of=/dev/null bs=4k count=64 iflag=direct status=none & done; wait; "
         "pkill -TERM iopulse")
    t.match(c.kernel_news(), "another host is using this session's uuid",
            "the client's log")
    t.eq(pulse.wait(20), 0, "the owner's I/O: " + pulse.out())
    t.eq(c.sh("cat /sys/class/ibtrs-client/s1/paths/*/stats/reconnects"), "0 0\n0 0",
         "the owner's paths")

    if not user:
        t.log("--- a server that takes current requests for old ones")
        s.sh(f"echo 'error=116 times=3' > {FAULT}")
        c.sh(f"dd if=/dev/zero of={dev} bs=4k count=8 oflag=direct status=none; "
             f"dd if={dev} of=/dev/null bs=64k count=8 iflag=direct status=none", timeout=60)
        t.match(c.kernel_news(), "the server treats a current request as stale",
                "the client's log")
        s.sh(f"echo off > {FAULT}")
    c.sh("wait_for 20 paths_up s1 2; "
         f"dd if={dev} of=/dev/null bs=64k count=8 iflag=direct status=none; "
         f"unmap {dev}")
    check_keys(t)
