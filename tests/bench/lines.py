#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What many CPUs cost each other: cache lines that change hands per I/O, exactly counted.

    tests/bench/lines.py                         ours, and what one would use instead
    tests/bench/lines.py -t ibnbdN -r disks      some of it
    tests/bench/lines.py -t ibnbd-replay         with the data of each write kept by the client
    tests/bench/lines.py --repeat 5              medians of five runs, each in new machines
    tests/bench/lines.py --gate                  own lines against tests/bench/lines.json
    tests/bench/lines.py --gate --accept         write that file anew

One virtual CPU counts instructions exactly (bench.py) and hides contention.  This is a machine with
eight, under a QEMU plugin (lines.c) that follows every cache line of its memory: client, server,
soft-RoCE and fio together, 4 KiB random I/O, 16 of each job in flight.  Lines and I/Os are counted
for a while as fio runs, so its start and end are not in the figures.  The machine is slower than a
real one by far, so its clock is too: else most lines would be those of ticks and of timers that
run out, and retries of the network, which answers late by that clock, would break connections.

Runs: disks     eight disks of one session, eight jobs, each on a CPU of its own
      disk      one disk, the only one of its session, and the same jobs
      loose     eight disks, and jobs that the scheduler moves about
      two       like disks, but client and server are two machines, each with a plugin of its own;
                a figure of each, so what goes between them is in neither. Each connection is
                handled on its CPU, as adapters do it (steer.c)

`own` is what the modules of the stack moved themselves.  `copies` are data: each 4 KiB is 64 lines,
copied by a CPU here where an adapter would do it.  `roce` is soft-RoCE's, for each packet, which an
adapter has not; it differs from run to run.  `at home`: I/Os whose slot was last used on the CPU
that uses it now, on the client and on the server.
Results: a table, and in bench/out lines.json, lines.svg, lines-own.svg, and a file
lines-TARGET-RUN-DIRECTION.txt with the functions and with the hottest lines, whose memory they are,
and what moved them last (whose.py).
"""
import argparse, bisect, itertools, json, statistics, subprocess, sys, time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bench, gnuplot, image, launch, pair, profile, vm, whose     # noqa: E402

CPUS, DISKS, DEPTH = 8, 8, 16
HOT = 30
SLOWER = 16                         # the clock of the machine is that much
WARM, SECONDS, GATE = 0.25, 0.5, 0.2      # by the clock of the machine
TARGETS = ["local", "ibnbdN", "ibnbdY", "rnbdN", "nvme"]
KEPT = ["ibnbd-fence", "ibnbd-replay"]      # a write cache, and what is done about its loss
RUNS = {    # disks of the jobs, pinned
    "disks": (DISKS, True), "disk": (1, True), "loose": (DISKS, False), "two": (DISKS, True),
}
OWN = ("ibtrs", "ibnbd", "rtrs", "rnbd", "nvme", "nvmet")
COPIES = ("memcpy", "copy_user", "brd_do_bvec", "_copy_to_iter", "_copy_from_iter", "clear_page")
# Soft-RoCE and what it does for each packet: counters, the GID and its lock, the id of an IP
# packet. The drivers of an adapter call nothing of ib_core for a request.
ROCE = ("rdma_rxe", "ib_core")
ROCE_CALLS = ("_raw_read_lock_irqsave", "__ip_select_ident")
# Where a request first touches what belongs to its slot.
HOMES = {"client": ("ibtrs_clt_submit", "ibtrs_client"),
         "server": ("op_decode", "ibtrs_server")}
REFERENCE = bench.REPO / "tests/bench/lines.json"
# what own lines may have more: looks that come by the clock, per I/O more of them on a busy host
SLACK, FLOOR = 1.15, 0.1


def slow_clock():
    """The library under which a program sees time go slower."""
    for path in Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"):
        return path
    sys.exit("lines.py: the machine's clock cannot be slowed down: libfaketime is not installed; "
             "apt install libfaketime")


class LinesVM(vm.VM):
    """Follows lines into `lines` of its directory, and has a slow clock."""
    plugin = None
    host_qemu = True

    def kill(self):
        super().kill()
        if self.process:        # a process that was killed leaves what the library shares
            for left in "faketime_shm", "sem.faketime_sem":
                Path(f"/dev/shm/{left}_{self.process.pid}").unlink(missing_ok=True)

    def _command(self):
        args = super()._command()
        # the counter of cycles is the host's and goes on as before: per second it has more of them
        khz = int(vm.tsc_khz()) * SLOWER
        args[args.index("-append") + 1] += f" tsc_early_khz={khz} lpj={khz * 1000 // self.boot_.hz}"
        return ["env", f"LD_PRELOAD={slow_clock()}", f"FAKETIME=+0 x{1 / SLOWER}", *args,
                "-plugin", f"file={self.plugin},out={self.dir}/lines"]


def machine(boot, target, disks, two):
    """A bench machine with eight CPUs and so many disks, whose clock is slow; or two of them."""
    if two:
        m = pair.Pair(boot, target, disks, CPUS, 2048, whose.TRACE)
        for one in (m.vm, m.peer):
            one.sh(whose.UNTRACE, 300)
        return m
    bench.DEVICES = disks
    # below 2816 MiB memory has no hole, where the plugin's addresses would not be the guest's
    vm.counted = lambda b, **o: vm.machines(b, 1, **{"smp": CPUS, "mem": 2800, **o})[0]
    m = bench.Machine(boot, target, before=whose.TRACE)
    m.sh(whose.UNTRACE)
    return m


def fio(m, run, rw):
    disks, pinned = RUNS[run]
    common = (f"--direct=1 --ioengine=libaio --rw=rand{rw} --bs=4k --iodepth={DEPTH} --thread "
              f"--size={bench.RAM_MIB // 2}m --norandommap --randrepeat=0 --randseed=7 "
              "--clocksource=clock_gettime --disk_util=0 --group_reporting --output=/dev/null "
              "--time_based --runtime=600")
    jobs = [f"--name=j{i} --filename={m.devs[i % disks]}" + f" --cpus_allowed={i}" * pinned
            for i in range(CPUS)]
    return f"fio {common} {' '.join(jobs)}"


class Count:
    """What a run moved."""
    def __init__(self, text, addrs, names):
        self.moved, self.lines = Counter(), []
        self.name = {}
        for words in map(str.split, text.splitlines()):
            at = int(words[-1 if words[0] == "L" else 1], 16)
            name = (names[bisect.bisect_right(addrs, at) - 1] if at >> 63 else ("user", "user"))
            if words[0] == "L":
                self.lines.append((int(words[2]), int(words[1], 16), name))
            else:       # what was translated twice has two records
                self.moved[at] += int(words[2])
                self.name[at] = name

    def functions(self):
        f = Counter()
        for at, n in self.moved.items():
            f[self.name[at]] += n
        return f

    def hottest(self):
        """Of all, and of those that our modules moved last."""
        rows = sorted(self.lines, key=lambda row: -row[0])
        return rows[:HOT] + [row for row in rows[HOT:] if row[2][1].startswith(OWN)][:HOT]

    def home(self, end, ios):
        """Share of the I/Os whose slot was at home, by the line that was so least often."""
        return 1 - max((n for at, n in self.moved.items() if self.name[at] == HOMES[end]),
                       default=0) / ios


def window(seconds):
    """Script: count for that long; prints the KiB of all bios meanwhile."""
    # not every disk keeps a count of its own
    done = "awk '/^pgpg(in|out) / { n += $2 } END { print n }' /proc/vmstat"
    # the first mark lets the plugin see who has which line, the second one begins to count
    return (f"mark start; sleep {WARM}; before=$({done}); mark start; sleep {seconds}; mark stop; "
            f"echo $(($({done}) - before)); cp /proc/kallsyms /h/kallsyms")


def count(m, run, rw, seconds):
    """{end: (lines moved while fio ran, number of its I/Os, text of each hot line)}"""
    client = m.vm.spawn(f"{fio(m, run, rw)} & {window(seconds)}; kill -INT $!; wait")
    ends = {"": (m.vm, client)}
    if run == "two":
        ends = {"client": (m.vm, client), "server": (m.peer, m.peer.spawn(window(seconds)))}
    found = {}
    for end, (one, job) in ends.items():
        if job.wait(900):
            raise vm.VMError(f"{m.target} {run} {rw}: {job.out()[-2000:]}")
        # an I/O has a bio at either end; the local disk, and half of a pair, see one of them
        kib = 4 if m.target == "local" or end else 8
        text = one.get("kallsyms")
        addrs, names = profile.symbols(text)
        c = Count(Path(f"{one.dir}/lines").read_text(), addrs, names)
        owners = whose.whose(one, [at for _, at, _ in c.hottest()], text,
                             {name for name, mod in names if mod})
        found[end] = c, int(job.out().split()[-1]) // kib, owners
    if run == "two":
        m.check()
    return found


def measure(m, run, rw, seconds):
    """(name, result, what to print of it) of each end of a run."""
    for end, (c, ios, owners) in count(m, run, rw, seconds).items():
        f = c.functions()
        own = Counter({k: n for k, n in f.items() if k[1].startswith(OWN)})
        r = {"all": sum(f.values()), "own": sum(own.values()),
             "copies": sum(n for (name, _), n in f.items() if name.startswith(COPIES))}
        r["roce"] = sum(n for (name, mod), n in f.items() if mod in ROCE or name in ROCE_CALLS)
        r["rest"] = r["all"] - r["own"] - r["copies"] - r["roce"]
        r = {k: round(n / ios, 2) for k, n in r.items()}
        if m.target.startswith("ibnbd"):
            r |= {f"home {side}": round(c.home(side, ios), 3) for side in HOMES
                  if end in ("", side)}
        name = " ".join([m.target, run, *[end] * bool(end), rw])
        text = [f"{name}: " + ", ".join(f"{k} {v}" for k, v in r.items()) + f"; {ios} I/Os"]
        for title, rows, least in (("the stack's modules", own, 0.01), ("everything", f, 0.1)):
            text += ["", f"lines that change hands per I/O, {title}"]
            text += [f"{n / ios:8.2f}  {name} [{mod or 'kernel'}]" for (name, mod), n
                     in rows.most_common() if n / ios >= least]
        text += ["", "hottest lines: moves per I/O, whose memory, last mover"]
        text += [f"{n / ios:8.3f}  {owners.get(at, hex(at))}  <- {fn} [{mod or 'kernel'}]"
                 for n, at, (fn, mod) in c.hottest()]
        yield name, r, "\n".join(text) + "\n"


def series(targets, runs, repeat):
    """(target, disks mapped, in two machines?, runs) as often as each is to be booted.

    What is mapped and not used would count for a while as if it were: the block layer lets each
    disk of a session have its share of the slots."""
    kinds = sorted({(RUNS[run][0], run == "two") for run in runs})
    return [(target, disks, two, [r for r in runs if (RUNS[r][0], r == "two") == (disks, two)])
            for target in targets for disks, two in kinds
            if not (two and target == "local") for _ in range(repeat)]


def one_machine(boot, target, disks, two, runs, seconds):
    """What measure() yields of each run, on one machine, or pair."""
    m = machine(boot, target, disks, two)
    try:
        for run, rw in itertools.product(runs, ("read", "write")):
            yield from measure(m, run, rw, seconds)
    finally:
        m.off()


def table(result):
    columns = ["all", "own", "copies", "roce", "rest", *(f"home {end}" for end in HOMES)]
    print("\n| | " + " | ".join(columns) + " |\n|---" + "|---" * len(columns) + "|")
    for name, r in result.items():
        print(f"| {name} | " + " | ".join(str(r.get(c, "-")) for c in columns) + " |")


def plot(result, out):
    """All lines of each run, and own ones; a bar for each stack."""
    stacks = list(dict.fromkeys(name.split(" ", 1)[0] for name in result))
    runs = list(dict.fromkeys(name.split(" ", 1)[1] for name in result))
    for what, svg in (("all", "lines.svg"), ("own", "lines-own.svg")):
        rows = [[run.replace(" ", "-"),
                 *(result.get(f"{stack} {run}", {}).get(what, 0) for stack in stacks)]
                for run in runs]
        title = f"Cache lines that change hands per I/O, {what}"
        why = gnuplot.bars(out / svg, title, "lines", stacks, rows)
        print(f"\nno plot: {why}" if why else f"\n{(out / svg).relative_to(bench.REPO)}")


def medians(rows):
    """Of each figure of a list of results, and how far apart the runs were."""
    return {k: round(statistics.median(r[k] for r in rows), 3) for k in rows[0]}


def gate(result, kver, accept):
    """Own lines against those of the reference, which is of one kernel series."""
    series = ".".join(kver.split(".")[:2])
    known = json.loads(REFERENCE.read_text()) if REFERENCE.exists() else {}
    if accept:
        known[series] = {name: r["own"] for name, r in result.items()}
        REFERENCE.write_text(json.dumps(known, indent=1) + "\n")
        print(f"{REFERENCE.relative_to(bench.REPO)}: {series} written")
    if series not in known:
        print(f"FAIL no reference for {series}: run with --gate --accept")
        return 0, 1
    passed = failed = 0
    for name, ref in known[series].items():
        own = result.get(name, {}).get("own")
        # lines of soft-RoCE show that functions are found in their modules
        ok = (own is not None and result[name]["roce"] > 1
              and own <= max(ref * SLACK, ref + FLOOR))
        passed, failed = passed + ok, failed + (not ok)
        print(f"{'ok  ' if ok else 'FAIL'} {name}: {own} lines of ours per I/O, reference {ref}")
    return passed, failed


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-t", "--targets", nargs="+", choices=TARGETS + KEPT)
    p.add_argument("-r", "--runs", nargs="+", choices=list(RUNS))
    p.add_argument("--gate", action="store_true", help="compare with the reference: ibnbdN, disks")
    p.add_argument("--accept", action="store_true",
                   help="with --gate: these are the reference from now on")
    p.add_argument("--seconds", type=float, help="how long lines are counted, by that clock")
    p.add_argument("--repeat", type=int, default=1, help="runs, of which the medians count")
    p.add_argument("--kver", help="kernel version")
    o = p.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    targets = o.targets or (["ibnbdN"] if o.gate else TARGETS)
    runs = o.runs or (["disks"] if o.gate else list(RUNS))
    seconds = o.seconds or (GATE if o.gate else SECONDS)
    kver = o.kver or image.default_kver()
    if any(t.startswith("rnbd") for t in targets):
        subprocess.run([bench.REPO / "tests/interop/build-peer.sh", kver], check=True)
    here = bench.REPO / "tests/bench"
    LinesVM.plugin = image.compiled(here / "lines.c", "-shared", "-fPIC")
    tools = [(image.compiled(here / f"{name}.c", "-static"), f"bin/{name}")
             for name in ("mark", "steer")]
    vm.VM = LinesVM
    out = bench.REPO / "bench/out"
    out.mkdir(parents=True, exist_ok=True)
    started, every, failed = time.monotonic(), {}, 0
    with launch.alone():
        boot = vm.Boot(kver, [here / "floor", here / "whose", *launch.module_dirs(kver)],
                       [*launch.programs(), *tools])
        boot.accel = "tcg"      # what KVM runs no plugin sees
        try:
            for target, disks, two, mine in series(targets, runs, o.repeat):
                try:
                    for name, r, text in one_machine(boot, target, disks, two, mine, seconds):
                        every.setdefault(name, []).append(r)
                        (out / f"lines-{name.replace(' ', '-')}.txt").write_text(text)
                        print(text.splitlines()[0])
                except vm.VMError as e:
                    failed += 1
                    print(f"FAIL {target}: {e}")
        finally:
            boot.close()
    result = {name: medians(rows) for name, rows in every.items()}
    (out / "lines.json").write_text(json.dumps({"kver": kver, "lines": result, "runs": every},
                                               indent=1))
    plot(result, out)
    table(result)
    passed, bad = gate(result, kver, o.accept) if o.gate else (len(result), 0)
    print(f"{time.monotonic() - started:.0f} s")
    print(f"{passed} passed, {bad + failed} failed")
    return 1 if failed or bad or not result else 0


if __name__ == "__main__":
    sys.exit(main())
