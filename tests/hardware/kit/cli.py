# SPDX-License-Identifier: GPL-2.0-only
"""run.sh's words, what it looks at first, and the course of a run.

Nothing is changed on a host before everything has been looked at (look()); every change is in the
host's journal (agent.sh), which is undone stack by stack, at the end, and when anything goes wrong.
"""
import argparse, datetime, ipaddress, os, shlex, shutil, signal, sys, time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import host as H, measure, report           # noqa: E402

STACKS = {      # modules of the server, of the client; local: the server's disks by themselves
    "local": ([], []),
    "ibnbd": (["ibtrs-server", "ibnbd-server"], ["ibtrs-client", "ibnbd-client"]),
    "rnbd": (["rtrs-server", "rnbd-server"], ["rtrs-client", "rnbd-client"]),
    "nvme": (["nvmet-rdma"], ["nvme-rdma"]),
}
BUSY = {"ibnbd": "ibnbd-server", "rnbd": "rnbd-server"}     # one per host
NEEDED = ("ip modprobe modinfo lsblk blkid wipefs blockdev findmnt flock timeout awk sed "
          "base64 tac md5sum").split()
NULL, MEMORY = "ibnbdnull", "ibnbdmem"      # null_blk without and with memory behind it


class Interrupted(BaseException):
    pass


def numbers(text):
    return sorted({int(x) for x in text.split(",")})


def arguments(argv):
    p = argparse.ArgumentParser(
        prog="run.sh", description="Measure and check ibnbd, and what one would use instead, "
        "between two hosts with RDMA adapters. docs/hardware.md says what it does to them.")
    p.add_argument("server", help="as ssh calls it; it has the disks")
    p.add_argument("client", help="as ssh calls it; it maps them")
    p.add_argument("--dry-run", action="store_true", help="look, and say what would be done")
    p.add_argument("--restore", action="store_true",
                   help="undo what an earlier run left on the two hosts, nothing else")
    p.add_argument("--path", action="append", metavar="SRC@DST",
                   help="IPv4 addresses of client and server; more than one: more paths "
                   "(default: all pairs of RDMA interfaces that share a network)")
    p.add_argument("--stacks", help="of local,ibnbd,rnbd,nvme (default: those that both hosts "
                   "have; local is the server's disks by themselves)")
    p.add_argument("--scratch", metavar="DISK",
                   help="a disk of the server's: ALL DATA ON IT IS LOST")
    p.add_argument("--destroy", metavar="NAME", help="the serial number of that disk, as --dry-run "
                   "prints it (or the model, or the size); asked for when it is not given")
    p.add_argument("--links", action="store_true",
                   help="take links of the client down under I/O, one and then all")
    p.add_argument("--away", type=int, default=10, help="for how many seconds")
    p.add_argument("--jobs", type=numbers, default=[1, 2, 4, 8, 16, 32, 64])
    p.add_argument("--sizes", type=numbers, default=[4, 16, 64, 256, 1024], help="KiB")
    p.add_argument("--depth", type=int, default=16, help="in flight of each job")
    p.add_argument("--matrix", action="store_true", help="each size with each number of jobs")
    p.add_argument("--seconds", type=float, default=10, help="of each measurement")
    p.add_argument("--ramp", type=float, default=2, help="seconds before it, not counted")
    p.add_argument("--engine", default="libaio", help="fio's: libaio or io_uring")
    p.add_argument("--invalidate", choices=["Y", "N", "default"], default="N",
                   help="always_invalidate of ibnbd's and of rnbd's server")
    p.add_argument("--verify-mib", type=int, default=256, help="how much is written and read back")
    p.add_argument("--perftest-sizes", type=numbers, default=[4096, 65536, 1 << 20])
    p.add_argument("--perftest-count", type=int, default=5000,
                   help="messages of each; 0: no perftest")
    p.add_argument("--port", type=int, default=47115, help="TCP port of perftest, minus one")
    p.add_argument("--out", help="directory of the report (default: build/hardware/DATE)")
    p.add_argument("--wait", type=int, default=180,
                   help="seconds to wait for a host that was lost, to see what became of it")
    p.add_argument("--sudo", action="store_true", help="be root there by sudo without a password")
    p.add_argument("--ssh", default="", help="more words for ssh, e.g. \"-i key -p 2222\"")
    p.add_argument("--ssh-server", default="", help="those for the server alone")
    p.add_argument("--ssh-client", default="", help="those for the client alone")
    return p.parse_args(argv)


class Run:
    def __init__(self, o):
        self.o, self.hosts, self.began = o, [], set()
        self.report = None

    # ---- look, change nothing --------------------------------------------------------------------
    def connect(self):
        o = self.o
        for name, target, words in (("server", o.server, o.ssh_server),
                                    ("client", o.client, o.ssh_client)):
            self.hosts.append(H.Host(name, target, shlex.split(o.ssh) + shlex.split(words),
                                     o.sudo))
        self.server, self.client = self.hosts

    def paths(self):
        if self.o.path:
            for p in self.o.path:
                if p.count("@") != 1:
                    raise H.HostError(f"--path {p}: it is SRC@DST")
            return self.o.path
        nets = [[ipaddress.ip_interface(line.split()[1])
                 for line in h.sh("addresses").splitlines()] for h in (self.client, self.server)]
        return [f"{c.ip}@{s.ip}" for c in nets[0] for s in nets[1]
                if c.network == s.network and c.ip != s.ip]

    def look(self):
        """Everything that can be wrong; raises HostError with all of it."""
        o, bad = self.o, []
        for h in self.hosts:
            lacks = h.sh(f"lacks {' '.join(NEEDED)}" + " fio" * (h is self.client)).split()
            if lacks:
                bad.append(f"{h.name} ({h.target}) has no {', '.join(lacks)}")
            rc, out = h.run("[ ! -e $JOURNAL ] || fail \"another run is busy here, or an earlier "
                            "one has left changes: run.sh --restore\"")
            bad += [f"{h.name} ({h.target}): {out}"] if rc else []
        if bad:     # the rest would not work
            raise H.HostError("\n".join(bad))
        self.path = self.paths()
        if not self.path:
            bad.append("no interface with RDMA and an IPv4 address of the client shares a network "
                       "with one of the server: give them addresses, or say --path")
        asked = o.stacks.split(",") if o.stacks else list(STACKS)
        self.stacks, self.without = [], {}
        for stack in asked:
            if stack not in STACKS:
                bad.append(f"--stacks {stack}: there are {', '.join(STACKS)}")
                continue
            missing = [f"{h.name}: no module {m}" for h, mods in zip(self.hosts, STACKS[stack])
                       for m in mods if m not in h.sh(f"has {' '.join(mods)}").split()]
            busy = [f"{h.name}: {BUSY[stack]} is loaded; unload it while this runs"
                    for h in self.hosts if stack in BUSY and h.sh(f"loaded {BUSY[stack]}")]
            if stack == "local" and self.server.sh("lacks fio"):
                missing = ["server: no fio"]
            if missing or busy:
                self.without[stack] = "; ".join(missing + busy)
                if o.stacks:
                    bad.append(f"{stack}: {self.without[stack]}")
            else:
                self.stacks.append(stack)
        if not set(self.stacks) - {"local"}:
            bad.append("no stack is there on both hosts: "
                       + "; ".join(f"{k}: {v}" for k, v in self.without.items()))
        self.null = bool(self.server.sh("has null_blk"))
        if not self.null and not o.scratch:
            bad.append("the server's kernel has no null_blk, and there is no --scratch")
        if o.scratch:
            bad += self.look_at_disk(o.scratch)
        if o.links:
            for p in self.path:
                rc, out = self.client.run(f"link_check {p.split('@')[0]}")
                bad += [f"--links: client ({self.client.target}): {out}"] if rc else []
        if bad:
            raise H.HostError("\n".join(bad))

    def look_at_disk(self, disk):
        q = shlex.quote(disk)
        rc, out = self.server.run(f"check_disk {q}")
        if rc:
            return [f"server ({self.server.target}): {out}"]
        self.disk_name = self.server.sh(f"disk_name {q}")
        if self.o.dry_run:
            return []
        said = self.o.destroy
        if said is None and sys.stdin.isatty():
            print(self.server.sh(f"lsblk -d -o NAME,SIZE,MODEL,SERIAL {q}"))
            said = input(f"All data on {disk} of {self.o.server} will be lost. Type its serial "
                         f"number, {self.disk_name}: ")
        if said != self.disk_name:
            return [f"{disk} is {self.disk_name}, not {said}: nothing is written to it. If it is "
                    f"the scratch disk, say --destroy {self.disk_name}"]
        return []

    def plan(self):
        o, points = self.o, measure.points(self.o)
        disks = (["null_blk"] if self.null else []) + ([o.scratch] if o.scratch else [])
        each = len(disks) * len(self.stacks) * len(points)
        said = [f"paths: {', '.join(self.path)}", f"stacks: {', '.join(self.stacks)}",
                *(f"not {s}: {why}" for s, why in self.without.items()),
                f"disks: {', '.join(disks)}",
                *([f"{o.scratch} is {self.disk_name}: ALL DATA ON IT IS LOST"] if o.scratch else
                  []),
                f"{each} measurements of {o.seconds + o.ramp:g} s, about "
                f"{each * (o.seconds + o.ramp + 1) / 60:.0f} minutes",
                "links: taken down for " + f"{o.away} s" if o.links else "links: left alone"]
        if shutil.which("gnuplot") is None:
            said.append("no plots: gnuplot is not installed here")
        return said

    # ---- the run ---------------------------------------------------------------------------------
    def go(self):
        o, r = self.o, self.report
        for h in self.hosts:
            self.began.add(h)
            h.sh("begin")
        if o.perftest_count:
            r.perftest = measure.perftest(self.server, self.client, *self.path[0].split("@"), o)
        disks = {}
        if self.null:
            disks["null_blk"] = (NULL, self.server.sh(f"null_disk {NULL} 16384 0"))
            disks["null_blk with memory"] = (MEMORY, self.server.sh(
                f"null_disk {MEMORY} {max(64, o.verify_mib)} 1"))
        if o.scratch:
            disks[o.scratch] = ("scratch", o.scratch)
            self.server.sh(f"undo scratch_clean {shlex.quote(o.scratch)}")
        for name, disk in disks.values():
            self.server.sh(f"export_disk {name} {shlex.quote(disk)}")
        for stack in self.stacks:
            marks = [h.sh("mark") for h in self.hosts]
            try:
                self.measure_stack(stack, disks)
            except H.HostLost:
                raise
            except H.HostError as e:
                print(f"{stack}: {e}")
                # a peer that does not do here is a row, ours is a failure
                if stack == "ibnbd":
                    r.trouble.append(f"ibnbd: {e}")
                r.verified.append({"stack": stack, "disk": "-", "result": str(e)[:300]})
            for h, mark in zip(self.hosts[::-1], marks[::-1]):
                r.trouble += h.restore(mark)

    def measure_stack(self, stack, disks):
        o = self.o
        if stack == "local":
            for disk, (name, dev) in disks.items():
                self.measure(stack, self.server, disk, name, dev)
            return
        invalidate = "" if o.invalidate == "default" else o.invalidate
        srcs, dsts = zip(*(p.split("@") for p in self.path))
        self.server.sh(f"INVALIDATE={invalidate}; CLIENTS={','.join(srcs)}; "
                       f"serve_{stack} {' '.join(dsts)}", 120)
        devs = {}
        for disk, (name, _) in disks.items():
            devs[name] = self.client.sh(f"map_{stack} {name} {' '.join(self.path)}",
                                        120).split()[-1]
            self.measure(stack, self.client, disk, name, devs[name])
        if not o.links:
            return
        dev = devs[MEMORY if self.null else "scratch"]
        for some in dict.fromkeys([srcs[:1], srcs]):
            row = {"stack": stack, **measure.link_lost(self.client, dev, some, o)}
            self.report.links.append(row)
            print(f"{stack}: {row}")

    def measure(self, stack, host, disk, name, dev):
        o, r = self.o, self.report
        if name != NULL:
            why = measure.verify(host, dev, o)
            r.verified.append({"stack": stack, "disk": disk, "result": why or "ok"})
            print(f"{stack} on {disk}: verified: {why or 'ok'}")
        if name == MEMORY:
            return
        for point in measure.points(o):
            row = {"stack": stack, "disk": disk, **measure.speed(host, dev, point, o)}
            r.speed.append(row)
            print(f"{stack} on {disk}: {point[0]} {point[1]} KiB, {point[2]} jobs x {point[3]}: "
                  + (row.get("note") or f"{row['iops']} I/Os per second, "
                     f"99 % below {row.get('p99', '-')} us"))

    def restore(self):
        """Undo everything, on each host whatever is the matter with the other."""
        said, ok = [], True
        for h in self.hosts[::-1]:      # the client's disks before what they stand on
            if h not in self.began:
                h.close()
                continue
            try:
                left = h.restore()
                said.append(f"{h.name} ({h.target}): " + ("; ".join(left) or "all of it"))
                ok = ok and not left
                h.close()
            except H.HostError:
                print(f"{h.name} ({h.target}) is lost; waiting {self.o.wait} s for it")
                text, fine = H.return_of(h, self.o.wait)
                said.append(text)
                ok = ok and fine
        return said, ok


def interrupted(number, _):
    for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, lambda *_: print("undoing what was changed; please wait"))
    raise Interrupted(signal.Signals(number).name)


def restore_only(run):
    ok = True
    for h in run.hosts[::-1]:
        rc, out = h.run("! owner_alive || fail 'a run is busy here'; restore", 300)
        print(f"{h.name} ({h.target}): {out or 'nothing is left'}")
        ok = ok and not rc
        h.close()
    return 0 if ok else 1


def main(argv):
    o = arguments(argv)
    sys.stdout.reconfigure(line_buffering=True)
    for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, interrupted)
    run, status = Run(o), 1
    try:
        run.connect()
        if o.restore:
            return restore_only(run)
        run.look()
        print("\n".join(run.plan()))
        if o.dry_run:
            print("nothing was done: --dry-run")
            status = 0
            return 0
        repo = Path(__file__).resolve().parents[3]
        out = o.out or repo / f"build/hardware/{time.strftime('%Y%m%d-%H%M%S')}"
        run.report = r = report.Report(out)
        r.words = "tests/hardware/run.sh " + " ".join(map(shlex.quote, argv))
        r.head = [f"{datetime.datetime.now().astimezone():%Y-%m-%d %H:%M %z}, ibnbd "
                  f"{report.commit()}, always_invalidate={o.invalidate}.", "",
                  *(f"* {line}" for line in run.plan())]
        for h in run.hosts:
            r.host(h.name, h.sh("facts", 120), h.sh("details", 300))
        run.go()
        status = 0
    except H.HostError as e:
        print(f"run.sh: {e}", file=sys.stderr)
        if run.report:
            run.report.trouble.append(str(e))
    except Interrupted as e:
        print(f"run.sh: {e}: undoing what was changed", file=sys.stderr)
        status = 130
        if run.report:
            run.report.trouble.append(f"interrupted by {e}")
    finally:
        said, ok = run.restore()
        if run.report:
            r = run.report
            r.restored = "; ".join(said) or "nothing was changed"
            r.trouble += [] if ok else ["not everything could be restored"]
            packed = r.write()
            bad = r.failed()
            print("restored: " + r.restored)
            print("\n".join(f"FAIL {b}" for b in bad))
            print(f"{r.out}/report.md; to send: {packed}")
            status = status or bool(bad)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
