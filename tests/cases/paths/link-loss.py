# SPDX-License-Identifier: GPL-2.0-only
description = ("the only path is lost and comes back: "
               "I/O is held, nothing fails, the device resumes by itself")
crowd = True
deadline = 150


def run(t):
    c, s = t.client, t.server

    s.sh("serve; ram_disks 1 32")
    dev = c.sh("map ram0")
    verify = c.spawn(f"fio_verify {dev} 24m --bsrange=4k-8k --blockalign=4k "
                     "--rate_iops=400 > /tmp/out 2>&1 || "
                     "{ cat /tmp/out; exit 1; }")
    c.sh("sleep 2")
    for fault, heal in ((lambda: c.link(0, False), lambda: c.link(0, True)),
                        (lambda: s.link(0, False), lambda: s.link(0, True))):
        fault()
        took = t.wait(lambda: c.sh("paths_up s1 0 && echo down || true") == "down", 12,
                      "the client notices")
        t.log(f"noticed after {took:.1f} s")
        t.eq(c.sh(f"dev_attr {dev} state"), "closed", "state of the device")
        heal()
        t.wait(lambda: c.sh(f"dev_attr {dev} state") == "open", 10, "the device is open again")
    t.eq(verify.wait(90), 0, "fio with verification through both losses: " + verify.out()[-2000:])
    t.eq(c.sh("cut -d' ' -f2 /sys/class/ibtrs-client/s1/paths/*/stats/reconnects >/dev/null; "
              "cut -d' ' -f1 /sys/class/ibtrs-client/s1/paths/*/stats/reconnects"), "2",
         "reconnects")
