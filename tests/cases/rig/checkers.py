# SPDX-License-Identifier: GPL-2.0-only
import re
import image

description = ("the checkers of a debug kernel find planted bugs: "
               "use after free, leak, lock order, race ..")
vms = 0
deadline = 300
needs = ["ibnbd-planted"]           # built for the debug kernels alone

FOUND = {
    "debug": ("920-bugs", [r"WARNING: suspicious RCU usage",
                           r"BUG: sleeping function called from invalid context",
                           r"UBSAN: shift-out-of-bounds", r"ODEBUG: free active .*timer_list",
                           r"DMA-API: .*frees DMA memory with different size",
                           r"WARNING: possible circular locking dependency",
                           r"BUG: KASAN: .*bug_free.*ibnbd_planted",
                           r"unreferenced object(.*\n)+?.*bug_leak.*ibnbd_planted"]),
    "kcsan": ("921-race", [r"BUG: KCSAN: data-race in racer \[ibnbd_planted\]"]),
}

CHECKERS = {    # what must be looked for; the bugs above are a part of it
    "debug": "KASAN UBSAN PROVE_LOCKING PROVE_RCU DEBUG_ATOMIC_SLEEP "
             "DEBUG_OBJECTS DEBUG_OBJECTS_FREE DEBUG_OBJECTS_TIMERS DEBUG_OBJECTS_WORK "
             "DEBUG_OBJECTS_RCU_HEAD DEBUG_OBJECTS_PERCPU_COUNTER DEBUG_KOBJECT_RELEASE "
             "DEBUG_LIST DEBUG_SG DMA_API_DEBUG DEBUG_KMEMLEAK "
             "FAULT_INJECTION FAILSLAB FAIL_PAGE_ALLOC DETECT_HUNG_TASK",
    "kcsan": "KCSAN",
}


def run(t):
    lacking = [o for o in CHECKERS[t.image.debug].split() if image.config(t.image.kver, o) != "y"]
    t.ok(not lacking, f"{t.image.kver} is built without {lacking}")
    here = t.case.path.parents[2] / "vm"
    name, patterns = FOUND[t.image.debug]
    rc, out = t.host([str(here / "run.py"), "--dir", str(here / "planted-debug"),
                      "--kver", t.image.kver, "--logs", str(t.logdir / "planted"), name],
                     timeout=280)
    t.match(out, rf"^FAIL {name} ", "result line")
    t.eq((rc, out.splitlines()[-1]), (1, "0 passed, 1 failed, 0 skipped"), "a run with a failure")
    problems = (t.logdir / "planted" / name / "log").read_text().partition("PROBLEM:")[2]
    missed = [p for p in patterns if not re.search(p, problems)]
    t.ok(not missed, f"nobody noticed {missed}:\n{problems[-3000:]}")
