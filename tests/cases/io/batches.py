# SPDX-License-Identifier: GPL-2.0-only
"""
What an application submits in one call comes to the driver as one list (queue_rqs) and is
posted as one chain; kernels before 6.7 hand it over one by one, because our tags are shared,
and the same must hold for them.
"""
description = ("requests submitted sixteen at a time: nothing is lost when some find no room, "
               "a path breaks between them, or the link goes")
crowd = True
faults = True
deadline = 150

SUBMIT = "/sys/kernel/debug/ibtrs/client/submit"
TRACE = "/sys/kernel/tracing"
BATCH = "--iodepth=32 --iodepth_batch_submit=16 --iodepth_batch_complete_min=16"


def run(t):
    c, s = t.client, t.server
    s.sh("serve; ram_disks 1 32")
    dev = c.sh("map ram0")
    c.sh(f"mount -t tracefs none {TRACE} 2>/dev/null || true")
    traces = c.sh(f"[ -e {TRACE}/set_ftrace_filter ] && echo yes || echo no") == "yes"
    if traces:
        c.sh(f"echo ibtrs_clt_unplug > {TRACE}/set_ftrace_filter; "
             f"echo function > {TRACE}/current_tracer")
    c.sh(f"fio_verify {dev} 8m --bs=4k {BATCH}", timeout=60)
    if traces:      # debug kernels are built without the function tracer
        chains = int(c.sh(f"grep -c ibtrs_clt_unplug {TRACE}/trace || true"))
        c.sh(f"echo nop > {TRACE}/current_tracer")
        kernel = tuple(map(int, c.sh("uname -r").split("-")[0].split("+")[0].split(".")[:2]))
        t.log(f"{chains} lists handed over")
        t.eq(chains > 0, kernel >= (6, 7), "lists are handed over where the kernel does that")

    for what, arm in (("every seventh request finds no room", "error=11 every=7"),
                      ("a path breaks within a batch", "error=5 every=200 times=3")):
        c.sh(f"echo {arm} > {SUBMIT}")
        c.sh(f"fio_verify {dev} 8m --bsrange=4k-64k --blockalign=4k {BATCH}", timeout=90)
        hits = int(c.sh(f"sed -n 's/.*hits=\\([0-9]*\\).*/\\1/p' {SUBMIT}"))
        c.sh(f"echo off > {SUBMIT}")
        t.log(f"{what}: {hits} times")
        t.ok(hits, f"{what}: it never did")

    verify = c.spawn(f"fio_verify {dev} 24m --bs=4k --rate_iops=800 {BATCH} > /tmp/out 2>&1 || "
                     "{ cat /tmp/out; exit 1; }")
    c.sh("sleep 2")
    c.link(0, False)
    t.wait(lambda: c.sh("paths_up s1 0 && echo down || true") == "down", 12, "the client notices")
    c.link(0, True)
    t.eq(verify.wait(90), 0,
         "fio with verification, its link gone for a while: " + verify.out()[-2000:])
    t.eq(c.sh(f"dev_attr {dev} state"), "open", "state of the device")
