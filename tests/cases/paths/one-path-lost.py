# SPDX-License-Identifier: GPL-2.0-only
description = ("one of two paths is lost, by carrier, in silence, in one direction, or taken away: "
               "I/O goes on, nothing is lost or comes back")
links = 2
disk = 64
faults = True
deadline = 150
import faults as F

PATH = "/sys/class/ibtrs-server/s1/paths/ip:10.0.0.1@ip:10.0.0.2"


def run(t):
    c, s = t.client, t.server

    s.sh("serve; modprobe ibnbd-testdisk cache=0")
    dev = c.sh("map testdisk0")
    w = F.Work(t, c, dev)
    row = w.fault("F1", "one of two paths: carrier down", lambda: c.link(0, False),
                  lambda: c.link(0, True), down=[0])
    w.limit(row, Tdet=1, Tstall=2, Trec=5, Nerr=0)
    row = w.fault("F2", "one of two paths: silence", lambda: s.link(1, False),
                  lambda: s.link(1, True), down=[1])
    w.limit(row, Tdet=6, Tstall=7, Trec=5, Nerr=0)
    gone = []

    def deafen():       # and see when the server, too, has closed it
        s.sh(f"[ -e {PATH} ]; net_loss 0 100")
        gone.append(s.spawn(f"t=$(uptime_s); while [ -e {PATH} ]; do usleep 20000; done;"
                            "since $t"))
    row = w.fault("F3", "one of two paths: answers are lost", deafen,
                  lambda: s.sh("net_loss 0 0"), down=[0])
    w.limit(row, Tdet=6, Tstall=7, Trec=5, Nerr=0)
    t.eq(gone[0].wait(6), 0, "the server has closed the path: " + gone[0].out())
    t.below(float(gone[0].out()), F.within(6), "seconds until the server, too, had closed the path")
    w.remark(f"at the server {float(gone[0].out()):.2f}")
    row = w.fault("T24", "one of two paths: the server disconnects it",
                  lambda: s.sh(f"echo 1 > {PATH}/disconnect"), hold=1, down=[0])
    w.limit(row, Tdet=1, Tstall=2, Nerr=0)
    session = "/sys/class/ibtrs-client/s1"
    for i in 0, 1:
        path = f"ip:10.0.{i}.1@ip:10.0.{i}.2"
        row = w.fault("T24", f"path {i} of two is removed and added again",
                      lambda: c.sh(f"echo 1 > {session}/paths/{path}/remove_path"),
                      lambda: c.sh(f"echo {path} > {session}/add_path"), hold=2,
                      up=lambda: c.rc("paths_up s1 2")[0] == 0)
        w.limit(row, Tstall=2, Trec=3, Nerr=0)
    w.end("/dev/testdisk0")
