# SPDX-License-Identifier: GPL-2.0-only
"""Breaking things under the integrity checker (tests/stamp), and the figures of it.

    w = faults.Work(t, t.client, dev)           stamp runs on the device,
                                                its path states are watched
    row = w.fault("F1", "one of two, carrier", lambda: c.link(0, False),
                  lambda: c.link(0, True), hold=4, down=[0])
                                                strike, find out, heal, find out
    w.end("/dev/testdisk0")                     stop, unmap, scan the disk behind the server:
                                                prove it

Figures, in seconds: Tdet from the fault to the path being marked down; Tstall the longest time
without any completed I/O, or that one I/O took or has waited so far, whichever is longer; Trec from
the healing until all watched paths are up and I/O flows; Nerr errors the application saw; Nlost,
Nghost, Ncorr what check.py found.  Times are read from logs that guests write to the host (9p), on
the guest's clock; a thread here sees each line of the watcher within some milliseconds, which ties
that clock to the host's.
"""
import re, shutil, sys, threading, time
from pathlib import Path
import case, image, vm

sys.path.append(str(image.REPO / "tests/stamp"))
import check

STATES = "/sys/class/ibtrs-client/{session}/paths/*/state"
TRACING = "/sys/kernel/tracing"
COLUMNS = (("fault", 5), ("what", 46), ("stack", 9), ("Tdet", 6), ("Tstall", 6), ("Trec", 6),
           ("Nerr", 5), ("Nlost", 5), ("Nghost", 6), ("Ncorr", 5), ("note", 0))

EVERY = 50      # which allocation fails in F27
# what a disk may answer: every blk_status_t that has an errno but BLK_STS_RESOURCE, which asks for
# another try
CODES = ((5, "Input/output error"), (28, "No space left"), (110, "Connection timed out"),
         (61, "No data available"), (121, "Remote I/O error"), (95, "not supported"),
         (67, "Link has been severed"), (52, "Invalid exchange"),
         (84, "Invalid or incomplete multibyte"), (16, "Device or resource busy"),
         (11, "temporarily unavailable"), (19, "No such device"), (78, "Remote address changed"),
         (109, "Too many references"), (75, "Value too large"))


def within(seconds):
    """What a time may be here: a host or a kernel that is far slower gets more."""
    return seconds * (vm.SLOW if vm.SLOW > 2 else 1)


# what make check-faults must show, of ours and of each peer that it knows
REQUIRED = {f"F{n}" for n in (1, 2, 3, 4, 5, 7, 9, 10, 11, 12, 13, 14, 16, 17, 18, 19, 20,
                              21, 22, 24, 27, 28, 29)}


def missing(rows):
    """Which of them no row is of, in words."""
    shown = {"ibnbd": set()}
    for r in rows:
        shown.setdefault(r["stack"], set()).add(r["fault"])
    return [f"{fault} of {stack}" for stack in shown
            for fault in sorted(REQUIRED - shown[stack], key=lambda f: int(f[1:]))]


def table(rows):
    """Lines of text, none without rows.  What different stacks made of a fault stands together."""
    if not rows:
        return []
    kinds = {}
    for r in rows:
        kinds.setdefault((r["fault"], r["what"]),
                         (r["fault"][:1], int("0" + re.sub(r"\D", "", r["fault"])), len(kinds)))
    rows = sorted(rows, key=lambda r: kinds[r["fault"], r["what"]])
    show = lambda v: "-" if v is None else f"{v:.2f}" if isinstance(v, float) else str(v)
    line = lambda cells: " ".join(
        f"{c:{'<' if n in ('fault', 'what', 'stack', 'note') else '>'}{w}}" if w else c
        for (n, w), c in zip(COLUMNS, cells)).rstrip()
    return ["", line([n for n, _ in COLUMNS])] + \
        [line([show(r.get(n, "" if n == "note" else None)) for n, _ in COLUMNS]) for r in rows]


class Watch:
    """`stamp watch` in a guest: first lines of small files, as they change,
    with the time on both clocks."""
    def __init__(self, guest, name, files):
        self.guest, self.path = guest, guest.vm.share / name
        # (host s, index, text); index: text; (host s, host - guest)
        self.changes, self.state, self.clocks = [], {}, []
        self.stop = threading.Event()
        if self.path.exists():
            self.path.unlink()
        self.job = guest.spawn(f"exec stamp watch /h/{name} {files}")
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        rest, at = b"", 0
        while not self.stop.wait(0.01):
            try:
                with open(self.path, "rb") as f:
                    f.seek(at)
                    data = f.read()
            except OSError:
                continue
            now, at = time.monotonic(), at + len(data)
            *lines, rest = (rest + data).split(b"\n")
            for words in (line.decode(errors="replace").split(" ", 2) for line in lines):
                self.clocks.append((now, now - int(words[0]) / 1e3))
                if len(words) == 3:
                    self.state[int(words[1])] = words[2]
                    self.changes.append((self.host_time(int(words[0])), int(words[1]), words[2]))

    def offset(self, around=None):
        """Host time minus guest time: the smallest seen near that moment
        is the one that waited least."""
        near = ([o for h, o in self.clocks if around is None or abs(h - around) < 8]
                or [o for _, o in self.clocks])
        return min(near[-40:] if around is None else near)

    def host_time(self, guest_ms):
        return guest_ms / 1e3 + self.offset()

    def first(self, since, index, wanted):
        """Host time of the first change of `index` to what `wanted` accepts, or None."""
        return next((h for h, i, text in list(self.changes)
                     if h >= since and i == index and wanted(text)), None)

    def end(self):
        self.stop.set()
        self.thread.join()


class Work:
    """The checker's writers on one device of one guest."""
    def __init__(self, t, guest, dev, writer=1, stack="ibnbd", session="s1", threads=4,
                 think_us=6000, max=2, blocks=2048, reads=30, flush=0, seed=None, states=None,
                 paths=None, lenient=False, closes=False):
        self.t, self.guest, self.dev, self.writer, self.stack, self.blocks = (
            t, guest, dev, writer, stack, blocks)
        self.rows, self.name, self.logs = [], f"stamp{writer}", []
        # what never happens is a note, not a failure: for other people's drivers (peers.py)
        self.lenient = lenient
        self.saved = t.logdir / "stamp"
        self.saved.mkdir(exist_ok=True)
        self.seed = seed if seed is not None else int(time.time())
        if stack == "ibnbd":
            guest.sh(f"echo 1 > {TRACING}/events/ibtrs_client/ibtrs_clt_path_state/enable || true")
        for p in guest.vm.share.glob(f"{self.name}.[0-9]*"):
            p.unlink()      # of an earlier case, with more threads
        self.watch = Watch(guest, f"watch{writer}", states or STATES.format(session=session))
        self.job = guest.spawn(f"exec stamp run {dev} /h/{self.name} writer={writer} "
                               f"threads={threads} max={max} blocks={blocks} think_us={think_us} "
                               f"reads={reads} flush={flush} seed={self.seed} "
                               f"closes={int(closes)}")
        t.wait(lambda: self.flows(0.3), 15, "the first I/O")
        t.wait(lambda: self.watch.state, 10, "the watcher")
        self.paths = paths or sorted(self.watch.state)

    # ---- looking ---------------------------------------------------------------------------------
    def size(self):
        return sum(p.stat().st_size for p in self.guest.vm.share.glob(f"{self.name}.[0-9]*"))

    def flows(self, seconds=0.5):
        """Is I/O being answered?  Each thread announces one and waits: more lines than that are
        answers, and a busy host gets more time to give them."""
        before, end = self.size(), time.monotonic() + seconds * vm.SLOW
        time.sleep(seconds)
        while self.size() - before <= 400:
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True

    def until(self, condition, timeout, what, notes):
        """True when it came about."""
        if not self.lenient:
            self.t.wait(condition, timeout, what)
            return True
        end = time.monotonic() + timeout
        while time.monotonic() < end and self.guest.vm.alive:
            if condition():
                return True
            time.sleep(0.1)
        notes.append(f"not within {timeout:.0f} s: {what.split(': ')[-1]}")
        return False

    def up(self, text):
        return text in ("connected", "live", "up")

    def all_up(self):
        return all(self.up(self.watch.state.get(i, "")) for i in self.paths)

    def stall(self, since, until, logs):
        """Longest time without a completion between two host times,
        or that an I/O took which was completed then."""
        off = self.watch.offset(since)
        ends = sorted((ms / 1e3 + off, took / 1e3) for ms, took in self.completions(logs))
        marks = [since] + [h for h, _ in ends if since < h < until] + [until]
        open_since = min((i[2] for k, i in logs.issued.items()
                          if k not in logs.acked and k not in logs.failed), default=None)
        return max([b - a for a, b in zip(marks, marks[1:])]
                   + [took for h, took in ends if since < h < until]
                   + ([until - open_since / 1e3 - off] if open_since is not None else []))

    def read_logs(self):
        return check.Logs([self.guest.vm.share / self.name])

    def completions(self, logs):
        """(ms, how many ms it took) of each I/O that succeeded."""
        return [*logs.acked.values()] + [r[:2] for r in logs.read]

    def errors(self, logs, since, until):
        off = self.watch.offset(since)
        times = [f[1] for f in logs.failed.values()] + [r[1] for r in logs.read_errors]
        return sum(since < ms / 1e3 + off < until for ms in times)

    # ---- breaking --------------------------------------------------------------------------------
    def fault(self, number, what, strike, heal=None, hold=4, down=(), up=None, detect=12,
              recover=30, note="", settle=1.0, from_healed=False):
        """One fault from strike to recovery; its row, to which end() adds what the checker found.

        down: indices of paths that must be marked down, in link order; hold: seconds until heal(),
        counted from the strike but not before the paths are down; up: a condition that ends
        recovery instead of "all watched paths up"; from_healed: Trec counts from the end of heal(),
        which takes its time (a boot).
        """
        t, w, notes = self.t, self.watch, [note] if note else []
        if not (self.until(self.flows, 20, "I/O", []) if self.lenient else self.flows()):
            self.save()
            t.fail(f"{number}: I/O flows before the fault")
        t.log(f"--- {number}: {what}")
        begin = time.monotonic()
        strike()
        struck = time.monotonic()
        not_up = lambda text: not self.up(text)
        if down:
            self.until(lambda: all(w.first(begin, i, not_up) is not None for i in down), detect,
                       f"{number}: paths {down} are marked down", notes)
        found = [h for h in (w.first(begin, i, not_up) for i in down) if h is not None]
        time.sleep(max(0, hold - (time.monotonic() - struck)))
        healed = time.monotonic()
        held = healed - struck
        if heal:
            heal()
            healed = time.monotonic() if from_healed else healed
        well = self.until(up or self.all_up, recover, f"{number}: all paths are up again", notes)
        back = time.monotonic()
        if self.lenient:        # a hung one is given that time once
            recover = max(15, recover + healed - back)
        well = self.until(self.flows, recover, f"{number}: I/O flows again", notes) and well
        time.sleep(settle)
        end = time.monotonic()
        logs = self.read_logs()
        done = self.completions(logs)
        off = w.offset(healed)
        flowing = min((h for h in (ms / 1e3 + off for ms, _ in done) if h > healed), default=None)
        if down and not up:
            back = max([h for h, i, text in w.changes if h > healed and i in down and self.up(text)]
                       or [back])
        row = dict(fault=number, what=what, stack=self.stack,
                   Tdet=max(found) - struck if found and len(found) == len(down) else None,
                   Tstall=self.stall(begin, end, logs),
                   Trec=max(back, flowing) - healed if heal and flowing and well else None,
                   Nerr=self.errors(logs, begin, end), held=held, note="; ".join(notes))
        row["Tdet"] = None if row["Tdet"] is None else max(0.0, row["Tdet"])
        t.log(row)
        self.rows.append(row)
        return row

    def limit(self, row, **limits):
        """Assert figures of a row, e.g. Tdet=1, Tstall=2, Nerr=0
        (times: must be below; numbers: at most)."""
        if within(1) > 1 and not all(name.startswith("N") for name in limits):
            row["note"] = "; ".join(filter(None, [row["note"], f"limits x{within(1):.0f}"]))
        for name, most in limits.items():
            got = row[name]
            if got is None or (got > most if name.startswith("N") else got >= within(most)):
                self.t.fail(f"{row['fault']} {row['what']}: {name} is {got}, want at most {most}; "
                            f"{row}\n{self.told()}")

    def told(self):
        """What both ends said of paths lately,
        and each step of the client's paths with its reason."""
        lines = []
        for guest in (self.guest, self.t.server):
            try:
                said = [line for line in guest.sh("dmesg").splitlines()
                        if "ibtrs" in line or "set active" in line]
            except (case.Failed, vm.VMError) as e:
                said = [str(e).splitlines()[0]]
            lines += [f"{guest.name}: {line}" for line in said[-15:]]
        try:
            lines += self.guest.rc(f"tail -n 60 {TRACING}/trace")[1].splitlines()
        except vm.VMError:
            pass    # its silence is told above
        return "\n".join(lines)

    def remark(self, text):
        row = self.rows[-1]
        row["note"] = "; ".join(filter(None, [row["note"], text]))

    # ---- the end ---------------------------------------------------------------------------------
    def save(self):
        """Copy the logs to where a new boot of the guest does not sweep them away."""
        for p in self.guest.vm.share.glob(f"{self.name}.[0-9]*"):
            shutil.copy(p, self.saved)
        self.logs = [self.saved / self.name]
        return self.logs

    def stop(self, errors_expected=False):
        """Let the writers end; their last words."""
        self.guest.sh(f"pkill -TERM -x stamp || true")
        try:
            rc, hangs = self.job.wait(30), False
        except vm.JobTimeout:
            if not self.lenient:
                raise
            rc, hangs = 1, True
        out = self.job.out()
        self.watch.end()
        self.save()
        self.t.log(f"stamp: status {rc}\n{out[-3000:]}")
        if hangs or "hangs" in out:
            if not self.lenient:
                self.t.fail(f"an I/O never ended:\n{out[-500:]}")
            self.remark("I/O hangs")
        if rc == 3:
            self.t.log("stamp read something wrong; the verdict follows")
        elif rc == 1 and not errors_expected:
            self.t.fail(f"stamp saw I/O errors:\n{out[-1000:]}")
        elif rc not in (0, 1):
            self.t.fail(f"stamp: status {rc}:\n{out[-1000:]}")
        return out

    def end(self, disk, server=None, errors_expected=False, unmap=True, others=(), rows=True):
        """Stop, unmap, scan the disk where it really is, prove, complete the rows."""
        self.stop(errors_expected)
        if unmap:
            self.guest.sh(f"unmap {self.dev}")
        return prove(self.t, server or self.t.server, disk, [self, *others], self.blocks)


def prove(t, server, disk, works, blocks, must_fail=False, lenient=False, p1=False):
    """Scan `disk` on `server` and check it against the saved logs of all works;
    rows go to the table.

    must_fail: it is a failure when nothing is wrong; lenient: what is wrong only goes to the table;
    p1: what no flush had covered may be lost, once an error has told of it.
    """
    name = f"scan{time.monotonic_ns()}"
    server.sh(f"stamp scan {disk} {blocks} /h/{name}", timeout=60)
    saved = works[0].saved / "scan"
    shutil.copy(server.vm.share / name, saved)
    verdict = check.check(saved, [p for w in works for p in w.logs], told=p1)
    t.log(verdict.line(), *verdict.texts[:100])
    for w in works:
        for row in w.rows:
            row.update(Nlost=verdict.lost, Nghost=verdict.ghost, Ncorr=verdict.wrong)
            if verdict.logs.flushes and (verdict.lost or verdict.ghost):
                row["note"] = "; ".join(filter(None, [
                    row["note"], f"{verdict.flushed} of the lost ones a flush had covered"]))
            t.figure(**row)
    bad = verdict.wrong + (verdict.flushed if p1 else verdict.lost + verdict.ghost)
    t.ok(verdict.logs.acked, "nothing was acknowledged: nothing is proven")
    if bad and not must_fail and not lenient:
        t.fail(f"{verdict.line()}\n" + "\n".join(verdict.texts[:20]))
    if must_fail and not bad:
        t.fail(f"the checker should have found something: {verdict.line()}")
    return verdict


# ---- two servers, of which one serves ------------------------------------------------------------

def late_writer(t, active, address, between):
    """A client holds a write, another one writes, and the servers change: it is not written.
    active(): the one that serves; between(b_goes): what becomes of the servers, and when the other
    client goes."""
    c = t.client
    put = ("head -c 4096 /dev/zero | tr '\\0' {} | dd of={} bs=4k count=1 seek=3000 "
           "iflag=fullblock oflag=direct status=none")
    path = f"path=ip:10.0.0.1@ip:{address}"
    a = c.sh(f"map vol1 unflushed=ignore sessname=a hold=-1 {path}")
    c.sh(put.format("A", a))
    c.sh("echo 1 > $(echo /sys/class/ibtrs-client/a/paths/*)/disconnect")
    t.wait(lambda: c.sh(f"dev_attr {a} state_detail").startswith("held"), 20, "a waits")
    job = c.spawn(put.format("O", a))
    t.wait(lambda: not active().sh("exports"), 30, "the server has let it go")
    b = c.sh(f"map vol1 unflushed=ignore sessname=b {path}")
    c.sh(put.format("B", b) + f"; sync {b}")
    between(lambda: c.sh(f"unmap {b} force"))
    c.sh("echo 1 > $(echo /sys/class/ibtrs-client/a/paths/*)/reconnect 2> /dev/null || true")
    t.wait(lambda: c.sh(f"dev_attr {a} state_detail") == "fenced", 60, "a is fenced")
    t.match(c.sh(f"dev_attr {a} reason"), "^another client may have written meanwhile$")
    t.ok(job.wait(30) != 0, "its write has failed")
    c.sh(f"unmap {a} force")
    b = c.sh(f"map vol1 sessname=b {path}")
    t.eq(c.sh(f"dd if={b} bs=4k skip=3000 count=1 iflag=direct status=none | head -c 1"), "B",
         "what b wrote")
    c.sh(f"unmap {b}")
