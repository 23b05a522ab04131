#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Whole Debian systems in virtual machines: systemd, udev and fstab with a disk of ours, over a reboot.

    tests/packages/boot.py [--suite bookworm] [WORD]..   the first step, and those whose names contain a WORD

The client is a Debian made by debootstrap (root.sh image) with the packages of `make deb` in it, whose modules DKMS has built; it boots the rig's
stock kernel from a disk.  The server is a machine of the rig.  Every step takes the two machines as it finds them and says what it needs:
client_up(), server_up(), and what the first step saved.  Last line: N passed, N failed, N skipped.  Logs: build/systems/SUITE.
"""
import argparse, copy, hashlib, subprocess, sys, time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/vm"))
sys.dont_write_bytecode = True
import case, image, launch, vm

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
UUID = "01234567-89ab-cdef-0123-456789abcdef"
STEPS = []


def step(f):
    STEPS.append(f)
    return f


class Failed(Exception):
    pass


class System(vm.VM):
    """A machine that boots its disk.  Our package takes part in that, so a boot that fails is not tried again."""
    tries = 1

    def down(self, timeout):
        """Wait for it to end by itself; the seconds it took."""
        t0 = time.monotonic()
        try:
            self.process.wait(timeout * vm.SLOW)
        except subprocess.TimeoutExpired:
            raise Failed(f"no end of the shutdown within {timeout} s; the console ends with:\n{self.console_tail(60)}")
        self.alive = False
        return time.monotonic() - t0


def prepare(suite):
    """The disk of a system with our packages, made anew when they or what goes into it have changed."""
    logs = TOP / "build/systems" / suite
    logs.mkdir(parents=True, exist_ok=True)
    sources = sorted((TOP / "build/deb").glob("*.deb"))
    if not sources:
        raise SystemExit("boot.py: no packages in build/deb: make deb")
    sources += [f for f in sorted((TOP / "tests/packages/machine").rglob("*")) if f.is_file()]
    sources += [TOP / "tests/packages/root.sh", TOP / "tests/vm/guest/init"]
    key = hashlib.sha256(b"".join(f.read_bytes() for f in sources)).hexdigest()
    disk, stamp = logs / "pristine.img", logs / "pristine.key"
    if not disk.exists() or not stamp.exists() or stamp.read_text() != key:
        stamp.unlink(missing_ok=True)
        disk.unlink(missing_ok=True)
        with open(logs / "image.log", "w") as log:
            made = subprocess.run([TOP / "tests/packages/root.sh", "image", suite, disk], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                  timeout=3600)
        if made.returncode:
            raise SystemExit(f"boot.py: no image of {suite}:\n" + (logs / "image.log").read_text()[-3000:])
        stamp.write_text(key)
    return disk


class Test:
    def __init__(self, suite, pristine):
        self.logs = TOP / "build/systems" / suite
        self.logs.mkdir(parents=True, exist_ok=True)
        self.log_file = open(self.logs / "log", "w")
        self.t0 = time.monotonic()
        disk = self.logs / "root.img"
        subprocess.run(["cp", "--sparse=always", "--reflink=auto", pristine, disk], check=True)
        self.boot = launch.boot_image()
        self.second = copy.copy(self.boot)
        self.second.initrd = self.boot.workdir / "system.cpio"
        tree = image.Tree()
        tree.file("init", INIT, 0o755)
        image.build(self.boot.kver, self.second.initrd)
        with open(self.second.initrd, "ab") as f:
            f.write(tree.close())
        peer, self.server = vm.machines(self.boot, 2, 1, mem=1024, logdir=self.logs)
        self.client = System("client", self.second, 1, peer.nics, mem=1024, logdir=self.logs, append="systemd.show_status=1")
        self.client.disk = disk

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
        end = time.monotonic() + timeout * vm.SLOW
        t0 = time.monotonic()
        while True:
            rc, out = self.client.run(script, 30)
            if rc == 0:
                self.log(f"{what}: after {time.monotonic() - t0:.1f} s")
                return
            if time.monotonic() > end:
                state = self.client.run("systemctl list-jobs --no-pager; systemctl --failed --no-pager; journalctl -b -u 'ibnbd*' --no-pager | tail -n 40", 30)[1]
                raise Failed(f"{what}: not within {timeout} s\n{out}\n{state}")
            time.sleep(0.5)

    # ---- machines ----
    def server_up(self):
        """A server, its disks zeroed; the one that runs, if one does."""
        if not self.server.alive:
            self.server.start()
            self.server.ready(60)
            case.bring_up(self.server, 1, [self.server])
            self.sh("serve; ram_disks 3 64", machine=self.server)

    def client_up(self, limit=120):
        """Boot the client until multi-user.target is there; the seconds from power on.  One that runs goes on."""
        if self.client.alive:
            return 0
        self.client.start()
        self.client.ready(2 * limit)
        self.wait("systemctl is-active multi-user.target", limit, "multi-user.target")
        seconds = time.monotonic() - self.client.started
        self.log(f"client up after {seconds:.1f} s: " + self.client.run("systemd-analyze time", 60)[1])
        self.greet()
        return seconds

    def greet(self):
        """Fill the neighbour caches of both: ib_core sleeps long when it misses an answer."""
        if self.server.alive:
            for m, host in ((self.client, 2), (self.server, 1)):
                m.run(f"wait_for 20 ping -q -c 1 -W 1 10.0.0.{host} > /dev/null", 40)

    def reboot(self, limit=120):
        down = self.stop("reboot")
        return down, self.client_up(limit)

    def stop(self, verb="poweroff"):
        """Shut the client down in order; the seconds that took."""
        self.client.spawn(f"systemctl {verb}")
        seconds = self.client.down(120)
        self.log(f"{verb}: {seconds:.1f} s")
        return seconds

    def links(self):
        return self.sh("find /dev/ibnbd /dev/disk -lname '*ibnbd*' -printf '%p\\n' | grep -v by-diskseq | sort").split()


@step
def saved_mapping_comes_back(t):
    t.server_up()
    t.client_up()
    if t.sh("ibnbd map ram0 s1 10.0.0.2 --name vol1 --hold 100 --save", 60) != "/dev/ibnbd0":
        raise Failed("map")
    t.sh(f"mkfs.ext4 -q -U {UUID} -L data /dev/ibnbd/by-name/vol1; mkdir -p /data /lvm /luks; "
         f"echo 'UUID={UUID} /data ext4 _netdev,nofail 0 2' >> /etc/fstab; systemctl daemon-reload; udevadm settle; mount /data; "
         "echo one > /data/file; sync")
    before = t.links()
    t.log(f"links: {before}")
    for want in (f"/dev/disk/by-uuid/{UUID}", "/dev/disk/by-label/data", "/dev/ibnbd/by-name/vol1", "/dev/ibnbd/by-session/s1/ram0"):
        if want not in before:
            raise Failed(f"{want} is not in {before}")
    t.reboot()
    t.wait("mountpoint -q /data", 90, "the mount after a reboot")
    if t.sh("cat /data/file") != "one" or t.links() != before:
        raise Failed(f"after the reboot: {t.links()}, before: {before}")
    t.sh("systemctl is-active ibnbd-map@vol1 ibnbd-shutdown; ibnbd doctor || [ $? = 1 ]")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--suite", default="bookworm")
    p.add_argument("word", nargs="*")
    o = p.parse_args()
    steps = [f for i, f in enumerate(STEPS) if i == 0 or not o.word or any(w in f.__name__ for w in o.word)]
    pristine = prepare(o.suite)
    turn = launch.alone()
    t, passed, failed = None, 0, 0
    try:
        t = Test(o.suite, pristine)
        for f in steps:
            t0 = time.monotonic()
            t.log(f"== {f.__name__}")
            try:
                f(t)
                passed += 1
                print(f"ok    {o.suite}: {f.__name__} ({time.monotonic() - t0:.0f} s)", flush=True)
            except (Failed, vm.VMError) as e:
                failed += 1
                t.log(f"FAIL {e}\n{t.client.console_tail(80)}")
                print(f"FAIL  {o.suite}: {f.__name__} ({time.monotonic() - t0:.0f} s, {t.logs})\n{e}", flush=True)
                break
    finally:
        if t:
            for m in (t.client, t.server):
                m.kill()
            t.boot.close()
            (t.logs / "root.img").unlink(missing_ok=True)
        turn.close()
    print(f"{passed} passed, {failed} failed, {len(steps) - passed - failed} skipped")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
