# SPDX-License-Identifier: GPL-2.0-only
"""Virtual machines that run Debian's stock kernel, and the links between them.

A guest is driven out of band: an agent (guest/init) on a virtio-serial port runs jobs and answers
with their exit status; files travel through a 9p directory.  Nobody parses a console for success.
The kernel log is followed into a file of the host, so it is there even when the guest is not.

Links are datagrams over unix sockets between the QEMU processes, so either end may die and return.
With three machines the server's end of each link is a hub.  `vm.link(i, up)` moves the carrier of
that machine's own NIC: the machine itself sees the cable pulled, its peers see silence.

KVM is used if a stock kernel really boots under it, else TCG.
"""
import ctypes, json, math, os, shutil, signal, socket, subprocess, sys, tempfile, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import image

# Multiplies every deadline; on a busy host it is the load of each CPU, up to 4.
SLOW = float(os.environ.get("IBNBD_SLOW") or min(4, max(1, os.getloadavg()[0] / os.cpu_count())))
CMDLINE = ("console=ttyS0 loglevel=5 panic=-1 net.ifnames=0 mitigations=off nowatchdog "
           "cryptomgr.notests random.trust_cpu=on no_timer_check")
DEBUG_SLOW = 4      # how many times slower the debug kernel is
# erms: the emulator counts each byte of a `rep movsb`. The family is what QEMU 7.2 says by itself;
# one of 10.0 has the kernel copy without `rep` (docs/performance.md)
COUNTED_CPU = "max,erms=off,fsrm=off,family=15,model=107,stepping=1"
# a fifth level of page tables, and the registers of AVX at each switch of tasks, are dear to an
# emulator: with the bytes of `rep movsb` a quarter of what a case costs. (raid6_pq, which dm-raid
# and btrfs need, tries AVX where the CPU has it, whether or not the kernel can save its registers)
EMULATED_CPU = f"{COUNTED_CPU},la57=off,xsave=off,avx=off,avx2=off"
# a race panics, too, and the stock drivers beside ours have theirs
DEBUG_CMDLINE = {"debug": "panic_on_warn=1", "kcsan": ""}


class VMError(Exception):
    """The machine did not do what was asked of it."""


class VMDead(VMError):
    """The machine is gone."""


class JobTimeout(VMError):
    """A job did not end before its deadline."""


# QEMU processes must not outlive us.  The kernel's parent-death signal goes by the *thread* that
# forked, so one thread that lives as long as the process forks them all.
_forker = ThreadPoolExecutor(1)
_libc = ctypes.CDLL(None)


def _begin():
    """In the child.  A group of its own, which an interrupt at the terminal does not reach; no
    session of its own, since the host's scheduler shares its time by session (autogroup), and a
    lane of idle priority (check.sh) would get half of it."""
    os.setpgrp()
    _libc.prctl(1, signal.SIGKILL)


def _popen(args, log):
    with open(log, "ab") as out:
        return _forker.submit(subprocess.Popen, args, stdin=subprocess.DEVNULL, stdout=out,
                              stderr=out, preexec_fn=_begin).result()


def tsc_khz():
    if not hasattr(tsc_khz, "value"):
        helper = image.compiled(image.HERE / "tsckhz.c")
        tsc_khz.value = subprocess.check_output([helper], text=True).strip()
    return tsc_khz.value


def _kvm_boots(kernel):
    """Boot the kernel with nothing to mount:
    under a KVM that works it panics at once, and QEMU ends."""
    args = [*image.qemu(), "-accel", "kvm", "-cpu", "max", "-M", "q35", "-m", "512", "-nodefaults",
            "-display", "none", "-no-reboot", "-serial", "stdio", "-kernel", str(kernel),
            "-append", "console=ttyS0 panic=-1"]
    try:
        done = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, timeout=15)
    except subprocess.TimeoutExpired:
        return False
    return b"Kernel panic - not syncing: VFS" in done.stdout


def accel(kernel):
    """kvm or tcg; asked once per boot of the host.  IBNBD_ACCEL overrules."""
    if os.environ.get("IBNBD_ACCEL"):
        return os.environ["IBNBD_ACCEL"]
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    memo = image.CACHE / "accel"
    if memo.exists() and memo.read_text().split()[:1] == [boot_id]:
        return memo.read_text().split()[1]
    answer = "kvm" if _kvm_boots(kernel) else "tcg"
    image.write_whole(memo, f"{boot_id} {answer}\n".encode())
    return answer


def is_debug(kver):
    """Which kernel of debug-kernel.sh is it: "debug", "kcsan", or "" for none."""
    return next((v for v in DEBUG_CMDLINE if kver.endswith(f"-ibnbd-{v}")), "")


def workdir_of_this_process():
    """A directory with a short name, for sockets;
    those of processes that were killed are swept away."""
    for old in Path(tempfile.gettempdir()).glob("ibnbd-rig-*.*"):
        pid = old.name.split("-")[-1].split(".")[0]
        if old.is_dir() and pid.isdigit() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(old, ignore_errors=True)
    return tempfile.mkdtemp(prefix=f"ibnbd-rig-{os.getpid()}.")


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Boot:
    """What is booted: kernel, initramfs and how.  Made once per run, shared by its machines."""
    def __init__(self, kver=None, ko_dirs=(), programs=(), workdir=None):
        self.kver = kver or image.default_kver()
        self.workdir = Path(workdir or workdir_of_this_process())
        self.initrd = self.workdir / "initrd.cpio"
        self.modules = image.build(self.kver, self.initrd, ko_dirs, programs)
        self.kernel = image.unpack_vmlinux(self.kver) or \
            image.kernel_root(self.kver) / f"boot/vmlinuz-{self.kver}"
        self.accel = accel(self.kernel)
        self.hz = image.hz(self.kver)
        self.debug = is_debug(self.kver)

    def close(self):
        shutil.rmtree(self.workdir, ignore_errors=True)


class Job:
    """A script that runs, or ran, in a guest."""
    def __init__(self, vm, number, script):
        self.vm, self.number, self.script = vm, number, script
        self.rc, self.seconds, self.started, self.awaited = None, None, time.monotonic(), False

    def out(self):
        return self.vm.get(f"job.{self.number}.out")

    def wait(self, timeout=60):
        """The exit status.  After the timeout the job is killed and JobTimeout raised."""
        end, self.awaited = self.vm.limit(timeout), True
        with self.vm.news:
            while self.rc is None and self.vm.alive and time.monotonic() < end:
                self.vm.news.wait(min(1.0, max(0.01, end - time.monotonic())))
        if self.rc is not None:
            return self.rc
        if not self.vm.alive:
            raise VMDead(f"{self.vm.name} died while a job was running; {self.vm.end_of_qemu()}")
        self.kill()
        raise JobTimeout(f"{self.vm.name}: "
                         f"no end after {time.monotonic() - self.started:.0f} s of:\n"
                         f"{self.script.strip()}\n--- output so far ---\n{self.out()}")

    def kill(self):
        self.awaited = True
        self.vm.tell(f"KILL {self.number}")


class VM:
    """One guest.  host: its number in addresses (10.0.LINK.host); nics: lists of QEMU arguments."""
    tries = 3       # boots until the agent answers; see ready()
    host_qemu = None    # True: the host's QEMU, whatever the rig uses; None: for counting only

    def __init__(self, name, boot, host, nics=(), smp=2, mem=1024, append="", icount=None,
                 logdir=None, disk=0, door=False):
        self.name, self.boot_, self.host, self.nics = name, boot, host, list(nics)
        self.smp, self.mem, self.append, self.icount = smp, mem, append, icount
        if boot.debug:
            self.mem, self.append = 2 * mem, f"{DEBUG_CMDLINE[boot.debug]} {append}"
        self.dir = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=boot.workdir))
        self.disk, self.shelf, self.door = None, 0, door and _free_port()
        if disk:        # /dev/vda: it outlives the machine's power cuts
            self.disk = self.dir.with_name(self.dir.name + ".disk")
            with open(self.disk, "wb") as f:
                f.truncate(disk << 20)
        self.logdir = Path(logdir) if logdir else self.dir
        self.logdir.mkdir(parents=True, exist_ok=True)
        self.news = threading.Condition()
        self.deadline, self.process, self.alive = None, None, False
        self.jobs, self.count, self.boots, self.spent = {}, 0, 0, 0
        self.past_kernel, self.past_console = "", ""        # logs of earlier boots

    # ---- life ------------------------------------------------------------------------------------
    def start(self):
        """Start QEMU and return; ready() waits for the guest."""
        self.kill()
        if self.boots:
            self.past_kernel, self.past_console = (self.kernel_log(sync=False) + "\n",
                                                   self.console_log() + "\n")
        old = self.dir / "h/state"
        state = {f.relative_to(old): f.read_bytes() for f in old.rglob("*") if f.is_file()}
        shutil.rmtree(self.dir, ignore_errors=True)
        self.share = self.dir / "h"
        (self.share / "state").mkdir(parents=True)
        for name, data in state.items():
            (self.share / "state" / name).parent.mkdir(exist_ok=True)
            self.put(f"state/{name}", data)
        for f in (image.HERE / "guest").iterdir():
            if f.name in ("lib.sh", "shellrc"):
                shutil.copy(f, self.share)
        self.put("hostname", self.name)
        self.put("host", f"{self.host}\n")
        self.put("slow", f"{math.ceil(SLOW)}\n")
        self.boots += 1
        self.ready_at, self.jobs = None, {}
        self.serial = self.logdir / f"{self.name}.serial.{self.boots}"
        self.started = time.monotonic()
        self.process = _popen(self._command(), self.logdir / f"{self.name}.qemu")
        self.alive = True
        self.ctl = self._connect("ctl")
        threading.Thread(target=self._listen, args=(self.ctl, self.process), daemon=True).start()
        return self

    def _command(self):
        b = self.boot_
        if self.icount:         # time = instructions executed; one CPU only, more do not boot
            acc, cpu, khz = "tcg,thread=single,tb-size=512", COUNTED_CPU, 1000000
        elif b.accel == "kvm":
            acc, cpu, khz = "kvm", "host", None
        else:
            acc, cpu, khz = "tcg,thread=multi,tb-size=512", EMULATED_CPU, tsc_khz()
        tsc = f"tsc=reliable tsc_early_khz={khz} lpj={int(khz) * 1000 // b.hz}" if khz else ""
        host = bool(self.icount) if self.host_qemu is None else self.host_qemu
        qemu = ["qemu-system-x86_64"] if host else image.qemu()
        args = [*qemu, "-name", self.name, "-accel", acc, "-cpu", cpu, "-M", "q35",
                "-smp", str(self.smp), "-m", str(self.mem), "-nodefaults", "-no-user-config",
                "-display", "none", "-no-reboot", "-kernel", b.kernel, "-initrd", b.initrd,
                # a counted clock does not wait for the host, but runs out while its disk syncs
                "-append", f"{CMDLINE} {tsc} {'state=ram ' if self.icount else ''}{self.append}",
                "-serial", f"file:{self.serial}",
                "-qmp", f"unix:{self.dir}/qmp,server=on,wait=off",
                "-device", "virtio-serial-pci",
                "-chardev", f"socket,id=ctl,path={self.dir}/ctl,server=on,wait=off",
                "-device", "virtserialport,chardev=ctl,name=ctl",
                "-chardev", f"socket,id=tty,path={self.dir}/tty,server=on,wait=off",
                "-device", "virtconsole,chardev=tty",
                "-fsdev", f"local,id=h,path={self.share},security_model=none,multidevs=remap",
                "-device", "virtio-9p-pci,fsdev=h,mount_tag=h",
                "-object", "rng-random,filename=/dev/urandom,id=rng",
                "-device", "virtio-rng-pci,rng=rng"]
        for i, nic in enumerate(self.nics):
            args += [*nic, "-device",
                     f"virtio-net-pci,netdev=n{i},mac=52:54:00:00:{self.host:02x}:{i:02x}"]
        if self.disk:
            number = self.shelf or self.host    # a disk that is shared has one name everywhere
            args += ["-drive", f"file={self.disk},format=raw,if=none,id=vda,cache=unsafe"
                     + (",file.locking=off" if self.shelf else ""),
                     "-device", "virtio-blk-pci,drive=vda,serial=rig-disk"
                     + (str(number) if number > 2 else "")]
        if self.door:           # 127.0.0.1:door is port 22 of the guest; guest/lib.sh, net_door
            args += ["-netdev", "user,id=door,restrict=on,ipv6=off,net=10.99.0.0/24,"
                     f"hostfwd=tcp:127.0.0.1:{self.door}-10.99.0.15:22", "-device",
                     f"virtio-net-pci,netdev=door,mac=52:54:00:ff:{self.host:02x}:00"]
        if self.icount:
            args += ["-icount", self.icount]
        return [str(a) for a in args]

    def _connect(self, name):
        end = time.monotonic() + 10 * SLOW
        while True:
            s = socket.socket(socket.AF_UNIX)
            try:
                s.connect(f"{self.dir}/{name}")
                return s
            except OSError:
                s.close()
                if self.process.poll() is not None or time.monotonic() > end:
                    raise VMDead(f"{self.name}: QEMU does not run: "
                                 + (self.logdir / f"{self.name}.qemu").read_text(
                                     errors="replace")[-2000:])
                time.sleep(0.01)

    def _listen(self, ctl, process):
        """Thread: takes the agent's answers until the machine is gone."""
        rest = b""
        while True:
            try:
                data = ctl.recv(4096)
            except OSError:
                data = b""
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            with self.news:
                for words in (line.decode(errors="replace").split() for line in lines):
                    if words[:1] == ["READY"]:
                        self.ready_at = time.monotonic()
                    elif words[:1] == ["DONE"] and int(words[1]) in self.jobs:
                        job = self.jobs[int(words[1])]
                        job.rc, job.seconds = int(words[2]), time.monotonic() - job.started
                self.news.notify_all()
        process.wait()
        with self.news:
            if process is self.process:
                self.alive = False
            self.news.notify_all()

    def _answers(self, timeout):
        end = self.limit(timeout)
        with self.news:
            while self.ready_at is None and self.alive and time.monotonic() < end:
                self.news.wait(min(1.0, max(0.01, end - time.monotonic())))
        return self.ready_at is not None

    def ready(self, timeout=60):
        """Wait for the agent; returns the seconds the boot took.

        Emulated, once in some hundred boots a guest stops, or ends, before its first process runs.
        No module of ours exists then: such a guest is started again, which is said aloud; what it
        left is in its QEMU log. A boot takes 4 to 10 s; the first has 15, each next one double.
        """
        for more in reversed(range(self.tries)):
            if self._answers(timeout / (1 << more)):
                return self.ready_at - self.started
            if self.alive:
                how = f"silent after {time.monotonic() - self.started:.0f} s"
                self._note(self.qmp("human-monitor-command",
                                    **{"command-line": "info registers -a"}))
            else:
                how = self.end_of_qemu()
            how += f"; its console ends with:\n{self.console_tail()}"
            self._note(f"boot {self.boots}: {how}\n")
            if more:
                print(f"rig: {self.name} is booted again: {how}", file=sys.stderr, flush=True)
                past = self.past_kernel, self.past_console
                self.start()
                # no case is to blame for what they say
                self.past_kernel, self.past_console = past
        raise VMDead(f"{self.name} did not boot: {how}")

    def _note(self, text):
        with open(self.logdir / f"{self.name}.qemu", "a") as log:
            log.write(text)

    def end_of_qemu(self):
        """What is known of the end of a machine that is gone."""
        said = (self.logdir / f"{self.name}.qemu").read_text(errors="replace")[-1000:]
        return (f"QEMU ended with status {self.process.poll()}"
                + (f", its log with:\n{said}" if said else ""))

    def boot(self, timeout=60):
        self.start()
        return self.ready(timeout)

    def kill(self):
        """Pull the plug."""
        if self.process and self.process.poll() is None:
            self.spent += self._spends()
            self.process.kill()
            self.process.wait()
        self.alive = False

    def off(self):
        if self.alive:
            try:
                self.tell("OFF")
                self.process.wait(5 * SLOW)
            except (VMError, subprocess.TimeoutExpired):
                pass
        self.kill()

    def cpus(self):
        """Seconds of CPUs that its emulator has used, those of earlier boots that kill() ended with
        them."""
        return self.spent + self._spends()

    def _spends(self):
        if not self.alive:
            return 0
        try:
            words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def limit(self, timeout):
        end = time.monotonic() + timeout * SLOW
        return min(end, self.deadline) if self.deadline else end

    # ---- jobs and files --------------------------------------------------------------------------
    def put(self, name, data):
        (self.share / name).write_bytes(data if isinstance(data, bytes) else data.encode())

    def get(self, name):
        try:
            return (self.share / name).read_text(errors="replace")
        except OSError:
            return ""

    def tell(self, line):
        if not self.alive:
            raise VMDead(f"{self.name} is not running")
        try:
            self.ctl.sendall(line.encode() + b"\n")
        except OSError as e:
            raise VMDead(f"{self.name}: agent: {e}") from e

    def spawn(self, script):
        """Start a bash script; any command that fails ends it (set -eu, pipefail)."""
        with self.news:
            self.count += 1
            job = self.jobs[self.count] = Job(self, self.count, script)
        self.put(f"job.{job.number}.out", "")
        self.put(f"job.{job.number}.sh", f"set -eu -o pipefail\n{script}\n")
        self.tell(f"RUN {job.number}")
        return job

    def run(self, script, timeout=60):
        """(exit status, output)"""
        job = self.spawn(script)
        return job.wait(timeout), job.out()

    def sh(self, script, timeout=60):
        """The output; VMError if the script fails."""
        rc, out = self.run(script, timeout)
        if rc:
            raise VMError(f"{self.name}: exit status {rc}\n{out[-2000:]}\n"
                          f"{self.kernel_log()[-2000:]}")
        return out

    def kernel_log(self, sync=True):
        """The kernel's log of this boot and those before,
        complete up to now if the guest still answers."""
        if sync and self.alive:
            mark = f"rig: mark {self.count}.{time.monotonic_ns()}"
            try:
                self.run(f"echo '{mark}' > /dev/kmsg", 10)
                end = time.monotonic() + 5 * SLOW
                while mark not in self.get("kmsg.log") and time.monotonic() < end:
                    time.sleep(0.01)
            except VMError:
                pass
        return self.past_kernel + "".join(
            l for l in self.get("kmsg.log").splitlines(True) if "rig: mark" not in l)

    def console_tail(self, lines=40):
        return "\n".join(self.console_log().splitlines()[-lines:])

    def console_log(self):
        try:
            return self.past_console + self.serial.read_text(errors="replace").replace("\r", "")
        except OSError:
            return self.past_console

    # ---- the machine from outside ----------------------------------------------------------------
    def qmp(self, command, **arguments):
        if not self.alive:
            raise VMDead(f"{self.name} is not running")
        with self._connect("qmp") as s:
            s.settimeout(10 * SLOW)
            lines = s.makefile("rw")
            json.loads(lines.readline())
            for c, a in (("qmp_capabilities", {}), (command, arguments)):
                lines.write(json.dumps({"execute": c, "arguments": a}) + "\n")
                lines.flush()
                answer = {}
                while not answer.keys() & {"return", "error"}:
                    answer = json.loads(lines.readline())
                if "error" in answer:
                    raise VMError(f"{self.name}: {c}: {answer['error']['desc']}")
        return answer["return"]

    def link(self, i, up):
        """Carrier of this machine's NIC i."""
        self.qmp("set_link", name=f"n{i}", up=up)

    def pause(self):
        """Stop the machine's CPUs: it falls silent and knows nothing of it."""
        self.qmp("stop")

    def resume(self):
        self.qmp("cont")

    def clock_skew(self):
        """Guest seconds per host second, measured over one second; 1.00 is right."""
        uptime = lambda: float(self.run("cut -d' ' -f1 /proc/uptime", 10)[1])
        g0, h0 = uptime(), time.monotonic()
        time.sleep(1)
        return (uptime() - g0) / (time.monotonic() - h0)


# ---- topologies ----------------------------------------------------------------------------------
NAMES = {1: ["client"], 2: ["client", "server"], 3: ["client", "server", "client2"]}
HOSTS = {"client": 1, "server": 2, "client2": 3}


def _wire(work, me, peer, link, ident):
    a, b = (f"{work}/{x}-{y}.{link}" for x, y in ((me, peer), (peer, me)))
    return ["-netdev",
            f"dgram,id={ident},local.type=unix,local.path={a},remote.type=unix,remote.path={b}"]


def machines(boot, n=2, links=1, disk=0, shared=False, **options):
    """n machines, each client joined to the server by `links` links; not started yet.
    disk: MiB of that of the server, and of client2, which may serve as well; shared: it is one."""
    names = NAMES[n]
    clients = [x for x in names if x != "server"]
    work = tempfile.mkdtemp(prefix="net.", dir=boot.workdir)
    nics = {x: [] for x in names}
    for i in range(links if n > 1 else 0):
        for c in clients:
            nics[c].append(_wire(work, c, "server", i, f"n{i}"))
        if len(clients) == 1:
            nics["server"].append(_wire(work, "server", clients[0], i, f"n{i}"))
            continue
        hub = ["-netdev", f"hubport,id=n{i},hubid={i}"]
        for c in clients:
            hub += _wire(work, "server", c, i, f"w{i}{c}")
            hub += ["-netdev", f"hubport,id=p{i}{c},hubid={i},netdev=w{i}{c}"]
        nics["server"].append(hub)
    vms = [VM(x, boot, HOSTS[x], nics[x], disk=0 if x == "client" else disk, **options)
           for x in names]
    of = [m for m in vms if m.disk] if shared else []
    for m in of:
        m.disk, m.shelf = of[0].disk, of[0].host
    return vms


def start_all(vms, timeout=60):
    """Boot them side by side; returns the seconds until the last was ready."""
    t0 = time.monotonic()
    for vm in vms:
        vm.start()
    for vm in vms:
        vm.ready(timeout)
    return time.monotonic() - t0


def counted(boot, **options):
    """One machine whose clock counts instructions (two nanoseconds each): time in it is work done,
    whatever the load of the host.  thousand instructions per I/O = 500 / kIOPS."""
    options = {"smp": 1, "mem": 1536, "icount": "shift=1,sleep=off", **options}
    return machines(boot, 1, **options)[0]
