# SPDX-License-Identifier: GPL-2.0-only
import re

description = "the runner finds planted faults: a failing job, a kernel warning, a hang, a panic, a wrong value"
vms = 0
deadline = 600

PLANTED = {
    "900-good": None,
    "901-status": r"901-status\.py:\d+: client: status 1 of:",
    "902-warning": r"WARNING: CPU: 0 PID: 1 at planted",
    "903-hang": r"client: no end after \d+ s of:",
    "904-panic": r"client died",
    "905-value": r"got 1, want 2",
    "906-loop": r"no end within its deadline",
    "907-leftover": None,
    "908-after": None,
    "909-skip": None,
    "910-old-boot": r"WARNING: CPU: 0 PID: 1 at planted",
    "911-boot-again": None,
    "913-race": r"\A    client: kernel log:\n.*KCSAN: data-race in rxe_completer \[rdma_rxe\] / ibtrs_planted \[ibtrs_client\](.*\n)*?.*={60}\n\Z",
    "912-no-boot": r"(?s)the rig did not start: client did not boot: QEMU ended with status 0.*Unable to mount root",
}


def run(t):
    here = t.case.path.parent.parent / "vm"
    rc, out = t.host([str(here / "run.py"), "--dir", str(here / "planted"), "--kver", t.image.kver,
                      "--logs", str(t.logdir / "planted")], timeout=580)
    t.eq(rc, 1, "exit status of a run with failures")
    for name, message in PLANTED.items():
        word = "skip" if name == "909-skip" else "FAIL" if message else "ok"
        t.match(out, rf"^{word} {name} [\d.]+s", "result line")
        if message:
            details = re.search(rf"^FAIL {name} .*\n((?:    .*\n)*)", out, re.M).group(1)
            t.match(details, message, f"details of {name}")
    t.match(out, r"^4 passed, 9 failed, 1 skipped$", "closing line")
    t.match(out.splitlines()[-1], r"^4 passed", "last line")
    t.eq(out.count("rig: client is booted again: QEMU ended with status"), 3, "boots begun again")
    leftover = (t.logdir / "planted/907-leftover/log").read_text()
    t.match(leftover, "client is not as it was", "log of the case that left something behind")

    rc, out = t.host([str(here / "run.py"), "--dir", str(here / "planted"), "--kver", t.image.kver,
                      "--logs", str(t.logdir / "planted"), "909"], timeout=60)
    t.eq((rc, out.splitlines()[-1]), (1, "0 passed, 0 failed, 1 skipped"), "a run in which nothing ran")
