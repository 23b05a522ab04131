#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs test cases in virtual machines.

    tests/vm/run.py                  every case of tests/cases
    tests/vm/run.py paths/ map/admin 'io/f*' stuck
                                     cases of a topic, by name, by pattern, or by a part of the name
    tests/vm/run.py --kver KVER ..   on another kernel (modules must be built for it)
    tests/vm/run.py --debug ..       on the kernel with every checker, see debug-kernel.sh
    tests/vm/run.py --kcsan ..       on the one that looks for data races

One line per case, details of failures, and at the end "N passed, N failed, N skipped".  The exit
status is 0 only when something passed and nothing failed.  With --again a case that fails is run
once more; flaky.py says when that is forgiven.  Logs: build/test-logs/CASE/{log,*.kmsg,*.console}.

Machines are booted when a case needs them and shared by the cases that follow and want the same
kind.  After each case they are tidied and compared with what they were; if anything is left over,
they are booted anew.
"""
import argparse, fcntl, fnmatch, json, os, shutil, signal, subprocess, sys, threading, \
    time, traceback
from pathlib import Path
import case as C, faults, flaky, image, launch, vm

LEAK_KIB = 12 * 1024        # what the kernel may have cached for itself during a case
AGAIN = 4                   # more failures than these are not chance: none of them is run again


class Machines:
    """Machines of one kind, with the state they had when their network was up."""
    def __init__(self, boot, kind, logdir):
        self.boot_, self.kind, self.logdir, self.vms, self.clean = boot, kind, logdir, [], False

    def boot(self):
        self.off()
        n, links, append, mem, smp, disk, door, shared = self.kind
        self.vms = vm.machines(self.boot_, n, links, disk=disk, append=append, mem=mem, smp=smp,
                               door=door, shared=shared, logdir=self.logdir)
        seconds = launch.up(self.vms, links)
        self.before = self.look()
        self.clean, self.used = True, False
        return seconds

    def look(self):
        """What each machine is like: [(state, KiB of memory)]."""
        looks = []
        for m, job in [(m, m.spawn("state && memory_kib")) for m in self.vms]:
            if job.wait(40):
                raise vm.VMError(f"{m.name}: cannot tell its state:\n{job.out()}")
            *state, memory = job.out().splitlines()
            looks.append(("\n".join(state), int(memory)))
        return looks

    def tidy(self, t):
        """Bring them back to what they were.  False: boot them anew.
        Raises when our modules will not go."""
        self.clean = False
        for m in self.vms:
            if not m.alive:
                return False
            m.deadline = None
            if m.nics:
                for i in range(self.kind[1]):
                    m.link(i, True)
            m.resume()
        self.together(t, "tidy_io", [m for m in self.vms if m.name != "server"])
        self.together(t, "tidy", self.vms)
        if self.boot_.debug:
            self.together(t, "leaks", self.vms)
        for m, (state, memory), (now, left) in zip(self.vms, self.before, self.look()):
            if now != state:
                t.log(f"{m.name} is not as it was.\n--- before ---\n{state}\n--- now ---\n{now}")
                return False
            t.log(f"{m.name}: {memory - left} KiB of memory did not come back")
            if memory - left > LEAK_KIB and not self.boot_.debug:     # KASAN keeps what was freed
                return False
        self.clean = True
        return True

    def together(self, t, step, vms):
        """A step of tidying on several machines at once."""
        for m, job in [(m, m.spawn(step)) for m in vms]:
            try:
                rc, out = job.wait(60), job.out()
            except vm.JobTimeout as e:
                rc, out = 1, str(e)
            t.log(f"{m.name}: {step}: status {rc} {out}")
            if rc:
                self.blocked(m)
                raise C.Failed(f"{m.name}: {step} after the case: {out}")

    @staticmethod
    def blocked(m):
        """Who waits for what, into the kernel log.
        A machine whose CPUs all spin cannot even say that."""
        try:
            m.run("echo w > /proc/sysrq-trigger", 10)
        except vm.VMError:
            pass

    def cpus(self):
        return sum(m.cpus() for m in self.vms)

    def off(self):
        for m in self.vms:
            m.off()
        self.vms, self.clean = [], False


class Result:
    def __init__(self, name, status, seconds, details="", figures=(), cpus=0):
        self.name, self.status, self.seconds, self.details, self.figures, self.cpus = (
            name, status, seconds, details, list(figures), cpus)

    def line(self):
        word = {"pass": "ok", "fail": "FAIL", "skip": "skip", "flaky": "FLAKY"}[self.status]
        why = f" ({self.details})" if self.status in ("skip", "flaky") else ""
        cost = f", {self.cpus:.0f} s of CPUs" if self.cpus > 0 else ""
        return f"{word} {self.name} {self.seconds:.1f}s{cost}{why}"


class Runner:
    def __init__(self, options, cases, boot, logdir):
        self.o, self.boot, self.logdir = options, boot, logdir
        self.cases, self.todo, self.results, self.lock = cases, [], [], threading.Lock()
        self.sets, self.turns, self.stopping = [], {}, False
        self.kinds = {}     # of machines, by worker
        self.boots, self.boot_seconds = 0, 0

    def work(self, number):
        """One worker: takes case after case, keeps one set of machines."""
        machines = None
        while not self.stopping:
            case = self.next(number)
            if not case:
                break
            try:
                machines = self.take(case, machines, number)
            except Exception:
                self.report(Result(case.name, "fail", 0, traceback.format_exc()))
                machines = None     # run() ends those that it had
        if machines:
            if self.o.keep and machines.vms:
                self.shell("the last case has ended", machines)
            machines.off()

    def next(self, number):
        """The next case for a worker, or None: one for the machines that it has, else one for
        machines that no other worker has.  A boot costs as much as a case."""
        with self.lock:
            mine = self.kinds.pop(number, None)
            ranks = [2 if k == mine else k not in self.kinds.values()
                     for k in map(self.kind, self.todo)]
            if not ranks:
                return None
            case = self.todo.pop(ranks.index(max(ranks)))
            self.kinds[number] = self.kind(case)
            return case

    def take(self, case, machines, number):
        """Run a case on the machines of the case before it, if they fit, or on new ones; returns
        them."""
        kind = self.kind(case)
        if machines and (machines.kind != kind or not machines.clean
                         or (case.fresh and machines.used)):
            machines.off()
            machines = None
        t0 = time.monotonic()
        missing = [m for m in case.needs if not self.has_module(m)]
        if missing:
            status = "fail" if self.o.broken & set(missing) else "skip"
            self.report(Result(case.name, status, 0, "no module " + ", ".join(missing)))
            return machines
        try:
            if machines is None:
                machines = Machines(self.boot, kind,
                                    self.logdir / "machines" / f"{number}-{case.name}")
                with self.lock:
                    self.sets.append(machines)
                if case.vms:
                    seconds = machines.boot()
                    with self.lock:
                        self.boots, self.boot_seconds = (self.boots + 1,
                                                         self.boot_seconds + seconds)
        except vm.VMError as e:
            self.report(Result(case.name, "fail", time.monotonic() - t0,
                               f"the rig did not start: {e}"))
            return machines
        self.report(self.one(case, machines))
        if case.fresh:
            machines.clean = False
        return machines

    @staticmethod
    def kind(case):
        return (case.vms, case.links, case.append, case.mem, case.smp, case.disk, case.door,
                case.shared)

    def has_module(self, name):
        name = name.replace("-", "_")
        return name in self.boot.modules or any(
            m.stem.replace("-", "_") == name for m in image.base(self.boot.kver)[1].rglob("*.ko"))

    def one(self, case, machines):
        """Run a case on booted machines: its Result."""
        t0, problems, skipped, machines.used = time.monotonic(), [], None, True
        spent = machines.cpus()
        with self.lock:
            turn = self.turns[case.name] = self.turns.get(case.name, 0) + 1
        logs = self.logdir / (case.name if turn == 1 else f"{case.name}.{turn}")
        t = C.T(case, machines.vms, logs, self.boot)
        t.log(case.description)
        for m in machines.vms:
            m.deadline = t0 + case.deadline * vm.SLOW

        def body():
            nonlocal skipped
            try:
                for pattern in case.allow:
                    t.allow(pattern)
                case.run(t)
            except C.Skipped as e:
                skipped = str(e)
            except (C.Failed, vm.VMError, subprocess.TimeoutExpired) as e:
                problems.append(f"{where(e, case.path)}{e}")
            except Exception:
                problems.append(traceback.format_exc())

        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        thread.join(case.deadline * vm.SLOW + 15)
        if thread.is_alive():
            problems.append(f"no end within its deadline of {case.deadline} s")
        for m in machines.vms:
            m.deadline = None
        if problems:
            self.aid(t)
        try:
            if machines.vms and not problems:
                machines.tidy(t)
        except (C.Failed, vm.VMError) as e:
            problems.append(str(e))
        for g in t.guests:
            problems += g.trouble(t.allowed)
        for g in t.guests:
            (t.logdir / f"{g.name}.kmsg").write_text(g.vm.kernel_log(sync=False)[g.kmsg_start:])
            (t.logdir / f"{g.name}.console").write_text(g.vm.console_log()[g.console_start:])
        for p in problems:
            t.log("PROBLEM:", p)
        if problems:
            machines.clean = False
            if self.o.shell and machines.vms:
                self.shell(f"FAIL {case.name}", machines)
        status = "fail" if problems else "skip" if skipped is not None else "pass"
        return Result(case.name, status, time.monotonic() - t0,
                      "\n".join(problems) or skipped or "", t.figures, machines.cpus() - spent)

    def aid(self, t):
        """After a failure: what the machines were doing."""
        for g in t.guests:
            if g.vm.alive:
                try:
                    g.vm.resume()
                    # w tells of blocked threads alone, and a server in user space only sleeps
                    g.vm.run("echo w > /proc/sysrq-trigger; ps -o pid,stat,args > /h/ps; "
                             "for p in $(pgrep -x ibnbd-serverd) $(pgrep -x ibtrs-peer); do "
                             "grep . /proc/$p/task/*/stack; done >> /h/ps || true; "
                             "[ ! -e /run/serverd.log ] || tail -n 50 /run/serverd.log >> /h/ps; "
                             "ip neigh >> /h/ps", 10)
                    t.log(f"{g.name}: processes:\n{g.vm.get('ps')}")
                except (vm.VMError, OSError) as e:
                    t.log(f"{g.name} does not answer: {str(e).splitlines()[0]}")
            for job in g.vm.jobs.values():
                if job.rc is None:
                    t.log(f"{g.name}: still running:\n{job.script.strip()}\n{job.out()}")
                elif job.rc and not job.awaited:
                    t.log(f"{g.name}: ended by itself, status {job.rc}:\n{job.script.strip()}\n"
                          f"{job.out()}")

    def shell(self, why, machines):
        import shell
        with self.lock:
            print(f"{why}: its machines are yours, leave with Ctrl-] q", flush=True)
            shell.Consoles(machines.vms).interact()

    def report(self, result):
        with self.lock:
            self.results.append(result)
            print(result.line(), flush=True)
            if result.status == "fail":
                text = result.details.strip()
                if len(text) > 6000:
                    text = text[:6000] + "\n.. (the rest is in the logs)"
                print("\n".join("    " + l for l in text.splitlines()), flush=True)

    def round(self, cases, jobs):
        """Run cases, so many at the same time; they slow each other."""
        self.todo = list(cases)
        jobs = max(1, min(jobs, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 32))
        slow, vm.SLOW = vm.SLOW, vm.SLOW * jobs
        workers = [threading.Thread(target=self.work, args=(i,), daemon=True) for i in range(jobs)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        vm.SLOW = slow

    def again(self):
        """Run each failed case once more, alone.
        One that passes then is flaky; both logs are kept."""
        failed = [r for r in self.results if r.status == "fail"]
        if not self.o.again or len(failed) > AGAIN:
            return
        for first in failed:
            self.results.remove(first)
            print(f"once more, alone: {first.name}", flush=True)
            self.round([c for c in self.cases if c.name == first.name], 1)
            second = self.results[-1]
            if second.status == "pass":
                why = first.details.strip().splitlines()[0]
                second.status, second.details = (
                    "flaky", f"first: {why}; logs of both in {self.logdir}/{first.name}*")
                second.figures += first.figures
                print(second.line(), flush=True)

    def run(self):
        # those of one kind in a row: fewer boots
        kinds = list(dict.fromkeys(map(self.kind, self.cases)))
        cases = sorted(self.cases, key=lambda c: kinds.index(self.kind(c)))
        # the long ones first, so that no worker is alone with one at the end
        crowd = sorted((c for c in cases if c.crowd and self.o.jobs > 1), key=lambda c: -c.deadline)
        try:
            self.round(crowd, self.o.jobs)
            self.round([c for c in cases if c not in crowd], 1)
            self.again()
        except KeyboardInterrupt:
            self.stopping = True
            print("interrupted", flush=True)
            return 130
        finally:
            for s in self.sets:
                for m in s.vms:
                    m.kill()
        count = {s: sum(r.status == s for r in self.results)
                 for s in ("pass", "fail", "skip", "flaky")}
        habit = flaky.habit(self.o.flaky_list,
                            [r.name for r in self.results if r.status == "flaky"])
        count["fail" if habit else "pass"] += count["flaky"]
        (self.logdir / "summary.json").write_text(json.dumps(
            {"kver": self.boot.kver, "accel": self.boot.accel,
             "cases": [vars(r) for r in sorted(self.results, key=lambda r: r.name)]}, indent=1))
        rows = [f for r in self.results for f in r.figures]
        for line in faults.table(rows):
            print(line)
        print(f"boots: {self.boots}, {self.boot_seconds:.0f} s")
        if habit:
            print(habit)
        missing = faults.missing(rows) if self.o.faults and not self.o.cases else []
        if missing:
            print(f"no figures: {', '.join(missing)}")
        print(f"{count['pass']} passed, {count['fail']} failed, {count['skip']} skipped",
              flush=True)
        return 1 if count["fail"] or missing or not count["pass"] else 0


def where(e, path):
    """File and line of the case that an exception passed through."""
    for frame in reversed(traceback.extract_tb(e.__traceback__)):
        if frame.filename == str(path):
            return f"{path.name}:{frame.lineno}: "
    return ""


def choose(directory, words):
    """{name: path} of the cases of a directory: TOPIC/NAME.  A whole name means that case alone."""
    top = Path(directory).resolve()
    cases = {str(p.relative_to(top).with_suffix("")): p for p in sorted(top.rglob("*.py"))}
    if not words:
        return cases
    chosen = set()
    for w in words:
        found = [w] if w in cases else [n for n in cases if fnmatch.fnmatch(n, w) or w in n]
        if not found:
            raise SystemExit(f"run.py: no case is called {w!r} in {directory}")
        chosen.update(found)
    return {n: p for n, p in cases.items() if n in chosen}


def log_directory(wanted):
    """build/test-logs, or a neighbour of it while another run is using that."""
    path = Path(wanted or image.REPO / "build/test-logs").absolute()
    for candidate in (path, path.with_name(f"{path.name}.{os.getpid()}")):
        candidate.mkdir(parents=True, exist_ok=True)
        lock = open(candidate / ".lock", "w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return candidate, lock
        except OSError:
            lock.close()
    raise SystemExit(f"run.py: cannot lock {path}")


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases", nargs="*", help="TOPIC/, TOPIC/NAME, glob patterns or parts of names")
    p.add_argument("--dir", default=image.REPO / "tests/cases", help="directory of cases")
    p.add_argument("--kver", help="kernel version (default: that of linux-headers-amd64)")
    p.add_argument("--debug", action="store_true",
                   help="on the debug kernel; it and the modules are built if need be")
    p.add_argument("--kcsan", action="store_true",
                   help="the same with the kernel that looks for data races")
    p.add_argument("--ko", action="append", default=[], metavar="DIR",
                   help="further modules, preferred")
    p.add_argument("--program", action="append", default=[], metavar="FILE",
                   help="put it into the guests' /bin")
    p.add_argument("--logs", help="log directory (default build/test-logs)")
    p.add_argument("--shell", action="store_true",
                   help="a shell in the machines of a case that failed")
    p.add_argument("--keep", action="store_true", help="a shell in the machines of the last case")
    p.add_argument("--repeat", type=int, metavar="N", help="run each case N times")
    p.add_argument("--faults", action="store_true",
                   help="the cases that say faults = True, the long ones too")
    p.add_argument("--again", action="store_true",
                   help="a case that fails is run once more, alone; if it passes then, it is FLAKY")
    p.add_argument("--flaky-list", default=image.CACHE / "flaky", metavar="FILE",
                   help="where flaky cases are kept over runs")
    p.add_argument("--long", action="store_true",
                   help="the cases that make check leaves out, but for those of other targets")
    p.add_argument("-j", "--jobs", type=int, default=1,
                   help="so many of the cases that say crowd = True at the same time; "
                   "then the others")
    p.add_argument("-l", "--list", action="store_true", help="list the cases")
    p.set_defaults(broken=set())
    o = p.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGTERM, lambda *a: sys.exit(143))

    cases = [C.load(path, name) for name, path in choose(o.dir, o.cases).items()]
    if o.faults:
        cases = [c for c in cases if c.faults]
    elif not o.cases and not o.list:
        cases = [c for c in cases if c.long == o.long and not c.target
                 and not (o.long and c.faults)]
    cases *= o.repeat or 1
    if o.list:
        for c in cases:
            print(f"{c.name:24} {c.description}")
        return 0
    variant = "kcsan" if o.kcsan else "debug" if o.debug else None
    kver = launch.debug_kernel(variant) if variant else o.kver or image.default_kver()
    if vm.is_debug(kver):
        vm.SLOW *= vm.DEBUG_SLOW
    peer = [m for c in cases for m in c.needs if m.startswith(("rnbd", "rtrs"))]
    if peer and (rc := subprocess.run(
            [image.REPO / "tests/interop/build-peer.sh", kver]).returncode):
        print(f"run.py: no in-kernel peer for {kver}", file=sys.stderr)
        # 77: nobody has its source; those cases are left out
        o.broken = set(peer) if rc != 77 else set()
    turn = launch.alone()
    logdir, lock = log_directory(o.logs)
    for old in logdir.iterdir():
        if old.is_dir():
            shutil.rmtree(old)
    boot = launch.boot_image(kver, o.ko, [*o.program, *{p for c in cases for p in c.programs}])
    try:
        return Runner(o, cases, boot, logdir).run()
    finally:
        boot.close()
        lock.close()
        turn.close()


if __name__ == "__main__":
    sys.exit(main())
