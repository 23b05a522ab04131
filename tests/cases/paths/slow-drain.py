# SPDX-License-Identifier: GPL-2.0-only
description = ("an RDMA device that is slow to give back the work of one path, there or here, "
               "holds up nothing but that path")
long = True
links = 2
deadline = 240
import vm

LATE = 13
SOON = min(LATE - 4, 5 * vm.SLOW)     # what waits for it takes longer
PATH = "/sys/class/ibtrs-client/s1/paths/ip:10.0.{0}.1@ip:10.0.{0}.2"
POINT = "/sys/kernel/debug/ibtrs/{}/drain"


def took(guest, script, timeout=60):
    """The seconds that a script takes there."""
    return float(guest.sh(f"t=$(uptime_s); {script}\nsince $t", timeout=timeout).split()[-1])


def run(t):
    c, s = t.client, t.server
    # small sessions come up quickly, on debug kernels too
    s.sh("serve sess_queue_depth=32; ram_disks 1 32")
    dev = c.sh("map ram0")
    c.sh("paths_up s1 2")
    pulse = c.spawn(f"iopulse {dev} 2 500 rw")
    c.sh("sleep 1")
    # reconnect gives up waiting, the path does not
    other = (f"echo 1 > {PATH.format(1)}/disconnect; echo 1 > {PATH.format(1)}/reconnect || true; "
             f"wait_for 20 eval '[ \"$(cat {PATH.format(1)}/state)\" = connected ]'")

    t.log("--- the server's")
    s.sh(f"echo delay={LATE * 1000} times=1 path=10.0.0. > {POINT.format('server')}")
    c.sh(f"echo 1 > {PATH.format(0)}/disconnect")
    back = c.spawn(f"echo 1 > {PATH.format(0)}/reconnect || true; "
                   f"wait_for {LATE + 20} paths_up s1 2")
    # what ends at the other path is not held up, nor what begins there; the
    # session has none for that moment
    t.below(took(c, other), SOON, "seconds that the other path needed")
    t.eq(back.wait(LATE + 40), 0, "both paths: " + back.out())
    t.ok(" hits=1" in s.sh(f"cat {POINT.format('server')}"), "a drain of the server was late")
    t.match(s.kernel_news(), "has not given back the work requests",
            "the server's log says it while it lasts")

    t.log("--- the client's")
    late = lambda: " hits=1" in c.sh(f"cat {POINT.format('client')}")
    c.sh(f"echo delay={LATE * 1000} times=1 path=10.0.0. > {POINT.format('client')}")
    job = c.spawn(f"echo 1 > {PATH.format(0)}/disconnect")
    t.wait(late, 10, "a drain of the client is late")
    t.below(took(c, other), SOON, "seconds that the other path needed")
    t.eq(job.wait(LATE + 20), 0, "disconnect: " + job.out())
    t.match(c.kernel_news(), "has not given back the work requests",
            "the client's log says it while it lasts")
    c.sh(f"echo 1 > {PATH.format(0)}/reconnect; wait_for 20 paths_up s1 2; "
         "sleep 1; pkill -TERM iopulse")
    t.eq(pulse.wait(20), 0, "iopulse: " + pulse.out())
    end = dict(word.split("=") for word in pulse.out().split() if "=" in word)
    t.eq(end["errs"], "0", "I/O errors")
    t.below(int(end["longest_ms"]), 1000 * (LATE - 4), "longest pause, ms")

    t.log("--- the client's, and the disk is unmapped")
    c.sh(f"echo delay={LATE * 1000} times=1 > {POINT.format('client')}")
    t.below(took(c, f"unmap {dev}"), SOON, "seconds that unmap needed")
    # the same session again: that one has to wait, and can be killed
    t.killed(c, "map ram0")
    t.ok(c.sh(f"wait_for {LATE + 20} eval '[ ! -e /sys/class/ibtrs-client/s1 ]'; map ram0",
              timeout=LATE + 60), "mapped again")
    for word in "disconnect", "remove_path":
        t.log(f"--- {word} is killed")
        c.sh(f"wait_for {LATE + 20} paths_up s1 2", timeout=LATE + 60)
        c.sh(f"echo delay={LATE * 1000} times=1 path=10.0.0. > {POINT.format('client')}")
        t.killed(c, f"echo 1 > {PATH.format(0)}/{word}", late)
        rc, out = c.rc(f"echo 1 > {PATH.format(0)}/reconnect")
        t.ok(rc != 0 and "busy" in out, f"reconnect says that it is busy: {rc} {out}")
        c.sh(f"wait_for {LATE + 20} eval 'echo 1 2> /dev/null > {PATH.format(0)}/reconnect'",
             timeout=LATE + 60)

    c.sh(f"wait_for 20 paths_up s1 2; echo 1 > {PATH.format(1)}/remove_path")
    for script, session, path, tries, gone in (
            ("echo ip:10.0.1.1@ip:10.0.1.2 > /sys/class/ibtrs-client/s1/add_path",
             "s1", "10.0.1.", 1, PATH.format(1)),
            ("map ram0 sessname=s2 access_mode=ro",
             "s2", "10.0.", 2, "/sys/class/ibtrs-client/s2")):
        t.log(f"--- '{script}' fails, and is killed while its own attempt drains")
        c.sh(f"echo error=12 times={tries} session={session} path={path} "
             "> /sys/kernel/debug/ibtrs/client/mr; "
             f"echo delay={LATE * 1000} times=1 session={session} path={path} "
             f"> {POINT.format('client')}")
        t.killed(c, script, late)
        # nobody waits for what is left but who wants the same name, and he gets it
        t.below(took(c, "dd if=/dev/$(dev_of ram0 s1) of=/dev/null bs=4k count=4 iflag=direct "
                     "status=none"), SOON, "seconds that a reader needed")
        c.sh(f"wait_for {LATE + 20} test ! -e '{gone}'; {script}", timeout=LATE + 60)
    c.sh("paths_up s1 2")
