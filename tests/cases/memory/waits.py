# SPDX-License-Identifier: GPL-2.0-only
"""Memory may be reclaimed by writing to the very disk that waits for its path: what submits a
request or brings a path back must not wait for that (law L22). A probe looks at each allocation
on behalf of our modules (tests/failnth), long before there is a lack of memory; memory/swap
shows that it goes well in one."""
description = "requests, lost paths and their return allocate nothing that could wait for I/O"
crowd = True
links = 2
deadline = 180
needs = ["ibnbd-failnth"]

P = "/sys/module/ibnbd_failnth/parameters"


def run(t):
    c, s = t.client, t.server
    s.sh("serve; modprobe ibnbd-testdisk")
    dev = c.sh("map testdisk0")
    # a map command may wait: the probe sees it do so
    c.sh("fail_nth 1 ibtrs_client ibnbd_client ibtrs_core noio=1 depth=14 first=0 again=0; "
         "map testdisk1 2> /dev/null || true")
    t.match(c.sh(f"cat {P}/hit; fail_nth 0"), r"\[ib(trs|nbd)_",
            "an allocation of a map command that may wait")

    c.sh("fail_nth 1 ibtrs_client ibnbd_client ibtrs_core noio=1 depth=14 first=0 again=0")
    io = c.spawn(f"fio_verify {dev} 4m --bsrange=4k-64k --iodepth=16 --time_based "
                 "--runtime=25 --output=/dev/null")
    c.sh("sleep 2")
    for lost in ([0], [0, 1], [1]):
        for link in lost:
            c.link(link, False)
        t.wait(lambda: c.sh(f"paths_up s1 {2 - len(lost)} && echo yes || true") == "yes", 20,
               f"{lost} are lost")
        c.sh("sleep 2")
        for link in lost:
            c.link(link, True)
        t.wait(lambda: c.sh("paths_up s1 2 && echo yes || true") == "yes", 20, "both paths again")
    t.eq(io.wait(60), 0, "verified I/O: " + io.out()[-1000:])
    hit = c.sh(f"cat {P}/hit")
    seen = int(c.sh(f"cat {P}/seen; fail_nth 0"))
    t.eq(hit, "", "who asked for memory that might wait for I/O")
    t.ok(seen > 100, f"allocations on behalf of our modules: {seen}")
