# SPDX-License-Identifier: GPL-2.0-only
"""What may befall a mirror (docs/mirror.md), and the round that goes through it: for the cases
mirror/each-fault, two-faults and random-faults.

    r = Round(t)                                    a mirror, its watch, an application
    r.strikes("M10", ("link", r.b))                 a fault, until the mirror is whole: prove it
    r.strikes("M20", ("link", r.b), ("power", r.b)) the second while the resync of the first runs
    r.end()

After each: nobody saw an error; no acknowledged write is lost, doubled or misplaced; the halves are
equal below md; the record names both legs; I/O went on within STALL seconds, or, if no whole leg
was there, within BACK seconds of its return.

Leg a is on the machine that all links go through, which therefore does not die: it loses its power
behind a dark link.  Its leg is fenced when it has lost writes; those of leg b are sent again.
"""
import time
from collections import namedtuple
import faults as F, mirrors as M

# a silence is noticed within 1.5 s, and a leg let go 3 s later; a slow host is silent for longer
FAST = f"hb_interval_ms={F.within(300):.0f} failfast=3"
STALL, BACK, DARK = 6, 3, 20
BLOCKS = 2048                               # of 4 KiB, that the application writes to
STATES = " ".join(f"/sys/class/ibtrs-client/{session}/paths/*/state" for session in "ab")
ETC = [f"/etc/ibnbd/{f}.conf" for f in ("mirrors.d/data", "maps.conf.d/data-a",
                                        "maps.conf.d/data-b")]


# ---- what strikes, and what undoes it; r: the round ----------------------------------------------
def power_off(r, leg):
    if leg is r.b:
        return leg.server.kill()
    r.link(leg, False)
    leg.server.sh(f"echo 1 > {M.P}/power_cut; echo 1 > {M.CTL}/{leg.disk}/cache_lost")


def power_on(r, leg):
    if leg is r.a:
        return r.link(leg, True)
    leg.server.boot()
    M.serve(leg.server, backed=True)


def other_writes(r, leg):
    """Another machine writes over a part of what the application has written."""
    r.c.sh(f"echo 1 > {paths(leg)}/disconnect")
    r.t.wait(lambda: not leg.server.sh("exports"), 30, "the server has let it go")
    other = r.other(leg).server
    dev = M.map_of(other, leg.server, "other")
    other.sh(f"head -c 262144 /dev/zero | tr '\\0' S | dd of={dev} bs=64k iflag=fullblock "
             f"seek={(r.m.offset >> 16) + 16} oflag=direct conv=notrunc,fsync status=none; "
             f"unmap {dev}")


def cache_lost(r, leg):
    """Between two flushes of the application and of md, so something is lost. A flush that stood in
    md when the application was stopped may come behind the write."""
    md = f"/sys/block/{r.m.md0}/md"
    r.c.sh(f"echo 0 > {md}/safe_mode_delay; echo 60 > {md}/bitmap/time_base; pkill -STOP -x stamp")

    def uncovered():
        r.m.put("x", BLOCKS >> 7, 1)
        time.sleep(0.2)
        return int(r.m.attr(leg, "unflushed_bytes")) > 0
    r.t.wait(uncovered, 10, "a write that no flush has covered")
    r.m.lose(leg)
    r.c.sh(f"pkill -CONT -x stamp; echo 5 > {md}/bitmap/time_base")


def paths(leg):
    return f"$(echo /sys/class/ibtrs-client/{leg.session}/paths/*)"


def goes_stale(r, leg):
    """The leg is left behind, and is all that there is when the client boots."""
    r.link(leg, False)
    r.gone(leg)
    time.sleep(1)
    r.crash()


def is_stale(r, leg):
    """It is not started; then the leg is there that has everything."""
    other = r.other(leg)
    r.reboot()
    r.link(other, False)
    r.there(leg)
    r.m.watch()
    r.m.said(f"not started, no leg that is there has everything; it waits for {other.name}")
    r.t.eq(r.runs(), False, "an array of the leg that was left behind")
    r.link(other, True)
    r.goes_on(other)


def boots(r, leg):
    r.reboot()
    r.m.watch()
    r.goes_on(*r.m.legs)


def seen(r, leg):
    """Until md goes on without the leg; the only whole one is never dropped."""
    if r.only(leg):
        time.sleep(8)
        r.t.match(r.m.state(leg), "in_sync", "the only whole leg")
    else:
        r.gone(leg)


def dark(r, leg):
    time.sleep(DARK)
    r.t.eq("faulty" in r.m.state(leg), False, "a leg was dropped in the dark")


nothing = lambda r, leg: None

# strike, seen, undo: functions of the round and the leg; said: by the watch afterwards; dark: it
# takes all legs; ruins: the leg lacks something afterwards, or answers with errors, so it must not
# be the only whole one (docs/mirror.md, "Both legs are bad"); boot: of the client
Fault = namedtuple("Fault", "what strike seen undo said dark ruins boot",
                   defaults=("", False, False, False))
FAULTS = {
    "power": Fault("its server loses its power, and boots", power_off, seen, power_on,
                   "is back|is copied whole"),
    "link": Fault("its link is dark", lambda r, leg: r.link(leg, False), seen,
                  lambda r, leg: r.link(leg, True), "is back"),
    "dark": Fault(f"all links are dark for {DARK} s", lambda r, leg: r.links(False), dark,
                  lambda r, leg: r.links(True), dark=True),
    "disk": Fault("its disk answers writes with errors",
                  lambda r, leg: leg.server.sh(f"echo write > {M.P}/fail"), seen,
                  lambda r, leg: leg.server.sh(f"echo none > {M.P}/fail"),
                  "is back|is copied whole", ruins=True),
    "cache": Fault("its disk loses its cache", cache_lost, nothing, nothing,
                   "is copied whole: it is fenced", ruins=True),
    "writer": Fault("somebody else writes to its disk", other_writes, seen,
                    lambda r, leg: r.c.sh(f"echo 1 > {paths(leg)}/reconnect || true"),
                    "is copied whole", ruins=True),
    "client": Fault("the client loses its power, and boots", lambda r, leg: r.crash(), nothing,
                    boots, boot=True),
    "stale": Fault("the client boots, and sees it alone, left behind", goes_stale, nothing,
                   is_stale, "is copied whole: it is not in the array", ruins=True, boot=True),
}


class Round:
    def __init__(self, t):
        self.t, self.c = t, t.client
        self.servers = M.machines(t, backed=("client2",))
        self.m = M.Mirror(t, self.servers, (f"{FAST} unflushed=fence", FAST), chunk="64K").watch()
        self.a, self.b = self.m.legs
        self.works, self.rows, self.slow, self.lone = [], [], False, False
        self.work()

    def work(self):
        self.w = F.Work(self.t, self.c, self.m.dev, writer=len(self.works) + 1, flush=4,
                        blocks=BLOCKS, states=STATES)
        self.works.append(self.w)

    def other(self, leg):
        return self.b if leg is self.a else self.a

    def only(self, leg):
        """Has no other leg everything?"""
        return "in_sync" not in self.m.state(self.other(leg))

    def link(self, leg, up):
        self.c.link(leg.server.vm.host - 2, up)

    def links(self, up):
        for leg in self.m.legs:
            self.link(leg, up)

    def gone(self, leg):
        gone = lambda state: not state or "faulty" in state
        self.t.wait(lambda: gone(self.m.state(leg)), 25, f"md goes on without {leg.name}")

    # ---- the client ------------------------------------------------------------------------------
    def crash(self):
        self.kept = [self.c.sh(f"cat {f}") for f in ETC]    # /etc does not outlive a boot
        self.c.kill()
        self.m.watcher = None
        self.w.watch.end()
        self.w.save()

    def reboot(self):
        c = self.c
        c.boot()
        M.rules(c)
        c.sh("modprobe raid1; mkdir -p /etc/ibnbd/mirrors.d /etc/ibnbd/maps.conf.d")
        for f, text in zip(ETC, self.kept):
            c.put("kept", text + "\n")
            c.sh(f"cp /h/kept {f}")
        c.sh(f"sed -i 's/^wait = .*/wait = 8s/' {ETC[0]}")
        self.speed()

    def there(self, leg):
        self.c.sh(f"wait_for 20 eval 'ibnbd map {leg.name} 2> /dev/null'; "
                  "udevadm settle --timeout=20", timeout=60)
        leg.find()

    def runs(self):
        """Is the array active? It may have another number after a boot."""
        for leg in self.m.legs:
            rc, name = self.c.rc(f"cd /sys/block/{leg.kname}/holders && echo md*")
            md0 = name.strip()
            if leg.kname and not rc and "*" not in md0 and self.c.rc(
                    "grep -Exq 'clean|active|active-idle|read-auto' "
                    f"/sys/block/{md0}/md/array_state")[0] == 0:
                self.m.md0, self.m.dev = md0, f"/dev/{md0}"
                return True
        return False

    def goes_on(self, *legs):
        """The client has booted: the array runs, and so does the application."""
        for leg in legs:
            self.there(leg)
        self.t.wait(self.runs, 40, "the array is started")
        self.work()

    # ---- a fault ---------------------------------------------------------------------------------
    def speed(self):
        """A resync that waits for the second fault, or one that does not."""
        least, most = (50, 100) if self.slow else (100000, 200000)
        self.c.sh(f"echo {least} > /proc/sys/dev/raid/speed_limit_min; "
                  f"echo {most} > /proc/sys/dev/raid/speed_limit_max")

    def strike(self, fault, leg):
        self.t.log(f"--- {leg.name}: {fault.what}")
        self.lone |= fault.dark or self.only(leg)
        fault.strike(self, leg)
        fault.seen(self, leg)

    def undo(self, fault, leg):
        fault.undo(self, leg)
        if self.lone and not fault.boot:
            healed = time.monotonic()
            self.flows("a whole leg is back")
            ends = [ms / 1e3 + self.w.watch.offset(healed)
                    for ms, _ in self.w.completions(self.w.read_logs())]
            self.t.below(min(end for end in ends if end > healed) - healed, F.within(BACK),
                         "seconds until I/O goes on when a whole leg is back")
        self.lone = False

    def flows(self, what):
        self.t.wait(self.w.flows, 20, f"{what}: I/O flows")

    def resyncs(self):
        return self.m.md("sync_action") in ("recover", "resync")

    def strikes(self, number, *todo):
        """(name of the fault, leg), and perhaps another one."""
        t, m = self.t, self.m
        todo = [(FAULTS[name], leg) for name, leg in todo]
        boot, work = any(fault.boot for fault, _ in todo), self.w
        self.flows(f"before {number}")
        begin, said = time.monotonic(), len(m.watcher.out())
        first, leg = todo[0]
        self.lone, all_dark = False, first.dark
        self.slow = len(todo) > 1
        self.speed()
        self.strike(first, leg)
        self.undo(first, leg)
        if len(todo) > 1:
            t.wait(self.resyncs, 60, f"{number}: a resync runs behind the first fault")
            second, where = todo[1]
            all_dark |= second.dark or self.only(where)
            self.strike(second, where)
            self.slow = False
            if not second.boot:
                self.speed()
            self.undo(second, where)
        elif first.said:
            m.said(f"{leg.name} ({first.said})", 60, 0 if boot else said)
        t.ok(m.healed(90), f"{number}: whole again")
        if not boot:
            self.flows(f"after {number}")
        end = time.monotonic()
        row = dict(fault=number, stack="ibnbd", Nerr=0,
                   what=", then ".join(f"{leg.session}: {fault.what}" for fault, leg in todo))
        if not boot:
            row.update(Tstall=work.stall(begin, end, work.read_logs()))
        t.log(row)
        if not boot and not all_dark:
            t.below(row["Tstall"], F.within(STALL), f"{number}: {row['what']}: seconds of a pause")
        self.prove(row)

    def prove(self, row):
        """While the application stands still: what is on the legs."""
        t, c, m = self.t, self.c, self.m
        t.wait(lambda: m.record() == ["data-a", "data-b"], 20, "both legs are recorded")
        t.eq(c.rc(f"cat /sys/block/{m.md0}/md/dev-*/bad_blocks")[1], "", "bad blocks")
        c.sh("pkill -STOP -x stamp")
        t.wait(lambda: m.md("sync_action") == "idle", 20, "no resync")
        t.eq(m.compare(row["what"]), "", "the halves")
        self.w.save()
        verdict = F.prove(t, c, m.dev, self.works, BLOCKS)
        logs = verdict.logs
        t.eq([len(errors) for errors in (logs.failed, logs.read_errors, logs.flush_errors)],
             [0, 0, 0], f"{row['what']}: errors that the application saw")
        c.sh("pkill -CONT -x stamp")
        row.update(Nlost=verdict.lost, Nghost=verdict.ghost, Ncorr=verdict.wrong)
        self.rows.append(row)

    def ruins(self, name, leg):
        return FAULTS[name].ruins or name == "power" and leg is self.a

    def may(self, name, leg, first=None):
        """Can it be had there, alone or while the resync behind `first`, (name, leg), runs?"""
        if name == "cache" and leg is not self.a:       # b forgets with its machine only
            return False
        if first is None:
            return True
        return (first[0] not in ("dark", "client") and name != "stale"
                and not (leg is not first[1] and self.ruins(name, leg)))

    def end(self):
        self.w.stop()
        for row in self.rows:
            self.t.figure(**row)
        self.m.end()
        M.leave(self.t)
