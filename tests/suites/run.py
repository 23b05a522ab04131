#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""blktests and xfstests on a mapped disk, and on a local one as control.
README.md says how and what to expect.

    tests/suites/run.py [--fs ext4,xfs] [--tests 'block/012 ..'] [--expected FILE] DIR..

Each DIR is a built copy of one suite; nothing of it is changed.  A test that fails on the mapped
disk alone fails, unless the list of expected failures has it.  Last line: N passed, N failed, N
skipped.  Logs: build/suites.
"""
import argparse, re, shlex, subprocess, sys, time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/vm"))
sys.dont_write_bytecode = True
import case, image, kmsg, launch, vm

LOGS = TOP / "build/suites"
GIB = 3                                     # of each disk, sparse
OURS, LOCAL = ("/dev/ibnbd0", "/dev/ibnbd1"), ("/dev/local0", "/dev/local1")
SUITES = {"blktests": "tests/block", "xfstests": "tests/generic"}
PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"


class Broken(Exception):
    """The suite, or the machine, did not come to its end."""


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


def blktests_results(text):
    """{test: verdict} of what its check printed.
    A test that ran under several conditions passed if it did under all."""
    found = {}
    for test, verdict in re.findall(r"^(\S+/\d+)\b.* \[(passed|failed|not run)\]$", text, re.M):
        found.setdefault(test, []).append(verdict)
    return {test: next(v for v in (FAILED, PASSED, NOT_RUN) if v in all_of_it)
            for test, all_of_it in found.items()}


def xfstests_results(text):
    """{test: verdict}; its check sums up at the end, or has not come to its end."""
    names = lambda head: " ".join(re.findall(rf"^{head}: *(.*)", text, re.M)).split()
    if not re.search(r"^(Passed all \d+ tests|Failed \d+ of \d+ tests)", text, re.M):
        raise Broken(f"xfstests did not come to its end:\n{text[-2000:]}")
    results = {test: PASSED for test in names("Ran")}
    results.update({test: NOT_RUN for test in names("Not run")})
    results.update({test: FAILED for test in names("Failures")})
    return results


class Client(vm.VM):
    """With disks of its own: a Debian, a suite, and two to compare with.  What is written to the
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
    """Two machines; the client is booted anew for each suite, with it in a disk."""
    def __init__(self, root, seconds):
        self.root, self.seconds = root, seconds
        self.boot = launch.boot_image()
        peer, self.server = vm.machines(self.boot, 2, 1, disk=(2 * GIB << 10) + 64, mem=1024,
                                        logdir=LOGS)
        self.client = Client("client", self.boot, 1, peer.nics, mem=2048, logdir=LOGS)

    def close(self):
        for m in (self.client, self.server):
            m.kill()
        self.boot.close()

    def sh(self, m, script, timeout=120):
        rc, out = m.run(script, timeout)
        if rc:
            raise Broken(f"{m.name}: status {rc} of:\n{script}\n{out[-3000:]}")
        return out.strip()

    def up(self, folder):
        """Fresh machines with this suite."""
        disk = LOGS / "suite.img"
        disk.unlink(missing_ok=True)
        size = int(subprocess.check_output(["du", "-sm", folder], text=True).split()[0])
        subprocess.run(["mkfs.ext4", "-q", "-d", folder, disk, f"{size * 3 // 2 + 256}m"],
                       check=True, stdout=subprocess.DEVNULL)
        local = [LOGS / f"local{i}.img" for i in (0, 1)]
        for f in local:
            with open(f, "wb") as out:
                out.truncate(GIB << 30)
        self.client.drives = [("root", self.root, True), ("suite", disk, True),
                              ("local0", local[0], False), ("local1", local[1], False)]
        launch.up([self.server, self.client], 1)
        self.sh(self.server, "modprobe virtio_blk; wait_for 10 test -b /dev/vda; "
                f"printf 'label: gpt\\n,{GIB}G\\n,{GIB}G\\n' | sfdisk -q /dev/vda; "
                "wait_for 10 test -b /dev/vda2; serve")
        self.sh(self.client, """
            modprobe -a virtio_blk ext4 xfs
            for d in /sys/block/vd*; do
                wait_for 10 test -e $d/serial
                ln -sf ${d##*/} /dev/$(cat $d/serial)
            done
            mkdir -p /r; mount /dev/root /r; mount /dev/suite /r/suite
            for d in dev proc sys h; do mount --rbind /$d /r/$d; done
            mkdir -p /r/lib/modules /r/etc/modprobe.d; mount --bind /lib/modules /r/lib/modules
            mount -t tmpfs run /r/run; mount -t tmpfs -o mode=1777 tmp /r/tmp
            # the tests of rnbd start a server on this very machine
            echo 'options ibnbd-server dev_search_path=/' > /r/etc/modprobe.d/ibnbd.conf
            map vda1 hold=60; map vda2 hold=60""")

    def check(self, name, env, words):
        """What the suite's check prints; it may fail."""
        line = ("cd /suite && exec env " + " ".join(f"{k}={shlex.quote(v)}" for k, v in env.items())
                + " ./check " + " ".join(words))
        try:
            rc, out = self.client.run(f"chroot /r /bin/bash -c {shlex.quote(line)} "
                                      "> /h/check.out 2>&1", self.seconds)
        except vm.VMError as e:
            rc, out = None, str(e)
        text = self.client.get("check.out")
        (LOGS / f"{name}.out").write_text(text)
        if rc is None:
            raise Broken(f"{name}: {out}\n{text[-2000:]}")
        return text

    def blktests(self, disks, tests):
        """The tests that take a disk.  The rnbd group is for ours: it maps one of its own."""
        name = f"blktests-{disks[0][5:]}"
        self.sh(self.client, f"echo 'TEST_DEVS=({disks[0]})' > /r/suite/config")
        env = {"TIMEOUT": "30", "QUICK_RUN": "1", "USE_RXE": "1"}
        results = blktests_results(self.check(name, env, ["-d", *(tests or ["block"])]))
        if disks == OURS and not tests:
            self.sh(self.client, """
                cd /r/suite/tests
                [ ! -d rnbd ] || {
                    cp -r rnbd ibnbd
                    sed -i 's/rnbd/ibnbd/g; s/rtrs/ibtrs/g' ibnbd/*
                }""")
            if self.client.run("[ -d /r/suite/tests/ibnbd ]")[0] == 0:
                results.update(blktests_results(self.check(name + "-rnbd", env, ["ibnbd"])))
        if not results:
            raise Broken(f"{name}: no test was run; see {LOGS / name}.out")
        return results

    def xfstests(self, disks, tests, fs):
        self.sh(self.client, f"wipefs -qa {disks[0]} {disks[1]}; "
                f"mkfs.{fs} -q {'-f' if fs == 'xfs' else '-F'} {disks[0]}")
        env = dict(zip(("TEST_DEV", "SCRATCH_DEV"), disks), TEST_DIR="/mnt/test",
                   SCRATCH_MNT="/mnt/scratch", FSTYP=fs, HOST_OPTIONS="/dev/null")
        return xfstests_results(self.check(f"xfstests-{fs}-{disks[0][5:]}", env,
                                           tests or ["-g", "quick"]))


def compare(suite, what, ours, local, known):
    """Print what differs; (passed, failed, skipped) of the tests on our disk."""
    passed = failed = skipped = 0
    for test, verdict in sorted(ours.items()):
        reason = known.get((suite, test))
        if verdict == PASSED:
            passed += 1
            if reason:
                print(f"note  {what} {test} passes, though it is listed as: {reason}")
        elif verdict == NOT_RUN:
            skipped += 1
        elif reason or local.get(test) == FAILED:
            skipped += 1
            print(f"skip  {what} {test}: {reason or 'fails on the local disk, too'}")
        else:
            failed += 1
            print(f"FAIL  {what} {test} fails, on the local disk it was: "
                  f"{local.get(test, 'not tried')}")
    print(f"{'FAIL ' if failed else 'ok   '} {what}: {passed} passed, {failed} failed, "
          f"{skipped} skipped")
    return passed, failed, skipped


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--fs", default="ext4,xfs")
    p.add_argument("--tests", default="")
    p.add_argument("--minutes", type=float, default=240,
                   help="the most that one suite may take on one disk")
    p.add_argument("--expected", type=Path, default=TOP / "tests/suites/expected")
    p.add_argument("dirs", nargs="+", type=Path)
    a = p.parse_args()
    suites = [(kind_of(d), d.resolve()) for d in a.dirs]
    known, tests = expected(a.expected), a.tests.split()
    LOGS.mkdir(parents=True, exist_ok=True)
    turn = launch.alone()
    root = subprocess.check_output([TOP / "tests/suites/root.sh"], text=True).split()[-1]
    rig, totals = Rig(root, a.minutes * 60), [0, 0, 0]
    for suite, folder in suites:
        for fs in a.fs.split(",") if suite == "xfstests" else [None]:
            what, t0 = " ".join(filter(None, [suite, fs])), time.monotonic()
            try:
                rig.up(folder)
                run = ((lambda disks: rig.xfstests(disks, tests, fs)) if fs
                       else (lambda disks: rig.blktests(disks, tests)))
                counts = compare(suite, what, run(OURS), run(LOCAL), known)
                bad, _ = kmsg.trouble(rig.client.kernel_log(), [r"\bfsqa|xfstests|run fstests"])
                if any(re.search(r"ib(nbd|trs)", b) for b in bad):
                    raise Broken("the client's kernel says:\n" + "\n".join(bad))
            except (Broken, vm.VMError, subprocess.CalledProcessError) as e:
                print(f"FAIL  {what}: {e}")
                counts = 0, 1, 0
            totals = [x + y for x, y in zip(totals, counts)]
            print(f"      {what}: {time.monotonic() - t0:.0f} s", flush=True)
    rig.close()
    turn.close()
    print("{} passed, {} failed, {} skipped".format(*totals))
    return bool(totals[1] or not totals[0])


if __name__ == "__main__":
    sys.exit(main())
