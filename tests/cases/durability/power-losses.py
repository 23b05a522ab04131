# SPDX-License-Identifier: GPL-2.0-only
"""First the server's machine loses its power, as in peers/*-disks; then its disks lose theirs, at
random times, so often that all of it is met: writes, flushes, replays and their ends.  A disk that
takes its time to be opened keeps the clients out between the two steps that make such a loss."""
description = ("a thousand losses of power at random times: with replay no acknowledged write is "
               "lost, with fence no flushed one, and each loss is told")
links = 2
disk = 64
faults = True
long = True
deadline = 9000
import faults as F, os, random, time
import peer_disks

LOSSES = int(os.environ.get("IBNBD_LOSSES") or 1000)
SEED = int(os.environ.get("IBNBD_SEED") or time.time())
ROUND = 50      # losses under one pair of writers; then it is proved, and their logs go
P = "/sys/module/ibnbd_testdisk/parameters"
CTL = "/sys/class/ibnbd-server/ctl/devices"
AREA = dict(blocks=256, threads=2, think_us=2000, flush=8)
NUMBER = "F29"
# The disks lose their caches, and nobody gets in between: whoever was in does not any more.
LOSE = (f"echo 1 > {P}/shut; for d in 0 1; do echo 1 > {CTL}/testdisk$d/cache_lost; done; "
        f"echo 1 > {P}/power_cut; echo 0 > {P}/shut")
# What an administrator does with the fenced one, and what the other one does by itself.
COMES_BACK = """
wait_for 2 eval '[ "$(dev_attr {0} replays)" != "{2}" ]' 2> /dev/null || true
wait_for 2 eval '[ "$(dev_attr {1} losses)" != {3} ] ||
	{{ [ "$(dev_attr {1} state_detail)" = fenced ] &&
	   echo 1 > /sys/block/{1}/ibnbd/remap_device; }}' 2> /dev/null || true
wait_for 30 eval '[ "$(dev_attr {0} state) $(dev_attr {1} state)" = "open open" ]'
dev_attr {0} replays
dev_attr {1} losses
sleep {4}
"""


def machine(t):
    c, s = t.client, t.server

    def serve():
        s.sh(peer_disks.FORGETS + "serve writer_file=/h/writers")

    def heal():
        kept = (s.vm.share / "writers").read_bytes()
        s.boot()
        (s.vm.share / "writers").write_bytes(kept)
        serve()

    serve()
    dev = c.sh("map testdisk0 hold=-1")
    w = F.Work(t, c, dev, blocks=256, think_us=3000, flush=16)
    row = w.fault(NUMBER, "server loses its power, its disk forgets", s.kill, heal, hold=5,
                  recover=120, detect=60, from_healed=True)
    w.limit(row, Nerr=0)
    w.remark(f"{c.sh(f'dev_attr {dev} replays').split()[1]} bytes sent again")
    w.end("/dev/testdisk0")
    s.sh("unload $OUR_MODULES; modprobe -r ibnbd-testdisk")


def one_round(t, devs, losses, rnd, rows):
    """Writers of their own, who begin with an empty area; their logs are read once."""
    c, s = t.client, t.server
    state = c.sh(f"dev_attr {devs[0]} replays; dev_attr {devs[1]} losses").splitlines()
    works = {}
    for i, (dev, how) in enumerate(zip(devs, ("replay", "fence"))):
        c.sh(f"blkdiscard -z -l {AREA['blocks'] * 4096} /dev/{dev}; sync /dev/{dev}")
        works[how] = F.Work(t, c, f"/dev/{dev}", writer=2 + i, seed=rnd.randrange(1 << 30),
                            closes=True, **AREA)
    for _ in range(losses):
        s.sh(LOSE)
        state = c.sh(COMES_BACK.format(*devs, *state, f"{rnd.random():.3f}"),
                     timeout=120).splitlines()
    for i, (how, w) in enumerate(works.items()):
        logs = w.read_logs()
        w.stop(errors_expected=how == "fence")
        verdict = F.prove(t, s, f"/dev/testdisk{i}", [w], w.blocks, p1=how == "fence")
        row = rows.setdefault(how, dict(
            fault=NUMBER, what=f"disk loses its cache {LOSSES} times: {how}", stack=w.stack,
            Tstall=None, Nerr=0, Nlost=0, Nghost=0, Ncorr=0))
        row["note"] = (f"{state[1]} losses told" if how == "fence" else
                       "{} replays of {} bytes".format(*state[0].split()))
        for name, n in (("Nerr", len(logs.failed)), ("Nlost", verdict.lost),
                        ("Nghost", verdict.ghost), ("Ncorr", verdict.wrong)):
            row[name] += n
        for p in [*c.vm.share.glob(f"{w.name}.[0-9]*"), *w.saved.glob(f"{w.name}.[0-9]*")]:
            p.unlink()


def run(t):
    machine(t)
    c, s = t.client, t.server
    s.sh("modprobe ibnbd-testdisk nr_disks=2 size_mb=16; serve")
    print(f"power-losses: seed {SEED}, {LOSSES} losses", flush=True)
    rnd = random.Random(SEED)
    devs = [c.sh(f"map testdisk{i} unflushed={how} hold=-1").removeprefix("/dev/")
            for i, how in enumerate(("replay", "fence"))]
    rows, started, done = {}, time.monotonic(), 0
    while done < LOSSES:
        n = min(ROUND, LOSSES - done)
        one_round(t, devs, n, rnd, rows)
        done += n
        print(f"power-losses: {done}, {(time.monotonic() - started) / done:.1f} s each", flush=True)
    for row in rows.values():
        t.ok(int(row["note"].split()[0]) > LOSSES / 2, row["note"])
        t.figure(**row)
    t.eq(rows["replay"]["Nerr"], 0, "errors with replay")
