# SPDX-License-Identifier: GPL-2.0-only
"""A Debian with our packages that boots under systemd, and the server beside it:
what the steps of boot.py work with."""
import hashlib, json, os, re, subprocess, sys, time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/vm"))
sys.dont_write_bytecode = True
import case, image, kmsg, launch, vm

INIT = b"""#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
modprobe -a virtio_pci virtio_blk ext4 virtio_net
i=0
while [ ! -b /dev/vda ] && [ $i -lt 200 ]; do usleep 50000; i=$((i + 1)); done
mount -t ext4 /dev/vda /mnt || exec sh
mount -o move /dev /mnt/dev
umount /sys /proc
exec switch_root /mnt /sbin/init
"""
# five disks, which outlive the power cuts of the server
PARTITIONS = r"label: gpt\n,160M\n,64M\n,64M\n,64M\n,64M\n"
# seconds; the last on the busiest host: what hangs is ended by systemd after 90
BOOT, SHUTDOWN, SHUTDOWN_MOST = 120, 30, 60


class Failed(Exception):
    pass


class System(vm.VM):
    """A machine that boots its disk.
    Our package takes part in that, so a boot that fails is not tried again."""
    tries = 1
    more = ()       # arguments of QEMU

    def _command(self):
        return [*super()._command(), *self.more]

    def start(self):
        # of another run
        (self.logdir / f"{self.name}.serial.{self.boots + 1}").unlink(missing_ok=True)
        return super().start()

    def ready(self, timeout=60):
        """But an emulated guest may stop before its first process runs (see vm.VM.ready()), and
        nothing of ours is on the way to its own disk."""
        for _ in range(3):
            end = time.monotonic() + timeout / 4 * vm.SLOW
            while self.alive and time.monotonic() < end:
                said = self.serial.read_text(errors="replace") if self.serial.exists() else ""
                if "Welcome to " in said:
                    return super().ready(timeout)
                if "detected stalls on CPUs" in said:
                    break
                time.sleep(0.5)
            past = self.past_kernel, self.past_console
            print(f"boot.py: {self.name} is booted again, it did not come to its disk; "
                  f"its console ends with:\n{self.console_tail(20)}", file=sys.stderr, flush=True)
            self.start()
            self.past_kernel, self.past_console = past
        return super().ready(timeout)

    def down(self, timeout):
        """Wait for it to end by itself, in order; the seconds it took."""
        t0 = time.monotonic()
        try:
            self.process.wait(timeout * vm.SLOW)
        except subprocess.TimeoutExpired:
            raise Failed(f"no end of the shutdown within {timeout} s; the console ends with:\n"
                         f"{self.console_tail(60)}")
        self.alive = False
        seconds = time.monotonic() - t0
        # The agent is gone early, and a panic ends QEMU as well: only the console knows.
        # The kernel's lines have a time.
        console = [l for l in self.serial.read_text(errors="replace").replace("\r", "").splitlines()
                   if re.search(r"\[ *\d+\.\d{6}\]", l)]
        bad, _ = kmsg.trouble("\n".join(console))
        if bad:
            raise Failed(f"the client's console says:\n{bad[0]}")
        if (self.process.returncode
                or not any(re.search(r"reboot: (Power down|Restarting system)", l)
                           for l in console)):
            raise Failed(f"it did not end in order, {self.end_of_qemu()}; the console ends with:\n"
                         f"{self.console_tail(60)}")
        return seconds


def prepare(suite, more=(), logs=None):
    """(disk, its kernel) of a system with our packages, and more of Debian's,
    made anew when they or what goes into it have changed."""
    logs = logs or TOP / "build/systems" / suite
    logs.mkdir(parents=True, exist_ok=True)
    sources = sorted((TOP / "build/deb").glob("*.deb"))
    if not sources:
        raise SystemExit("boot.py: no packages in build/deb: make deb")
    sources += [f for d in ("tests/packages/machine", "debian/tests")
                for f in sorted((TOP / d).rglob("*")) if f.is_file()]
    sources += [TOP / "tests/packages/root.sh", TOP / "tests/vm/guest/init"]
    key = hashlib.sha256(b"".join([*(f.read_bytes() for f in sources),
                                   *(p.encode() for p in more)])).hexdigest()
    disk, stamp = logs / "pristine.img", logs / "pristine.key"
    if not disk.exists() or not stamp.exists() or stamp.read_text() != key:
        stamp.unlink(missing_ok=True)
        disk.unlink(missing_ok=True)
        with open(logs / "image.log", "w") as log:
            made = subprocess.run([TOP / "tests/packages/root.sh", "image", suite, disk],
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=3600,
                                  env={**os.environ, "MORE": " ".join(more)})
        if made.returncode:
            raise SystemExit(f"boot.py: no image of {suite}:\n"
                             + (logs / "image.log").read_text()[-3000:])
        stamp.write_text(key)
    return disk, disk.with_suffix(".kernel").read_text().strip()


def own_boot(kver, workdir=None):
    """What boots a System: the distribution's kernel, which hands over to the machine's disk."""
    boot, tree = vm.Boot(kver, workdir=workdir), image.Tree()
    tree.file("init", INIT, 0o755)
    with open(boot.initrd, "ab") as f:
        f.write(tree.close())
    return boot


def own_disk(pristine, disk):
    subprocess.run(["cp", "--sparse=always", "--reflink=auto", pristine, disk], check=True)
    return disk


class Test:
    """The two machines, and what is done to them.
    The server runs the rig's kernel, the client its distribution's own."""
    def __init__(self, suite, pristine, kver):
        self.logs = TOP / "build/systems" / suite
        self.log_file = open(self.logs / "log", "w")
        self.t0 = time.monotonic()
        self.disk = own_disk(pristine, self.logs / "root.img")
        self.boot, self.second = launch.boot_image(), own_boot(kver)
        peer, self.server = vm.machines(self.boot, 2, 1, disk=448, mem=1024, logdir=self.logs)
        self.client = System("client", self.second, 1, peer.nics, mem=1024, logdir=self.logs,
                             append="systemd.show_status=1")
        self.client.disk = self.disk

    def close(self):
        for m in (self.client, self.server):
            m.kill()
        self.boot.close()
        self.second.close()
        self.disk.unlink(missing_ok=True)

    def console(self):
        return self.client.console_tail(80) if self.client.boots else ""

    def log(self, text):
        self.log_file.write(f"[{time.monotonic() - self.t0:7.1f}] {text}\n")
        self.log_file.flush()

    def sh(self, script, timeout=60, machine=None):
        m = machine or self.client
        rc, out = m.run(script, timeout)
        self.log(f"{m.name} # {script.strip()}\n{out}{m.name}: status {rc}")
        if rc:
            raise Failed(f"{m.name}: status {rc} of:\n{script.strip()}\n{out}")
        return out.strip()

    def wait(self, script, timeout, what):
        """Until the script succeeds on the client; the seconds that took."""
        t0 = time.monotonic()
        while True:
            rc, out = self.client.run(script, 30)
            seconds = time.monotonic() - t0
            if rc == 0:
                self.log(f"{what}: after {seconds:.1f} s")
                return seconds
            if seconds > timeout * vm.SLOW:
                raise Failed(f"{what}: not within {timeout} s\n{out}\n{self.state()}")
            time.sleep(0.5)

    def state(self):
        return self.client.run("systemctl list-jobs --no-pager; systemctl --failed --no-pager; "
                               "ibnbd list; cat /proc/mounts | grep /dev/; "
                               "journalctl -b -u 'ibnbd*' --no-pager | tail -n 40", 60)[1]

    def below(self, what, seconds, limit, most=None):
        self.log(f"{what}: {seconds:.1f} s")
        busy = min(limit * vm.SLOW, most or limit * vm.SLOW)
        if seconds > busy:
            raise Failed(f"{what}: {seconds:.1f} s, not below {limit} s"
                         + (f", nor {busy:.0f} s for a busy host" if busy > limit else ""))
        return seconds

    # ---- the server ----
    def server_boot(self):
        """A machine with the disks, which does not listen yet."""
        if self.server.alive:
            return
        self.server.start()
        self.server.ready(60)
        case.bring_up(self.server, 1, [self.server])
        self.sh("modprobe virtio_blk; wait_for 10 test -b /dev/vda; "
                f"[ -b /dev/vda5 ] || printf '{PARTITIONS}' | sfdisk -q /dev/vda; "
                "wait_for 10 test -b /dev/vda5", machine=self.server)

    def server_up(self):
        self.server_boot()
        self.sh("[ -e /sys/module/ibnbd_server ] || serve", machine=self.server)
        self.greet()

    # ---- the client ----
    def client_up(self, limit=BOOT):
        """Boot the client until multi-user.target is there; the seconds from power on.
        One that runs goes on."""
        if self.client.alive:
            return 0
        self.client.start()
        self.client.ready(2 * limit)
        self.wait("systemctl is-active multi-user.target", limit, "multi-user.target")
        seconds = self.below("boot", time.monotonic() - self.client.started, limit)
        self.log(self.client.run("systemd-analyze time", 60)[1])
        if self.client.run("journalctl -b --no-pager | grep -i 'ordering cycle'", 60)[0] == 0:
            raise Failed("systemd found an ordering cycle:\n"
                         + self.client.run("journalctl -b --no-pager "
                                           "| grep -i -A 5 'ordering cycle'", 60)[1])
        self.greet()
        return seconds

    def greet(self):
        """Fill the neighbour caches of both: ib_core sleeps long when it misses an answer."""
        if self.server.alive and self.client.alive:
            for m, host in ((self.client, 2), (self.server, 1)):
                self.sh(f"wait_for 20 ping -q -c 1 -W 1 10.0.0.{host} > /dev/null", 120, m)

    def reboot(self, limit=BOOT):
        return self.stop("reboot"), self.client_up(limit)

    def jobs_done(self):
        """What the boot began, or a command, comes to its end."""
        self.wait("[ -z \"$(systemctl list-jobs --no-legend)\" ] "
                  "|| { systemctl list-jobs; false; }", BOOT, "the end of the jobs of systemd")

    def stop(self, verb="poweroff", limit=SHUTDOWN, at_once=False):
        """Shut the client down in order, within the limit; the seconds that took.  at_once: also
        while its boot still waits for something."""
        if not at_once:
            self.jobs_done()
        self.no_trouble()
        self.client.spawn(f"systemctl {verb}")
        return self.below(verb, self.client.down(4 * limit), limit, SHUTDOWN_MOST)

    def no_trouble(self):
        # Packets to a client that reboots stay in the server's NIC, and with them rxe's references
        # to the queue pair that is destroyed.
        for m, allowed in (self.client, ()), (self.server, (r"rxe_pool\.c:\d+ __rxe_cleanup",)):
            bad, _ = kmsg.trouble(m.kernel_log(), allowed) if m.boots else ([], None)
            if bad:
                raise Failed(f"the kernel of the {m.name} says:\n{bad[0]}")

    def links(self):
        """What each link leads to: the device on the server, and the partition."""
        said = self.sh("udevadm settle\nfind /dev/ibnbd /dev/disk -lname '*ibnbd*' "
                       "| grep -v by-diskseq | sort | while read -r l; do\n"
                       "    d=/sys/class/block/$(basename \"$(readlink -f \"$l\")\") p=\n"
                       "    [ ! -e $d/partition ] || { p=:$(cat $d/partition); d=$d/..; }\n"
                       "    printf '%s\\t%s\\n' \"$l\" \"$(cat $d/ibnbd/mapping_path)$p\"\ndone")
        return dict(l.split("\t") for l in said.splitlines())

    def doctor(self, check, level, *words):
        """What ibnbd doctor finds of that kind and level must have these words, and a hint."""
        findings = json.loads(self.sh("ibnbd doctor --json || [ $? -le 2 ]"))["findings"]
        these = [f for f in findings if (f["check"], f["level"]) == (check, level)]
        if not any(f["hint"] and all(w in f"{f['message']} {f['hint']}" for w in words)
                   for f in these):
            raise Failed(f"ibnbd doctor finds no {check} {level} with {words}: "
                         f"{json.dumps(findings, indent=1)}")

    def mounted(self, *points, timeout=90, what="the mount"):
        return max(self.wait(f"mountpoint -q {p}", timeout, f"{what}: {p}") for p in points)

    def clean(self, part="/dev/vda1", offset=0):
        """The file system on a disk of the server needs no recovery,
        and nobody has the disk mapped."""
        fs = f"'{part}?offset={offset}'" if offset else part
        self.sh("for i in {1..300}; do "
                "[ -z \"$(ls /sys/class/ibnbd-server/ctl/devices)\" ] && break; "
                "usleep 100000; done\n"
                "ls /sys/class/ibnbd-server/ctl/devices; "
                "[ -z \"$(ls /sys/class/ibnbd-server/ctl/devices)\" ]\n"
                f"blockdev --flushbufs {part}; e2fsck -fn {fs}; tune2fs -l {fs} > /tmp/fs\n"
                "grep -q 'Filesystem state: *clean$' /tmp/fs; ! grep needs_recovery /tmp/fs",
                machine=self.server)

    def writer(self):
        """Something that writes to /data all the time, as a unit; an error ends it."""
        self.sh("systemctl stop writer 2> /dev/null || true; "
                "systemctl reset-failed writer 2> /dev/null || true\n"
                "systemd-run -q --unit writer bash -ec 'i=0; while :; do "
                "dd if=/dev/zero of=/data/w bs=64k count=4 oflag=direct conv=notrunc status=none; "
                "i=$((i + 1)); echo $i > /data/n; echo $i > /run/writes; sleep 0.1; done'\n"
                "wait_for 30 test -s /run/writes")
