# SPDX-License-Identifier: GPL-2.0-only
description = ("a server that is busy for ever, stands still, or fails while one connects, "
               "holds up no command of the administrator")
long = True
deadline = 300

SERVER, CLIENT = "/sys/kernel/debug/ibtrs/server", "/sys/kernel/debug/ibtrs/client"


def run(t):
    c, s = t.client, t.server
    s.sh("serve; ram_disks 1 32")
    c.sh("modprobe ibnbd-client")

    def map_fails(arm, off, most):
        arm()
        took = float(c.sh("t=$(uptime_s); ! map ram0 >&2 || fail 'it was mapped'; since $t",
                          timeout=60).split()[-1])
        t.log(f"refused after {took:.1f} s")
        t.below(took, most, "seconds until map gave up")
        off()

    for point, rule, most in (("cm", "error=16", 26), ("cm", "error=104", 26),
                              ("mr", "error=12", 26)):
        t.log(f"server/{point}: {rule}")
        map_fails(lambda: s.sh(f"echo {rule} > {SERVER}/{point}"),
                  lambda: s.sh(f"echo off > {SERVER}/{point}"), most)
    for point, rule in ("cm", "error=5"), ("cm", "drop"), ("mr", "error=12"):
        t.log(f"client/{point}: {rule}")
        map_fails(lambda: c.sh(f"echo {rule} > {CLIENT}/{point}"),
                  lambda: c.sh(f"echo off > {CLIENT}/{point}"), 45)

    dev = c.sh("map ram0")
    attempts = lambda: [
        int(n) for n in c.sh("cat /sys/class/ibtrs-client/s1/paths/*/stats/reconnects").split()]
    # whoever prepares slowly, here or there, gets his time: a deadline is
    # for a server that says nothing
    for who, point, ms, most in ((c, f"{CLIENT}/mr", 3000, 0), (s, f"{SERVER}/mr", 3000, 2),
                                 (c, f"{CLIENT}/cm", 300, 0), (s, f"{SERVER}/cm", 300, 2)):
        good, bad = attempts()
        who.sh(f"echo delay={ms} > {point}")
        c.sh("echo 1 > $(echo /sys/class/ibtrs-client/s1/paths/*/reconnect) || true", timeout=20)
        took = t.wait(lambda: attempts()[0] > good, 30, f"the path is up again, with {point} slow")
        who.sh(f"echo off > {point}")
        t.log(f"{point}: {took:.1f} s")
        t.below(attempts()[1] - bad, most + 1, f"attempts that failed with {point} slow")
        c.sh(f"dd if={dev} of=/dev/null bs=64k count=4 iflag=direct status=none")

    # who waits for a server that is busy can be killed
    s.sh(f"echo error=16 > {SERVER}/cm")
    path = "/sys/class/ibtrs-client/s1/paths/ip:10.0.0.1@ip:10.0.0.2"
    for script in ("map ram0 sessname=s2",
                   "echo ip:10.0.0.1@ip:10.0.0.77 > /sys/class/ibtrs-client/s1/add_path",
                   f"echo 1 > {path}/disconnect; echo 1 > {path}/reconnect"):
        t.killed(c, script)
    t0 = float(c.sh("uptime_s"))
    t.below(float(c.sh("unmap $(dev_of ram0 s1); uptime_s")) - t0, 10, "unmap after all that")
    s.sh(f"echo off > {SERVER}/cm")
    check_silence(t)


def check_silence(t):
    """A server that stands still, before anybody has noticed: each command ends
    by itself, or can be killed."""
    c, s = t.client, t.server
    dev = c.sh("wait_for 20 eval 'map ram0 > /tmp/dev 2>&1'; tail -1 /tmp/dev", timeout=60)
    attr = f"/sys/block/{dev[5:]}/ibnbd"

    def ends(script):
        """It ends by itself, well or not; the silence begins with it."""
        s.pause()
        out = c.sh(f"t=$(uptime_s); ({script}) >&2 || true; since $t", timeout=60)
        s.resume()
        t.below(float(out.split()[-1]), 20, f"{script}: seconds until it ended")
        c.sh("wait_for 30 eval '[ ! -e /sys/class/ibtrs-client/s1 ] || paths_up s1 1'", timeout=60)

    ends(f"echo 0x8000 > {attr}/resize")
    t.eq(c.sh(f"blockdev --getsize64 {dev}"), str(16 << 20), "the size that was asked for")
    c.sh(f"wait_for 20 eval '[ \"$(cat {attr}/state)\" = open ]'")
    s.sh("echo 1 > /sys/class/ibnbd-server/ctl/devices/ram0/sessions/s1/force_close")
    t.wait(lambda: c.sh(f"cat {attr}/state_detail") == "fenced", 10, "fenced")
    remap = f"echo 1 > {attr}/remap_device"
    s.pause()
    t.killed(c, remap)
    s.resume()
    c.sh("wait_for 30 paths_up s1 1", timeout=60)
    ends(remap)
    c.sh(f"wait_for 20 eval '[ \"$(cat {attr}/state)\" = open ] || {remap}' 2> /dev/null; "
         f"dd if={dev} of=/dev/null bs=4k count=4 iflag=direct status=none")
    ends(f"unmap {dev}")
    c.sh("unmap $(wait_for 20 eval 'map ram0 2> /dev/null')", timeout=60)
