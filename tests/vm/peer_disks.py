# SPDX-License-Identifier: GPL-2.0-only
"""Other drivers under the faults of the cases server/client-dies, server/disk-trouble and
integrity/wrong-server: a client dies or sleeps while another one wants the disk, the disk behind
the server is in trouble, or it is another one.  Three machines; else as in peers.py: whatever a
peer makes of it is a row.

Where our client says why, or refuses, a peer may have no word for it:
what counts is then what reached which disk."""
import time
import case, faults as F, peers as P, vm

WRITE = "timeout 40 dd if=/dev/zero of={} bs=4k count=1 oflag=direct status=none"
READ = "timeout 40 dd if={} of=/dev/null bs=4k count=1 iflag=direct status=none"
TESTDISK = "modprobe ibnbd-testdisk cache=0; wait_for 5 test -b /dev/testdisk0"
SET = "/sys/module/ibnbd_testdisk/parameters"
AREA = dict(blocks=256, threads=4, think_us=3000)       # one that each writer comes back to
WRITTEN = "dd if={} bs=1M count=1 iflag=direct status=none | tr -d '\\0' | wc -c"
FORGETS = P.DISK + ("modprobe ibnbd-testdisk backing=/dev/vda size_mb=48; "
                    "wait_for 5 test -b /dev/testdisk0; ")      # what was not flushed
TAKE = 90       # seconds until a server must have found its client dead


# number, what (the words of our cases), who does it, what he is told
def faults():
    return (("F13", "client loses its power", dies),
            ("F14", "client asleep, another one writes on", sleeps, True),
            ("F14", "client asleep, another one wrote and went", sleeps, False),
            ("F16", "disk answers with errors", neighbour, "testdisk0", TESTDISK, codes),
            ("F17", "disk needs 9 s for a write", neighbour, "testdisk0", TESTDISK, slow),
            ("F18", "disk is taken out", neighbour, "sda",
             "modprobe sd_mod; modprobe scsi_debug dev_size_mb=16 delay=0; "
             "wait_for 10 test -b /dev/sda", remove),
            ("F19", "disk grows", neighbour, "loop0",
             "modprobe loop; truncate -s 16M /tmp/f; losetup /dev/loop0 /tmp/f", grow),
            ("F20", "another disk behind the name", neighbour, "mine",
             "ram_disks 2 64; ln -sfn ram0 /dev/mine", exchange),
            ("F24", "another server at the same address", moved),
            ("F29", "server loses its power, its disk forgets", forgets))


def run(t, peer):
    for turn, (number, what, act, *words) in enumerate(faults()):
        P.measure(t, peer, turn, number, what,
                  lambda broken, why: act(t, peer, broken, why, number, what, *words))
    for g in t.guests:
        g.kill()


def work(t, peer, guest, dev, **more):
    return F.Work(t, guest, dev, stack=peer.stack, states=peer.states, lenient=True, **more)


def take(t, peer, guest, host):
    """Map the disk as soon as the server gives it; the device and the seconds that took."""
    begin = time.monotonic()
    while True:
        try:
            return peer.map(guest, host=host)[0], time.monotonic() - begin
        except case.Failed:
            if time.monotonic() - begin > TAKE * vm.SLOW:
                raise
        time.sleep(0.5)


def stall(w, begin):
    return w.stall(begin, time.monotonic(), w.read_logs())


def row(peer, number, what, took, w, stalled, why):
    return dict(fault=number, what=what, stack=peer.stack, Tdet=took, Tstall=stalled,
                Nerr=len(w.read_logs().failed),
                note="; ".join(["Tdet: until the other one had the disk", *why]))


# ---- who has the disk ----------------------------------------------------------------------------

def dies(t, peer, broken, why, number, what):
    c, c2 = t.client, t.client2
    P.serve(t, peer)
    first = work(t, peer, c, peer.map(c)[0], writer=1, **AREA)
    time.sleep(3)
    first.save()
    broken.append(True)
    c.kill()
    first.watch.end()
    first.save()
    dev, took = take(t, peer, c2, "s2")
    second = work(t, peer, c2, dev, writer=2, **AREA)
    begin = time.monotonic()
    time.sleep(2)
    first.rows.append(row(peer, number, what, took, second, stall(second, begin), why))
    P.finish(t, first, second)


def sleeps(t, peer, broken, why, number, what, stays):
    """The first client is asleep, the second one gets the disk and still has it, or not,
    when the first one wakes up."""
    c, c2 = t.client, t.client2
    P.serve(t, peer)
    first = work(t, peer, c, peer.map(c)[0], writer=1, **AREA)
    time.sleep(2)
    broken.append(True)
    c.pause()
    dev, took = take(t, peer, c2, "s2")
    second = work(t, peer, c2, dev, writer=2, **AREA)
    begin = time.monotonic()
    time.sleep(4)
    first.rows.append(row(peer, number, what, took, second, stall(second, begin), why))
    if not stays:
        second.stop()
        c2.kill()
    c.resume()
    before = len(first.read_logs().acked)
    time.sleep(15)
    logs = first.read_logs()
    first.remark(f"{len(logs.acked) - before} writes of the first one were acknowledged after its "
                 f"sleep, {len(logs.failed)} failed")
    P.finish(t, first, second)


# ---- the disk is in trouble ----------------------------------------------------------------------

def neighbour(t, peer, broken, why, number, what, disk, make, act):
    """stamp on /dev/vda; act(t, peer, device) on another disk,
    which returns what is to be remarked."""
    c, said = t.client, []
    t.server.sh(make)
    P.serve(t, peer, ("vda", disk))
    near, dev = peer.map(c, ("vda", disk))
    w = work(t, peer, c, near)
    begin = time.monotonic()
    got = w.fault(number, what, lambda: (broken.append(True), said.append(act(t, peer, dev))),
                  hold=0.5, recover=90)
    lost = sum(h >= begin and not w.up(text) for h, _, text in w.watch.changes)
    P.notes(got, *said, f"{lost} changes of paths" if lost and act is not exchange else "",
            got["note"], *why)
    P.finish(t, w)


def codes(t, peer, dev):
    c, s, right = t.client, t.server, 0
    for errno, text in F.CODES:
        arrived = 0
        for kind, script in ("write", WRITE.format(dev + " seek=4000")), ("read", READ.format(dev)):
            s.sh(f"echo {errno} > {SET}/fail_errno; echo {kind} > {SET}/fail")
            rc, out = P.attempt(c, script, 15)
            if rc is None:      # it is tried again and again
                s.sh(f"echo none > {SET}/fail")
            arrived += bool(rc) and text in out
        right += arrived == 2
    s.sh(f"echo none > {SET}/fail")
    return f"{right} of {len(F.CODES)} error codes arrive, of writes and of reads"


def slow(t, peer, dev):
    t.server.sh(f"echo 9000 > {SET}/delay_ms")
    rc, out = P.attempt(t.client, f"t=$(uptime_s); {WRITE.format(dev + ' seek=4000')}; since $t",
                        50)
    t.server.sh(f"echo 0 > {SET}/delay_ms")
    return (f"the write took {float(out):.0f} s" if rc == 0
            else "the write fails" if rc else "the write hangs")


def remove(t, peer, dev):
    t.server.sh("echo 1 > /sys/block/sda/device/delete")
    rc, _ = P.attempt(t.client, WRITE.format(dev), 50)
    return "a write to it succeeds" if rc == 0 else None if rc else "a write to it hangs"


def grow(t, peer, dev):
    job = t.client.spawn(f"until [ $(blockdev --getsize64 {dev}) = {24 << 20} ]; "
                         "do usleep 20000; done")
    t.server.sh("truncate -s 24M /tmp/f; losetup -c /dev/loop0")
    try:
        return "the client knows" if job.wait(10) == 0 else "the client cannot tell"
    except vm.JobTimeout:
        job.kill()
        return "the client does not see it within 10 s"


def exchange(t, peer, dev):
    """While no path is up, and the server has let go of the old disk."""
    c, s = t.client, t.server
    [c.link(i, False) for i in (0, 1)]
    time.sleep(60)
    s.sh("ln -sfn ram1 /dev/mine")
    peer.exchange(s, "mine", 2)
    [c.link(i, True) for i in (0, 1)]
    end, up = time.monotonic() + 60 * vm.SLOW, lambda: all(
        x in ("connected", "live") for x in c.sh(f"cat {peer.states}").split())
    while not up() and time.monotonic() < end:
        time.sleep(0.5)
    P.attempt(c, f"tr '\\0' x < /dev/zero | head -c 65536 | timeout 40 dd of={dev} bs=64k "
              "iflag=fullblock oflag=direct status=none", 50)
    return f"{s.sh(WRITTEN.format('/dev/ram1'))} bytes were written to it"


def forgets(t, peer, broken, why, number, what):
    c, s = t.client, t.server

    def serve():
        s.sh(FORGETS)
        peer.serve(s, ("testdisk0",))

    def heal():
        s.boot()
        serve()

    s.sh(P.DISK + "dd if=/dev/zero of=/dev/vda bs=1M count=16 oflag=direct status=none")
    serve()
    w = work(t, peer, c, peer.map(c, ("testdisk0",))[0], flush=16, **AREA)
    got = w.fault(number, what, lambda: (broken.append(True), s.kill()), heal, hold=5, recover=120,
                  detect=60, settle=3, from_healed=True)
    P.notes(got, got["note"], *why)
    P.finish(t, w, disk="/dev/testdisk0", make=FORGETS)


# ---- another server ------------------------------------------------------------------------------

def moved(t, peer, broken, why, number, what):
    c, s, c2 = t.client, t.server, t.client2
    c2.sh(TESTDISK + "; ln -sfn testdisk0 /dev/mine")
    s.sh(P.DISK + "ln -sfn vda /dev/mine")
    P.serve(t, peer, ("mine",))
    w = work(t, peer, c, peer.map(c, ("mine",))[0])

    def move(old, new):
        old.sh("for i in 0 1; do ip addr del 10.0.$i.2/24 dev eth$i; done")
        new.sh("for i in 0 1; do ip addr add 10.0.$i.2/24 dev eth$i; "
               "wait_for 5 grep -q ffff:0a00:0${i}02 -r /sys/class/infiniband/rxe$i/ports/1/gids; "
               "arping -U -I eth$i -c 2 10.0.$i.2 > /dev/null || true; done")
        c.sh("for i in 0 1; do ip neigh flush dev eth$i; done")

    def strike():
        broken.append(True)
        move(s, c2)
        peer.serve(c2, ("mine",), uuid="22222222-2222-3333-4444-66666666666")
        time.sleep(60)

    got = w.fault(number, what, strike, lambda: move(c2, s), hold=3, recover=120)
    wrote = c2.sh(f"tr ' ' '\\n' < {SET}/counts | sed -n 's/^write=//p'")
    P.notes(got, f"{wrote} writes to the wrong disk", got["note"], *why)
    P.finish(t, w)
