# SPDX-License-Identifier: GPL-2.0-only
"""The disk takes longer over the first write that is sent again than a call may take.  The replay
is given up and starts over, and the disk is quick by then: the late copy of the older write must
not end behind the newer one.  And the path goes that carries it, while the other one is up."""
description = ("a replay that starts over waits for what the one before has left under way, and "
               "is bounded as all that is held")
links = 2
long = True
deadline = 240

P = "/sys/module/ibnbd_testdisk/parameters"
CTL = "/sys/class/ibnbd-server/ctl/devices/testdisk0"
LATE = 25       # a call has 10 s


def path_goes(t, attr):
    """Whichever of the two carries it; the server will have what was sent in its disk for long."""
    c = t.client
    for path in c.sh("cd /sys/class/ibtrs-client/s1/paths; ls -d *").split():
        p = f"/sys/class/ibtrs-client/s1/paths/{path}"
        c.sh(f"echo 1 > {p}/disconnect; sleep 2")
        if attr("state_detail") != "replaying":
            return
        c.sh(f"echo 1 > {p}/reconnect || true; wait_for 20 grep -qx connected {p}/state")


def run(t):
    c, s = t.client, t.server
    attr = lambda name: c.sh(f"dev_attr {dev} {name}")
    put = lambda char: c.sh(f"head -c 4096 /dev/zero | tr '\\0' {char} | dd of={dev} bs=4k "
                            "iflag=fullblock oflag=direct status=none")
    got = lambda: s.sh("dd if=/dev/testdisk0 bs=4k count=1 iflag=direct status=none | "
                       "tr '\\0' 0 | tr -s A-Z0")
    s.sh("modprobe ibnbd-testdisk; serve")
    dev = c.sh("map testdisk0 unflushed=replay hold=-1")
    put("A")
    put("B")
    s.sh(f"echo {LATE * 1000} > {P}/delay_ms; echo 1 > {P}/power_cut; echo 1 > {CTL}/cache_lost")
    begin = s.sh("uptime_s")
    read = f"dd if={dev} of=/dev/null bs=4k skip=1 count=1 iflag=direct status=none"
    reader = c.spawn(read)
    t.wait(lambda: attr("state_detail") == "replaying", 20, "it is sent again")
    t.wait(lambda: attr("state_detail") == "held", 30, "the replay is given up, and hold= goes on")
    s.sh(f"echo 0 > {P}/delay_ms")
    t.wait(lambda: attr("replays").split()[0] == "1", LATE + 20, "it has come to its end")
    s.sh(f"wait_for {LATE} eval '[ $(since {begin} | cut -d. -f1) -gt {LATE + 1} ]'", timeout=60)
    t.eq(got(), "B", "the newer one")
    t.eq((attr("state"), attr("losses")), ("open", "0"), "it goes on")
    t.eq(reader.wait(30), 0, "who waited for it sees no error")

    t.log("--- one of two paths goes meanwhile")
    put("C")
    s.sh(f"echo {LATE * 1000} > {P}/delay_ms; echo 1 > {P}/power_cut; echo 1 > {CTL}/cache_lost")
    reader = c.spawn(read)
    t.wait(lambda: attr("state_detail") == "replaying", 20, "it is sent again")
    path_goes(t, attr)
    t.wait(lambda: "still in use" in attr("reason"), 15, "the server has not let it go yet")
    c.sh("sleep 11")
    t.match(attr("state_detail"), "held|replaying", "nothing but hold= limits that")
    s.sh(f"echo 0 > {P}/delay_ms")
    t.wait(lambda: attr("state") == "open", LATE + 20, "the server has let it go")
    t.eq(reader.wait(30), 0, "who waited for it sees no error")
    t.eq((got(), attr("replays").split()[0]), ("C", "2"), "it was sent again")
    c.sh(f"unmap {dev}")
