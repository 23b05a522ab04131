# SPDX-License-Identifier: GPL-2.0-only
"""Two hosts that share a key: what works, and what does not without it."""
description = "both sides prove the key, on every path; it is changed without a break"
crowd = True
links = 2
deadline = 300
import time

LOAD = "ibnbd key load"
FAILURES = "/sys/module/ibtrs_server/parameters/auth_failures"
PATHS = "/sys/class/ibtrs-client/s1/paths/*"
AGAIN = f"for p in {PATHS}; do echo 1 > $p/reconnect; done; wait_for 20 paths_up s1 2"
NO_PROOF = "the server does not prove that it has the key"
FAILED = "key db-1: authentication failed: "


def give(t, name, to):
    """The key of the client, copied."""
    file = f"/etc/ibnbd/keys/{name}"
    text = t.client.sh(f"cat {file}")
    to.sh(f"mkdir -p -m 700 /etc/ibnbd/keys; umask 077; echo '{text}' > {file}; {LOAD}")


def said(g):
    return g.sh("cat $(ctl)/last_error")


def refused(t, words, why, news=""):
    """map, which must fail for a reason that both hosts tell."""
    s = t.server
    s.kernel_news()
    time.sleep(4 * s.serves_user())     # a path that was refused has two seconds to go
    free = int(s.sh("memory_kib"))
    t.client.fails(f"map ram0 {words}", "", timeout=60)
    t.match(said(t.client), why, f"map {words}: the client's last_error")
    if news:
        t.match(s.server_news(), news, f"map {words}: the server's log")
    t.eq(s.sh("ls /run/sessions/ | grep -v ctl || true"), "", "sessions at the server")
    t.below(free - int(s.sh("memory_kib")), 16 << 10, "KiB that it cost; chunks are 66 MiB")


def check_wrong(t):
    c, s = t.client, t.server
    s.sh("ram_disks 2 64; modprobe ibtrs-core; serve auth=required")
    c.sh("modprobe ibnbd-client; ibnbd key generate db-1")
    t.eq(c.sh("stat -c %a /etc/ibnbd/keys /etc/ibnbd/keys/db-1"), "700\n600", "modes")
    refused(t, "", "authentication is required here: .*map with auth=KEY" if s.serves_user() else
            "authentication is required here: map with auth=KEY", "authentication is required")
    refused(t, "auth=db-1", "the key db-1 is not loaded here: `ibnbd key load db-1`")
    c.sh(LOAD)
    refused(t, "auth=db-1", NO_PROOF, FAILED + "there is no key of that name here")
    s.sh(f"ibnbd key generate db-1; {LOAD}")
    refused(t, "auth=db-1", NO_PROOF,
            FAILED + "the client left without a proof: it has another key of that name")
    if not s.serves_user():
        t.ok(int(s.sh(f"cat {FAILURES}")) >= 3, "failures are counted")
    c.fails("map ram0 auth=a.b", "Invalid argument")


def check_right(t):
    c, s = t.client, t.server
    s.sh("rm /etc/ibnbd/keys/*")
    give(t, "db-1", s)
    dev = c.sh("map ram0 auth=db-1", timeout=60)
    c.sh("paths_up s1 2")
    t.eq(c.sh("cat /sys/class/ibtrs-client/s1/auth"), "db-1", "the client's session")
    t.eq(s.sh("wait_for 5 test -e /run/sessions/s1; cat /run/sessions/s1/auth"), "db-1",
         "whose it is, at the server")
    t.match(c.sh("ibnbd session list -o name,auth"), "s1 +db-1", "the command shows it")
    pulse = c.spawn(f"iopulse {dev} 4 500 rw 5000")
    for link in 0, 1:
        s.link(link, False)
        c.sh("wait_for 30 paths_up s1 1", timeout=60)
        s.link(link, True)
        c.sh("wait_for 30 paths_up s1 2", timeout=60)
    c.sh(f"{AGAIN}; pkill -TERM iopulse", timeout=60)
    t.eq(pulse.wait(20), 0, "I/O over reconnects and failovers: " + pulse.out())
    c.fails("map ram1 access_mode=ro auth=other", "")
    t.match(said(c), "authenticates with key db-1: auth=other needs another session",
            "another key in a session that there is")
    return dev


def check_rotation(t, dev):
    """Host after host; each path is made anew in between, and no I/O fails."""
    c, s = t.client, t.server
    failures = lambda: s.sh("grep -c 'authentication failed' /run/serverd.log || true"
                            if s.serves_user() else f"cat {FAILURES}")
    before = failures()
    pulse = c.spawn(f"iopulse {dev} 4 500 rw 5000")
    c.sh(f"ibnbd key generate --next db-1; {LOAD}; {AGAIN}", timeout=60)
    t.match(c.sh("ibnbd key list"), "db-1 +yes, next +yes, next", "both are loaded")
    give(t, "db-1.next", s)
    c.sh(AGAIN, timeout=60)
    for g in s, c:
        g.sh(f"mv /etc/ibnbd/keys/db-1.next /etc/ibnbd/keys/db-1; {LOAD}")
        t.match(g.sh("ibnbd key list"), "db-1 +yes +yes$", "one is loaded")
        c.sh(AGAIN, timeout=60)
    c.sh("pkill -TERM iopulse")
    t.eq(pulse.wait(20), 0, "I/O while the key changes: " + pulse.out())
    t.eq(failures(), before, "failures while the key changes")


def check_removed(t, dev):
    """What is up stays when the key goes, and cannot come back."""
    c, s = t.client, t.server
    c.sh(f"ibnbd key remove db-1; p=$(ls -d {PATHS} | head -1); echo 1 > $p/reconnect || true; "
         "wait_for 20 grep -q 'the key db-1 is not loaded here' $p/state_detail", timeout=60)
    c.sh(f"dd if={dev} of=/dev/null bs=64k count=4 iflag=direct status=none")
    text = s.sh("cat /etc/ibnbd/keys/db-1")
    c.sh(f"echo '{text}' > /etc/ibnbd/keys/gone; chmod 600 /etc/ibnbd/keys/gone; {LOAD}; "
         "grep -q ibnbd:gone /proc/keys; rm /etc/ibnbd/keys/gone")
    t.eq(c.sh(LOAD), "gone has no file any more: dropped", "load after rm")
    t.eq(c.sh("ibnbd key list -n | grep -c gone || true"), "0", "gone in the list")
    c.sh(f"umask 077; echo '{text}' > /etc/ibnbd/keys/db-1; {LOAD}; wait_for 20 paths_up s1 2; "
         f"unmap {dev}", timeout=60)


def check_optional(t):
    c, s = t.client, t.server
    user = s.serves_user()
    s.sh("server_set auth=optional")
    plain = c.sh("map ram0 sessname=plain access_mode=ro", timeout=60)
    proved = c.sh("map ram0 auth=db-1", timeout=60)
    sessions = "/run/sessions/plain/auth /run/sessions/s1/auth"
    s.sh("wait_for 5 test -e /run/sessions/s1")
    t.eq(s.sh(f"echo $(wc -l {sessions} | wc -l) $(cat {sessions})"), "3 db-1", "who proved what")
    c.sh(f"unmap {plain}; unmap {proved}")
    s.sh("server_set auth=off")
    refused(t, "auth=db-1", "authentication is disabled here: open without a key" if user else
            "authentication is disabled here \\(auth=off\\)")
    if user:
        return
    # an in-kernel server, in all that it says
    s.sh("unload ibnbd_server ibtrs_server; serve; echo 1 > /sys/kernel/debug/ibtrs-server/plain")
    refused(t, "auth=db-1", "the server cannot authenticate, it is an in-kernel one or an old one")
    c.sh("unmap $(map ram0)", timeout=60)


def run(t):
    check_wrong(t)
    dev = check_right(t)
    check_rotation(t, dev)
    check_removed(t, dev)
    check_optional(t)
