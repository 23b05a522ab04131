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
P = "/sys/module/ibnbd_testdisk/parameters"
CTL = "/sys/class/ibnbd-server/ctl/devices"
AREA = dict(blocks=256, threads=2, think_us=2000, flush=8)
NUMBER = "F29"
# The disks lose their caches, and nobody gets in between: whoever was in does not any more.
LOSE = (f"echo 1000 > {P}/open_ms; for d in 0 1; do echo 1 > {CTL}/testdisk$d/cache_lost; done; "
        f"echo 1 > {P}/power_cut; echo 0 > {P}/open_ms")
# What an administrator does with the fenced one, and what the other one does by itself.
COMES_BACK = """
sleep {2}
wait_for 30 eval '[ "$(dev_attr {0} state)" = open ]'
if [ "$(dev_attr {1} state_detail)" = fenced ]; then
	echo 1 > /sys/block/{1}/ibnbd/remap_device
fi
wait_for 30 eval '[ "$(dev_attr {1} state)" = open ] ||
	{{ [ "$(dev_attr {1} state_detail)" = fenced ] &&
	   echo 1 > /sys/block/{1}/ibnbd/remap_device; }}'
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


def run(t):
    machine(t)
    c, s = t.client, t.server
    s.sh("modprobe ibnbd-testdisk nr_disks=2 size_mb=16; serve")
    print(f"power-losses: seed {SEED}, {LOSSES} losses", flush=True)
    rnd = random.Random(SEED)
    kept = F.Work(t, c, c.sh("map testdisk0 unflushed=replay hold=-1"), writer=2, **AREA)
    told = F.Work(t, c, c.sh("map testdisk1 unflushed=fence hold=-1"), writer=3, **AREA)
    for _ in range(LOSSES):
        s.sh(LOSE)
        c.sh(COMES_BACK.format(kept.dev[5:], told.dev[5:], f"{rnd.random():.3f}"), timeout=120)
    times, size = map(int, c.sh(f"dev_attr {kept.dev} replays").split())
    losses = int(c.sh(f"dev_attr {told.dev} losses"))
    t.ok(times > LOSSES / 2 and losses > LOSSES / 2, f"{times} replays, {losses} losses")
    for w, how, note in ((kept, "replay", f"{times} replays of {size} bytes"),
                         (told, "fence", f"{losses} losses told")):
        logs = w.read_logs()
        w.rows.append(dict(fault=NUMBER, what=f"disk loses its cache {LOSSES} times: {how}",
                           stack=w.stack, Tstall=None, Nerr=len(logs.failed), note=note))
        w.stop(errors_expected=w is told)
        c.sh(f"unmap {w.dev}")
        F.prove(t, s, f"/dev/testdisk{how == 'fence':d}", [w], w.blocks, p1=w is told)
    t.eq(kept.rows[0]["Nerr"], 0, "errors with replay")
