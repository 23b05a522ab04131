# SPDX-License-Identifier: GPL-2.0-only
"""Machines have far more possible CPUs than CPUs: sockets for memory to be added, SMT that is off.
Here two of 64 are there when the session is opened, and their numbers have a gap."""
description = "a session has connections for the CPUs that are online; one that comes later shares"
fresh = True
deadline = 120
smp = 3
append = "possible_cpus=64"

CPU = "/sys/devices/system/cpu"
STATE = "dev_attr {} state_detail"


def run(t):
    c, s = t.client, t.server
    conns = lambda m: int(m.sh("rdma res show qp | grep -c 'type RC'"))
    cpu = lambda n, on: c.sh(f"echo {on} > {CPU}/cpu{n}/online")
    memory = lambda: {m.name: int(m.sh("memory_kib")) for m in (c, s)}

    cpu(1, 0)
    t.eq(c.sh(f"cat {CPU}/online {CPU}/possible").split(), ["0,2", "0-63"], "CPUs")
    s.sh("serve; ram_disks 1 64")
    c.sh("modprobe ibnbd-client")
    before = memory()
    dev = c.sh("map ram0 nr_poll_queues=-1")
    t.eq(conns(c), 5, "queue pairs: service, two CPUs, two that poll")
    t.eq(conns(s), 5, "and on the server")
    took = {m: (before[m] - kib) // 1024 for m, kib in memory().items()}
    t.log(f"MiB that a session takes: {took}")
    for m, most in (("client", 60), ("server", 100)):
        t.below(took[m], most, f"MiB on the {m}")

    def io(*cpus):
        """All slots are in use at once, from each CPU."""
        for n in cpus:
            c.sh(f"fio --name=x --filename={dev} --direct=1 --ioengine=libaio --iodepth=600 "
                 f"--rw=randrw --bs=4k --size=3m --cpus_allowed={n} > /dev/null", timeout=60)
    io(0, 2)
    cpu(1, 1)
    io(1)
    cpu(2, 0)
    c.sh("for p in /sys/class/ibtrs-client/s1/paths/*; do echo 1 > $p/disconnect; "
         "echo 1 > $p/reconnect; done")
    t.wait(lambda: c.sh(STATE.format(dev)) == "open", 20, "it is open again")
    t.eq(conns(c), 5, "a session keeps its number of connections")
    io(0, 1)
    cpu(2, 1)
    c.sh(f"unmap {dev}")
    dev = c.sh("map ram0")
    t.eq(conns(c), 4, "the next session: service, three CPUs")
    io(0, 1, 2)
