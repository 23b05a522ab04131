#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests of the command, without root and without modules.

    tests/tools/run.py --build DIR [--update] [WORD]     the tests whose name contains WORD;
                                                         --update writes the golden files

Last line: N passed, N failed.  A test is a function of test_*.py with @test;
it gets a fresh World (kit.py)."""
import argparse, importlib, sys, traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.dont_write_bytecode = True
import kit

p = argparse.ArgumentParser()
p.add_argument("--build", required=True, type=Path)
p.add_argument("--update", action="store_true")
p.add_argument("only", nargs="?", default="")
a = p.parse_args()
kit.World.build, kit.World.update = a.build.resolve(), a.update
passed = failed = 0
for f in sorted(kit.HERE.glob("test_*.py")):
    importlib.import_module(f.stem)
for t in kit.TESTS:
    name = f"{t.__module__[5:]}: {t.__name__}"
    if a.only not in name:
        continue
    w = kit.World()
    try:
        t(w)
        passed += 1
    except Exception as e:
        failed += 1
        print(f"FAIL  {name}\n{e if isinstance(e, kit.Failed) else traceback.format_exc()}")
    finally:
        w.close()
print(f"{passed} passed, {failed} failed")
sys.exit(bool(failed or not passed))
