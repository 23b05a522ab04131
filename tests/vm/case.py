# SPDX-License-Identifier: GPL-2.0-only
"""What a case sees: `t` and its machines.  README.md shows a case; this file is the reference.

A case is a file tests/cases/TOPIC/NAME.py:

    description = "one sentence"    # required
    vms = 2                         # 0 none, 1 client (which is the server too),
                                    # 2 client + server, 3 client2
    links = 1                       # NICs between them
    fresh = False                   # True: boot machines for this case alone
    deadline = 120                  # seconds, boot not counted
    needs = []                      # modules that must exist, else the case is skipped;
                                    # rnbd-* are built
    append = ""                     # kernel command line
    mem, smp = 1024, 2              # MiB and CPUs of each machine
    disk = 0                        # MiB of a disk /dev/vda of the server, and of client2, that
                                    # outlives its power cuts
    shared = False                  # True: client2 has the disk of the server, as on one shelf
    door = False                    # True: port 22 of each machine is 127.0.0.1:vm.door of the host
    faults = False                  # True: its figures belong into the table of make check-faults
    long = False                    # True: not in make check; make check-long runs it,
                                    # check-faults if faults
    target = ""                     # the one make target that runs it, if it is none of these
    crowd = False                   # True: asserts no seconds, so it may run beside others
                                    # (run.py -j)
    programs = []                   # of the host, for the guests' /bin; only those that
                                    # the host has
    allow = []                      # kernel log lines (regular expressions) this case causes
                                    # on purpose

    def run(t): ...                 # returns: passed; raises: failed; t.skip(why): skipped
"""
import importlib.util, json, re, shlex, subprocess, sys, time
from pathlib import Path
import kmsg, vm

DEFAULTS = dict(vms=2, links=1, fresh=False, deadline=120, needs=[], append="", mem=1024, smp=2,
                allow=[], disk=0, shared=False, door=False, faults=False, long=False, target="",
                crowd=False, programs=[])

BROAD = ("WARNING: BUG: Oops: Call Trace: Kernel panic ibtrs_client ibtrs_server ibnbd_client "
         "ibnbd_server")


class Failed(Exception):
    """The case found something wrong."""


class Skipped(Exception):
    """The case cannot run here."""


def load(path, name):
    """The case's module, with every missing attribute set to its default."""
    spec = importlib.util.spec_from_file_location("case_" + re.sub(r"\W", "_", name), path)
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    for attribute, value in DEFAULTS.items():
        if not hasattr(module, attribute):
            setattr(module, attribute, value)
    for wanted in ("description", "run"):
        if not hasattr(module, wanted):
            raise Failed(f"{path.name} has no {wanted}")
    module.name, module.path = name, path
    return module


class Guest:
    """A machine in the hands of a case.
    What is not here is passed on to vm.VM (link, pause, put, get ..)."""
    def __init__(self, machine, t):
        self.vm, self.t, self.killed = machine, t, False
        self.heard()

    def __getattr__(self, name):
        return getattr(self.vm, name)

    def rc(self, script, timeout=30):
        """Run a script; (exit status, output), whatever they are."""
        t0 = time.monotonic()
        try:
            rc, out = self.vm.run(script, timeout)
        except vm.VMError as e:
            self.t.log(f"{self.name} # {script.strip()}\n{e}")
            raise
        self.t.log(f"{self.name} # {script.strip()}\n{out}{self.name}: status {rc} "
                   f"after {time.monotonic() - t0:.2f} s")
        return rc, out.strip()

    def sh(self, script, timeout=30):
        """Run a script that must succeed; its output."""
        rc, out = self.rc(script, timeout)
        if rc:
            raise Failed(f"{self.name}: status {rc} of:\n{script.strip()}\n--- output ---\n{out}")
        return out

    def serves_user(self):
        """Is its `serve` ibnbd-serverd's (guest/serve-user)?"""
        return self.rc("[ -x /bin/serve-user ]")[0] == 0

    def fails(self, script, pattern="", timeout=30):
        """Run a script that must fail, saying something that matches the pattern; its output."""
        rc, out = self.rc(script, timeout)
        if not rc:
            raise Failed(f"{self.name}: should have failed, and did not:\n{script.strip()}\n"
                         f"--- output ---\n{out}")
        self.t.match(out, pattern)
        return out

    def spawn(self, script):
        """Start a script; .wait(timeout) gives its status,
        .out() its output so far, .kill() ends it."""
        self.t.log(f"{self.name} & {script.strip()}")
        return self.vm.spawn(script)

    def fio(self, dev, timeout=60, **options):
        """Run fio (libaio, direct); its first job as a dict:
        out["read"]["iops"], out["error"] .."""
        options = {"name": "job", "filename": dev, "direct": 1, "ioengine": "libaio",
                   "randrepeat": 0, "group_reporting": 1, "output-format": "json",
                   "output": "/tmp/fio.json", **options}
        words = " ".join(shlex.quote(f"--{k}={v}") for k, v in options.items())
        self.sh(f"rm -f /tmp/fio.json; fio {words} || {{ cat /tmp/fio.json; exit 1; }}; "
                "cp /tmp/fio.json /h/", timeout)
        text = self.vm.get("fio.json")
        return json.loads(text[text.index("{"):])["jobs"][0]

    def heard(self):
        """What it has logged so far has been dealt with."""
        self.kmsg_start, self.console_start = len(self.vm.kernel_log()), len(self.vm.console_log())

    def kernel_news(self):
        """The kernel's log since the case began."""
        return self.vm.kernel_log()[self.kmsg_start:]

    def server_news(self):
        """What its server has logged since the case began; ibnbd-serverd since it was started."""
        return self.sh("cat /run/serverd.log") if self.serves_user() else self.kernel_news()

    def kill(self):
        """Pull the plug."""
        self.killed = True
        self.t.log(f"{self.name}: killed")
        self.vm.kill()

    def start(self):
        """Start it again after kill(); ready() completes the boot."""
        self.vm.start()
        self.killed = False

    def ready(self, timeout=60):
        seconds = self.vm.ready(timeout)
        bring_up(self.vm, self.t.links, [g.vm for g in self.t.guests])
        self.t.log(f"{self.name}: booted in {seconds:.1f} s")
        return seconds

    def boot(self, timeout=60):
        self.start()
        return self.ready(timeout)

    def trouble(self, allow):
        """What is wrong with the machine after the case: a list of texts."""
        log = self.kernel_news()
        console = kmsg.only_in(self.vm.console_log()[self.console_start:],
                               self.vm.kernel_log(sync=False))
        bad = [f"{self.name}: kernel log:\n{b}" for b in kmsg.trouble(log, allow)[0]]
        bad += [f"{self.name}: console:\n{b}" for b in kmsg.trouble(console, allow)[0]]
        if not self.vm.alive and not self.killed and not bad:
            bad.append(f"{self.name} died; its console ends with:\n{self.vm.console_tail()}")
        return bad


class T:
    """The runner's side of one case."""
    def __init__(self, case, machines, logdir, boot):
        self.case, self.logdir, self.image, self.links = case, Path(logdir), boot, case.links
        self.logdir.mkdir(parents=True, exist_ok=True)
        self.file = open(self.logdir / "log", "w")
        self.t0 = time.monotonic()
        self.allowed, self.figures = [], []
        self.guests = []
        self.guests += [Guest(m, self) for m in machines]
        for g in self.guests:
            setattr(self, g.name, g)
        if len(machines) == 1:
            self.server = self.client

    def anew(self):
        """Other machines, with the same disk."""
        for g in self.guests:
            if g.vm.alive:
                g.kill()
        for g in self.guests:
            g.start()
        for g in self.guests:
            g.ready()

    def log(self, *words):
        self.file.write(f"[{time.monotonic() - self.t0:7.2f}] {' '.join(map(str, words))}\n")
        self.file.flush()

    def sh(self, guest, script, timeout=30):
        return guest.sh(script, timeout)

    def skip(self, why):
        raise Skipped(why)

    def fail(self, why):
        raise Failed(why)

    def ok(self, condition, what):
        if not condition:
            raise Failed(what)

    def eq(self, got, want, what=""):
        if got != want:
            raise Failed(f"{what + ': ' if what else ''}got {got!r}, want {want!r}")

    def match(self, text, pattern, what=""):
        if not re.search(pattern, text, re.M):
            raise Failed(f"{what + ': ' if what else ''}nothing matches {pattern!r} in:\n"
                         f"{text[-3000:]}")

    def killed(self, guest, script, when=None):
        """The script waits for something, and can be killed all the same:
        @when it is there, or after a second."""
        job = guest.spawn(script)
        if when:
            self.wait(when, 30, f"{script}: it has come to where it is to be killed")
        guest.sh("sleep 1")
        self.eq(job.rc, None, f"{script}: it waits; {job.out()}")
        t0 = time.monotonic()
        job.kill()
        job.wait(30)
        self.below(time.monotonic() - t0, 3 * vm.SLOW, f"{script}: seconds until it was dead")

    def below(self, got, limit, what):
        self.log(f"{what}: {got} (limit {limit})")
        if not got < limit:
            raise Failed(f"{what}: {got}, must be below {limit}")

    def wait(self, condition, timeout, what):
        """Until condition() is true; the seconds it took."""
        t0 = time.monotonic()
        while not condition():
            if time.monotonic() - t0 > timeout * vm.SLOW:
                raise Failed(f"{what}: not within {timeout} s")
            time.sleep(0.1)
        return time.monotonic() - t0

    def figure(self, **row):
        """A row of the table of faults, see faults.py."""
        self.log("figure", row)
        self.figures.append(row)

    def allow(self, pattern):
        """From here on the kernel may log trouble that matches;
        say which, by words of that one message."""
        if re.search(pattern, BROAD):
            raise Failed(f"t.allow({pattern!r}) would forgive too much")
        self.allowed.append(pattern)

    def host(self, command, timeout=60):
        """Run a command (list of words) on the host; (exit status, output)."""
        self.log("host $", *command)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=timeout * vm.SLOW)
        self.log(done.stdout, f"host: status {done.returncode}")
        return done.returncode, done.stdout


def bring_up(machine, links, all_machines):
    """Network of a machine that just booted; greets those of the others that are up."""
    rc, out = machine.run(f"net_up {links}", 30)
    for other in all_machines:
        if (rc == 0 and other is not machine and other.alive
                and getattr(other, "net_ready", 0) == other.boots):
            rc, out = machine.run(f"net_ping {other.host}", 60)
            if rc == 0:
                rc, out = other.run(f"net_ping {machine.host}", 60)
    if rc:
        raise vm.VMError(f"{machine.name}: the network does not come up:\n{out}")
    machine.net_ready = machine.boots
