#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What the flushes cost that a client sends by itself, on a disk whose flush takes its time.

    tests/bench/flushes.py [--pairs N] [--ms MS] [--jobs JOB..] [--scale F] [--out FILE]

One machine in which time is instructions executed, as in bench.py, so the figures are the same on
any host.  Two disks of one session on ibnbd-testdisk, one with unflushed=ignore, one with
unflushed=replay: what is kept is flushed whenever half of retain_mb is in use.  A pair is a run on
each of them, one after the other, in turns which comes first; the figure is the median of the
pairs' ratios, beside the medians of both.  Each is measured with a disk that writes while it
flushes, and with one that does nothing else meanwhile.
"""
import argparse, json, statistics, sys, time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bench, image, launch, vm             # noqa: E402

JOBS = {    # fio's rw, KiB, iodepth, virtual seconds: long enough for several flushes
    "rw4k-qd1": ("randwrite", 4, 1, 3.0),
    "sw128k-qd4": ("write", 128, 4, 0.6),
}
SETTINGS = "ignore", "replay"
MIB = 64
P = "/sys/module/ibnbd_testdisk/parameters"


class Machine:
    def __init__(self, boot, ms, scale):
        self.scale = scale
        self.vm = vm.counted(boot)
        self.vm.boot(120)
        self.sh(f"net_up 1; modprobe ibnbd-testdisk nr_disks=2 size_mb={MIB} remember=0 "
                f"flush_ms={ms}; serve")
        self.devs = {how: self.sh(f"map testdisk{i} unflushed={how}").split()[-1]
                     for i, how in enumerate(SETTINGS)}
        for dev in self.devs.values():
            self.sh(f"echo none > /sys/block/{dev[5:]}/queue/scheduler")

    def sh(self, script, timeout=900):
        return self.vm.sh(script, timeout)

    def run(self, how, job):
        """(writes a second, flushes that reached the disk)"""
        rw, kib, depth, seconds = JOBS[job]
        dev = self.devs[how]
        self.sh(f"sync {dev}; echo 0 > {P}/counts; "
                f"fio --name=j --filename={dev} --direct=1 --ioengine=libaio --rw={rw} --bs={kib}k "
                f"--iodepth={depth} --thread --size={MIB}m "
                f"--time_based --runtime={seconds * self.scale} --clocksource=clock_gettime "
                "--norandommap --randrepeat=0 --randseed=7 "
                "--output-format=json --output=/h/fio.json")
        flushes = dict(w.split("=") for w in self.sh(f"cat {P}/counts").split())["flush"]
        text = self.vm.get("fio.json")
        part = json.loads(text[text.index("{"):])["jobs"][0]
        if part["error"]:
            raise vm.VMError(f"{job}: fio ended with an error")
        return part["write"]["iops"], int(flushes)


def measure(machine, job, pairs):
    rows = []
    for how in SETTINGS:
        machine.run(how, job)               # not counted
    for n in range(pairs):
        order = SETTINGS if n % 2 else SETTINGS[::-1]
        rows.append({how: machine.run(how, job) for how in order})
    iops = {how: statistics.median(r[how][0] for r in rows) for how in SETTINGS}
    return {"iops": {how: round(v, 1) for how, v in iops.items()},
            "ratio": round(statistics.median(r["ignore"][0] / r["replay"][0] for r in rows), 4),
            "of": [round(r["ignore"][0] / r["replay"][0], 4) for r in rows],
            "flushes": {how: statistics.median(r[how][1] for r in rows) for how in SETTINGS}}


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--pairs", type=int, default=5)
    p.add_argument("--ms", type=int, default=5, help="what a flush takes")
    p.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    p.add_argument("--scale", type=float, default=1, help="how long a run is, of what it should be")
    p.add_argument("--kver", help="kernel version")
    p.add_argument("--out", help="the figures as JSON")
    o = p.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    turn, started, result = launch.alone(), time.monotonic(), {}
    boot = launch.boot_image(o.kver or image.default_kver(), [])
    try:
        machine = Machine(boot, o.ms, o.scale)
        try:
            for stalls in "N", "Y":
                machine.sh(f"echo {stalls} > {P}/flush_stalls")
                for job in o.jobs:
                    row = measure(machine, job, o.pairs)
                    result[f"{job}, {'does nothing else' if stalls == 'Y' else 'writes'} meanwhile"
                           ] = row
        finally:
            machine.vm.off()
    finally:
        boot.close()
        turn.close()
    print(f"Commit {bench.commit()}, a flush takes {o.ms} ms, {o.pairs} pairs.")
    print("| job, the disk | ignore, writes/s | replay | flushes | a write takes |\n"
          "|---|---|---|---|---|")
    for name, r in result.items():
        print(f"| {name} | {r['iops']['ignore']:.0f} | {r['iops']['replay']:.0f} "
              f"| {r['flushes']['replay']:g} | {r['ratio'] - 1:+.1%} |")
    if o.out:
        Path(o.out).write_text(json.dumps(result, indent=1) + "\n")
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
