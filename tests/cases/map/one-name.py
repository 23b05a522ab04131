# SPDX-License-Identifier: GPL-2.0-only
"""Clones, `localhost`, db1.here and db1.there: two hosts call their session the same.
The second one hears whose the name is, whoever is the second; a host that was lost, or
booted anew, finds its name again."""
description = ("two clients with one session name: the second is told who has it, "
               "a lost one keeps it for a while; refusals of the transport have words")
long = True
vms = 3
links = 1
deadline = 240

PARAMS = "/sys/module/ibtrs_server/parameters"
PATH = "/sys/class/ibtrs-client/s1/paths/*"


def refused(t, g, words, script="map ram1"):
    g.fails(script, "", timeout=60)
    t.match(g.sh("cat $(ctl)/last_error"), words, "last_error")


def check_names(t):
    c, s, d = t.client, t.server, t.client2
    taken = (r"\(-17\).*: the server says: the session name is taken by ip:10\.0\.0\.1: "
             r"unmap there, or use another name here")
    kept = (r"the server says: "
            r"the session name is kept for ip:10\.0\.0\.1, lost [0-9]+ s ago, for [0-9]+ s more")

    dev = c.sh("map ram0 hold=100")
    t0 = float(d.sh("uptime_s"))
    refused(t, d, taken)
    t.below(float(d.sh(f"since {t0}")), 10, "seconds until it is refused")
    t.eq(c.sh(f"dev_attr {dev} state"), "open", "the first one notices nothing")
    c.sh(f"unmap {dev}")
    d.sh("unmap $(map ram1)")           # given up properly: free at once

    # lost, but it may come back: nobody else gets the name
    dev = c.sh("map ram0 hold=100")
    c.link(0, False)
    s.sh("wait_for 30 eval '! ls -d /sys/class/ibtrs-server/s1 2> /dev/null'", timeout=60)
    refused(t, d, kept)
    c.link(0, True)
    t.wait(lambda: c.sh(f"dev_attr {dev} state") == "open", 30, "the first one is back")

    # away for longer than names are kept: the next one gets it, and the first one says why it waits
    s.sh(f"echo 2 > {PARAMS}/name_keep_s")
    c.link(0, False)
    t.wait(lambda: d.rc("map ram1", timeout=60)[0] == 0, 60, "the name goes to the next one")
    c.link(0, True)
    why = r"the server says: the session name is taken by ip:10\.0\.0\.3"
    t.wait(lambda: "session name is taken" in c.sh(f"cat {PATH}/state_detail"), 30,
           "the path says why")
    t.match(c.sh(f"cat {PATH}/state_detail"), rf"-17 {why}", "state_detail of the path")
    t.match(c.sh(f"dev_attr {dev} reason"), rf"^no path to the server is up: .*: {why}",
            "reason of the device")
    t.eq(c.sh(f"dev_attr {dev} state_detail"), "held", "it holds")
    d.sh("unmap /dev/$(dev_of ram1)")
    t.wait(lambda: c.sh(f"dev_attr {dev} state") == "open", 30, "the first one has its name again")
    t.eq(c.sh(f"dev_attr {dev} reason"), "", "nothing is wrong")

    # booted anew, at the same address: its own name, at once, whatever is kept
    s.sh(f"echo 120 > {PARAMS}/name_keep_s")
    c.kill()
    c.boot()
    c.sh("unmap $(map ram1)", timeout=60)


def check_transport(t):
    """What the connection manager carries back, and what comes in place of INFO_RSP."""
    s, d = t.server, t.client2
    allow = "/sys/module/ibnbd_server/parameters/allow"
    for setting, back, words in (
            (f"echo 10.0.0.1 > {allow}", f"echo > {allow}",
             r"\(-13\).*the server says: the client's address is not on the allow-list"),
            (f"echo session:a* > {allow}", f"echo > {allow}",
             r"\(-13\).*the server says: the session's name is not on the allow-list"),
            (f"echo 0 > {PARAMS}/max_sessions", f"echo 256 > {PARAMS}/max_sessions",
             r"\(-28\).*as many sessions as max_sessions allows"),
            (f"echo 0 > {PARAMS}/max_paths_half_open", f"echo 256 > {PARAMS}/max_paths_half_open",
             r"\(-28\).*max_paths_half_open allows"),
            (f"echo 2 > {PARAMS}/max_conns", f"echo 513 > {PARAMS}/max_conns",
             r"\(-104\).*the server says: path has more connections than allowed here"),
            (f"echo 10 > {PARAMS}/max_memory_mb", f"echo 0 > {PARAMS}/max_memory_mb",
             r"\(-12\).*as much memory in use as max_memory_mb allows")):
        s.sh(setting)
        refused(t, d, words)
        t.eq(d.sh("ls /sys/class/ibtrs-client"), "", f"left behind by {setting}")
        s.sh(back)
    # a path that is added later
    dev = d.sh("map ram1")
    s.sh(f"echo 0 > {PARAMS}/max_paths_half_open")
    d.fails("echo ip:fd00:0::3@ip:fd00:0::2 > /sys/class/ibtrs-client/s1/add_path", "No space left")
    t.match(d.sh("cat /sys/class/ibtrs-client/s1/last_error"),
            "^ip:fd00::3@ip:fd00::2: the server says: .*max_paths_half_open allows$",
            "of the session")
    d.sh(f"unmap {dev}")
    s.sh(f"echo 256 > {PARAMS}/max_paths_half_open")
    # as at a server without extensions: the number, and words of the client for it
    s.sh(f"echo 1 > /sys/kernel/debug/ibtrs-server/plain; echo 10.0.0.1 > {allow}")
    refused(t, d, r"\(-13\): the server does not let this host in: .*: the server refuses: "
            r"it does not let this host in$")
    s.sh(f"echo 0 > /sys/kernel/debug/ibtrs-server/plain; echo > {allow}")


def run(t):
    t.server.sh("serve; ram_disks 2 16")
    check_names(t)
    check_transport(t)
