# SPDX-License-Identifier: GPL-2.0-only
"""Who has a key, and who has none, on one machine: what the one does is not the other's loss."""
description = ("a key is of use to root alone, and only CAP_SYS_ADMIN adds one; who has none, on "
               "the same host, takes no place from who has; rules go by keys; auth=required closes "
               "who has proved none; a key has limits, whatever addresses it comes from")
crowd = True
deadline = 180
import keys

RULES = "ram1 key:db-1 rw\\nram1 ro\\nram2 key:other rw\\nram2 deny\\n"
OK, FULL = "accepted depth 512 flags 0", "refused 28"


def run(t):
    c, s = t.client, t.server
    put = lambda dev: f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none"
    user = s.serves_user()      # its handshake_timeout_s is 10
    s.sh("ram_disks 3 16; serve auth=required max_paths_half_open=4 " +
         ("" if user else "handshake_timeout_s=100"))
    keys.share("db-1", c, s)

    t.log("--- a user of the client's machine, with a verbs program of its own")
    c.fails("lessen user cat /etc/ibnbd/keys/db-1", "ermission denied")
    c.fails("lessen user ibnbd key load db-1", "cannot read /etc/ibnbd/keys: Permission denied")
    t.eq(c.sh("lessen user ibnbd key list -n"), "", "the keys that it sees")
    t.eq(c.sh("lessen user knock 10.0.0.2"), "refused 13", "what it is let do")
    t.match(s.server_news(), "ip:10.0.0.1: connection refused: authentication is required",
            "the server's log")

    t.log("--- and with keys that say in /proc/keys that its keyring is the driver's")
    fake = c.spawn("lessen user fakering")
    t.wait(lambda: "ready" in fake.out(), 20, "its keys")
    c.sh("ibnbd key generate db-2; ibnbd key load; ibnbd key remove db-2")
    c.sh("pkill -TERM fakering")
    t.eq(fake.wait(20), 0, fake.out())
    t.eq(fake.out().splitlines()[-1], "0 keys", "what came into its keyring")
    # the kernel collects its keys some time later: until then the next one would take them for it
    t.wait(lambda: c.sh("grep -c 'keyring   [.]ibnbd' /proc/keys") == "1", 30, "its keys are gone")

    t.log("--- root of a container, without CAP_SYS_ADMIN")
    t.eq(c.sh("lessen admin fakering grab"), "nothing, with 1 keys", "ways into the keyring")
    c.fails("lessen admin ibnbd key load", "not permitted")
    t.match(c.kernel_news(), "[.]ibnbd: refused: writing requires CAP_SYS_ADMIN", "the log")
    c.sh("ibnbd key load")      # over a key that is there

    t.log("--- where strangers are let in, they hold all places that are for them")
    s.sh("server_set auth=optional")
    flood = c.spawn("lessen user knock 10.0.0.2 count=6 hold=100")
    t.wait(lambda: len(flood.out().splitlines()) == 6, 20, "six knocks")
    t.eq(flood.out().splitlines(), [OK] * 4 + [FULL] * 2, "the strangers' answers")
    c.fails("map ram0 sessname=plain", "max_paths_half_open allows", timeout=60)
    dev = c.sh("map ram0 auth=db-1", timeout=60)
    flood.kill()

    t.log("--- rules by key")
    s.sh(f"printf '{RULES}' | policy")
    c.fails("map ram1 sessname=plain", "only read", timeout=60)
    ro = c.sh("map ram1 sessname=plain access_mode=ro")
    rw = c.sh("map ram1 auth=db-1")
    c.sh(put(rw))
    c.fails("map ram2 auth=db-1", "denies it to this client")

    t.log("--- a key is required from now on")
    s.kernel_news()
    s.sh("server_set auth=required")
    if not user:        # it was started again
        t.match(s.kernel_news(), "session plain: .*: closed: authentication is required",
                "the server says whom")
    t.wait(lambda: s.sh("ls /run/sessions/ | grep -v ctl || true") == "s1", 20, "who is left")
    c.sh("wait_for 20 grep -q 'authentication is required here' "
         "/sys/class/ibtrs-client/plain/paths/*/state_detail", timeout=60)
    c.sh(f"{put(rw)}; {put(dev)}; paths_up s1 1")
    s.sh("server_set auth=optional")
    c.sh("wait_for 20 paths_up plain 1; "
         f"dd if={ro} of=/dev/null bs=4k count=1 iflag=direct status=none", timeout=60)
    c.sh(f"unmap {ro}; unmap {rw}; unmap {dev}")

    t.log("--- of four sessions one is for who has a key")
    s.sh("server_set max_sessions=4")
    devs = [c.sh(f"map ram1 sessname=p{i} access_mode=ro") for i in range(3)]
    c.fails("map ram1 sessname=p3 access_mode=ro", "leaves to clients without a key", timeout=60)
    devs.append(c.sh("map ram1 sessname=k auth=db-1"))
    c.sh("; ".join(f"unmap {d}" for d in devs), timeout=60)

    t.log("--- and of those one is for another key, also if a host has four addresses")
    key = lambda name, src: (f"map ram1 sessname=a{src} access_mode=ro auth={name} "
                             f"path=ip:10.0.0.{src}@ip:10.0.0.2")
    keys.share("db-3", c, s)
    c.sh("for i in 11 12 13; do ip addr add 10.0.0.$i/24 dev eth0; done; for i in b c d; do "
         "wait_for 10 grep -q ffff:0a00:000$i /sys/class/infiniband/rxe0/ports/1/gids/*; done")
    devs = [c.sh(key("db-1", src), timeout=60) for src in (1, 11, 12)]
    c.fails(key("db-1", 13), "max_sessions_per_key", timeout=60)
    devs.append(c.sh(key("db-3", 13), timeout=60))
    c.sh("; ".join(f"unmap {d}" for d in devs), timeout=60)
    s.sh("server_set max_sessions_per_key=1")
    devs = [c.sh(key("db-1", 1), timeout=60)]
    c.fails(key("db-1", 11), "max_sessions_per_key", timeout=60)
    c.sh("; ".join(f"unmap {d}" for d in devs), timeout=60)
    s.sh(f"server_set max_sessions_per_key=0 max_memory_per_key_mb={65 if user else 66}")
    c.fails(key("db-1", 1), "max_memory_per_key_mb", timeout=60)
