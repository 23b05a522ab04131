# SPDX-License-Identifier: GPL-2.0-only
"""The scene of the cases integrity/ghost-write and integrity/chunk-reuse: a write that is still
being executed on a path that was lost.

One slot (the server grants two, and keeps one for itself), two paths, a disk that holds a write for
DELAY seconds and takes its data only then.  The write is sent by the first path, that link goes
down, the client repeats it by the second one, and then writes again.  With `unsafe` the server does
without a protection, and the checker must find what that does.
"""
import shutil, time
import faults

P = "/sys/module/ibnbd_testdisk/parameters"
TRACE = "/sys/kernel/tracing"
SWITCH = "echo 1 > $(find /sys/kernel/debug/ibtrs* -name {} | grep server)"
DELAY = 9


def held(t, dev, delay, write):
    """write() starts a write, which the disk has, and executes after that many seconds: the job,
    and the time."""
    t.server.sh(f"echo {int(1000 * delay)} > {P}/delay_ms")
    job, t0 = write(), time.monotonic()
    t.wait(lambda: t.client.sh(f"cat /sys/block/{dev[5:]}/inflight").split()[1] != "0", 15,
           "the write is out")
    time.sleep(1)
    t.server.sh(f"echo 0 > {P}/delay_ms")
    return job, t0


class Scene:
    def __init__(self, t, unsafe="", scheduler="none", depth=2, disks=1, words="", serve="",
                 server="ibnbd"):
        self.t, self.c, self.s = t, t.client, t.server
        self.rows, self.writer, self.logs, self.crowds = [], 1, [], []
        self.saved = t.logdir / f"late{time.monotonic_ns()}"
        self.saved.mkdir()
        self.server = server
        self.s.sh(f"FAMILY={server}; serve sess_queue_depth={depth} {serve}; "
                  f"modprobe ibnbd-testdisk nr_disks={disks} cache=0" +
                  "".join("; " + SWITCH.format(word) for word in unsafe.split()))
        self.dev = self.c.sh(f"map testdisk0 {words}")
        self.c.sh(f"echo {scheduler} > /sys/block/{self.dev[5:]}/queue/scheduler")

    def traced(self, *events):
        """Until `trace()` the server says what it answers and executes. ibnbd-serverd says none."""
        self.events = [] if self.s.serves_user() else [f"{TRACE}/events/ibtrs_server/{e}/enable"
                                                       for e in events]
        self.s.sh(f"echo 0 > {TRACE}/trace" + "".join(f"; echo 1 > {e}" for e in self.events))

    def trace(self):
        """The lines; None: the server says none."""
        lines = self.s.sh(f"cat {TRACE}/trace" + "".join(f"; echo 0 > {e}" for e in self.events))
        return lines.splitlines() if self.events else None

    def path(self, i, word):
        self.c.sh(f"echo 1 > /sys/class/ibtrs-client/s1/paths/ip:10.0.{i}.1@ip:10.0.{i}.2/{word}")

    def write(self, seq, block, cpu=0):
        """A write in the background; the job."""
        return self.c.spawn(f"exec taskset {1 << cpu} stamp one {self.dev} /h/one {self.writer} "
                            f"{seq} {block} 1")

    def strand(self, block, delay=DELAY, crowd=None):
        """A write to `block` that is executed later than its repetition could be:
        the job, and the time.

        crowd: a disk with more writers than there are slots;
        they come while no path is up, and take what is free."""
        self.path(1, "disconnect")
        job, t0 = held(self.t, self.dev, delay, lambda: self.write(1, block))
        if crowd:
            self.c.link(0, False)
            self.t.wait(lambda: self.c.sh(f"dev_attr {self.dev} state") == "closed", 5,
                        "all I/O is held")
            self.crowd(crowd)
            self.path(1, "reconnect")
        else:
            self.path(1, "reconnect")
            self.c.link(0, False)
        return job, t0

    def crowd(self, dev):
        job = self.c.spawn("p=; for i in 1 2 3 4 5 6 7 8; do "
                           f"dd if=/dev/zero of={dev} seek=$i bs=4k count=1 oflag=direct "
                           "status=none & p=\"$p $!\"; done; wait $p")
        self.t.wait(lambda: self.c.sh("ps -o stat,args | grep -c '^D.* seek ' || true") == "8", 15,
                    "the crowd waits")
        self.crowds.append((job, dev))

    def end(self, blocks, must_fail):
        """Look at the disk when the stranded copy has been executed."""
        self.c.link(0, True)
        for job, dev in self.crowds:
            self.t.eq(job.wait(60), 0, "the crowd: " + job.out())
            self.c.sh(f"unmap {dev}")
        self.c.sh(f"unmap {self.dev}")
        for p in self.c.vm.share.glob("one.*"):
            shutil.copy(p, self.saved)
            p.unlink()
        self.logs = [self.saved / "one"]
        verdict = faults.prove(self.t, self.s, "/dev/testdisk0", [self], blocks, must_fail)
        self.s.sh(f"unload {self.server}_server {self.server.replace('nbd', 'trs')}_server "
                  "ibnbd_testdisk")
        return verdict
