# SPDX-License-Identifier: GPL-2.0-only
description = "a server that is busy for ever, or fails at any point of a connection, holds up no command of the administrator"
deadline = 240

SERVER, CLIENT = "/sys/kernel/debug/ibtrs/server", "/sys/kernel/debug/ibtrs/client"


def run(t):
    c, s = t.client, t.server
    s.sh("serve; ram_disks 1 32")
    c.sh("modprobe ibnbd-client")

    def map_fails(arm, off, most):
        arm()
        took = float(c.sh("t=$(uptime_s); ! map ram0 >&2 || fail 'it was mapped'; echo \"$(uptime_s) $t\" | awk '{ print $1 - $2 }'", timeout=60).split()[-1])
        t.log(f"refused after {took:.1f} s")
        t.below(took, most, "seconds until map gave up")
        off()

    for point, rule, most in (("cm", "error=16", 26), ("cm", "error=104", 26), ("mr", "error=12", 26)):
        t.log(f"server/{point}: {rule}")
        map_fails(lambda: s.sh(f"echo {rule} > {SERVER}/{point}"), lambda: s.sh(f"echo off > {SERVER}/{point}"), most)
    for point, rule in ("cm", "error=5"), ("cm", "drop"), ("mr", "error=12"):
        t.log(f"client/{point}: {rule}")
        map_fails(lambda: c.sh(f"echo {rule} > {CLIENT}/{point}"), lambda: c.sh(f"echo off > {CLIENT}/{point}"), 45)

    dev = c.sh("map ram0")
    attempts = lambda: [int(n) for n in c.sh("cat /sys/class/ibtrs-client/s1/paths/*/stats/reconnects").split()]
    # whoever prepares slowly, here or there, gets his time: a deadline is for a server that says nothing
    for who, point, most in (c, f"{CLIENT}/mr", 0), (s, f"{SERVER}/mr", 2):
        good, bad = attempts()
        who.sh(f"echo delay=3000 > {point}")
        c.sh("echo 1 > $(echo /sys/class/ibtrs-client/s1/paths/*/reconnect) || true", timeout=20)
        took = t.wait(lambda: attempts()[0] > good, 30, f"the path is up again, with {point} slow")
        who.sh(f"echo off > {point}")
        t.log(f"{point}: {took:.1f} s")
        t.below(attempts()[1] - bad, most + 1, f"attempts that failed with {point} slow")
        c.sh(f"dd if={dev} of=/dev/null bs=64k count=4 iflag=direct status=none")

    # who waits for a server that is busy can be killed
    s.sh(f"echo error=16 > {SERVER}/cm")
    path = "/sys/class/ibtrs-client/s1/paths/ip:10.0.0.1@ip:10.0.0.2"
    for script in ("map ram0 sessname=s2", "echo ip:10.0.0.1@ip:10.0.0.77 > /sys/class/ibtrs-client/s1/add_path",
                   f"echo 1 > {path}/disconnect; echo 1 > {path}/reconnect"):
        t.killed(c, script)
    t0 = float(c.sh("uptime_s"))
    t.below(float(c.sh("unmap $(dev_of ram0 s1); uptime_s")) - t0, 10, "unmap after all that")
    s.sh(f"echo off > {SERVER}/cm")
    t.ok(dev, "mapped")
