#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Every known combination of probe answers must select exactly one body of each shim.

compat/expected/*.h are the answers of real kernels, those of RHEL among them, which we cannot build
for here.  For each, compat.h and blk.c are preprocessed with empty stand-ins for the kernel's
headers, and every cx_* function, type and DEF_* macro that compat.h promises is counted: none or
two is an error.  -Wundef finds an answer that a fixture lacks.  Then each answer of the newest is
turned round, which must end in a line of its own in shapes.h.  Exit status 0 when all fixtures
agree.
"""
import re, subprocess, sys, tempfile
from pathlib import Path

COMPAT = Path(__file__).resolve().parents[2] / "compat"
PROMISED = re.compile(r"\b(cx_\w+|DEF_\w+|MQ_\w+|CX_RQ_\w+|const_ktype)")


# Macros that a kernel brought back without what they came with: a shim must not define them again.
MACROS = {
    "el8.10.h": {"linux/blkdev.h": "#define bdev_kobj(_bdev) "
                                   "(&part_to_dev((_bdev)->bd_part)->kobj)\n"},
}


def promised():
    essay = (COMPAT / "compat.h").read_text().split("*/")[1]
    names = set(PROMISED.findall(essay.split("WRAPPERS")[1]))
    return sorted(n for n in names if not n.endswith("_"))


def asked():
    text = "".join(f.read_text() for f in COMPAT.glob("*.[ch]") if f.name != "probes.c")
    return set(re.findall(r"\bHAVE_(\w+)", text)) - {"x"}


def probes():
    return set(re.findall(r"^PROBE\((\w+)\)", (COMPAT / "probes.c").read_text(), re.M)) - {
        "SANE_OK", "SANE_BAD", "SANE_END"}


def preprocess(fixture, source, defines):
    """Text of a source file, and its macros if wanted, as this kernel's compiler would see it."""
    with tempfile.TemporaryDirectory() as d:
        stubs = Path(d)
        for f in COMPAT.glob("*.[ch]"):
            if f.name != "config.h":        # the one that a build has left there is not meant
                (stubs / f.name).symlink_to(f)
            for header in re.findall(r"^#include <([^>]+)>", f.read_text(), re.M):
                (stubs / header).parent.mkdir(parents=True, exist_ok=True)
                (stubs / header).write_text(MACROS.get(fixture.name, {}).get(header, ""))
        (stubs / "config.h").write_text(fixture.read_text())
        p = subprocess.run(["cpp", "-nostdinc", "-undef", "-P", "-Wundef", "-Werror", "-I", stubs,
                            "-include", stubs / "compat.h", *(["-dD"] if defines else []),
                            stubs / source.name],
                           capture_output=True, text=True)
        if p.returncode:
            lines = p.stderr.strip().splitlines()
            raise ValueError(next((l for l in lines if "error" in l), lines[0]))
        return p.stdout


def check(fixture, names):
    have = set(re.findall(r"^#define HAVE_(\w+) [01]$", fixture.read_text(), re.M))
    if have != probes():
        return [f"answers and probes differ: {' '.join(sorted(have ^ probes()))}"]
    try:
        text = preprocess(fixture, COMPAT / "blk.c", True)
    except ValueError as e:
        return [str(e)]
    bad = []
    for n in names:
        function = len(re.findall(rf"\b{n}\([^()]*(?:\([^()]*\)[^()]*)*\)\s*{{", text))
        macro = len(re.findall(rf"^#define {n}\b", text, re.M))
        typedef = len(re.findall(rf"^(?:typedef .*\b{n};|struct {n} {{)", text, re.M))
        if function + macro + typedef != 1:
            bad.append(f"{n}: {function} functions, {macro} macros, {typedef} types")
    return bad


NEWEST = "7.3-trixie-backports.h"
# answers of the newest kernel that may turn to "no" unnoticed, and why
HARMLESS = {
    "USERSPACE_INIT_FS": "asked for shapes.h alone",
}


def shapes():
    """A kernel that is newer than all we know and has changed one thing
    must stop at a line that says which."""
    newest, bad, lines = (COMPAT / "expected" / NEWEST).read_text(), [], {}
    for fact in re.findall(r"^#define HAVE_(\w+) 1$", newest, re.M):
        with tempfile.NamedTemporaryFile("w", suffix=".h") as f:
            f.write(newest.replace(f"#define HAVE_{fact} 1\n", f"#define HAVE_{fact} 0\n"))
            f.flush()
            try:
                preprocess(Path(f.name), COMPAT / "blk.c", False)
                line = None
            except ValueError as e:
                line = str(e)
        said = re.search(r'shapes\.h:\d+:\d+: error: #error "(\S+) .*"', line or "")
        if fact in HARMLESS:
            if line:
                bad.append(f"a changed {fact} is said to be harmless: {line}")
        elif not said:
            bad.append(f"a changed {fact} "
                       + (f"stops elsewhere: {line}" if line else "goes unnoticed"))
        elif said[1] in lines:
            bad.append(f"a changed {fact} is taken for {lines[said[1]]}: {said[1]}")
        else:
            lines[said[1]] = fact
    return len(lines), bad


def rows():
    """What kernels.conf lists, or nobody here can build on, and has no set of answers."""
    conf = (Path(__file__).parent / "kernels.conf").read_text()
    names = [n for n, words in re.findall(r"^([^#\s]\S*)\s(.*)", conf, re.M)
             if " as:" not in words] + ["el8.10", "el9.4", "el9.5", "el9.6", "el10.0"]
    return [n for n in names if not (COMPAT / "expected" / f"{n}.h").exists()]


def main():
    names, failed = promised(), 0
    changed, unnoticed = shapes()
    for b in unnoticed:
        print(f"FAIL  compat/shapes.h: {b}")
    for name in (lacking := rows()):
        print(f"FAIL  tests/kernels/kernels.conf: {name} has no compat/expected/{name}.h "
              f"(matrix.sh --accept {name}; docs/kernels.md)")
    failed += len(unnoticed) + len(lacking)
    fixtures = sorted((COMPAT / "expected").glob("*.h"))
    for what, odd in (("asked for but not probed", asked() - probes()),
                      ("probed but not asked for", probes() - asked())):
        if odd:
            print(f"FAIL  compat: {what}: {' '.join(sorted(odd))}")
            failed += 1
    for f in fixtures:
        for b in check(f, names):
            print(f"FAIL  compat/expected/{f.name}: {b}")
            failed += 1
    if not failed:
        print(f"ok    {len(fixtures)} sets of answers each select one body of {len(names)} shims; "
              f"{changed} changes of a newer kernel are noticed")
    return 1 if failed or not fixtures or changed < 60 or len(names) < 20 else 0


sys.exit(main())
