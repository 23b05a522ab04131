# SPDX-License-Identifier: GPL-2.0-only
"""Runs cases with planted faults (tests/vm/planted*) by a runner of its own,
and compares what that says."""
import re
import image

RUN = image.REPO / "tests/vm"


def run(t, directory, planted, skip=()):
    """planted: name: what the details of its failure must match, or None if it passes.
    Returns what was said."""
    rc, out = t.host([str(RUN / "run.py"), "--dir", str(RUN / directory), "--kver", t.image.kver,
                      "--logs", str(t.logdir / directory)], timeout=t.case.deadline - 20)
    t.eq(rc, 1, "exit status of a run with failures")
    for name, message in planted.items():
        word = "skip" if name in skip else "FAIL" if message else "ok"
        t.match(out, rf"^{word} {name} [\d.]+s", "result line")
        if message:
            details = re.search(rf"^FAIL {name} .*\n((?:    .*\n)*)", out, re.M).group(1)
            t.match(details, message, f"details of {name}")
    failed = sum(bool(m) for m in planted.values())
    closing = rf"{len(planted) - failed - len(skip)} passed, {failed} failed, {len(skip)} skipped"
    t.match(out.splitlines()[-1], rf"^{closing}$", "last line")
    return out
