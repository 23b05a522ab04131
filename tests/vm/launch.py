# SPDX-License-Identifier: GPL-2.0-only
"""From a checkout to booted machines: what run.py, shell.py and demo.py share."""
import fcntl, os, subprocess, sys, tempfile, time
from pathlib import Path
import case, image, vm


def alone():
    """Runs of one host take turns: together they would only slow each other past their deadlines.
    A run that a run starts goes with it.  Returns what holds the turn: a file to close.  A host
    with processors to spare runs several, each with a TMPDIR of its own."""
    if os.environ.get("IBNBD_RIG_TURN"):
        return open(os.devnull)
    try:
        lock = open(Path(tempfile.gettempdir()) / f"ibnbd-rig.{os.getuid()}.lock", "a")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("rig: waiting for another run on this host", file=sys.stderr, flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)
    os.environ["IBNBD_RIG_TURN"] = "taken"
    return lock


def module_dirs(kver):
    """Where modules may lie: this tree, builds for other kernels, the in-kernel peers."""
    return [image.REPO / "ibtrs", image.REPO / "ibnbd", image.REPO / "tests/testdisk",
            image.REPO / "tests/failnth", image.REPO / "tests/speak",
            image.REPO / "build/modules" / kver, image.CACHE / "peer" / kver]


def programs(more=()):
    """(host path, guest path) of programs under test and of tests: the ibnbd command once it is
    built, stamp, fileops, blockwords, lessen, fakering, maploop, and `more`."""
    files = [image.REPO / "build/tools/ibnbd", *map(Path, more)]
    if not files[0].is_file():
        print("the machines get no ibnbd command: make tools builds it", file=sys.stderr)
    stamp = image.compiled(image.REPO / "tests/stamp/stamp.c", "-static", "-pthread")
    fileops = image.compiled(image.HERE / "guest/fileops.c", "-static")
    words = image.compiled(image.HERE / "guest/blockwords.c", "-static")
    lessen = image.compiled(image.HERE / "guest/lessen.c", "-static")
    fakering = image.compiled(image.HERE / "guest/fakering.c", "-static")
    maploop = image.compiled(image.HERE / "guest/maploop.c", "-static")
    tests = [(stamp, "bin/stamp"), (fileops, "bin/fileops"), (words, "bin/blockwords"),
             (lessen, "bin/lessen"), (fakering, "bin/fakering"), (maploop, "bin/maploop")]
    return [(f, f"bin/{f.name}") for f in files if f.is_file()] + tests


def make_modules(kver, *more):
    """Build our modules, the command and more targets in the tree; the seconds it took.
    Raises with the end of make's log."""
    t0 = time.monotonic()
    log = image.REPO / "build/make.log"
    log.parent.mkdir(exist_ok=True)
    targets = ["modules", "tools", *more]
    with open(log, "w") as out:
        done = subprocess.run(["make", "-C", image.REPO, f"KVER={kver}", *targets],
                              stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    if done.returncode:
        raise RuntimeError(f"the modules do not build for {kver}:\n"
                           + log.read_text(errors="replace")[-2000:])
    return time.monotonic() - t0


def debug_kernel(variant):
    """Version of the kernel with checkers, "debug" or "kcsan";
    it and our modules for it are built if need be."""
    done = subprocess.run([image.HERE / "debug-kernel.sh", "modules", variant],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(done.returncode)
    return done.stdout.split()[-1]


def boot_image(kver=None, ko_dirs=(), more_programs=()):
    kver = kver or image.default_kver()
    return vm.Boot(kver, [*map(Path, ko_dirs), *module_dirs(kver)], programs(more_programs))


def up(machines, links):
    """Boot machines and bring their network up; the seconds until the last guest was ready."""
    seconds = vm.start_all(machines)
    for m in machines:
        case.bring_up(m, links, machines)
    return seconds
