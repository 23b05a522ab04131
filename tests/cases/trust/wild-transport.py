# SPDX-License-Identifier: GPL-2.0-only
"""Who has a key, and says below the block layer what no driver would: connections with any bytes,
immediates, messages, requests and keys of any kind, on any connection, before and after it is let
in; beside it somebody else with another key, in whose session it would like to be."""
description = ("whatever a client that is let in says on its connections, the server closes them "
               "or refuses in words, shows no memory, keeps nothing, and another one goes on")
crowd = True
vms = 3
import os
import time
import keys

PARAMS = "/sys/module/ibnbd_stranger/parameters"
ENOUGH = int(os.environ.get("IBNBD_EXCHANGES") or 10000) // 20     # connections and messages
SEED = int(os.environ.get("IBNBD_SEED") or 24)
deadline = 150 + ENOUGH
OTHER = "22" * 32
RECONNECTS = "cat /sys/class/ibtrs-client/s1/paths/*/stats/reconnects"
# what is said, the last line that it hears, and what the server's log has of it
TOLD = (
    ("path 2; imm 0 f0000000; stay", "open", ""),       # of a time to come
    ("half 2; imm 0 0; wait", "ended", "a request came before INFO_REQ"),
    ("half 2; send 1 10; stay", "open", ""),            # cid 1 waits for nothing yet
    ("half 2; info 0; hear", "refused 71 info request is too short", "info request is too short"),
    ("half 2; info 300; wait", "ended", "path closed: local "),
    ("path 2; info 272; wait", "ended", "path closed: "),
    ("path 2; send 1 0; wait", "ended", "an unexpected message"),
    ("path 2; imm 1 fffffff; wait", "ended", "a request for a slot that does not exist"),
    ("path 2; imm 1 3ffff0; wait", "ended", "a request with its header beyond the chunk"),
    ("path 2; imm 1 0; wait", "ended", "request header has an unknown type"),
    ("path 2; imm 1 bfffffff; wait", "ended", "a trial in a slot that does not exist"),
    ("path 2; imm 1 b0000000; wait", "ended", "path closed: "),
    ("path 1; poke", "ended", ""),      # one client writes to another's chunk
    ("path 2; cross 1 2", "cid 1: refused 129 the connection has no good proof of its path",
     "no good proof of its path"),      # a good one, of another path of its own
    # (a path that is complete has forgotten what proves a connection)
    ("path 2; conn 1 2", "cid 1: refused 129 the connection has no good proof of its path",
     "no good proof of its path"),
    ("half 3; conn 1 4", "cid 1: refused 104 another client address, number of", "of extensions"),
    ("half 1; conn 1 1", "cid 1: refused 104 connection id is not below", "not below"),
)
# where ibnbd-serverd answers otherwise: it closes the path
USER = {"half 2; send 1 10; stay": "ended"}


def tell(t, words, end, log):
    user = t.server.serves_user()
    before = len(t.server.server_news())
    heard = t.client2.sh(f"echo '{words}' > {PARAMS}/tell; cat {PARAMS}/said", timeout=60)
    news = t.server.server_news()[before:]
    t.log(f"{words}: {heard}\n{news}")
    if user:        # of a path that it closes its log says nothing
        end, log = USER.get(words, end), log if end.startswith("cid") else ""
    t.ok(heard.splitlines()[-1].startswith(end), f"{words}: {heard!r} does not end in {end!r}")
    t.match(news, log, f"{words}: the server's log")


def roam(t, seed, enough):
    d = t.client2
    d.sh(f"echo '{seed} {enough}' > {PARAMS}/roam", timeout=60 + enough // 2)
    done, accepted, let_in, answers, fetched = map(int, d.sh(f"cat {PARAMS}/roamed").split())
    t.log(f"seed {seed}: {done} exchanges, {accepted} connections accepted, {let_in} paths let in, "
          f"{answers} answers")
    t.ok(done >= enough and let_in > enough // 100 and answers > enough // 50,
         "it got far enough to be a danger")
    t.eq(fetched, 0, "reads of the server's memory that were answered")


def shelf(t, uuid):
    """The chunks of a path that was lost wait for it; they hold data, and go to no client
    that only claims its name.  Memory is for four paths, and three are others."""
    c, s, d = t.client, t.server, t.client2
    dead = "echo 'path 2; open 0; wait' > {0}/tell; cat {0}/said".format(PARAMS)
    again = "echo 'path 2' > {0}/tell || true; cat {0}/said".format(PARAMS)
    s.sh("server_set auth=optional max_memory_mb=15")
    devs = [c.sh(f"map ram1 auth=db-1 access_mode=ro sessname=s{i}") for i in (2, 3)]
    t.match(d.sh(dead, timeout=60), "let in\nended", "who has a key, and what is open then")
    s.sh("wait_for 20 eval '! ls /run/sessions/ | grep -q wild'", timeout=60)
    d.sh(f"echo 'uuid={uuid}' > {PARAMS}/whom")
    for _ in range(2):      # nor does the shelf forget them for the other client
        t.match(d.sh(again, timeout=60), "refused 12 as much memory in use",
                "who has no key, with all its numbers")
    s.sh("server_set max_memory_mb=0")
    c.sh("; ".join(f"unmap {dev}" for dev in devs))


def alone(t, free):
    """The other is, at the server, and all memory is back."""
    t.server.sh("wait_for 20 eval '[ \"$(ls /run/sessions/ | grep -v ctl)\" = s1 ]'",
                timeout=60)
    t.below(free - int(t.server.sh("sleep 1; memory_kib")), 16 << 10, "KiB that it left behind")


def run(t):
    c, s, d = t.client, t.server, t.client2
    user = s.serves_user()
    small = "sess_queue_depth=24" + ("" if user else " handshake_timeout_s=3")
    s.sh(f"ram_disks 2 16; serve auth=required {small}")
    keys.give(s, other=keys.text(OTHER))
    keys.share("db-1", c, s)
    dev = c.sh("map ram0 auth=db-1")
    uuid = c.sh("cat /sys/class/ibtrs-client/s1/uuid").replace("-", "")
    free = int(s.sh("memory_kib"))
    pulse = c.spawn(f"iopulse {dev} 4 2000 rw 20000")
    d.sh("modprobe ibnbd-stranger to=ip:10.0.0.2 near=ip:fd00::2; "
         f"echo 'name=other secret={OTHER} uuid={uuid}' > {PARAMS}/whom")
    for i, (words, end, log) in enumerate(TOLD):
        if i % 8 == 0:      # the server says ten times in five seconds why it closes a path
            time.sleep(5)
        tell(t, words, end, log)
    roam(t, SEED, ENOUGH // 2)

    alone(t, free)
    t.eq(c.sh(RECONNECTS), "0 0", "how often the other's path was lost")

    if not user:        # it keeps none
        t.log("--- what the chunks of somebody else hold")
        shelf(t, uuid)
    t.log("--- without a key, and chunks whose keys change each time, if they do")
    s.sh("unload ibnbd_server ibtrs_server; serve auth=optional "
         f"{'' if user else 'always_invalidate=1'} {small}", timeout=60)
    c.sh("wait_for 20 paths_up s1 1", timeout=60)
    before = c.sh(RECONNECTS)
    d.sh(f"echo 'uuid={uuid}' > {PARAMS}/whom")
    # who knows a session, and the key of a chunk, is no part of it yet
    tell(t, "path 1; poke 1", "ended", "")
    roam(t, SEED + 1, ENOUGH // 2)
    alone(t, free)
    t.eq(c.sh(RECONNECTS), before, "how often the other's path was lost")
    c.sh("pkill -TERM iopulse")
    t.eq(pulse.wait(20), 0, "the other's I/O: " + pulse.out())
    c.sh(f"unmap {dev}")
    d.sh("modprobe -r ibnbd-stranger")
