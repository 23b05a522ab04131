# SPDX-License-Identifier: GPL-2.0-only
import kmsg
import selftest

description = ("the runner finds planted faults: a failing job, a kernel warning, a hang, a panic, "
               "a wrong value, a race, a mistake in the rig, a flaky case")
long = True
crowd = True
vms = 0
deadline = 400

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
    "913-race": (r"\A    client: kernel log:\n"
                 r".*KCSAN: data-race in rxe_completer \[rdma_rxe\] / "
                 r"ibtrs_planted \[ibtrs_client\](.*\n)*?.*={60}\n\Z"),
    "915-worker": r"TypeError: .*NoneType",
}

# what two CPUs say at once: one report, in which each of both needs its pardon
BOTH = """[1.0] ---[ cut here ]---
[1.1] WARNING: CPU: 1 PID: 9 at rxe_pool.c:255 __rxe_cleanup+0x118/0x160 [rdma_rxe]
[1.2] ---[ cut here ]---
[1.3] WARNING: CPU: 0 PID: 25 at {}
[1.4] Call Trace:
[1.5] ---[ end trace 0000000000000000 ]---
[1.6] Call Trace:
[1.7] ---[ end trace 0000000000000000 ]---
[1.8] WARNING: CPU: 0 PID: 1 at behind it
"""


def run(t):
    for other, want in ("rxe_pool.c:255 __rxe_cleanup+0x118", [2, 1]), ("planted", [2, 2]):
        t.eq([len(kmsg.trouble(BOTH.format(other), allow)[0]) for allow in ((), ["__rxe_cleanup"])],
             want, f"reports of two CPUs at once, one of {other}")
    selftest.run(t, "planted", PLANTED, skip=["909-skip"])
    leftover = (t.logdir / "planted/907-leftover/log").read_text()
    t.match(leftover, "client is not as it was", "log of the case that left something behind")

    rc, out = t.host([str(selftest.RUN / "run.py"), "--dir", str(selftest.RUN / "planted"),
                      "--kver", t.image.kver, "--logs", str(t.logdir / "planted"), "909"],
                     timeout=60)
    t.eq((rc, out.splitlines()[-1]), (1, "0 passed, 0 failed, 1 skipped"),
         "a run in which nothing ran")

    known = t.logdir / "known"
    flaky = lambda *cases: t.host([str(selftest.RUN / "run.py"),
                                   "--dir", str(selftest.RUN / "planted-flaky"),
                                   "--kver", t.image.kver, "--again",
                                   "--flaky-list", str(known), "--logs", str(t.logdir / "flaky"),
                                   *cases], timeout=60)
    rc, out = flaky("914")
    t.eq((rc, out.splitlines()[-1]), (0, "1 passed, 0 failed, 0 skipped"), "one flaky case")
    t.match(out, r"^FLAKY 914-flaky [\d.]+s \(first: 914-flaky\.py:\d+: "
            r"number of this run: got 1, want 2;")
    t.match((t.logdir / "flaky/914-flaky/log").read_text(), "PROBLEM:",
            "the first log of the flaky case")
    t.ok("PROBLEM" not in (t.logdir / "flaky/914-flaky.2/log").read_text(),
         "the second log has a problem")
    rc, out = flaky("914")
    t.eq((rc, out.splitlines()[-1]), (1, "0 passed, 1 failed, 0 skipped"),
         "the same case once more in the list")
    t.match(out, "^flaky for the second time: 914-flaky;")
    known.unlink()
    rc, out = flaky()
    t.eq((rc, out.splitlines()[-1]), (1, "0 passed, 2 failed, 0 skipped"),
         "two flaky cases in one run")
    rc, out = t.host([str(selftest.RUN / "run.py"), "--dir", str(selftest.RUN / "planted"),
                      "--kver", t.image.kver, "--again",
                      "--flaky-list", str(known), "--logs", str(t.logdir / "again"), "905"],
                     timeout=120)
    t.eq((rc, out.splitlines()[-1]), (1, "0 passed, 1 failed, 0 skipped"),
         "a case that fails both times")
