# SPDX-License-Identifier: GPL-2.0-only
description = ("unmap force ends a device within 10 s in every state, its tasks can go, "
               "its neighbours go on; commands are bounded")
links = 2
disk = 64
faults = True
long = True
deadline = 240
import time
import faults as F

P = "/sys/module/ibnbd_testdisk/parameters"
LIMIT = 10


def run(t):
    c, s = t.client, t.server
    links = lambda m, up: [m.link(i, up) for i in (0, 1)]

    def force(state, dev, job):
        """Force it away under the I/O of `job`, which must end then."""
        before = c.sh(f"dev_attr {dev} state_detail").splitlines()[0]
        t0 = time.monotonic()
        c.sh(f"unmap {dev} force")
        took = time.monotonic() - t0
        t.eq(job.wait(5) in (0, 1, 2, 3), True, "the task that did I/O has ended")
        t.log(f"state {state} ({before}): gone after {took:.1f} s")
        t.below(took, LIMIT * F.vm.SLOW if F.vm.SLOW > 2 else LIMIT,
                f"seconds until a device in state {state} was gone")

    def io(dev, direct="--direct=1"):
        job = c.spawn(f"exec fio --name=f --filename={dev} --rw=randwrite --bs=4k --size=4m "
                      f"--ioengine=libaio --iodepth=8 {direct} --time_based "
                      "--runtime=100 > /dev/null 2>&1")
        time.sleep(1)
        return job

    s.sh("serve; modprobe ibnbd-testdisk nr_disks=2 cache=0; ram_disks 1 16; "
         "ln -sfn /dev/testdisk0 /dev/mine")

    dev = c.sh("map mine")
    force("open", dev, io(dev))

    dev = c.sh("map mine")
    job = io(dev, "--direct=0")
    links(c, False)
    t.wait(lambda: c.sh(f"dev_attr {dev} state") == "closed", 10, "the device holds its I/O")
    force("held, buffered writers", dev, job)
    t0 = time.monotonic()
    c.fails("timeout 30 bash -c '. /h/lib.sh; map mine'", "")
    t.below(time.monotonic() - t0, 20 * F.vm.SLOW, "seconds until mapping without a link failed")
    links(c, True)

    dev = c.sh("wait_for 15 eval 'map mine > /tmp/dev 2>&1'; tail -1 /tmp/dev")
    job = io(dev)
    links(s, False)
    force("silence that nobody has noticed yet", dev, job)
    links(s, True)

    dev = c.sh("wait_for 15 eval 'map mine hold=1 > /tmp/dev 2>&1'; tail -1 /tmp/dev")
    job = io(dev)
    links(c, False)
    t.wait(lambda: "failed" in c.sh(f"dev_attr {dev} state_detail"), 12, "the device gives up")
    force("failed", dev, job)
    links(c, True)

    dev = c.sh("wait_for 15 eval 'map mine > /tmp/dev 2>&1'; tail -1 /tmp/dev")
    job = io(dev)
    links(c, False)
    t.wait(lambda: c.sh(f"dev_attr {dev} state") == "closed", 10, "the device holds its I/O")
    # while it lives it has the old disk open
    s.sh("wait_for 20 test ! -e /sys/class/ibtrs-server/s1; ln -sfn /dev/ram0 /dev/mine")
    links(c, True)
    t.wait(lambda: "fenced" in c.sh(f"dev_attr {dev} state_detail"), 15,
           "the smaller disk is refused")
    force("fenced", dev, job)
    s.sh("ln -sfn /dev/testdisk0 /dev/mine")

    dev = c.sh("wait_for 15 eval 'map mine > /tmp/dev 2>&1'; tail -1 /tmp/dev")
    job = io(dev)
    s.pause()
    force("server stands still", dev, job)
    s.resume()

    # the disk does not answer: the paths are broken under its requests, the neighbour moves on
    near = c.sh("wait_for 15 eval 'map ram0 > /tmp/dev 2>&1'; tail -1 /tmp/dev")
    w = F.Work(t, c, near)
    dev = c.sh("map mine")
    s.sh(f"echo 40000 > {P}/delay_ms")
    force("disk does not answer", dev, io(dev))
    t.wait(w.flows, 15, "the neighbour's I/O flows")
    t0 = time.monotonic()
    dev = c.sh("map testdisk1")
    t.below(time.monotonic() - t0, 5,
            "seconds to map a disk while another one's requests hang in the server")
    c.sh(f"unmap {dev}")
    s.sh(f"echo 0 > {P}/delay_ms")
    w.end("/dev/ram0")
