# SPDX-License-Identifier: GPL-2.0-only
"""What a test of the command needs:
a sysfs of files, a root beside it, the command, and golden files."""
import json, os, re, shutil, socket, subprocess, sys, tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
VERSION = re.search(r'IBNBD_VERSION "(.*)"', (TOP / "ibtrs/include/ibtrs/version.h").read_text())[1]
TESTS = []
DEADLINE = 60
os.umask(0o022)     # files that others may write to are refused


class Failed(Exception):
    pass


def test(f):
    """Decorator: a test is a function of one World."""
    TESTS.append(f)
    return f


class Ran:
    def __init__(self, args, p):
        self.args, self.rc, self.out, self.err = args, p.returncode, p.stdout, p.stderr

    def __str__(self):
        return (f"ibnbd {' '.join(map(str, self.args))}\nexit {self.rc}\n"
                f"--- stdout\n{self.out}--- stderr\n{self.err}")


class World:
    """A machine in a directory: sys/ and root/."""
    build = None
    update = False
    kernel = None       # its socket
    storage = None

    def __init__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="ibnbd-tools-"))
        self.sys, self.root = self.dir / "sys", self.dir / "root"
        self.env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8",
                    "IBNBD_SYSFS": str(self.sys), "IBNBD_ROOT": str(self.root),
                    "IBNBD_FAKE": str(self.kernel), "HOME": "/", "TERM": "dumb",
                    "ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
        for d in (self.sys, self.root / "etc/ibnbd", self.root / "proc/self", self.root / "dev"):
            d.mkdir(parents=True)
        (self.root / "proc/self/mountinfo").write_text("")
        (self.root / "etc/machine-id").write_text("5eed" * 8 + "\n")
        self.conf("# no rules\n", "policy.conf")       # as the package has it

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)
        if self.storage:
            shutil.rmtree(self.storage, ignore_errors=True)

    def travels(self):
        """A file system other than that of the machine, as storage is that two hosts can have."""
        self.storage = Path(tempfile.mkdtemp(prefix="ibnbd-tools-", dir="/dev/shm"))
        if self.storage.stat().st_dev == self.dir.stat().st_dev:
            raise Failed("/dev/shm has to be a file system of its own")
        return self.storage

    # ---- building ----
    def put(self, path, text=""):
        p = self.dir / path
        p.parent.mkdir(parents=True, exist_ok=True)
        p.write_text(f"{text}\n")
        return p

    def client(self):
        for name, text in (("map_device", "Usage"), ("last_error", "")):
            self.put(f"sys/class/ibnbd-client/ctl/{name}", text)
        self.put("sys/module/ibnbd_client/version", VERSION)

    def server(self):
        ctl = "sys/class/ibnbd-server/ctl/devices"
        self.put("sys/class/ibnbd-server/ctl/last_error")
        self.put("sys/class/ibnbd-server/ctl/policy", "# no rules")
        for key, text in (("dev_search_path", "/srv/exports"), ("allow", ""), ("port_nr", "1234"),
                          ("copy", "auto"), ("io_mode", "auto"), ("claim", "Y"),
                          ("file_block", "512"), ("write_zeroes", "N"), ("max_maps", "1024"),
                          ("writer_file", "/var/lib/ibnbd/writers")):
            self.put(f"sys/module/ibnbd_server/parameters/{key}", text)
        for export, session in (("sdb", "clt1"), ("sdb", "clt2"), ("!srv!disk.img", "clt1")):
            for key, text in (("size", "4194304"), ("identity", "hardware:ff00"), ("copy", "auto"),
                              ("claimed", "1" if export == "sdb" else "0")):
                self.put(f"{ctl}/{export}/{key}", text)
            for key, text in (("read_only", "0" if session == "clt1" else "1"),
                              ("access_mode", "rw" if session == "clt1" else "ro"),
                              ("mapping_path", "vol/" + export[-3:]), ("device_id", "7"),
                              ("force_close", "")):
                self.put(f"{ctl}/{export}/sessions/{session}/{key}", text)
        link = self.dir / ctl / "sdb/block_dev"
        link.symlink_to("../../../../../block/sdb")
        for session in ("clt1", "clt2"):
            p = f"sys/class/ibtrs-server/{session}/paths/ip:10.0.0.1@ip:10.0.0.2"
            for key, text in (("hca_name", "rxe0"), ("hca_port", "1"), ("src_addr", "ip:10.0.0.1"),
                              ("dst_addr", "ip:10.0.0.2"), ("disconnect", ""),
                              ("stats/rdma", "1 2 3 4")):
                self.put(f"{p}/{key}", text)

    def keyring(self, before="", spoofs=()):
        """ibtrs-core's keyring 2a. before: lines of /proc/keys that stand before it; spoofs: what
        other keys are."""
        self.put("root/proc/keys", before + "0000002a I------     1 perm 1f1f0000     0     0 "
                 "keyring   .ibnbd: 1\n00000bad I--Q---     1 perm 3f010000  1000  1000 user")
        (self.root / "keys").mkdir(exist_ok=True)
        for key, what in (("2a", "keyring;0;0;1f1f0000;.ibnbd"), *spoofs):
            (self.root / "keys" / key).write_text(what)
        (self.root / "keyring").mkdir(exist_ok=True)

    def conf(self, text, name="maps.conf"):
        p = self.root / "etc/ibnbd" / name
        p.parent.mkdir(parents=True, exist_ok=True)
        p.write_text(text)
        p.chmod(0o644)
        return p

    def process(self, pid, comm, disk, group="user.slice/session-1.scope", node="dev/"):
        """A process that has the disk open; its node is there from now on."""
        node += disk if node[-1] == "/" else ""
        node = self.put(f"root/{node}", (self.sys / f"block/{disk}/dev").read_text().strip())
        self.put(f"root/proc/{pid}/comm", comm)
        self.put(f"root/proc/{pid}/cgroup", f"0::/{group}")
        fd = self.root / f"proc/{pid}/fd"
        fd.mkdir()
        (fd / "0").symlink_to(self.put("root/dev/null"))
        (fd / "5").symlink_to(node)

    def namespace(self, pid, number, mounts=""):
        """The mount namespace of a process."""
        self.put(f"root/proc/{pid}/mountinfo", mounts)
        ns = self.root / f"proc/{pid}/ns"
        ns.mkdir()
        (ns / "mnt").symlink_to(f"mnt:[{number}]")

    # ---- running ----
    def run(self, *args, want=0, program="ibnbd-faked", env=None, stdin=None, user=None):
        p = subprocess.run([str(self.build / program), *map(str, args)],
                           env={**self.env, **(env or {})}, capture_output=True, text=True,
                           timeout=DEADLINE, stdin=stdin or subprocess.DEVNULL, user=user)
        r = Ran(args, p)
        if "Sanitizer" in r.err or "runtime error" in r.err or r.rc < 0:
            raise Failed(f"it broke: {r}")
        if want is not None and r.rc != want:
            raise Failed(f"exit status {want} was expected: {r}")
        return r

    def json(self, *args, **how):
        r = self.run(*args, "--json", **how)
        try:
            return json.loads(r.out)
        except ValueError as e:
            raise Failed(f"no JSON: {e}: {r}")

    def log(self):
        p = self.sys / "log"
        return p.read_text().splitlines() if p.exists() else []

    def neutral(self, text):
        return (text.replace(str(self.root), "ROOT").replace(str(self.sys), "SYS")
                .replace(str(self.dir), "DIR").replace(f'"{VERSION}"', '"VERSION"')
                .replace(socket.gethostname().replace(".", "-") + "-47dbd6e2@", "HOST@"))

    def golden(self, name, text):
        f = HERE / "golden" / name
        text = self.neutral(text)
        if self.update:
            f.write_text(text)
        elif not f.exists() or f.read_text() != text:
            import difflib
            old = f.read_text() if f.exists() else ""
            raise Failed(f"not as in golden/{name}:\n" + "".join(difflib.unified_diff(
                old.splitlines(1), text.splitlines(1), "golden", "now")))


def older(w):
    """The drivers of the first release, which do not show how a session was set up."""
    for name in ("dest_port", "hb_interval_ms", "hb_misses", "reconnect_delay_ms",
                 "reconnect_max_ms", "ibnbd/write_zeroes", "ibnbd/write_cache",
                 "ibnbd/unflushed", "ibnbd/retain_mb", "ibnbd/group", "ibnbd/failfast",
                 "ibnbd/in_sync"):
        for f in (*w.sys.glob(f"class/ibtrs-client/*/{name}"), *w.sys.glob(f"block/*/{name}")):
            f.unlink()


def eq(got, want, what=""):
    if got != want:
        raise Failed(f"{what}: got {got!r}, expected {want!r}")


def has(text, *words):
    text = str(text)
    for w in words:
        if w not in text:
            raise Failed(f"{w!r} is not in: {text}")


def hasnt(text, *words):
    text = str(text)
    for w in words:
        if w in text:
            raise Failed(f"{w!r} is in: {text}")
