# SPDX-License-Identifier: GPL-2.0-only
"""ibnbd-stranger says to a server that asks for a key what no client of ours would."""
description = ("a client without the key is refused, whatever it says or repeats, "
               "and it costs nothing")
crowd = True
deadline = 300
import time
import keys

PARAMS = "/sys/module/ibnbd_stranger/parameters"
FAILURES = "/sys/module/ibtrs_server/parameters/auth_failures"
KEY, OTHER, BAD = "10" * 32, "22" * 32, "11" * 32
GOOD = f"name=db-1 secret={KEY}"
PLAIN = "refused 13 authentication is required here: map with auth=KEY"
PLAIN_USER = "refused 13 authentication is required here: open with a key"
FIRST = "cid 0: refused 129 the first connection of the path has no good proof"
NEXT = "cid 1: refused 129 the connection has no good proof of its path"
IN = "knock: verdict 0"
NOT_IN = "knock: verdict 129 "
WRONG = "verdict 129 the proof is wrong"
NOT_IT = "knock: server has another key, "
GONE = "the key that was proved is not loaded here any more"
PROVED = "cid 0: accepted, and proved"
SAID_WHY = ("ip:10.0.0.1: (key .*: authentication failed: |"
            "connection refused: (authentication is required|"
            "the (first )?connection .*no good proof))|"
            "ip:10.0.0.9: connection refused: the client's address is not that of its GID")
# what is done, the words of the visit, and how each line of the answer begins
VISITS = (
    ("no exchange at all", "conn=plain", ["cid 0: " + PLAIN]),
    ("not even cid 0", "next=plain", ["cid 1: " + PLAIN]),
    ("cid 1 of no path", "next=good", [NEXT]),
    ("no exchange, and a proof of zeros", "conn=good", [FIRST]),
    ("a wrong key", f"name=db-1 secret={BAD} conn=good", [NOT_IT + WRONG, FIRST]),
    ("no such name", f"name=db-2 secret={BAD} conn=good", [NOT_IT + WRONG, FIRST]),
    ("another's key", f"name=other secret={KEY} conn=good", [NOT_IT + WRONG, FIRST]),
    ("a bit of the proof", f"{GOOD} spoil=proof conn=good", ["knock: " + WRONG, FIRST]),
    ("with the key that is not there", f"{GOOD} spoil=which conn=good", [NOT_IN, FIRST]),
    ("no HELLO", f"{GOOD} spoil=hello", [NOT_IN + "the first message is no HELLO"]),
    ("a replayed proof", f"{GOOD} replay=1 conn=good", ["knock: " + WRONG, FIRST]),
    ("changed on the way", f"{GOOD} spoil=req conn=good", [NOT_IT + "verdict 129 ", FIRST]),
    ("passed on from another client", f"{GOOD} spoil=from conn=good",
     [NOT_IT + "verdict 129 ", FIRST]),
    ("meant for another server", f"{GOOD} spoil=to conn=good", [NOT_IT + "verdict 129 ", FIRST]),
    ("AUTH stripped", f"{GOOD} conn=plain", [IN, "cid 0: " + PLAIN]),
    ("a wrong proof on cid 0", f"{GOOD} conn=bad", [IN, FIRST]),
    ("an address that is another's", "claim=10.0.0.9 conn=plain",
     ["cid 0: refused 13 the client's address is not that of its GID"]),
)


def check(t, name, words, want):
    if t.server.serves_user():
        want = [begin.replace(PLAIN, PLAIN_USER) for begin in want]
    for _ in range(20):
        got = t.client.sh(f"echo '{words}' > {PARAMS}/visit; cat {PARAMS}/said", timeout=60)
        if "refused 16" not in got:
            break
        time.sleep(0.2)     # EBUSY: the server is still closing the path of the visit before
    t.log(f"{name}: {got}")
    got = got.splitlines()
    t.eq(len(got), len(want), f"{name}: {got}")
    for line, begin in zip(got, want):
        t.ok(line.startswith(begin), f"{name}: {line!r} is not {begin!r}")


def check_who_has_it(t, uuid):
    """Gets in, is told that the server has it, too, and has to show it on each connection."""
    s = t.server
    check(t, "right, and a wrong proof on cid 1",
          f"{GOOD} session=8 path=8 conn=good next=bad", [IN, PROVED, NEXT])
    check(t, "what was overheard", "session=8 path=8 conn=again", [FIRST])
    check(t, "right, and AUTH stripped from cid 1",
          f"{GOOD} session=9 path=9 conn=good next=plain", [IN, PROVED, "cid 1: " + PLAIN])
    check(t, "all of it", f"{GOOD} session=10 path=10 conn=good next=good",
          [IN, PROVED, "cid 1: accepted, and proved"])
    # a session belongs to its key: another one, or none, with its uuid makes one of its own
    other = f"name=other secret={OTHER} uuid={uuid} conn=good"
    check(t, "another key's uuid", other + " next=good",
          [IN, PROVED, "cid 1: accepted, and proved"])
    check(t, "another key's uuid, and a wrong proof on cid 1", other + " next=bad",
          [IN, PROVED, NEXT])
    s.sh("server_set auth=optional")
    check(t, "another's uuid without a key", f"uuid={uuid} conn=plain next=plain",
          ["cid 0: accepted", "cid 1: accepted"])
    s.sh("server_set auth=required")


def check_key_gone(t):
    """Proved, and then the server's key of that name is another one, or none."""
    c, s = t.client, t.server
    half = 6 if t.image.debug else 3    # of the pause, in seconds
    user = s.serves_user()
    if not user:
        s.sh("server_set handshake_timeout_s=30")
    remove = "rm /etc/ibnbd/keys/db-1" if user else "ibnbd key remove db-1"
    ways = ("removed", lambda: s.sh(remove)), \
           ("replaced", lambda: keys.give(s, db_1=keys.text(BAD)))
    for how, do in ways:
        for words, said in (
                (f"echo '{GOOD} session=11 path=11 pause={2 * half} conn=good' > {PARAMS}/visit",
                 "cid 0: refused 129 " + GONE),
                (f"echo '{GOOD}' > {PARAMS}/whom; "
                 f"echo 'half 1; nap {2 * half}; info 272; hear' > {PARAMS}/tell",
                 "refused 129 " + GONE)):
            job = c.spawn(f"{words}; cat {PARAMS}/said")
            time.sleep(half)
            do()
            job.wait(60)
            t.match(job.out(), said, f"{how}: {words}")
            keys.give(s, db_1=keys.text(KEY))


def run(t):
    c, s = t.client, t.server
    user = s.serves_user()      # its handshake_timeout_s is 10
    s.sh(f"ram_disks 1 64; serve auth=required {'' if user else 'handshake_timeout_s=5'}")
    for g in s, c:
        keys.give(g, db_1=keys.text(KEY), other=keys.text(OTHER))
    c.sh("modprobe ibnbd-stranger to=ip:10.0.0.2")
    dev = c.sh("map ram0 auth=db-1", timeout=60)
    free = int(s.sh("sleep 1; memory_kib"))
    uuid = c.sh("cat /sys/class/ibtrs-client/s1/uuid").replace("-", "")
    pulse = c.spawn(f"iopulse {dev} 4 500 rw 5000")
    for name, words, want in VISITS:
        s.kernel_news()
        check(t, name, words, want)
        t.match(s.server_news(), SAID_WHY, f"{name}: the server's log")
    spent = c.sh(f"t0=$(uptime_s); echo 'name=db-1 secret={BAD}' > {PARAMS}/visit; since $t0")
    t.ok(float(spent) >= 1, f"who guesses waits a second for each answer, not {spent} s")
    t.eq(s.sh("ls /run/sessions/ | grep -v ctl"), "s1", "sessions at the server")
    t.below(free - int(s.sh("sleep 6; memory_kib")), 16 << 10,
            "KiB that strangers cost; chunks would be 66 MiB each")
    if not user:
        t.ok(int(s.sh(f"cat {FAILURES}")) >= len(VISITS) - 1, "failures are counted")
    check_who_has_it(t, uuid)
    check_key_gone(t)
    # a flood of who never goes on keeps nobody out
    c.sh("for i in $(seq 40); do knock 10.0.0.2 patch=2:ba1b0001 hold=20 > /dev/null & done; "
         "sleep 2; echo 1 > $(ls -d /sys/class/ibtrs-client/s1/paths/*)/reconnect; "
         "wait_for 20 paths_up s1 1; pkill knock || true; pkill -TERM iopulse", timeout=90)
    t.eq(pulse.wait(30), 0, "who is in notices nothing: " + pulse.out())
    c.sh(f"unmap {dev}; modprobe -r ibnbd-stranger")
