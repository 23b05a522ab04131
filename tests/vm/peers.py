# SPDX-License-Identifier: GPL-2.0-only
"""Other drivers under the same faults, as they are shipped:
in-kernel rnbd, and nvme-rdma with the kernel's own multipath.

What a peer makes of a fault - errors, a hang, a crash - is a row of the table and fails nothing; a
case of this fails when it cannot measure.  No module of ours is loaded.  Each fault has machines
that were just booted, for a hung driver never lets go.
"""
import re, time
import case, faults as F, image, kmsg, vm

TRIES = 3           # a peer may lose its way before the fault
SCRIPT = image.REPO / "tests/bench/peers.sh"
DISK = "modprobe virtio_blk; wait_for 5 test -b /dev/vda; "
CRASH = re.compile(r"BUG: |kernel BUG at|Oops|general protection|Kernel panic|unable to handle")


class Rnbd:
    stack = "rnbd"
    states = "/sys/class/rtrs-client/*/paths/*/state"
    unload = "unload $PEER_MODULES"
    reconnect = ("for p in /sys/class/rtrs-client/s1/paths/*; do echo 1 > $p/disconnect; "
                 "echo 1 > $p/reconnect; done")
    modules = {"client": "rtrs_client rnbd_client rtrs_core",
               "server": "rtrs_server rnbd_server rtrs_core"}

    def serve(self, s, disks=("vda",), uuid=""):
        s.sh("FAMILY=rnbd serve", timeout=60)

    def map(self, c, disks=("vda",), host="s1"):
        return [c.sh(f"FAMILY=rnbd map {disk} sessname={host}", timeout=90) for disk in disks]

    def exchange(self, s, disk, number):
        """Another disk has come to be behind that name, of which nobody told the driver."""


class Nvme:
    stack = "nvme-rdma"
    states = "/sys/class/nvme/nvme0/state /sys/class/nvme/nvme1/state"
    unload = ". /h/peers.sh; nvmet_unserve"
    reconnect = "for p in /sys/class/nvme/nvme?; do echo 1 > $p/reset_controller; done"
    modules = {"client": "nvme_rdma nvme_fabrics nvme_core", "server": "nvmet_rdma nvmet"}

    def serve(self, s, disks=("vda",), uuid=""):
        s.vm.put("peers.sh", SCRIPT.read_text())
        s.sh(f". /h/peers.sh; NS_UUID={uuid}; nvmet_serve {' '.join('/dev/' + d for d in disks)}; "
             "for i in 0 1; do nvmet_port $((i + 1)) 10.0.$i.2; done", timeout=60)

    def map(self, c, disks=("vda",), host="s1"):
        c.vm.put("peers.sh", SCRIPT.read_text())
        devs = [f"/dev/nvme0n{i + 1}" for i in range(len(disks))]
        c.sh(f". /h/peers.sh; HOST_DIGIT={host[-1]}; "
             "for i in 0 1; do nvme_connect 10.0.$i.2; done; "
             f"for d in {' '.join(devs)}; do wait_for 10 test -b $d; done; cd /sys/class/nvme; "
             "grep . nvme?/address nvme?/state nvme?/kato nvme?/reconnect_delay "
             "nvme?/ctrl_loss_tmo ../nvme-subsystem/*/iopolicy", timeout=90)
        return devs

    def exchange(self, s, disk, number):
        """The target is told of the same name again, with the identity that it was saved with."""
        s.sh(f". /h/peers.sh; cd $CFS/nvmet/subsystems/sub0/namespaces/{number}; echo 0 > enable; "
             f"echo /dev/{disk} > device_path; echo 1 > enable")


def list_of(t, peer):
    """Faults of the cases in paths/ and server/, in their words: number, what, links, strike, heal,
    more for Work.fault().

    links: that must be noticed as lost: none, one that carries I/O, or both; a policy may leave a
    link idle.  What strike and heal return as text is remarked.  Those in which the disk behind the
    server is in trouble or another one are in peer_disks.py."""
    c, s = t.client, t.server
    move = lambda m, up: lambda links: [m.link(i, up) for i in links]

    loss = lambda percent: lambda links: [s.sh(f"net_loss {i} {percent}") for i in links]
    both = lambda words: lambda _: [m.sh(f"tc qdisc replace dev eth{i} root {words}")
                                    for m in (c, s) for i in (0, 1)]

    def flap(links):
        for i in range(16):
            [c.link(link, bool(i & 1)) for link in links]
            time.sleep(1)

    def reboot(_):
        s.boot()
        s.sh(DISK)
        peer.serve(s)

    def down(_):
        said = lenient(s, peer.unload + "; sync", "unloading")
        s.kill()
        return said

    def again(_):
        try:
            peer.serve(s)
        except (case.Failed, vm.JobTimeout):
            reboot(_)
            return "served again after a boot only"
    delete = lambda m: lambda links: lenient(
        m, "".join(f"rdma link delete rxe{i};" for i in links), "rdma link delete")
    add = lambda m: lambda links: lenient(
        m, "".join(f"rdma link add rxe{i} type rxe netdev eth{i}; wait_for 5 net_gids {i};"
                   for i in links), "rdma link add")
    removed = [("F21", f"{m.name}: {n} of 2 RDMA devices removed", n, delete(m), add(m),
                dict(hold=3, from_healed=True))
               for m in (c, s) for n in (1, 2)]
    address = lambda verb: lambda links: c.sh(
        "".join(f"ip addr {verb} 10.0.{i}.1/24 dev eth{i};" for i in links))

    def cpu(m, n):
        def act(_):
            m.sh(f"echo {n} > /sys/devices/system/cpu/cpu1/online")
            return lenient(c, peer.reconnect, "reconnecting")
        return act
    alone = [("F28", f"{m.name} has one processor left", 0, cpu(m, 0), cpu(m, 1), dict(hold=6))
             for m in (c, s)]

    def starve(m):
        def act(_):
            m.sh(f"fail_nth {F.EVERY} {peer.modules[m.name]} depth=10 first=0 again=1")
            return lenient(c, f"set +e; for i in 1 2 3; do ({peer.reconnect}); sleep 1; done; true",
                           "reconnecting")
        return act

    def feed(m):
        return lambda _: m.sh("fail_nth 0; cat /sys/module/ibnbd_failnth/parameters/seen "
                              "| sed 's/$/ allocations/'")
    starved = [("F27", f"every {F.EVERY}th allocation of the {m.name} fails", 0, starve(m), feed(m),
                dict(hold=10)) for m in (c, s)]
    return [("F1", "one of two paths: carrier down", 1, move(c, False), move(c, True),
             dict(hold=4)),
            ("F2", "one of two paths: silence", 1, move(s, False), move(s, True), dict(hold=4)),
            ("F3", "one of two paths: answers are lost", 1, loss(100), loss(0), dict(hold=4)),
            ("F4", "1 % of packets lost", 0, both("netem limit 10000 loss 1%"),
             both("pfifo limit 10000"), dict(hold=12)),
            ("F5", "all paths: carrier down", 2, move(c, False), move(c, True), dict(hold=6)),
            ("F5", "all paths: silence", 2, move(s, False), move(s, True), dict(hold=8)),
            ("F7", "one of two links: 1 s on, 1 s off", 1, flap, move(c, True), dict(hold=16)),
            ("F9", "server's modules unloaded and loaded again", 2,
             lambda _: lenient(s, peer.unload, "unloading"), again, dict(from_healed=True)),
            ("F10", "server reboots, 1", 2, down, reboot, dict(hold=1, from_healed=True)),
            ("F11", "server loses its power", 2, lambda _: s.kill(), reboot,
             dict(hold=5, from_healed=True)),
            ("F12", "server stands still for 10 s", 2, lambda _: s.pause(), lambda _: s.resume(),
             dict(hold=10, detect=10)),
            *removed,
            ("F22", "client's address taken away", 1, address("del"), address("add"),
             dict(hold=10, down=[])),
            *starved, *alone]


def lenient(guest, script, what):
    """A script at which a peer may fail, or hang: None, or what to remark."""
    rc, _ = attempt(guest, script)
    return f"{what} hangs" if rc is None else f"{what} fails" if rc else None


def attempt(guest, script, timeout=30):
    """(exit status, or None when it hangs; output)"""
    try:
        return guest.rc(script, timeout)
    except vm.JobTimeout:
        return None, ""


def run(t, peer):
    for turn, words in enumerate(list_of(t, peer)):
        one(t, peer, turn, *words)
    for g in t.guests:
        g.kill()


def one(t, peer, turn, number, what, links, strike, heal, more):
    """One fault of paths, as Work.fault() has it."""
    def act(broken, why):
        serve(t, peer)
        w = F.Work(t, t.client, peer.map(t.client)[0], stack=peer.stack, states=peer.states,
                   lenient=True)
        t.eq(len(w.paths), 2, "paths")
        struck, remarks = [busy(t.client)] if links == 1 else [0, 1][:links], []
        row = w.fault(number, what, lambda: (broken.append(True), remarks.append(strike(struck))),
                      lambda: remarks.append(heal(struck)),
                      **{"down": struck, "settle": 3, "detect": 60, "recover": 120, **more})
        notes(row, f"healed after {row['held']:.0f} s", *remarks, row["note"], *why)
        finish(t, w)
    measure(t, peer, turn, number, what, act)


def serve(t, peer, disks=("vda",)):
    """With nothing on the first one that an older run has left there."""
    t.server.sh(DISK + f"dd if=/dev/zero of=/dev/{disks[0]} bs=1M count=16 oflag=direct "
                "status=none")
    peer.serve(t.server, disks)


def notes(row, *texts):
    row["note"] = "; ".join(text for text in texts if isinstance(text, str) and text)


def measure(t, peer, turn, number, what, act):
    """act(broken, why) on machines of its own gives a row, or Failed when it could not be measured.

    It adds to `broken` as soon as the fault is there: a crash is a row then.  why: what kept it
    from being measured before."""
    why = []
    for attempt in range(TRIES):
        broken = []
        try:
            if turn or attempt:
                t.anew()
            act(broken, why)
            return
        except (case.Failed, vm.VMError) as e:
            said = news(t)
            t.log(f"{number}, attempt {attempt + 1}: {e}", *said)
            if broken and any("crashed" in text for text in said):
                t.figure(fault=number, what=what, stack=peer.stack, note="; ".join(said))
                return
            why.append("; ".join([f"attempt {attempt + 1}: " + str(e).strip().splitlines()[0][:60],
                                  *said]))
    t.fail(f"{peer.stack}: {number} {what}: not measured: " + "\n".join(why))


def busy(c):
    """The link that carries the most."""
    sent = lambda: [int(n) for n in c.sh("for i in 0 1; do hw_counter $i sent_pkts; done").split()]
    before = sent()
    time.sleep(1)
    got = [b - a for a, b in zip(before, sent())]
    c.t.log(f"packets sent on the links: {got}")
    return got.index(max(got))


def finish(t, *works, disk="/dev/vda", make=DISK):
    """Stop, take the clients away, scan the disk, which `make` makes after a boot:
    what they still had under way may arrive, or not."""
    for w in works:
        if not w.guest.vm.alive:
            continue
        try:
            w.stop(errors_expected=True)
        except (case.Failed, vm.VMError) as e:
            t.log(f"{w.guest.name} cannot end its I/O: {e}")
            works[0].remark("no end of its I/O")
            w.watch.end()
            w.save()
    for text in news(t):
        works[0].remark(text)
    for w in works:
        if w.guest.vm.alive:
            w.guest.kill()
    time.sleep(1)
    try:
        F.prove(t, t.server, disk, works, works[0].blocks, lenient=True)
    except (case.Failed, vm.VMError) as e:
        t.log(f"the server cannot be asked: {e}")
        if t.server.vm.alive:
            t.server.kill()
        t.server.boot()
        t.server.sh(make)
        F.prove(t, t.server, disk, works, works[0].blocks, lenient=True)


def news(t):
    """What the kernels complained of since the last time, a line for each machine;
    the runner shall not count it."""
    told = []
    for g in t.guests:
        lines = []
        for text in g.trouble(t.allowed):
            t.ok(not re.search("ibtrs_|ibnbd_(client|server)", text),
                 f"no driver of ours is loaded, and yet: {text}")
            t.log(text)
            report = text.splitlines()[1:]
            found = [line for line in report if kmsg.TROUBLE.search(line)]
            if found:           # else it is about a machine that died
                t.allow(re.escape(report[0]))
            lines += found
        dead = not g.vm.alive and not g.killed
        if dead:
            g.kill()
        if lines or dead:
            crash = [line for line in lines if CRASH.search(line)]
            line = re.sub(r"^\[[^]]*\] *", "", (crash or lines or ["it is gone"])[0])
            told.append(f"{g.name} {'crashed' if crash or dead else 'warns'}: {line[:60]}")
    return told
