#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What an I/O costs: thousand guest instructions, ours against the peers, in one run.

    tests/bench/bench.py                       all targets, all jobs
    tests/bench/bench.py -t ibnbdN rnbdN -j rr4k-qd1

Wall-clock figures of emulated or shared machines mean nothing, instructions do: one VM with one CPU in which
time is instructions executed (QEMU -icount), client, server, soft-RoCE and fio together.  500 / kIOPS is then
the number of thousand instructions per I/O, repeatable within half a percent whatever else the host does.
`erms` and `fsrm` are off because the emulator counts every byte of a `rep movsb` as an instruction.

The disk is a RAM disk filled beforehand.  Results: a table, and build/bench/result.json and .csv; `net` is what
is left when the cost of the same job on the local RAM disk is taken away.
"""
import argparse, csv, json, subprocess, sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests/vm"))
import image, launch, vm                    # noqa: E402

JOBS = {    # name: fio's rw, bs, iodepth, numjobs
    "rr4k-qd1": ("randread", "4k", 1, 1), "rw4k-qd1": ("randwrite", "4k", 1, 1),
    "rr4k-qd16x2": ("randread", "4k", 16, 2), "rw4k-qd16x2": ("randwrite", "4k", 16, 2),
    "rr64k-qd4": ("randread", "64k", 4, 1), "rw64k-qd4": ("randwrite", "64k", 4, 1),
    "sr128k-qd4": ("read", "128k", 4, 1), "sw128k-qd4": ("write", "128k", 4, 1),
    "sr1m-qd2": ("read", "1m", 2, 1), "sw1m-qd2": ("write", "1m", 2, 1),
    "rrw4k-qd16": ("randrw --rwmixread=70", "4k", 16, 1),
}
QUICK_JOBS = ["rr4k-qd1", "rw4k-qd1", "rr4k-qd16x2", "rw4k-qd16x2"]
TARGETS = ["local", "ibnbdN", "ibnbdY", "rnbdN", "rnbdY"]
RAM_MIB = 64


def setup(target):
    """Script that leaves the device's name in /tmp/dev."""
    if target == "local":
        return f"ram_disks 1 {RAM_MIB}; echo /dev/ram0 > /tmp/dev"
    family, mode = target[:-1], target[-1]
    return (f"export FAMILY={family}; ram_disks 1 {RAM_MIB}; serve always_invalidate={mode}; "
            "map ram0 > /tmp/dev; echo none > /sys/block/$(basename $(cat /tmp/dev))/queue/scheduler")


def measure(machine, job, seconds):
    rw, bs, depth, jobs = JOBS[job]
    fio = (f"fio --name=j --filename=$(cat /tmp/dev) --direct=1 --ioengine=libaio --rw={rw} --bs={bs} --iodepth={depth} "
           f"--numjobs={jobs} --group_reporting --thread --size={RAM_MIB}m --time_based --clocksource=clock_gettime "
           "--norandommap --randrepeat=0 --randseed=7")
    rc, out = machine.run(f"{fio} --runtime=0.3 --output=/dev/null\n"
                          f"{fio} --runtime={seconds} --output-format=json --output=/h/fio.json", 600)
    if rc:
        raise vm.VMError(f"fio: {out[-1000:]}")
    text = machine.get("fio.json")
    result = json.loads(text[text.index("{"):])["jobs"][0]
    if result["error"]:
        raise vm.VMError(f"fio ended with error {result['error']}")
    iops = result["read"]["iops"] + result["write"]["iops"]
    return round(500e3 / iops, 2)


def bench(boot, target, jobs, seconds):
    machine = vm.VM(f"bench-{target}", boot, 1, smp=1, mem=1536, icount="shift=1,sleep=off")
    try:
        machine.boot(120)
        rc, out = machine.run(f"net_up 1; {setup(target)}", 300)
        if rc:
            raise vm.VMError(f"{target}: set-up failed:\n{out}\n{machine.kernel_log()[-3000:]}")
        return {job: measure(machine, job, seconds) for job in jobs}
    finally:
        machine.off()


def table(title, rows, jobs, form):
    print(f"\n{title}")
    print("| target | " + " | ".join(jobs) + " |")
    print("|---" * (len(jobs) + 1) + "|")
    for name, values in rows.items():
        print(f"| {name} | " + " | ".join(form % values[j] if values.get(j) is not None else "-" for j in jobs) + " |")


def net(result, target, job):
    local = result.get("local", {}).get(job)
    own = result.get(target, {}).get(job)
    return None if own is None or local is None else own - local


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-t", "--targets", nargs="+", default=TARGETS, choices=TARGETS)
    p.add_argument("-j", "--jobs", nargs="+", default=list(JOBS), choices=list(JOBS))
    p.add_argument("--quick", action="store_true", help="the jobs " + ", ".join(QUICK_JOBS))
    p.add_argument("--seconds", type=float, default=1.0, help="virtual seconds of each job (500 million instructions)")
    p.add_argument("--kver", help="kernel version")
    p.add_argument("--not-above", metavar="PEER", help="fail when ibnbdN costs more than PEER in a 4k job")
    o = p.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    jobs = QUICK_JOBS if o.quick else o.jobs
    kver = o.kver or image.default_kver()
    if any(t.startswith("rnbd") for t in o.targets):
        subprocess.run([REPO / "tests/interop/build-peer.sh", kver], check=True)
    boot = vm.Boot(kver, launch.module_dirs(kver))
    result, failed = {}, []
    try:
        for target in o.targets:
            try:
                result[target] = bench(boot, target, jobs, o.seconds)
                print(f"{target}: " + ", ".join(f"{j} {v}" for j, v in result[target].items()))
            except vm.VMError as e:
                failed.append(target)
                print(f"FAIL {target}: {e}")
    finally:
        boot.close()
    commit = subprocess.run(["git", "-C", REPO, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    print(f"\nThousand instructions per I/O, all in. Commit {commit}, kernel {kver}, soft-RoCE in one VM.")
    table("All in", result, jobs, "%.1f")
    ratios = {f"ibnbdN / {peer}": {j: net(result, "ibnbdN", j) / net(result, peer, j) for j in jobs
                                   if net(result, "ibnbdN", j) and net(result, peer, j)}
              for peer in result if peer not in ("local", "ibnbdN")}
    table("Net of the local disk, as a ratio (below 1: ours is cheaper)", ratios, jobs, "%.3f")
    out = REPO / "build/bench"
    out.mkdir(parents=True, exist_ok=True)
    (out / "result.json").write_text(json.dumps({"commit": commit, "kver": kver, "kinstr": result}, indent=1))
    with open(out / "result.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["target", "job", "kinstr_per_io"])
        w.writerows((t, j, v) for t, r in result.items() for j, v in r.items())
    if o.not_above:
        for j in jobs:
            ratio = ratios.get(f"ibnbdN / {o.not_above}", {}).get(j)
            if j in QUICK_JOBS and (ratio is None or ratio > 1):
                failed.append(f"{j}: {ratio}")
                print(f"FAIL {j}: ours costs {ratio} of {o.not_above}")
    print(f"{len(result)} passed, {len(failed)} failed")
    return 1 if failed or not result else 0


if __name__ == "__main__":
    sys.exit(main())
