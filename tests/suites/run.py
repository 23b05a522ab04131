#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""blktests and xfstests on a mapped disk, and on a local one as control.
README.md says how and what to expect.

    tests/suites/run.py [--fs ext4,xfs] [--tests 'block/012 generic/0*'] [--limit SECONDS] [--nbd]
        DIR..

Each DIR is a checkout of one suite; it is built there if need be.  What does not pass on the mapped
disk is run on a local one; what fails on the mapped disk alone fails, unless the list of expected
failures has it.  Each verdict is shown as it comes, and kept in build/suites/TIME/RESULTS.  Last
line: N passed, N failed, N skipped.
"""
import argparse, ctypes, fnmatch, os, re, shlex, signal, subprocess, sys, time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/vm"))
sys.dont_write_bytecode = True
import image, kmsg, launch, vm

GIB = 3                                     # of each disk, sparse
DISKS = 3                                   # TEST_DEV, SCRATCH_DEV, LOGWRITES_DEV
OURS, LOCAL, NBD = ([f"/dev/{name}{i}" for i in range(DISKS)] for name in ("ibnbd", "local", "nbd"))
MAP = "for i in {}; do map vda$i hold=60; done"
# the same disks by the kernel's nbd, nbdkit and libibnbd
NBD_MAP = ("export CONNECTIONS=4; for i in {}; do "
           "nbd_disk $((i - 1)) device=vda$i hold=60 path=ip:10.0.0.2; done")
NBD_PROGRAMS = [TOP / "build/lib/nbdkit-ibnbd-plugin.so",
                *map(Path, ("/usr/bin/nbdkit", "/usr/sbin/nbd-client"))]
SUITES = {"blktests": "tests/block", "xfstests": "tests/generic"}
PASSED, FAILED, NOT_RUN, HUNG = "passed", "failed", "not run", "hung"
BAD = FAILED, HUNG


class Broken(Exception):
    """The suite, or the machine, did not come to its end."""


class TimeUp(Broken):
    """What all of it may take is over."""


def kind_of(folder):
    """The name of the suite in that folder; an exit with words when it is none."""
    for name, mark in SUITES.items():
        if (folder / mark).is_dir() and (folder / "check").is_file():
            return name
    raise SystemExit(f"{folder}: neither blktests (check, tests/block) "
                     "nor xfstests (check, tests/generic)")


def expected(path):
    """{(suite, test): reason}.  A line is SUITE TEST REASON."""
    found = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split(None, 2)
        if not words or line.startswith("#"):
            continue
        if len(words) < 3 or words[0] not in SUITES:
            raise SystemExit(f"{path}:{number}: a line is SUITE TEST REASON")
        found[words[0], words[1]] = words[2]
    return found


def child(args, **options):
    """Run a program in a group of its own, which ends when we are stopped; its status."""
    p = subprocess.Popen(args, stdin=subprocess.DEVNULL, start_new_session=True, **options)
    try:
        return p.wait()
    except BaseException:
        os.killpg(p.pid, signal.SIGTERM)
        p.wait()
        raise


def build(suite, folder, logs):
    """A make that has nothing to do takes a few seconds."""
    log = logs / f"make-{suite}.log"
    print(f"      {suite}: make -C {folder}", flush=True)
    # not the flags and variables of the make that may have started us
    env = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR")}
    with open(log, "w") as out:
        rc = child(["make", "-C", folder, f"-j{os.cpu_count()}"], env=env, stdout=out,
                   stderr=subprocess.STDOUT)
    if rc:
        raise SystemExit(f"{folder} does not build: tests/suites/README.md names the packages that "
                         f"{suite} needs; {log} ends with:\n" + log.read_text()[-1500:])


# ---- what a suite has, and what it says ----------------------------------------------------------

def blktests_list(folder, _fs):
    """Of the block group what takes a disk, and the rnbd group, which maps disks of its own."""
    found = sorted((folder / "tests/block").glob("[0-9][0-9][0-9]"))
    found = [f for f in found if re.search(r"^test_device\(", f.read_text(), re.M)]
    return [f"{f.parent.name}/{f.name}"
            for f in found + sorted((folder / "tests/rnbd").glob("[0-9][0-9][0-9]"))]


def xfstests_list(folder, fs):
    """-g quick"""
    found = []
    for group in ("generic", fs):
        index = folder / "tests" / group / "group.list"
        lines = index.read_text().splitlines() if index.exists() else []
        found += [f"{group}/{words[0]}" for words in map(str.split, lines) if "quick" in words[1:]]
    return found


def chosen(have, words):
    """Those that a word names, or matches; a name may be one that is not listed."""
    if not words:
        return have
    plain = [w for w in words if not re.search(r"[*?[]", w)]
    return list(dict.fromkeys(plain + [t for t in have
                                       if any(fnmatch.fnmatch(t, w) for w in words)]))


def blktests_verdict(text):
    """(verdict, why).  A test that ran under several conditions passed if it did under all."""
    said = re.findall(r" \[(passed|failed|not run)\]$", text, re.M)
    verdict = next((v for v in (FAILED, PASSED, NOT_RUN) if v in said), FAILED)
    why = re.findall(r"^    (?!runtime\b)(\S.*)", text, re.M) if verdict != PASSED else []
    return verdict, "; ".join(why[:1]) if said else "its check ended before it did"


def xfstests_verdict(text):
    """(verdict, why)"""
    head, _, more = text.partition("\n")
    if found := re.search(r"\[not run\] *(.*)|(\[expunged\])|- (no such test|unknown test)", head):
        return NOT_RUN, next(filter(None, found.groups()), "")
    if re.search(r" \d+s$", head) and "\n" in text:
        return PASSED, ""
    return FAILED, re.sub(r"^\S+\s*(\d+s \.\.\.)?\s*", "", head)[:200]


def pieces(text):
    """[(test, what was said of it)], in turn: a test is over when the next begins."""
    found = []
    text = re.split(r"^(?:Ran:|Interrupted!)", text, flags=re.M)[0]
    for piece in re.split(r"^(?=\w+/\d+\b)", text, flags=re.M)[1:]:
        test = re.match(r"\w+/\d+", piece).group()
        if found and found[-1][0] == test:
            piece = found.pop()[1] + piece
        found.append((test, piece))
    return found


# ---- machines ------------------------------------------------------------------------------------

class Client(vm.VM):
    """With disks of its own: a Debian, a suite, and some to compare with.  What is written to the
    first two is thrown away."""
    drives = ()

    def _command(self):
        args = super()._command()
        for serial, path, throw_away in self.drives:
            args += ["-drive", f"file={path},format=raw,if=none,id={serial},cache=unsafe,"
                     f"snapshot={'on' if throw_away else 'off'}",
                     "-device", f"virtio-blk-pci,drive={serial},serial={serial}"]
        return args


class Rig:
    """Two machines; booted anew for each suite, and after a test that hung."""
    def __init__(self, root, logs, options):
        self.logs, self.limit = logs, options.limit * vm.SLOW
        self.end = time.monotonic() + options.hours * 3600
        self.ours, self.map = (NBD, NBD_MAP) if options.nbd else (OURS, MAP)
        self.boot = launch.boot_image(more_programs=NBD_PROGRAMS if options.nbd else ())
        peer, self.server = vm.machines(self.boot, 2, 1, disk=(DISKS * GIB << 10) + 64, mem=1024,
                                        logdir=logs)
        self.client = Client("client", self.boot, 1, peer.nics, mem=2048, logdir=logs)
        self.vms = [self.server, self.client]
        self.disk = self.boot.workdir / "suite.img"
        local = [self.boot.workdir / f"local{i}.img" for i in range(DISKS)]
        for f in local:
            with open(f, "wb") as out:
                out.truncate(GIB << 30)
        self.client.drives = [("root", root, True), ("suite", self.disk, True),
                              *((f.stem, f, False) for f in local)]
        self.usable, self.heard = False, {}

    def close(self):
        try:
            self.keep_logs()
        finally:
            for m in self.vms:
                m.kill()
            self.boot.close()

    def keep_logs(self):
        for m in self.vms:
            if m.boots:
                (self.logs / f"{m.name}.kmsg").write_text(m.kernel_log(sync=False))

    def trouble(self):
        """What the kernels said of our modules since the last time; any oops names all modules."""
        bad = []
        for m in self.vms:
            log = m.kernel_log()
            bad += [f"{m.name}:\n{b}" for b in kmsg.trouble(log[self.heard.get(m, 0):])[0]
                    if re.search(r"^(?!.*Modules linked in).*\bib(nbd|trs)", b, re.M)]
            self.heard[m] = len(log)
        self.keep_logs()
        return bad

    def sh(self, m, script, timeout=120):
        rc, out = m.run(script, timeout)
        if rc:
            raise Broken(f"{m.name}: status {rc} of:\n{script}\n{out[-3000:]}")
        return out.strip()

    def load(self, folder):
        """The suite that the machines have from their next boot on."""
        self.usable = False
        for m in self.vms:
            m.kill()
        self.disk.unlink(missing_ok=True)
        size = int(subprocess.check_output(["du", "-sm", folder], text=True).split()[0])
        if child(["mkfs.ext4", "-q", "-d", folder, self.disk, f"{size * 3 // 2 + 256}m"],
                 stdout=subprocess.DEVNULL):
            raise Broken(f"{folder} does not fit into a disk")

    def up(self):
        """Fresh machines.  A Debian's udev runs in its chroot: device-mapper's commands wait for
        it."""
        launch.up(self.vms, 1)
        parts = f",{GIB}G\\n" * DISKS
        self.sh(self.server, "modprobe virtio_blk; wait_for 10 test -b /dev/vda; "
                f"printf 'label: gpt\\n{parts}' | sfdisk -q -w always /dev/vda; "
                f"wait_for 10 test -b /dev/vda{DISKS}; serve")
        self.sh(self.client, f"""
            modprobe -a virtio_blk ext4 xfs dm-mod
            for d in /sys/block/vd*; do
                wait_for 10 test -e $d/serial
                ln -sf ${{d##*/}} /dev/$(cat $d/serial)
            done
            mkdir -p /r; mount /dev/root /r; mount /dev/suite /r/suite
            for d in dev proc sys h; do mount --rbind /$d /r/$d; done
            mkdir -p /r/lib/modules /r/etc/modprobe.d; mount --bind /lib/modules /r/lib/modules
            mount -t tmpfs run /r/run; mount -t tmpfs -o mode=1777 tmp /r/tmp
            # the tests of rnbd start a server on this very machine
            echo 'options ibnbd-server dev_search_path=/' > /r/etc/modprobe.d/ibnbd.conf
            {self.map.format(' '.join(str(i + 1) for i in range(DISKS)))}
            export SYSTEMD_IGNORE_CHROOT=1
            chroot /r /lib/systemd/systemd-udevd --daemon
            chroot /r udevadm trigger --action=add --subsystem-match=block
            chroot /r udevadm settle --timeout=60""")
        self.usable = True

    def check(self, env, tests, report):
        """One run of the suite's check.  report(test, verdict, seconds, why) is told of each test
        that was begun; one that hangs, or takes the machine with it, ends the run."""
        line = ("cd /suite && exec env SYSTEMD_IGNORE_CHROOT=1 "
                + " ".join(f"{k}={shlex.quote(v)}" for k, v in env.items())
                + " ./check " + " ".join(tests))
        self.client.put("check.out", "")
        job = self.client.spawn(f"chroot /r /bin/bash -c {shlex.quote(line)} > /h/check.out 2>&1")
        said, begun = 0, time.monotonic()
        while True:
            ended = job.rc is not None
            over = ended or not self.client.alive
            text = self.client.get("check.out")
            found = pieces(text)
            for test, piece in found[said:len(found) if ended else -1]:
                report(test, *self.verdict(piece, begun))
                said, begun = said + 1, time.monotonic()
            now = found[said][0] if said < len(found) else None
            late = time.monotonic() - begun > self.limit
            if late or over or time.monotonic() > self.end:
                break
            time.sleep(0.5)
        self.usable = ended
        if not over:
            self.look()
        if now and (late or over):
            report(now, HUNG, time.monotonic() - begun,
                   f"no end after {time.monotonic() - begun:.0f} s" if late
                   else f"the machine died: {self.client.end_of_qemu()}")
        elif time.monotonic() > self.end:
            raise TimeUp("the time for all of it is up" + (f", in {now}" if now else ""))
        elif late:
            raise Broken(f"no test begins within {self.limit:.0f} s:\n{text[-2000:]}")
        return text

    def verdict(self, piece, begun):
        verdict, why = self.verdict_of(piece)
        return verdict, time.monotonic() - begun, why

    def look(self):
        """Who waits for what, into the kernel's log and the log of the run."""
        try:
            self.client.run("echo w > /proc/sysrq-trigger; ps -o pid,ppid,stat,args", 10)
        except vm.VMError:
            pass

    def fetch(self, tests, into):
        """What the suite keeps of tests that failed."""
        if not self.client.alive:
            return
        names = " -o ".join(f"-path '*/{t.replace('rnbd/', 'ibnbd/')}.*'" for t in tests)
        try:
            # tar of the suite's Debian: that of busybox takes no list of names
            rc, out = self.client.run(
                f"cd /r/suite && find results* -type f \\( {names} \\) > /h/kept && "
                "chroot /r /bin/tar -C /suite --verbatim-files-from -T /h/kept -cf /h/kept.tar", 60)
        except vm.VMError:
            return
        into.mkdir(exist_ok=True)
        if rc or subprocess.run(["tar", "-C", into, "-xf", self.client.share / "kept.tar"],
                                stderr=subprocess.DEVNULL).returncode:
            print(f"note  what the suite says of failures is not kept: {out}", flush=True)


class Run:
    """One suite, with one file system if it wants one."""
    def __init__(self, rig, results, suite, fs, tests):
        self.rig, self.results, self.suite, self.fs, self.tests = rig, results, suite, fs, tests
        self.what = " ".join(filter(None, [suite, fs]))
        rig.verdict_of = {"blktests": blktests_verdict, "xfstests": xfstests_verdict}[suite]

    def prepare(self, disks, tests):
        """(environment, names) for a run of these tests."""
        sh, client = self.rig.sh, self.rig.client
        if self.suite == "xfstests":
            sh(client, f"wipefs -qa {' '.join(disks)}; "
               f"mkfs.{self.fs} -q {'-f' if self.fs == 'xfs' else '-F'} {disks[0]}")
            return dict(zip(("TEST_DEV", "SCRATCH_DEV", "LOGWRITES_DEV"), disks),
                        TEST_DIR="/mnt/test", SCRATCH_MNT="/mnt/scratch", FSTYP=self.fs,
                        CANON_DEVS="yes", HOST_OPTIONS="/dev/null"), tests
        sh(client, f"echo 'TEST_DEVS=({disks[0]})' > /r/suite/config")
        if tests[0].startswith("rnbd/"):    # it maps one of its own, over soft-RoCE of its own
            sh(client, """
                for d in /sys/block/ibnbd*; do unmap ${d##*/}; done
                > /r/suite/config
                cd /r/suite/tests
                [ -d ibnbd ] || cp -r rnbd ibnbd
                sed -i 's/rnbd/ibnbd/g; s/rtrs/ibtrs/g' ibnbd/*""")
        return ({"TIMEOUT": "30", "QUICK_RUN": "1", "USE_RXE": "1"},
                [re.sub("^rnbd/", "ibnbd/", t) for t in tests])

    def on(self, disks, tests):
        """All of these tests there, however often the machines have to be booted for it."""
        where, rig, todo = disks[0].rpartition("/")[2], self.rig, list(tests)
        bad, done = [], 0

        def report(test, verdict, seconds, why):
            nonlocal done
            test = re.sub("^ibnbd/", "rnbd/", test)
            if test not in todo:
                return
            todo.remove(test)
            done += 1
            if verdict in BAD:
                bad.append(test)
            self.results.add(self.what, test, disks is not LOCAL, verdict, seconds, why)
            print(f"      [{done}/{len(tests)}] {test} on {where}: {verdict}, {seconds:.0f} s"
                  + (f" ({why})" if why else ""), flush=True)

        while todo:
            if not rig.usable:
                rig.up()
            before = len(todo)
            text = rig.check(*self.prepare(disks, todo), report)
            with open(rig.logs / f"{self.what.replace(' ', '-')}-{where}.out", "a") as out:
                out.write(text)
            if bad:
                rig.fetch(bad, rig.logs / f"{self.what.replace(' ', '-')}-{where}")
                bad.clear()
            for b in rig.trouble():
                self.results.trouble.append(f"{self.what} on {where}: a kernel says: {b}")
            if len(todo) == before:
                raise Broken(f"{where}: no verdict on {' '.join(todo[:20])}; check said:\n"
                             f"{text[-2000:]}")

    def all(self, folder):
        if not self.tests:
            raise Broken("it has no such test")
        rnbd = [t for t in self.tests if self.suite == "blktests" and t.startswith("rnbd/")]
        rest = [t for t in self.tests if t not in rnbd]
        if self.rig.ours is NBD:
            self.tests, rnbd = rest, []
        self.rig.load(folder)
        if rest:
            self.on(self.rig.ours, rest)
            again = [t for t in rest if self.results.of(self.what, t, True) != PASSED]
            if again:
                self.on(LOCAL, again)
        if rnbd:        # there is no control: only ours has these names
            self.on(OURS, rnbd)
            self.rig.usable = False


class Results:
    """{(what, test): {ours?: (verdict, seconds, why)}}, on the host as they come."""
    def __init__(self, path):
        self.path, self.rows, self.trouble = path, {}, []

    def add(self, what, test, ours, *verdict):
        self.rows.setdefault((what, test), {})[ours] = verdict
        with open(self.path, "w") as out:
            out.write("# suite, test: on the mapped disk, seconds; on the local one, seconds\n")
            for (what, test), row in self.rows.items():
                cells = [row.get(ours, ("-", 0, "")) for ours in (True, False)]
                why = " # " + cells[0][2] if cells[0][2] else ""
                out.write(f"{what:14} {test:13}"
                          + "".join(f"  {v:8} {s:4.0f}" for v, s, _ in cells) + why + "\n")

    def of(self, what, test, ours):
        return self.rows.get((what, test), {}).get(ours, ("not tried",))[0]

    def sum_up(self, what, suite, tests, known):
        """Print what differs; (passed, failed, skipped) of the tests on our disk."""
        passed = failed = skipped = left = 0
        for test in sorted(tests):
            reason, verdict, control = (known.get((suite, test)), self.of(what, test, True),
                                        self.of(what, test, False))
            if verdict == PASSED:
                passed += 1
                if reason:
                    print(f"note  {what} {test} passes, though it is listed as: {reason}")
            elif verdict == NOT_RUN:
                skipped += 1
                if control == PASSED:
                    print(f"note  {what} {test} is not run, on the local disk it was: passed")
            elif verdict not in BAD:
                left += 1
            elif reason or control in BAD:
                skipped += 1
                print(f"skip  {what} {test}: {reason or f'{control} on the local disk, too'}")
            else:
                failed += 1
                print(f"FAIL  {what} {test}: {verdict}, on the local disk it was: {control}")
        print(f"{'FAIL ' if failed else 'ok   '} {what}: {passed} passed, {failed} failed, "
              f"{skipped} skipped" + (f", {left} not tried" if left else ""), flush=True)
        return passed, failed, skipped


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--fs", default="ext4,xfs")
    p.add_argument("--tests", default="", help="names, and patterns of those listed")
    p.add_argument("--nbd", action="store_true",
                   help="the disks are mapped by nbd, nbdkit and libibnbd")
    p.add_argument("--limit", type=float, default=300, help="seconds that a test may take")
    p.add_argument("--hours", type=float, default=24, help="that all of it may take")
    p.add_argument("--expected", type=Path, default=TOP / "tests/suites/expected")
    p.add_argument("--logs", type=Path,
                   default=TOP / "build/suites" / time.strftime("%Y%m%d-%H%M%S"))
    p.add_argument("--passed", type=int, default=0, help="so many have passed before")
    p.add_argument("dirs", nargs="+", type=Path)
    a = p.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGTERM, lambda *a: sys.exit(143))
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)      # PR_SET_PDEATHSIG: what started us was stopped
    suites = [(kind_of(d), d.resolve()) for d in a.dirs]
    known, words, logs = expected(a.expected), a.tests.split(), a.logs.resolve()
    logs.mkdir(parents=True, exist_ok=True)
    for suite, folder in suites:
        build(suite, folder, logs)
    with open(logs / "root", "w") as out:
        if child([TOP / "tests/suites/root.sh"], stdout=out):
            return 1
    root = (logs / "root").read_text().split()[-1]
    totals, results, rig, turn = [a.passed, 0, 0], Results(logs / "RESULTS"), None, launch.alone()
    try:
        rig = Rig(root, logs, a)
        for suite, folder in suites:
            for fs in a.fs.split(",") if suite == "xfstests" else [None]:
                have = (xfstests_list if fs else blktests_list)(folder, fs)
                mine = [w for w in words if (folder / "tests" / w.split("/")[0]).is_dir()
                        and (not fs or w.split("/")[0] in ("generic", fs))]
                if words and not mine:
                    continue
                run = Run(rig, results, suite, fs, chosen(have, mine))
                t0 = time.monotonic()
                try:
                    run.all(folder)
                except (Broken, vm.VMError) as e:
                    print(f"FAIL  {run.what}: {e}")
                    totals[1] += 1
                finally:
                    counts = results.sum_up(run.what, suite, run.tests, known)
                    totals = [x + y for x, y in zip(totals, counts)]
                    print(f"      {run.what}: {time.monotonic() - t0:.0f} s", flush=True)
        for t in results.trouble:
            print(f"FAIL  {t}")
        totals[1] += len(results.trouble)
    except KeyboardInterrupt:
        return 130
    finally:
        if rig:
            rig.close()
        turn.close()
        print(f"      {results.path}")
        print("{} passed, {} failed, {} skipped".format(*totals), flush=True)
    return bool(totals[1] or not totals[0])


if __name__ == "__main__":
    sys.exit(main())
