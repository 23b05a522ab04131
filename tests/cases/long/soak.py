# SPDX-License-Identifier: GPL-2.0-only
"""make soak MINUTES=n SEED=n.  The table has one row for each kind of fault,
with the worst of its figures."""
description = "faults picked at random under the integrity checker, for as long as is asked for"
import os, random, time
import faults as F

MINUTES = float(os.environ.get("IBNBD_SOAK_MINUTES") or 5)
SEED = int(os.environ.get("IBNBD_SEED") or random.randrange(1 << 31))
links = 2
disk = 64
long = True
target = "soak"
deadline = int(MINUTES * 60 + 240)

# some requests are executed late, when their path may be gone
LATE = "/sys/kernel/debug/ibtrs/server/request"
SERVE = f"modprobe virtio_blk; wait_for 5 test -b /dev/vda; serve; echo delay=60 every=3 > {LATE}"


def run(t):
    c, s, r = t.client, t.server, random.Random(SEED)
    print(f"soak: seed {SEED}, {MINUTES} minutes", flush=True)
    t.log(f"seed {SEED}")
    s.sh(SERVE)
    dev = c.sh("map vda hold=-1 unflushed=ignore")      # its cache is the host's, and outlives it
    w = F.Work(t, c, dev, seed=SEED & 0xffff, max=2, blocks=1024, think_us=4000)
    paths = "/sys/class/ibtrs-client/s1/paths"

    def link(m, some, up):
        for i in some:
            m.link(i, up)

    def reboot():
        s.boot()
        s.sh(SERVE)

    def stand():
        s.pause()
        time.sleep(r.uniform(0.5, 8))
        s.resume()

    def flap(i):
        for _ in range(r.randrange(2, 8)):
            c.link(i, False)
            time.sleep(r.uniform(0, 1.5))
            c.link(i, True)
            time.sleep(r.uniform(0, 1.5))

    def tear(i):
        c.sh(f"cd {paths}; for n in $(seq {r.randrange(1, 12)}); do p=$(ls | sed -n {i + 1}p); "
             f"echo 1 > $p/disconnect; usleep {r.randrange(50000)}; "
             "wait_for 15 eval \"echo 1 > $p/reconnect\" 2> /dev/null; done", timeout=120)

    def remove(i):
        p = f"ip:10.0.{i}.1@ip:10.0.{i}.2"
        c.sh(f"echo 1 > {paths}/{p}/remove_path; usleep {r.randrange(1000000)}; "
             f"wait_for 15 eval 'echo {p} > {paths}/../add_path' 2> /dev/null; "
             f"wait_for 15 grep -q connected {paths}/{p}/state", timeout=60)

    def setting():
        c.sh(f"echo {r.choice(['rr', 'mi', 'ml'])} > {paths}/../mpath_policy; "
             f"echo {r.choice(['none', 'mq-deadline'])} > /sys/block/{dev[5:]}/queue/scheduler")

    def rdma(m, i):
        m.sh(f"rdma link delete rxe{i}; usleep {r.randrange(2000000)}; "
             f"rdma link add rxe{i} type rxe netdev eth{i}; wait_for 5 net_gids {i}")

    def one():
        i, hold, both = r.randrange(2), r.uniform(0, 8), [0, 1]
        who = r.choice([c, s])
        loss = r.choice([1, 5, 20])
        return r.choice([
            ("F1", "one path: carrier",
             lambda: link(c, [i], False), lambda: link(c, [i], True), hold),
            ("F2", "one path: silence",
             lambda: link(s, [i], False), lambda: link(s, [i], True), hold),
            ("F3", "one path: one direction",
             lambda: who.sh(f"net_loss {i} 100"), lambda: who.sh(f"net_loss {i} 0"), hold),
            ("F4", "packets lost",
             lambda: who.sh(f"net_loss {i} {loss}"), lambda: who.sh(f"net_loss {i} 0"), hold),
            ("F5", "all paths: carrier",
             lambda: link(c, both, False), lambda: link(c, both, True), hold),
            ("F5", "all paths: silence",
             lambda: link(s, both, False), lambda: link(s, both, True), hold),
            ("F7", "a link flaps", lambda: flap(i), None, 0),
            ("F9", "server unloaded and loaded",
             lambda: s.sh("unload $OUR_MODULES"), lambda: s.sh(SERVE), hold / 4),
            ("F11", "server loses its power", s.kill, reboot, hold / 4),
            ("F12", "server stands still", stand, None, 0),
            ("F21", "RDMA device removed", lambda: rdma(who, i), None, 0),
            ("T37", "path torn down", lambda: tear(i), None, 0),
            ("T24", "path removed and added", lambda: remove(i), None, 0),
            ("T54", "policy and scheduler changed", setting, None, 0),
        ])

    end, count = time.monotonic() + MINUTES * 60, 0
    while time.monotonic() < end:
        number, what, strike, heal, hold = one()
        row = w.fault(number, what, strike, heal, hold=hold, settle=r.uniform(0, 1), recover=45,
                      from_healed=True)
        t.eq(row["Nerr"], 0, f"seed {SEED}, fault {count}, {number} {what}: I/O errors")
        count += 1
    worst = {}
    for row in w.rows:
        have = worst.setdefault((row["fault"], row["what"]), dict(row, n=0))
        have["n"] += 1
        for k in ("Tdet", "Tstall", "Trec", "Nerr"):
            have[k] = max((x for x in (have[k], row[k]) if x is not None), default=None)
    w.rows = [dict(row, note=f"{row.pop('n')} times") for _, row in sorted(worst.items())]
    t.ok(" hits=0" not in s.sh(f"cat {LATE}; echo off > {LATE}"), "requests were executed late")
    w.end("/dev/vda")
    print(f"soak: seed {SEED}: {count} faults", flush=True)
