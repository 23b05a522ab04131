# SPDX-License-Identifier: GPL-2.0-only
"""The disk has fewer tags than the client has slots, and is slow.  What it cannot take yet
waits by itself: not in the completions of the connection, which are the neighbour's too, and
whose end is the end of the path."""
description = ("a disk that takes no more requests holds up neither its neighbours nor the path, "
               "while it works and when it is forced away")
long = True
links = 1
deadline = 240
import time
import vm

P = "/sys/module/ibnbd_testdisk/parameters"
COPY = "/sys/class/ibnbd-server/ctl/devices/testdisk0/copy"
DEPTH, TAGS = 256, 128
DELAY = 15      # longer than it takes to find a send queue dead


def fill(t, dev, delay):
    """@DEPTH writes, each of which takes that long."""
    c, s = t.client, t.server
    s.sh(f"echo {delay * 1000} > {P}/delay_ms")
    job = c.spawn(f"exec fio --name=f --filename={dev} --rw=randwrite --bs=4k --size=4m "
                  f"--io_size={DEPTH * 4}k --ioengine=libaio --iodepth={DEPTH} --direct=1 --thread "
                  "--numjobs=1 > /tmp/fio 2>&1")
    t.wait(lambda: int(c.sh(f"cat /sys/block/{dev[5:]}/inflight").split()[1]) > TAGS + 32, 30,
           "the disk has more than it can take")
    s.sh(f"echo 0 > {P}/delay_ms")      # for what comes from now on
    return job


def pulse_end(t, pulse, most):
    t.client.sh("pkill -TERM iopulse")
    t.eq(pulse.wait(20), 0, "iopulse on the neighbour: " + pulse.out())
    end = dict(word.split("=") for word in pulse.out().split() if "=" in word)
    t.eq(end["errs"], "0", "errors of the neighbour")
    t.below(int(end["longest_ms"]), most * 1000, "the neighbour's longest pause, ms")


def run(t):
    c, s = t.client, t.server
    s.sh("serve; modprobe ibnbd-testdisk nr_disks=1; ram_disks 1 16")
    near, dev = c.sh("map ram0"), c.sh("map testdisk0")
    attempts = lambda: c.sh("cat /sys/class/ibtrs-client/s1/paths/*/stats/reconnects").split()
    before = attempts()

    user = s.serves_user()      # it has no such file
    for copy in ["auto"] if user else ["auto", "always"]:
        t.log(f"--- it works, copy={copy}")
        if not user:
            s.sh(f"echo {copy} > {COPY}")
        pulse = c.spawn(f"iopulse {near} 2 500 rw 5000")
        job = fill(t, dev, DELAY)
        t.eq(job.wait(2 * DELAY + 30), 0, "fio: " + c.sh("cat /tmp/fio"))
        pulse_end(t, pulse, 3 * vm.SLOW)
        t.eq(attempts(), before, "the path was up all the time")

    t.log("--- it is forced away")
    delay = DELAY * (4 if t.image.debug else 2)
    pulse = c.spawn(f"iopulse {near} 2 500 rw 5000")
    job = fill(t, dev, delay)
    begin = time.monotonic()
    c.sh(f"unmap {dev} force", timeout=30)
    t.below(time.monotonic() - begin, 10 * vm.SLOW,
            "seconds of unmap force, whose only path has to be broken for it")
    t.ok(job.wait(30) is not None, "the task that wrote has ended")
    if not user:
        t.match(s.kernel_news(), "that the client aborted", "the path does not wait for the disk")
    t.wait(lambda: "the disk has not ended all its requests" in c.rc("map testdisk0")[1], 20,
           "the disk is not given to anybody before it has ended them")
    pulse_end(t, pulse, 10 * vm.SLOW)
    c.sh(f"wait_for {2 * delay + 20} eval 'map testdisk0 > /tmp/dev 2>&1'; "
         "dd if=/dev/zero of=$(tail -1 /tmp/dev) bs=64k count=4 oflag=direct status=none",
         timeout=2 * delay + 40)
