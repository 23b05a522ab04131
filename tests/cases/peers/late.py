# SPDX-License-Identifier: GPL-2.0-only
"""A client without tokens: its repetition runs on our server when the first copy has ended, and
no earlier.  A server that cannot confirm that it executes nothing more: what our client has
given up keeps the device from writing until each path that it used is back, behind whatever
that path executed (law L8).  Our ends are the kernel's and those in user space."""
description = ("towards the kernel's rnbd, either end, and between ends in user space: "
               "a write that is executed late on a lost path does not land over what came after it")
long = True
deadline = 900
links = 2
import math, shutil, time
import faults as F
import interop
import late
needs = interop.NEEDS
mem = interop.MEM
programs = interop.PROGRAMS

BLOCK, OTHERS, DELAY = 77, range(100, 116), 20
PATHS = "/sys/class/rtrs-client/s1/paths"


class Writes:
    """What faults.prove() wants of a writer."""
    def __init__(self, t, name):
        self.saved, self.rows, self.logs = t.logdir / name, [], [t.logdir / name / "one"]
        self.saved.mkdir()


def scene(t, server, unsafe=False):
    c, s = t.client, t.server
    pair = interop.Pair(t, interop.KERNEL, server)
    delay = DELAY * max(1, F.vm.SLOW)
    pair.serve()
    s.sh("modprobe ibnbd-testdisk size_mb=16 nr_disks=2 cache=0" +
         ("; " + late.SWITCH.format("no_fence") if unsafe else ""))
    dev = pair.map("testdisk0")
    path = [c.sh(f"ls {PATHS} | grep '10.0.{i}.2$'") for i in (0, 1)]
    write = lambda seq: c.spawn(f"exec stamp one {dev} /h/one 1 {seq} {BLOCK} 1")
    c.sh(f"{pair.client} wait_for 10 paths_up s1 2; echo 1 > {PATHS}/{path[1]}/disconnect")
    first, t0 = late.held(t, dev, delay, lambda: write(1))
    c.sh(f"wait_for 10 eval 'echo 1 > {PATHS}/{path[1]}/reconnect'; "
         f"{pair.client} wait_for 10 paths_up s1 2", timeout=60)
    c.sh(f"echo 1 > {PATHS}/{path[0]}/disconnect")
    if not unsafe:
        # memory that is new since then: were it that of the lost path, this is what were written
        other = pair.map("testdisk1 sessname=s2")
        c.sh(f"dd if=/dev/urandom of={other} bs=4k count=512 oflag=direct status=none")
        pair.unmap(other)
        t.below(time.monotonic() - t0, delay - 1, "seconds: the late copy is still to come")
    t.eq(first.wait(int(DELAY + 40)), 0, f"the first write: {first.out()}")
    took = time.monotonic() - t0
    t.log(f"the first write took {took:.1f} s of {delay:.0f}")
    t.eq(write(2).wait(30), 0, "the second write")
    if unsafe:
        t.below(time.monotonic() - t0, delay - 1,
                "seconds until both were written, without a fence")
    else:
        t.ok(took > delay - 1, f"its repetition waited for the first copy: {took:.1f} s")
    time.sleep(max(0, t0 + delay + 2 - time.monotonic()))
    proven(t, pair, dev, unsafe)


def proven(t, pair, dev, unsafe=False):
    c, s = t.client, t.server
    pair.unmap(dev)
    work = Writes(t, f"late{time.monotonic_ns()}")
    for p in c.vm.share.glob("one.*"):
        shutil.copy(p, work.saved)
        p.unlink()
    verdict = F.prove(t, s, "/dev/testdisk0", [work], 128, must_fail=unsafe)
    t.eq((verdict.lost, verdict.ghost, verdict.wrong), (0, int(unsafe), 0),
         "lost, ghosts and wrong blocks")
    pair.stop()
    s.sh("unload ibnbd_testdisk")


def user_client(t, server):
    """libibnbd, whose path is lost while the disk has a write. Our servers know by its token when
    the repetition, on the other path, may be executed. For the kernel's server it is given up, and
    nothing newer is written before its path is back."""
    c, s = t.client, t.server
    pair, fences = interop.UserClient(t, server), server != interop.KERNEL
    delay = DELAY * math.ceil(F.vm.SLOW)
    pair.serve()
    s.sh("modprobe ibnbd-testdisk size_mb=16 cache=0")
    dev = pair.map(f"testdisk0 hold={100 if fences else 2}")
    write = lambda seq: c.spawn(f"exec stamp one {dev} /h/one 1 {seq} {BLOCK} 1")
    c.link(1, False)
    time.sleep(8 * F.vm.SLOW)       # it has found out
    first, t0 = late.held(t, dev, delay, lambda: write(1))
    c.link(0, False)
    if fences:
        t.wait(lambda: not pair.paths(), 30, "the server has noticed")
        c.link(1, True)
        # over a path whose memory is new since then
        c.sh("".join(f"stamp one {dev} /h/one 1 {10 + n} {block} 1; "
                     for n, block in enumerate(OTHERS)), timeout=60)
        t.below(time.monotonic() - t0, delay - 1, "seconds: the late copy is still to come")
        t.eq(first.wait(delay + 40), 0, f"the first write: {first.out()}")
        took = time.monotonic() - t0
        t.ok(took > delay - 1, f"its repetition waited for the first copy: {took:.1f} s")
        t.eq(write(2).wait(30), 0, "the second write")
        c.link(0, True)
    else:
        t.ok(first.wait(20) != 0, "the write has failed")
        c.link(1, True)
        seq, rc, most = 1, 1, 2 * delay + 60
        while rc and time.monotonic() - t0 < most:
            seq += 1
            rc = write(seq).wait(40)
            if rc and time.monotonic() - t0 > delay / 2:
                c.link(0, True)
            time.sleep(0.5)
        took = time.monotonic() - t0
        t.ok(not rc, f"the disk takes no writes, not within {most} s")
        t.ok(took > delay - 1, f"not before the late copy was executed: {took:.1f} s of {delay}")
    time.sleep(max(0, t0 + delay + 2 - time.monotonic()))
    proven(t, pair, dev)


def given_up(t):
    """hold= is over while the disk of the kernel's server still has a write."""
    c = t.client
    delay = DELAY * math.ceil(F.vm.SLOW)
    l = late.Scene(t, depth=32, words="hold=2", server=interop.KERNEL)
    first, t0 = l.strand(BLOCK, delay)
    c.link(1, False)
    t.ok(first.wait(20) != 0, "the write has failed")
    c.link(1, True)
    t.wait(lambda: c.sh("paths_up s1 1 && echo yes || true") == "yes", 30,
           "the path that did not have it is back")
    t.below(time.monotonic() - t0, delay - 6, "seconds until then: the disk still has the write")
    time.sleep(1)
    t.ok(l.write(2, BLOCK, cpu=1).wait(20) != 0,
         f"no writes before the other path is back; {c.sh(f'dev_attr {l.dev} state_detail')}")
    t.below(time.monotonic() - t0, delay - 1,
            "seconds until that was refused: the disk still has the write")
    c.link(0, True)
    seq, rc, most = 2, 1, 2 * delay + 40
    while rc and time.monotonic() - t0 < most:
        seq += 1
        rc = l.write(seq, BLOCK, cpu=1).wait(40)
        time.sleep(0.5)
    took = time.monotonic() - t0
    t.ok(not rc, f"the device takes no writes, not within {most} s; "
                 f"{c.sh(f'dev_attr {l.dev} state_detail')}")
    t.ok(took > delay - 1, f"not before the late copy was executed: {took:.1f} s of {delay}")
    time.sleep(max(0, t0 + delay + 2 - time.monotonic()))
    l.end(128, must_fail=False)


def run(t):
    interop.with_kernel_server(t, lambda: given_up(t))
    interop.with_kernel_client(t, lambda: scene(t, interop.OURS, unsafe=True))
    for server in interop.our_servers(t):
        interop.with_kernel_client(t, lambda: scene(t, server))
    if interop.has_user(t):
        interop.with_kernel_server(t, lambda: user_client(t, interop.KERNEL))
        for server in interop.our_servers(t):
            user_client(t, server)
