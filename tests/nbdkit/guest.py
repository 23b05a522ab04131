# SPDX-License-Identifier: GPL-2.0-only
"""A guest whose only disk is one of ours, by way of QEMU: its BIOS loads the kernel from there, and
it writes stamps (tests/stamp) to the second partition until it is told to end."""
import json, re, shutil, socket, struct, subprocess, sys, time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/vm"))
import image

NEEDS = ("syslinux", "mformat", "mcopy", "qemu-storage-daemon")
SECTOR = 512
BOOT, DATA, END = 2048, 65536, 98304        # sectors: two partitions
BLOCKS = 1024                               # of 4 KiB, which are stamped
MBR = "/usr/lib/syslinux/mbr/mbr.bin"
APPEND = "console=ttyS0 panic=-1 quiet"
MODULES = ["virtio_pci", "virtio_blk", "virtio_console"]
INIT = """#!/bin/sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for m in $(cat /modules); do insmod /m/$m; done
until [ -b /dev/vda2 ] && [ -e /log.0 ] && [ -e /ctl ]; do
	sleep 0.1
	for d in /sys/class/virtio-ports/v*; do
		case $(cat $d/name) in
		log) ln -sf /dev/${d##*/} /log.0 ;;
		ctl) ln -sf /dev/${d##*/} /ctl ;;
		esac
	done
done
exec 3<> /ctl
echo up >&3
stamp run /dev/vda2 /log threads=1 blocks=BLOCKS think_us=2000 flush=20 &
read -r word <&3
kill -TERM $!
wait $!
echo ended $? >&3
poweroff -f
""".replace("BLOCKS", str(BLOCKS))


def kernel():
    kver = image.default_kver()
    return image.kernel_root(kver) / f"boot/vmlinuz-{kver}"


def stamp():
    return image.compiled(TOP / "tests/stamp/stamp.c", "-static", "-pthread")


def initramfs(kver):
    tree = image.Tree()
    for d in "bin proc sys dev m".split():
        tree.dir(d)
    tree.node("dev/console", 5, 1)
    tree.file("bin/busybox", Path("/bin/busybox").read_bytes(), 0o755)
    tree.link("bin/sh", "busybox")
    tree.file("bin/stamp", stamp().read_bytes(), 0o755)
    tree.file("init", INIT.encode(), 0o755)
    names = []
    for path in image.stock_modules(kver, MODULES).values():
        names.append(re.sub(r"\.ko.*", ".ko", path.name))
        tree.file(f"m/{names[-1]}", image.plain_module(path))
    tree.file("modules", "\n".join(names).encode())
    return tree.close()


def disk(to, work):
    """The image of the guest's disk, in the file `to`."""
    part, initrd, conf = work / "boot.fat", work / "i", work / "syslinux.cfg"
    run = lambda *words: subprocess.run(words, check=True, capture_output=True, timeout=60)
    initrd.write_bytes(initramfs(image.default_kver()))
    conf.write_text(f"DEFAULT l\nLABEL l\nKERNEL k\nINITRD i\nAPPEND {APPEND}\n")
    run("mformat", "-C", "-i", part, "-T", str(DATA - BOOT), "-H", str(BOOT), "-h", "64",
        "-s", "32", "::")
    run("mcopy", "-i", part, kernel(), "::k")
    run("mcopy", "-i", part, initrd, conf, "::")
    run("syslinux", "--install", part)
    table = b"".join(struct.pack("<B3sB3sII", *entry) for entry in (
        (0x80, b"\xfe\xff\xff", 0x0e, b"\xfe\xff\xff", BOOT, DATA - BOOT),
        (0, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", DATA, END - DATA)))
    with open(to, "wb") as f:
        f.write(Path(MBR).read_bytes()[:440].ljust(446, b"\0"))
        f.write(table.ljust(64, b"\0") + b"\x55\xaa")
        f.seek(BOOT * SECTOR)
        f.write(part.read_bytes())
        f.truncate(END * SECTOR)


def without_bios(work):
    """Words for QEMU: the kernel is there from the start. QEMU's TCG does not see that another
    process, such as qemu-storage-daemon, has put code where code was, as boot loaders do."""
    return ["-kernel", kernel(), "-initrd", work / "i", "-append", APPEND]


class Guest:
    """A QEMU with that disk, given as words of its command line; `incoming`: an address at which it
    waits for the guest of another one; `within`: words before the command."""
    def __init__(self, work, name, words, incoming=None, within=()):
        self.dir, self.name, self.text = work, name, ""
        self.log, self.console = work / f"{name}.log", work / f"{name}.console"
        ctl, qmp = work / f"{name}.ctl", work / f"{name}.qmp"
        port = lambda chardev: ["-device", f"virtserialport,chardev={chardev},name={chardev}"]
        self.qemu = subprocess.Popen(
            [*within, *image.qemu(), "-M", "pc,accel=tcg", "-m", "256", "-nodefaults",
             "-display", "none", "-serial", f"file:{self.console}",
             "-qmp", f"unix:{qmp},server=on,wait=off",
             "-device", "virtio-serial", "-chardev", f"file,id=log,path={self.log}", *port("log"),
             "-chardev", f"socket,id=ctl,path={ctl},server=on,wait=off", *port("ctl"), *words,
             *(["-incoming", incoming] if incoming else [])],
            stdin=subprocess.DEVNULL, stderr=open(work / f"{name}.err", "w"))
        self.qmp, self.ctl = self.connect(qmp).makefile("rw"), self.connect(ctl)
        json.loads(self.qmp.readline())
        self.do("qmp_capabilities")

    def connect(self, path):
        end = time.monotonic() + 20
        while True:
            s = socket.socket(socket.AF_UNIX)
            try:
                s.connect(str(path))
                s.settimeout(60)
                return s
            except OSError:
                s.close()
                assert self.qemu.poll() is None and time.monotonic() < end, self.said()
                time.sleep(0.05)

    def do(self, command, **arguments):
        self.qmp.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.qmp.flush()
        while True:
            answer = json.loads(self.qmp.readline() or '{"error": "QEMU has ended"}')
            assert "error" not in answer, f"{command}: {answer}\n{self.said()}"
            if "return" in answer:
                return answer["return"]

    def said(self):
        return "".join((self.dir / f"{self.name}.{f}").read_text(errors="replace")
                       for f in ("err", "console"))

    def hears(self, pattern):
        """What the guest says on its control port."""
        while not (found := re.search(pattern, self.text)):
            try:
                more = self.ctl.recv(4096)
            except TimeoutError:
                more = b""
            assert more, f"no {pattern!r} in {self.text!r}\n{self.said()}"
            self.text += more.decode()
        return found

    def writes(self):
        """How many writes it has said to be acknowledged."""
        return self.log.read_bytes().count(b"\nA ")

    def moves(self, to):
        self.do("migrate", uri=to)
        end = time.monotonic() + 90
        while (status := self.do("query-migrate").get("status")) != "completed":
            assert status != "failed" and time.monotonic() < end, f"{status}\n{self.said()}"
            time.sleep(0.1)

    def stop(self):
        """The guest writes no more, and is off."""
        self.ctl.sendall(b"stop\n")
        assert self.hears(r"ended (\d+)")[1] == "0", self.said()
        self.qemu.wait(30)

    def end(self):
        if self.qemu.poll() is None:
            self.qemu.kill()
        self.qemu.wait()
        self.qmp.close()
        self.ctl.close()


def proven(to, work, guests):
    """No write that the guest has been told of is lost, has come back or went elsewhere."""
    part, scan = work / "data", work / "scan"
    with open(to, "rb") as f, open(part, "wb") as out:
        f.seek(DATA * SECTOR)
        shutil.copyfileobj(f, out)
    (work / "log.0").write_bytes(b"".join(g.log.read_bytes() for g in guests))
    subprocess.run([stamp(), "scan", part, str(BLOCKS), scan], check=True, timeout=60)
    done = subprocess.run([sys.executable, TOP / "tests/stamp/check.py", scan, work / "log.0"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
