# SPDX-License-Identifier: GPL-2.0-only
"""The client is 10.0.0.1, client2 10.0.0.3; the server exports /dev."""
description = ("who may do what: a reader's OPEN for writing and a denied one are refused with "
               "words, whatever slashes a name has; one rule lets migrate")
crowd = True
vms = 3

CTL = "/sys/class/ibnbd-server/ctl"
RULES = """\
# the first that matches decides
ram0 addr:10.0.0.1 ro
ram0 addr:10.0.0.3/32 session:s2 rw
ram0 deny
ram1 session:s1 deny
ram2 session:hv* migration
ram2 rw
ram3 key:nobody rw
ram3 addr:10.0.0.0/24 ro
"""


def run(t):
    c, s, d = t.client, t.server, t.client2
    user = s.serves_user()
    refused = lambda: s.server_news() if user else s.sh(f"cat {CTL}/last_error")
    put = lambda dev: f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none"

    s.sh(f"serve; ram_disks 5 16; policy <<'EOF'\n{RULES}EOF\n")
    if not user:
        t.eq(s.sh(f"cat {CTL}/policy"), RULES.rstrip("\n"), "it reads as it was written")

    t.log("--- a reader")
    c.fails("map ram0", "policy lets this client only read.*access_mode=ro")
    t.match(refused(),
            r"session s1: ram0 refused: the server's policy lets this client only read.*\(-13\)",
            "what the server says")
    c.fails("map ram0 access_mode=migration", "only read")
    c.fails("map /ram0", "only read")
    c.fails("map //ram0", "only read")
    ro = c.sh("map ram0 access_mode=ro")
    c.sh(f"dd if={ro} of=/dev/null bs=4k count=1 iflag=direct status=none; blockdev --setrw {ro}")
    c.fails(put(ro), "error|not permitted|Read-only")
    rw = d.sh("map ram0 sessname=s2")
    d.sh(put(rw))
    d.fails("map ram0 sessname=other access_mode=ro", "denies it to this client")

    t.log("--- denied, and not said to be there or not")
    c.fails("map ram1", "denies it to this client")
    c.fails("map ram1 access_mode=ro", "denies it to this client")
    c.sh("unmap $(map ram1 sessname=s3)")

    t.log("--- beside one who writes alone")
    alone = d.sh("map ram2 sessname=s2")
    c.fails("map ram2 access_mode=migration", "lets this client write alone")
    c.fails("map ram2 sessname=hv1", "open for writing")
    beside = c.sh("map ram2 access_mode=migration sessname=hv1")
    c.sh(put(beside))
    d.sh(put(alone))
    c.sh(f"unmap {beside}")

    t.log("--- a key that nobody has shown, and what no rule is about")
    c.fails("map ram3", "only read")
    c.sh(f"unmap $(map ram3 access_mode=ro); {put('$(map ram4)')}")
