#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests of the command, without root and without modules.

    tests/tools/run.py --build DIR [--update] [WORD]     the tests whose name contains WORD;
                                                         --update writes the golden files

Last line: N passed, N failed.  A test is a function of test_*.py with @test;
it gets a fresh World (kit.py)."""
import argparse, importlib, sys, tempfile, traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.dont_write_bytecode = True
import kernel, kit

AT_ONCE = 4     # half of the time is pauses of the command under test

p = argparse.ArgumentParser()
p.add_argument("--build", required=True, type=Path)
p.add_argument("--update", action="store_true")
p.add_argument("only", nargs="?", default="")
a = p.parse_args()
kit.World.build, kit.World.update = a.build.resolve(), a.update
for f in sorted(kit.HERE.glob("test_*.py")):
    importlib.import_module(f.stem)


def run(t):
    """True: passed."""
    w = kit.World()
    try:
        t(w)
        return True
    except Exception as e:
        print(f"FAIL  {t.__module__[5:]}: {t.__name__}\n"
              f"{e if isinstance(e, kit.Failed) else traceback.format_exc()}", flush=True)
        return False
    finally:
        w.close()


with tempfile.TemporaryDirectory(prefix="ibnbd-tools-") as d:
    kit.World.kernel = Path(d) / "kernel"
    Path(d).chmod(0o755)
    kernel.start(kit.World.kernel)
    chosen = [t for t in kit.TESTS if a.only in f"{t.__module__[5:]}: {t.__name__}"]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        passed = sum(pool.map(run, chosen))
failed = len(chosen) - passed
print(f"{passed} passed, {failed} failed")
sys.exit(bool(failed or not passed))
