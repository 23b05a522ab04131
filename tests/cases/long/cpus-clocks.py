# SPDX-License-Identifier: GPL-2.0-only
description = ("processors go and return, clocks jump, a machine is moved, "
               "allocations fail: nothing notices")
links = 2
disk = 64
faults = True
long = True
deadline = 260
import time
import faults as F

FAIL = ("for k in failslab fail_page_alloc; do d=/sys/kernel/debug/$k; echo N > $d/task-filter; "
        "echo 0 > $d/verbose; echo {} > $d/probability;"
        "echo -1 > $d/times; done")
NTH = "/sys/module/ibnbd_failnth/parameters"
AGAIN = ("for p in /sys/class/ibtrs-client/s1/paths/*; do echo 1 > $p/disconnect; "
         "echo 1 > $p/reconnect; done")
OURS = {"client": "ibtrs_client ibnbd_client ibtrs_core",
        "server": "ibtrs_server ibnbd_server ibtrs_core"}


def run(t):
    c, s = t.client, t.server
    cpu = lambda m, n: m.sh(f"echo {n} > /sys/devices/system/cpu/cpu1/online")
    reconnect = lambda: c.sh(AGAIN)

    s.sh("serve; modprobe ibnbd-testdisk cache=0")
    dev = c.sh("map testdisk0")
    w = F.Work(t, c, dev)
    for who in (c, s):
        row = w.fault("F28", f"{who.name} has one processor left",
                      lambda: (cpu(who, 0), reconnect()),
                      lambda: (cpu(who, 1), reconnect()), hold=6)
        w.limit(row, Nerr=0, Tstall=5)
    row = w.fault("F29", "clocks jump by an hour",
                  lambda: [m.sh("date -s @$(($(date +%s) + 3600)) > /dev/null") for m in (c, s)],
                  lambda: [m.sh("date -s @$(($(date +%s) - 3600)) > /dev/null") for m in (c, s)],
                  hold=6)
    w.limit(row, Nerr=0, Tstall=2)
    begin = time.monotonic()

    def pause():
        s.pause()
        time.sleep(2)
        s.resume()
    row = w.fault("F29", "server stands still for 2 s", pause, hold=4)
    w.limit(row, Nerr=0, Tstall=4)
    t.eq([x for x in w.watch.changes if x[0] >= begin], [], "news of the paths")
    # how the kernel says that it has no memory
    for words in "vmalloc error", "page allocation failure", "kmem_cache_create":
        t.allow(words)
    for who in (c, s):
        def strike():
            who.sh(f"fail_nth {F.EVERY} {OURS[who.name]} depth=10 first=0 again=1")
            # each may fail, and is tried again by itself
            c.rc(f"set +e; for i in 1 2 3; do {AGAIN}; sleep 1; done")

        row = w.fault("F27", f"every {F.EVERY}th allocation of the {who.name} fails", strike,
                      lambda: who.sh("fail_nth 0"), hold=10)
        seen, _, hit = who.sh(f"cat {NTH}/seen {NTH}/hit").partition("\n")
        w.remark(f"{int(seen) // F.EVERY} of {seen} failed")
        t.ok(hit, f"{who.name}: of {seen} allocations none has failed")
        w.limit(row, Nerr=0)
    if c.rc("test -d /sys/kernel/debug/failslab")[0] == 0:
        row = w.fault("F27", "1 % of all allocations of the server fail",
                      lambda: s.sh(FAIL.format(1)), lambda: s.sh(FAIL.format(0)), hold=10)
        w.limit(row, Nerr=0)
    w.end("/dev/testdisk0")
