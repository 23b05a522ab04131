#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What an I/O costs: thousand guest instructions,
ours against what one would use instead, in one run.

    tests/bench/bench.py                       all targets, all jobs
    tests/bench/bench.py -t ibnbdN rnbdN -j rr4k-qd1
    tests/bench/bench.py --quick               the gate: four jobs, against
                                               tests/bench/reference.json
    tests/bench/bench.py --quick --accept      write that file anew

Wall-clock figures of emulated or shared machines mean nothing, instructions do: one VM with one CPU
in which time is instructions executed (QEMU -icount), client, server, soft-RoCE and fio together.
500 / kIOPS is then the number of thousand instructions per I/O, repeatable within half a percent
whatever else the host does.  `erms` and `fsrm` are off because the emulator counts every byte of a
`rep movsb` as an instruction.

`net` is what is left when the cost of the same job on the local RAM disk is taken away; ratios are
of net costs.  The floor is two bare RDMA messages per I/O and nothing else (floor/floor.c): no
protocol on this transport gets below it.  Results: tables, and bench/out/result.{json,csv,png}.

`mirror` is md's RAID 1 over two disks of ours, each in a session of its own; `two` is the same two
disks without md, each written to by a job of its own, at the cost of both writes together.

Only when named: `serverd` is our client with ibnbd-serverd, `nbdkit` the kernel's nbd, nbdkit and
libibnbd with our server, `lib`, `lib-poll` and `lib-in-place` a program that calls libibnbd
(disk.c): it sleeps for answers, or polls; or its data is not copied. `ucx` is UCX's put and get to
memory of its own process, polled: no server and no disk, so what a library of RDMA costs by itself.
"""
import argparse, csv, json, subprocess, sys, time
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests/vm"))
import gnuplot, image, launch, vm           # noqa: E402

JOBS = {    # name: fio's rw, bs, iodepth, jobs, devices
    "rr4k-qd1": ("randread", 4, 1, 1, 1), "rw4k-qd1": ("randwrite", 4, 1, 1, 1),
    "rr4k-16x1": ("randread", 4, 16, 1, 1), "rw4k-16x1": ("randwrite", 4, 16, 1, 1),
    "rr4k-16x2": ("randread", 4, 16, 2, 1), "rw4k-16x2": ("randwrite", 4, 16, 2, 1),
    "rr4k-32x4": ("randread", 4, 32, 4, 4), "rw4k-32x4": ("randwrite", 4, 32, 4, 4),
    "mix4k-16x2": ("randrw", 4, 16, 2, 1),
    # sent 16 at a time
    "rr4k-batch": ("randread", 4, 32, 1, 1), "rw4k-batch": ("randwrite", 4, 32, 1, 1),
    "rr64k-qd4": ("randread", 64, 4, 1, 1), "rw64k-qd4": ("randwrite", 64, 4, 1, 1),
    "sr128k-qd4": ("read", 128, 4, 1, 1), "sw128k-qd4": ("write", 128, 4, 1, 1),
    "sr1m-qd2": ("read", 1024, 2, 1, 1), "sw1m-qd2": ("write", 1024, 2, 1, 1),
}
MIX_READS = 70
MIRRORS = ["two", "mirror"]     # with two disks for each of the others' one
TARGETS = ["local", "floor", "ibnbdN", "ibnbdY", "rnbdN", "rnbdY", "nvme", "iser", "srp", *MIRRORS]
# what becomes of writes that no flush has covered: only when named
UNFLUSHED = ["ibnbd-ignore", "ibnbd-fence", "ibnbd-replay"]
# servers and clients in user space, and what each needs: only when named, too
USER = {"serverd": [REPO / "build/serverd/ibnbd-serverd"],
        "nbdkit": [REPO / "build/lib/nbdkit-ibnbd-plugin.so", "nbdkit", "nbd-client"]}
LIBRARY = {"lib": "", "lib-poll": "poll", "lib-in-place": "in-place"}   # words for disk.c
DISK = REPO / "build/lib/bench-disk"
UCX = ("ucx_perftest", "/usr/lib/x86_64-linux-gnu/ucx/libuct_ib.so.0")
QUICK = {"jobs": ["rr4k-qd1", "rw4k-qd1", "rr4k-16x2", "rw4k-16x2"],
         "targets": ["local", "ibnbdN", "rnbdN", "nvme"]}
REFERENCE = REPO / "tests/bench/reference.json"
SLACK = 1.02
RAM_MIB, DEVICES = 32, 4
MD_MIB = 8                  # more, of which md takes what it needs


class Machine:
    """A booted machine with one target set up."""
    def __init__(self, boot, target, append="", before=""):
        self.target = target
        self.vm = vm.counted(boot, append=append)
        try:
            self.vm.boot(120)
            self.vm.put("peers.sh", (REPO / "tests/bench/peers.sh").read_text())
            self.vm.put("devs", "")
            disks, mib = ((2 * DEVICES, RAM_MIB + MD_MIB) if target in MIRRORS
                          else (DEVICES, RAM_MIB))
            self.sh(f"{before}\nnet_up 1; ram_disks {disks} {mib}; . /h/peers.sh; "
                    f"setup_{target} {DEVICES} > /h/devs")
        except BaseException:
            self.vm.off()
            raise
        self.devs = self.vm.get("devs").split()

    def sh(self, script, timeout=600):
        return self.vm.sh(script, timeout)

    def fio(self, job, seconds, out):
        rw, kib, depth, jobs, devices = JOBS[job]
        if self.target == "two":
            jobs, devices = 2 * jobs, 2 * devices
        args = (f"--direct=1 --ioengine=libaio --rw={rw} --rwmixread={MIX_READS} --bs={kib}k "
                f"--iodepth={depth} --group_reporting --thread --size={RAM_MIB}m --time_based "
                "--clocksource=clock_gettime --norandommap --randrepeat=0 --randseed=7 "
                f"--runtime={seconds}"
                + " --iodepth_batch_submit=16 --iodepth_batch_complete_min=16"
                * job.endswith("-batch"))
        each = [f"--name=j{i} --filename={dev} --numjobs={jobs // devices}"
                for i, dev in enumerate(self.devs[:devices])]
        return f"fio {args} {out} {' '.join(each)}"

    def measure(self, job, seconds):
        if self.target == "floor":
            return self.floor(job)
        if self.target in LIBRARY:
            return self.library(job)
        if self.target == "ucx":
            return self.ucx(job)
        self.sh(f"{self.fio(job, 0.2, '--output=/dev/null')}\n"
                f"{self.fio(job, seconds, '--output-format=json --output=/h/fio.json')}")
        text = self.vm.get("fio.json")
        parts = json.loads(text[text.index("{"):])["jobs"]
        if any(p["error"] for p in parts):
            raise vm.VMError(f"{self.target}: {job}: fio ended with an error")
        each = 500e3 / sum(p[d]["iops"] for p in parts for d in ("read", "write"))
        return round(each * (copies(job) if self.target == "two" else 1), 2)

    def floor(self, job):
        rw, kib, depth, jobs, _ = JOBS[job]
        reads = {"randrw": MIX_READS / 100}.get(rw, float("read" in rw))
        slots = depth * jobs
        count = requests(kib, slots)
        cost = 0
        for share, request, reply in ((reads, 0, kib << 10), (1 - reads, kib << 10, 0)):
            if share:
                ns = self.sh(f". /h/peers.sh; floor_run {request} {reply} {slots} {slots * 4} "
                             f"> /dev/null; floor_run {request} {reply} {slots} {count}")
                cost += share * int(ns.split()[-1]) / 2000 / count
        return round(cost, 2)

    def library(self, job):
        rw, kib, depth, _, _ = JOBS[job]
        count = requests(kib, depth)
        ns = self.sh(f"{DISK.name} ram0 ip:10.0.0.1 {rw.removeprefix('rand')} {kib} {depth} "
                     f"{count} {LIBRARY[self.target]}")
        return round(int(ns.split()[-1]) / 2000 / count, 2)

    def ucx(self, job):
        rw, kib, depth, _, _ = JOBS[job]
        said = self.sh("UCX_MODULE_DIR=/bin ucx_perftest -l -d rxe0:1 -x rc_verbs -D zcopy "
                       f"-t {'get' if 'read' in rw else 'put_bw'} -s {kib << 10} -O {depth} "
                       f"-w {4 * depth} -n {requests(kib, depth)} -f")
        return round(500e3 / float(said.split()[-1]), 2)    # the overall message rate

    def off(self):
        self.vm.off()


def requests(kib, slots):
    """How many are enough for a figure, of a program that counts them."""
    return max(8 * slots, 16000 // kib)


def bench(boot, target, jobs, seconds):
    machine = Machine(boot, target)
    try:
        return {job: machine.measure(job, seconds) for job in jobs
                if (target != "two" or JOBS[job][0] != "randrw")
                and (target not in (*LIBRARY, "ucx") or JOBS[job][3:] == (1, 1))}
    finally:
        machine.off()


def net(result, target, job):
    """Cost above the local disk; the floor has no disk under it."""
    own, local = (result.get(target, {}).get(job),
                  0 if target == "floor" else result.get("local", {}).get(job))
    return None if own is None or local is None else own - local


def ratios(result, jobs, ours="ibnbdN"):
    return {f"{ours} / {peer}": {j: net(result, ours, j) / net(result, peer, j) for j in jobs
                                 if net(result, ours, j) and net(result, peer, j)}
            for peer in result if peer not in ("local", ours, *MIRRORS)}


def copies(job):
    """A mirror writes to both disks, and reads from one."""
    return 2 if "write" in JOBS[job][0] else 1


def md_tax(result, jobs):
    """What md costs at most: two disks have an application's own work, and a RAM disk's, twice for
    a write, and both are in the local disk's cost."""
    both = [j for j in jobs if all(j in result[t] for t in ("local", *MIRRORS))]
    two = {j: result["two"][j] - copies(j) * result["local"][j] for j in both}
    return {"thousand instructions": {j: net(result, "mirror", j) - two[j] for j in both},
            "of what the two disks cost": {j: net(result, "mirror", j) / two[j] - 1 for j in both}}


def table(title, rows, jobs, form):
    print(f"\n{title}")
    print("| | " + " | ".join(jobs) + " |")
    print("|---" * (len(jobs) + 1) + "|")
    for name, values in rows.items():
        print(f"| {name} | " + " | ".join(form % values[j] if values.get(j) is not None else "-"
                                          for j in jobs) + " |")


def report(result, jobs, commit, kver):
    print(f"\nCommit {commit}, kernel {kver}, soft-RoCE in one VM.")
    table("Thousand instructions per I/O, all in", result, jobs, "%.1f")
    for ours in ("ibnbdN", "ibnbdY"):
        if ours in result and "local" in result:
            table("Net of the local disk, as a ratio (below 1: ours is cheaper)",
                  ratios(result, jobs, ours), jobs, "%.3f")
    if all(t in result for t in ("local", *MIRRORS)):
        table("md's part of a mirror, at most", md_tax(result, jobs), jobs, "%.3f")
    out = REPO / "bench/out"
    out.mkdir(parents=True, exist_ok=True)
    (out / "result.json").write_text(json.dumps({"commit": commit, "kver": kver, "kinstr": result},
                                                indent=1))
    with open(out / "result.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["commit", "kernel", "target", "job", "kinstr_per_io", "net"])
        for t, r in result.items():
            for j, v in r.items():
                n = net(result, t, j)
                w.writerow([commit, kver, t, j, v, "" if n is None else round(n, 2)])
    plot(result, jobs, f"{commit}, kernel {kver}", out)


def plot(result, jobs, title, out):
    """Net cost as a multiple of the floor's, or all in without one."""
    base = result.get("floor")
    names = [t for t in result
             if t not in MIRRORS and (not base or t not in ("local", "floor"))]
    value = ((lambda t, j: (net(result, t, j) or 0) / base[j]) if base
             else (lambda t, j: result[t][j]))
    why = gnuplot.bars(out / "result.svg", f"Cost of an I/O, {title}",
                       "net of the local disk, floor = 1" if base else "thousand instructions",
                       names, [[j, *(value(t, j) for t in names)] for j in jobs])
    print(f"\nno plot: {why}" if why else f"\n{(out / 'result.svg').relative_to(REPO)}")


def gate(result, jobs, kver, accept):
    """Reference ratios are of one kernel series; (passed, failed)."""
    series = ".".join(kver.split(".")[:2])
    known = json.loads(REFERENCE.read_text()) if REFERENCE.exists() else {}
    now = {name: {j: round(v, 4) for j, v in row.items()}
           for name, row in ratios(result, jobs).items()}
    if accept:
        known[series] = now
        REFERENCE.write_text(json.dumps(known, indent=1) + "\n")
        print(f"{REFERENCE.relative_to(REPO)}: {series} written")
    if series not in known:
        print(f"FAIL no reference ratios for {series}: run with --quick --accept")
        return 0, 1
    passed = failed = 0
    for name, row in known[series].items():
        for job, ref in row.items():
            value = now.get(name, {}).get(job)
            ok = value is not None and value <= ref * SLACK
            passed, failed = passed + ok, failed + (not ok)
            print(f"{'ok  ' if ok else 'FAIL'} {name} {job}: {value}, reference {ref}")
    return passed, failed


def library():
    """disk.c with the libraries of `make lib` in it."""
    lib = image.need(REPO / "build/lib/libibnbd.a", "make lib").parent
    subprocess.run(["gcc", "-O2", "-Wall", "-Werror", "-I", REPO / "ibtrs/user",
                    "-I", REPO / "ibnbd/user", "-o", DISK, REPO / "tests/bench/disk.c",
                    lib / "libibnbd.a", lib / "libibtrs.a", "-lrdmacm", "-libverbs", "-lgnutls",
                    "-lnettle", "-pthread"], check=True)
    return DISK


def commit():
    return subprocess.run(["git", "-C", REPO, "describe", "--always", "--dirty"],
                          capture_output=True, text=True).stdout.strip()


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-t", "--targets", nargs="+",
                   choices=[*TARGETS, *UNFLUSHED, *USER, *LIBRARY, "ucx"])
    p.add_argument("-j", "--jobs", nargs="+", choices=list(JOBS))
    p.add_argument("--quick", action="store_true",
                   help="compare with the reference ratios: " + ", ".join(QUICK["jobs"]))
    p.add_argument("--accept", action="store_true",
                   help="with --quick: these are the reference from now on")
    p.add_argument("--seconds", type=float,
                   help="virtual seconds of each job (500 million instructions each)")
    p.add_argument("--kver", help="kernel version")
    p.add_argument("--ko", metavar="DIR", help="our modules from there instead of the tree")
    o = p.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    jobs = o.jobs or (QUICK["jobs"] if o.quick else list(JOBS))
    targets = o.targets or (QUICK["targets"] if o.quick else TARGETS)
    seconds = o.seconds or (0.4 if o.quick else 0.6)
    kver = o.kver or image.default_kver()
    if any(t.startswith("rnbd") for t in targets):
        subprocess.run([REPO / "tests/interop/build-peer.sh", kver], check=True)
    tools = [Path(image.which(t) or f"/sbin/{t}")
             for t in ("iscsid", "iscsiadm")] if "iser" in targets else []
    for t in tools:
        image.need(t, "package open-iscsi")
    for target in USER:
        for t in USER[target] if target in targets else ():
            tools.append(image.need(image.which(t) or t,
                                    "make lib serverd; packages nbdkit and nbd-client"))
    for t in UCX if "ucx" in targets else ():
        tools.append(image.need(image.which(t) or t, "package ucx-utils"))
    if any(t in LIBRARY for t in targets):
        tools.append(library())
    if "mirror" in targets:
        tools.append(image.need(image.CACHE / "mdadm/mdadm", "tests/vm/mdadm.sh"))
    turn = launch.alone()
    started = time.monotonic()
    boot = launch.boot_image(kver, ([o.ko] if o.ko else []) + [REPO / "tests/bench/floor"], tools)
    result, failed = {}, []
    try:
        for target in targets:
            try:
                result[target] = bench(boot, target, jobs, seconds)
                print(f"{target}: " + ", ".join(f"{j} {v}" for j, v in result[target].items()))
            except vm.VMError as e:
                failed.append(target)
                print(f"FAIL {target}: {e}")
    finally:
        boot.close()
        turn.close()
    report(result, jobs, commit(), kver)
    passed, bad = gate(result, jobs, kver, o.accept) if o.quick else (len(result), 0)
    print(f"{time.monotonic() - started:.0f} s")
    print(f"{passed} passed, {bad + len(failed)} failed")
    return 1 if failed or bad or not result else 0


if __name__ == "__main__":
    sys.exit(main())
