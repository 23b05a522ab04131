#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""nbdkit with the plugin, against a server of libibtrs over a Unix socket, used by qemu-io,
nbdcopy and nbdsh.

    tests/nbdkit/run.py [WORD]      the tests whose name contains WORD

The server is tests/unit/disksrv.c: it dies and comes back with the same disk, or with another one.
Or it is ibnbd-serverd, with a file, or with the disk of another NBD server. And a guest of QEMU
boots from such a disk, and moves to another host (guest.py).
Last line: N passed, N failed.  Exit status 77: nbdkit is not installed (tests/setup.sh does)."""
import json, os, random, shutil, signal, subprocess, sys, tempfile, time, traceback
from pathlib import Path
import guest        # it knows where the next one is
import keys

TOP = Path(__file__).resolve().parents[2]
LIB = Path(os.environ.get("LIB", TOP / "build/lib"))
SERVER = TOP / "build/unit/disksrv"
SERVERD = TOP / "build/unit/test_user_serverd"     # under sanitizers
MIB = 1 << 20
SIZE = 16 * MIB
TESTS = []
NEEDS = ("nbdkit", "nbdcopy", "nbdinfo", "nbdsh", "qemu-io", "qemu-img", "qemu-nbd", "ip",
         "nsenter", *guest.NEEDS)


def test(f):
    TESTS.append(f)
    return f


class World:
    def __init__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="ibnbd-nbdkit-"))
        self.disk, self.at = self.dir / "disk", self.dir / "server"
        self.disk.write_bytes(b"")
        os.truncate(self.disk, SIZE)
        self.server = self.nbdkit = self.backend = None
        # nbdsh is of the system's own python
        self.env = {**os.environ, "LD_LIBRARY_PATH": str(LIB),
                    "PATH": f"/usr/bin:{os.environ['PATH']}"}

    def close(self):
        self.stop()
        self.kill()
        self.end_backend()
        shutil.rmtree(self.dir, ignore_errors=True)

    def serve(self, *words):
        """The server listens."""
        self.at.unlink(missing_ok=True)
        self.server = subprocess.Popen([SERVER, f"unix:{self.at}", self.disk, *words],
                                       stdout=subprocess.PIPE, text=True)
        assert self.server.stdout.readline() == "ready\n", "the server does not start"

    def kill(self):
        if self.server:
            self.server.kill()
            self.server.wait()
            self.server.stdout.close()
            self.server = None

    def serverd(self, *options, at=None, within=()):
        """ibnbd-serverd listens, and exports what is in the directory disks."""
        at = at or f"unix:{self.at}"
        disks, conf = self.dir / "disks", self.dir / "server.conf"
        disks.mkdir(exist_ok=True)
        conf.write_text(f"dev_search_path = {disks}\nwriter_file = {self.dir}/writers\n"
                        "policy = optional\n" + "".join(f"{o}\n" for o in options))
        self.server_log = self.dir / "server.log"
        with open(self.server_log, "a") as log:
            self.server = subprocess.Popen([*within, SERVERD, "-c", conf, "-l", at],
                                           stdout=subprocess.PIPE, stderr=log, text=True,
                                           env={**os.environ, "TEST_SERVERD": "1",
                                                "IBNBD_ROOT": str(self.dir / "root")})
        self.until(lambda: self.server.poll() is not None or
                   self.server_log.read_text().count(f"listens at {at}") > self.listened,
                   "ibnbd-serverd listens")
        self.listened += 1

    def end_serverd(self):
        self.server.terminate()
        assert self.server.wait(20) == 0, self.server_log.read_text()

    listened = 0

    def qemu_nbd(self, *options, image="db1.img"):
        """Another NBD server has the disk db1."""
        at = self.dir / "disks/db1"
        at.unlink(missing_ok=True)
        self.backend = subprocess.Popen(["qemu-nbd", "--persistent", f"--socket={at}", *options,
                                         self.dir / image])
        self.until(at.exists, "qemu-nbd listens")

    def end_backend(self):
        if self.backend:
            self.backend.kill()
            self.backend.wait()
            self.backend = None

    def executed(self):
        """What the server has done, which ends by that."""
        self.server.terminate()
        words = self.server.communicate(timeout=20)[0].split()
        self.server = None
        return dict(zip(words[::2], map(int, words[1::2])))

    def start(self, *options, filters=()):
        """nbdkit runs; its messages are in the file log."""
        self.log = self.dir / "log"
        self.uri = f"nbd+unix:///?socket={self.dir}/nbd"
        at = self.dir / "nbd"
        at.unlink(missing_ok=True)
        with open(self.log, "w") as log:
            self.nbdkit = subprocess.Popen(
                ["nbdkit", "--foreground", "--unix", at,
                 *(f"--filter={f}" for f in filters), LIB / "nbdkit-ibnbd-plugin.so",
                 "session=store1", "device=db1", f"path=unix:{self.at}", *options],
                stdout=log, stderr=log, env=self.env)
        # it listens before the disk is open, and answers after that
        self.until(lambda: self.nbdkit.poll() is not None
                   or at.exists() and self.answers(), "nbdkit starts")
        return self.nbdkit.poll()

    def answers(self):
        return subprocess.run(["nbdinfo", "--size", self.uri], capture_output=True,
                              timeout=30).returncode == 0

    def stop(self):
        if self.nbdkit and self.nbdkit.poll() is None:
            self.nbdkit.terminate()
            try:
                self.nbdkit.wait(20)
            except subprocess.TimeoutExpired:
                self.nbdkit.kill()
                self.nbdkit.wait()
        self.nbdkit = None

    def said(self):
        return self.log.read_text()

    def until(self, cond, what, seconds=30):
        end = time.monotonic() + seconds
        while not cond():
            assert time.monotonic() < end, f"after {seconds} s: {what}"
            time.sleep(0.02)

    def run(self, *args, want=0):
        p = subprocess.run(args, capture_output=True, text=True, timeout=60, env=self.env)
        if want is not None and bool(p.returncode) != bool(want):
            raise AssertionError(f"{args}: exit {p.returncode}\n{p.stdout}{p.stderr}\n"
                                 f"nbdkit: {self.said()}")
        return p.stdout + p.stderr

    def qemu(self, *commands, want=0):
        return self.run("qemu-io", "-f", "raw", *(a for c in commands for a in ("-c", c)),
                        self.uri, want=want)

    def sh(self, code, want=0):
        return self.run("nbdsh", "-u", self.uri, "-c", code, want=want)

    def info(self):
        return json.loads(self.run("nbdinfo", "--json", self.uri))["exports"][0]


def has(text, words):
    assert words in text, f"no {words!r} in:\n{text}"


def survives(w, disk, serve):
    """A copy goes on while its server is killed three times, and serve() starts the next one."""
    data = random.Random(47).randbytes(SIZE)
    src = w.dir / "src"
    src.write_bytes(data)
    load = subprocess.Popen(["nbdcopy", "--flush", "--request-size=65536", src, w.uri],
                            env=w.env)
    for _ in range(3):
        time.sleep(0.1)
        w.kill()
        time.sleep(0.2)
        serve()
    assert load.wait(60) == 0, w.said()
    assert disk.read_bytes() == data, "the disk has other bytes"


@test
def what_it_is(w):
    """Size, blocks and abilities are those of the disk."""
    w.serve()
    assert w.start() is None, w.said()
    i = w.info()
    for key, value in (("export-size", SIZE), ("is_read_only", False), ("is_rotational", True),
                       ("can_flush", True), ("can_fua", True), ("can_multi_conn", True),
                       ("can_trim", True), ("can_zero", True), ("can_fast_zero", True),
                       ("block_size_minimum", 4096), ("block_size_preferred", 4096)):
        assert i[key] == value, f"{key} is {i[key]}"


@test
def abilities_that_are_not_there(w):
    """A disk that is read-only, or has neither discard nor zeroes."""
    w.serve("read-only", "no-discard", "no-zeroes")
    assert w.start("access_mode=ro") is None, w.said()
    i = w.info()
    assert i["is_read_only"] and not i["can_trim"], i
    w.stop()
    w.kill()
    w.serve("no-discard")
    assert w.start() is None, w.said()
    i = w.info()
    assert not i["is_read_only"] and not i["can_trim"], i


@test
def data_goes_there_and_back(w):
    """nbdcopy, several connections and requests at once: what comes back is what went."""
    w.serve()
    assert w.start() is None, w.said()
    data = random.Random(46).randbytes(SIZE)
    src, dst = w.dir / "src", w.dir / "dst"
    src.write_bytes(data)
    w.run("nbdcopy", "--connections=4", "--requests=16", "--flush", src, w.uri)
    assert w.disk.read_bytes() == data, "the disk has other bytes"
    w.run("nbdcopy", "--connections=4", "--requests=16", w.uri, dst)
    assert dst.read_bytes() == data, "other bytes came back"


@test
def each_operation(w):
    """Writes with FUA, trims and zeroes arrive as such; where a disk has no zeroes, nbdkit writes
    them."""
    for words in ((), ("no-zeroes",), ("no-fua",)):
        w.serve(*words)
        assert w.start() is None, w.said()
        w.qemu("write -P 0x55 0 256k", "read -P 0x55 0 256k", "write -f -P 0x66 64k 4k",
               "write -z 8k 64k", "write -z -u 128k 4k", "discard 192k 16k", "flush",
               "read -P 0 8k 56k", "read -P 0x55 0 8k", "read -P 0 128k 4k",
               "read -P 0xdd 192k 16k")
        now = w.disk.read_bytes()
        assert now[:8192] == b"\x55" * 8192 and now[8192:8192 + 65536] == bytes(65536)
        w.stop()
        assert "error" not in w.said(), w.said()
        did = w.executed()
        assert did["discards"] == 1, did
        assert bool(did["zeroes"]) == (words != ("no-zeroes",)), did
        assert bool(did["fuas"]) == (words != ("no-fua",)), did
        assert did["flushes"] > (words == ("no-fua",)), did


@test
def what_does_not_fit(w):
    """Errors name disk, operation, offset and cause; a filter does what the disk cannot."""
    w.serve()
    assert w.start() is None, w.said()
    w.sh("h.set_strict_mode(0); h.pread(512, 512)", want=1)
    has(w.said(), "db1: read at 512: Invalid argument: not aligned to the logical block size")
    w.stop()
    assert w.start(filters=("blocksize",)) is None, w.said()
    w.sh("h.set_strict_mode(0); h.pwrite(b'x' * 512, 512); assert h.pread(1, 1023) == b'x'")
    assert w.disk.read_bytes()[511:513] == b"\0x"


@test
def the_server_dies_and_comes_back(w):
    """Under load, by kill -9: nobody hears of it, and nothing is lost."""
    w.serve()
    assert w.start() is None, w.said()
    survives(w, w.disk, w.serve)


@test
def another_disk_is_there(w):
    """A disk with another identity gets nothing, and each request says why."""
    w.serve()
    assert w.start() is None, w.said()
    w.qemu("write -P 0x55 0 64k", "flush")
    w.kill()
    os.truncate(w.disk, 0)
    os.truncate(w.disk, SIZE)
    w.serve("other-id")
    w.qemu("write -P 0x66 0 64k", want=1)
    has(w.said(), "db1: write at 0: the disk is fenced: another disk is behind this name now")
    assert w.disk.read_bytes() == bytes(SIZE), "the other disk was written to"


@test
def a_cache_is_lost(w):
    """Another epoch: unflushed writes are sent again, or fence the disk; others do not."""
    w.serve()
    assert w.start("retain_mb=2") is None, w.said()
    w.sh("h.pwrite(b'x' * 65536, 0)")
    w.kill()
    os.truncate(w.disk, 0)
    os.truncate(w.disk, SIZE)
    w.serve("other-epoch")
    w.qemu("read -P 0x78 0 64k")
    w.stop()
    w.kill()
    for flush in (True, False):
        w.serve()
        assert w.start("unflushed=fence") is None, w.said()
        w.sh("h.pwrite(b'x' * 65536, 0)" + ("; h.flush()" if flush else ""))
        w.kill()
        w.serve("other-epoch")
        w.sh("h.pread(4096, 0)", want=not flush)
        if not flush:
            has(w.said(), "the disk is fenced: the server may have lost its disk's write cache, "
                          "and the last 1 MiB written were not flushed")
        w.stop()
        w.kill()


@test
def hold_is_over(w):
    """hold= bounds the wait; the disk works again when the server is there."""
    w.serve()
    assert w.start("hold=1") is None, w.said()
    w.kill()
    w.qemu("read 0 4k", want=1)
    has(w.said(), "the disk is failed: hold_ms=1000 is over: no path to the server is up")
    w.serve()
    w.until(lambda: "rror" not in w.qemu("read 0 4k", want=None), "the disk works again")


@test
def options_and_refusals(w):
    """What is wrong or refused is said at once, in words."""
    w.serve()
    for option, words in (("device=db2", "cannot open db2 on session store1: the server says: "
                                         "nothing is exported under that name"),
                          ("session=", "session name is empty"),
                          ("hold=x", "hold"),
                          ("hold=-2", "hold=-2: seconds, 0 to 2147483, or -1 for ever"),
                          ("access_mode=none", "access_mode=none: rw, ro or migration"),
                          ("key=/dev/null", "key=/dev/null: it is no key: it does not begin with "
                                            "ibnbd-key:1:"),
                          ("path=tcp:host", "tcp:host: not an address"),
                          ("unflushed=no", "unflushed=no: auto, replay, fence or ignore"),
                          ("retain=3", "retain: the ibnbd plugin has no such option")):
        w.start(option)
        w.until(lambda: w.nbdkit.poll() is not None, f"nbdkit refuses {option}")
        has(w.said(), words)


@test
def serverd_with_a_file(w):
    """The same through ibnbd-serverd, by kill -9 under load: nobody hears of it."""
    w.serverd()
    disk = w.dir / "disks/db1"
    w.disk.rename(disk)
    assert w.start() is None, w.said()
    assert w.info()["export-size"] == SIZE
    survives(w, disk, w.serverd)
    w.qemu("write -z 0 64k", "discard 64k 64k", "read -P 0 0 128k", "write -f -P 7 512 512",
           "read -P 7 512 512")
    os.truncate(disk, 2 * SIZE)
    w.until(lambda: w.info()["export-size"] == 2 * SIZE, "a new client sees the new size")
    w.stop()
    w.end_serverd()


def ping(w, *words):
    r = subprocess.run([LIB / "ibnbd-ping", *words], env=w.env, capture_output=True, text=True,
                       timeout=60)
    return r.returncode, r.stdout + r.stderr


@test
def is_it_there(w):
    """ibnbd-ping: a server, its disks, what is no server of disks, and what is not there."""
    w.serverd()
    w.disk.rename(w.dir / "disks/db1")
    at, gone = f"unix:{w.at}", f"unix:{w.dir}/nowhere"
    rc, said = ping(w, at, "-d", "db1")
    assert rc == 0, said
    has(said, f"{at}: plain, up in ")
    has(said, "connect ")
    has(said, "    3 answers in ")
    has(said, "    block protocol 2, 512 requests of up to 128 KiB at a time")
    has(said, f"db1: {SIZE} bytes in blocks of 512")
    rc, said = ping(w, at, "-d", "db1", "--device", "nothing")
    assert rc == 1 and "nothing: " in said, said
    has(said, f"db1: {SIZE} bytes")
    rc, said = ping(w, at, gone)
    assert rc == 9 and f"{gone}: " in said and "nothing listens there" in said, said
    rc, said = ping(w, "--json", "-c", "5", gone, at, "-d", "db1", "-d", "nothing")
    j = json.loads(said)
    assert rc == 9 and [p["up"] for p in j["paths"]] == [False, True], said
    up = j["paths"][1]
    assert up["answers"] == 5 and 0 < up["min_us"] <= up["avg_us"] <= up["max_us"], said
    assert up["phases_us"]["connect"] > 0 and up["queue_depth"] == 512 and up["protocol"] == 2, said
    assert j["paths"][0]["why"] and j["paths"][0]["queue_depth"] is None, said
    assert [d["open"] for d in j["devices"]] == [True, False] and j["devices"][1]["why"], said
    w.end_serverd()
    assert ping(w, at)[0] == 7
    peer = subprocess.Popen([LIB / "ibtrs-peer", "serve", at], stdout=subprocess.PIPE, text=True)
    try:
        assert peer.stdout.readline().startswith("port")
        rc, said = ping(w, at, "-d", "db1")
    finally:
        peer.kill()
        peer.wait()
        peer.stdout.close()
    assert rc == 7, said
    has(said, "the server has no disks: ")
    rc, said = ping(w, "localhost")
    assert rc == 7, said
    has(said, "tcp:127.0.0.1: nothing listens there")
    has("\n" + said, "\nip:127.0.0.1: ")
    for words in ([], ["-c", "x", at], ["-k", "/dev/null", at]):
        rc, said = ping(w, *words)
        assert rc == 2, said
    rc, said = ping(w, "no.such.host.invalid")
    assert rc == 3 and "no.such.host.invalid: " in said, said


def has_qcow2(w, *options):
    """db1 is a qcow2 image behind qemu-nbd."""
    w.serverd()
    w.run("qemu-img", "create", "-q", "-f", "qcow2", w.dir / "db1.img", str(SIZE))
    w.qemu_nbd("--format=qcow2", "--discard=unmap", *options)


@test
def serverd_with_an_nbd_server(w):
    """A qcow2 image: each operation arrives, and what comes back is what went."""
    has_qcow2(w)
    assert w.start() is None, w.said()
    i = w.info()
    assert i["export-size"] == SIZE and i["can_fua"] and i["can_trim"] and i["can_zero"], i
    data = random.Random(49).randbytes(SIZE)
    src, dst, raw = w.dir / "src", w.dir / "dst", w.dir / "raw"
    src.write_bytes(data)
    w.run("nbdcopy", "--connections=4", "--requests=16", "--flush", src, w.uri)
    w.run("nbdcopy", "--connections=4", "--requests=16", w.uri, dst)
    assert dst.read_bytes() == data, "other bytes came back"
    w.qemu("write -f -P 0x66 64k 4k", "write -z 128k 64k", "write -z -u 256k 64k",
           "discard 1M 1M", "flush", "read -P 0x66 64k 4k", "read -P 0 128k 64k",
           "read -P 0 256k 64k", "read -P 0 1M 1M")
    w.stop()
    w.end_serverd()
    w.backend.terminate()
    w.backend.wait(20)
    w.backend = None
    w.run("qemu-img", "convert", "-f", "qcow2", "-O", "raw", w.dir / "db1.img", raw)
    now = raw.read_bytes()
    assert now[65536:69632] == b"\x66" * 4096 and now[2 * MIB:] == data[2 * MIB:]


@test
def an_nbd_server_dies(w):
    """I/O waits for it. Unflushed writes may be lost: they are sent again, or fence the disk."""
    for flush, option in ((True, "fence"), (False, "fence"), (False, "auto")):
        fenced = not flush and option == "fence"
        has_qcow2(w)
        assert w.start(f"unflushed={option}") is None, w.said()
        w.sh("h.pwrite(b'x' * 65536, 0)" + ("; h.flush()" if flush else ""))
        w.end_backend()
        if not flush:                           # what it had not flushed is gone
            w.run("qemu-img", "create", "-q", "-f", "qcow2", w.dir / "db1.img", str(SIZE))
        load = subprocess.Popen(["nbdsh", "-u", w.uri, "-c",
                                 "assert h.pread(4096, 0) == b'x' * 4096"], env=w.env,
                                stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        assert load.poll() is None, "the read did not wait for the NBD server"
        w.qemu_nbd("--format=qcow2", "--discard=unmap")
        said = load.communicate(timeout=30)[1]
        has(w.server_log.read_text(), "the connection to its NBD server broke")
        assert bool(load.returncode) == fenced, said + w.said()
        if fenced:
            has(w.said(), "the disk is fenced: the server may have lost its disk's write cache")
        w.stop()
        w.kill()
        w.end_backend()


@test
def an_nbd_server_that_hangs(w):
    """It takes its own disk with it, and no other one; nor the end of a mapping."""
    has_qcow2(w)
    other = w.dir / "disks/db2"
    other.write_bytes(bytes(SIZE))
    assert w.start("hold=-1") is None, w.said()
    w.sh("h.pwrite(b'x' * 65536, 0)")
    w.backend.send_signal(signal.SIGSTOP)
    load = subprocess.Popen(["nbdsh", "-u", w.uri, "-c",
                             "assert h.pread(4096, 0) == b'x' * 4096"], env=w.env)
    again = lambda: w.run("nbdkit", "-U", "-", LIB / "nbdkit-ibnbd-plugin.so", "session=store2",
                          "device=db2", f"path=unix:{w.at}", "--run",
                          "qemu-io -f raw -c 'write -P 7 0 4k' -c flush $uri")
    again()
    assert other.read_bytes()[:4096] == b"\7" * 4096, "the other disk was not written"
    time.sleep(1)
    assert load.poll() is None, "the NBD server hangs, and a read has ended"
    w.backend.send_signal(signal.SIGCONT)
    assert load.wait(30) == 0, w.said()
    w.backend.send_signal(signal.SIGSTOP)
    w.nbdkit.kill()                             # the flush behind its last writer waits
    w.nbdkit.wait()
    time.sleep(1)
    again()
    w.backend.send_signal(signal.SIGCONT)
    assert w.start() is None, w.said()
    w.qemu("read -P 0x78 0 64k")


@test
def which_disk_an_nbd_server_has(w):
    """Its description tells one disk from another."""
    has_qcow2(w, "--description=disk one")
    assert w.start() is None, w.said()
    w.sh("h.pwrite(b'x' * 65536, 0); h.flush()")
    w.end_backend()
    w.qemu_nbd("--format=qcow2", "--description=disk one")
    w.qemu("read -P 0x78 0 64k")
    w.end_backend()
    w.qemu_nbd("--format=qcow2", "--description=disk two")
    w.qemu("write -P 0x66 0 64k", want=1)
    has(w.said(), "the disk is fenced: another disk is behind this name now")


@test
def what_an_nbd_server_refuses(w):
    """Read-only; one that is not there; one that has a client already; no NBD server at all."""
    has_qcow2(w, "--read-only")
    w.start()
    w.until(lambda: w.nbdkit.poll() is not None, "nbdkit refuses")
    has(w.said(), "the NBD server has it read-only; map it with access_mode=ro")
    assert w.start("access_mode=ro") is None, w.said()
    assert w.info()["is_read_only"]
    w.stop()
    w.end_backend()
    w.start("hold=0")
    w.until(lambda: w.nbdkit.poll() is not None, "nbdkit refuses")
    has(w.said(), "no NBD server listens at the socket; start it")


def nbd_server(w, session, *options, path=None, within=()):
    """A further nbdkit, for another client. Return: its process and its socket."""
    at = w.dir / f"{session}.nbd"
    p = subprocess.Popen([*within, "nbdkit", "--foreground", "--unix", at,
                          LIB / "nbdkit-ibnbd-plugin.so", f"session={session}", "device=db1",
                          f"path={path or f'unix:{w.at}'}", *options], env=w.env)
    w.until(lambda: p.poll() is not None or at.exists(), f"nbdkit of {session}")
    assert p.poll() is None, f"nbdkit of {session} has ended"
    return p, at


def key(w, name):
    """A key of this name, at the server and for clients. Return: its file."""
    at = w.dir / f"root/etc/ibnbd/keys/{name}"
    at.parent.mkdir(parents=True)
    with open(at, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
        f.write(keys.text(random.randbytes(32).hex()) + "\n")
    return at


class Hosts:
    """Machines for which network namespaces stand, on one bridge: host `i` is 10.99.0.(i + 1)."""
    def __init__(self, nr):
        self.keepers = [subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
                        for _ in range(nr)]
        own = os.readlink("/proc/self/ns/net")
        end = time.monotonic() + 10
        while any(os.readlink(f"/proc/{p.pid}/ns/net") == own for p in self.keepers):
            assert time.monotonic() < end, "there is no network namespace"
            time.sleep(0.02)
        run = lambda i, words: subprocess.run([*self.on(i), "ip", *words.split()], check=True)
        run(0, "link add bridge up type bridge")
        for i, p in enumerate(self.keepers):
            run(0, f"link add port{i} up master bridge type veth peer name net0 netns {p.pid}")
            run(i, f"addr add {self.ip(i)}/24 dev net0")
            run(i, "link set net0 up")

    @staticmethod
    def ip(i):
        return f"10.99.0.{i + 1}"

    def on(self, i):
        """Words before a command."""
        return ["nsenter", "--net", "--target", str(self.keepers[i].pid)]

    def end(self):
        for p in self.keepers:
            p.kill()
            p.wait()


def bootable(w):
    disk = w.dir / "disks/db1"
    disk.parent.mkdir()
    guest.disk(disk, w.dir)
    return disk


def virtio(at):
    return ["-drive", f"if=none,id=disk,format=raw,cache=none,file=nbd+unix:///?socket={at}",
            "-device", "virtio-blk-pci,drive=disk,bootindex=1"]


@test
def a_guest_boots_and_moves(w):
    """Live migration between two hosts, with access_mode=migration and a key, over TLS: each write
    is there once. The server dies afterwards, and the guest waits for it."""
    disk, secret, hosts = bootable(w), key(w, "vm7"), Hosts(3)
    server, move = f"tcp:{hosts.ip(0)}:1234", f"tcp:{hosts.ip(2)}:4444"
    serve = lambda: w.serverd("auth = required", at=server, within=hosts.on(0))
    a = b = None
    clients = []
    try:
        serve()
        for i, session in (1, "host-a"), (2, "host-b"):
            clients.append(nbd_server(w, session, "access_mode=migration", "hold=-1",
                                      f"key={secret}", path=server, within=hosts.on(i)))
        a = guest.Guest(w.dir, "a", virtio(clients[0][1]), within=hosts.on(1))
        a.hears("up")
        w.until(lambda: a.writes() > 100, "the guest writes")
        b = guest.Guest(w.dir, "b", virtio(clients[1][1]), incoming=move, within=hosts.on(2))
        a.moves(move)
        before = a.writes()
        a.end()
        clients[0][0].terminate()
        assert clients[0][0].wait(20) == 0
        w.until(lambda: b.writes() > 100, "the guest writes in its new place")
        w.kill()
        time.sleep(1)
        serve()
        after = b.writes()
        w.until(lambda: b.writes() > after + 50, "the guest writes to the new server")
        b.stop()
        said = guest.proven(disk, w.dir, [a, b])
        has(said, "lost 0, ghosts 0, wrong 0;")
        assert before > 100 and b.writes() > 150, said
    finally:
        for g in a, b:
            if g:
                g.end()
        for p, _ in clients:
            p.kill()
            p.wait()
        w.kill()
        hosts.end()


@test
def a_guest_on_a_storage_daemon(w):
    """qemu-storage-daemon hands the disk to QEMU as vhost-user-blk."""
    disk = bootable(w)
    w.serverd()
    client, at = nbd_server(w, "host-a")
    vhost = w.dir / "vhost"
    daemon = subprocess.Popen(
        ["qemu-storage-daemon", "--blockdev", "driver=nbd,node-name=disk,cache.direct=on,"
         f"server.type=unix,server.path={at}", "--export", "type=vhost-user-blk,id=e,writable=on,"
         f"node-name=disk,addr.type=unix,addr.path={vhost}"])
    g = None
    try:
        w.until(vhost.exists, "qemu-storage-daemon listens")
        g = guest.Guest(w.dir, "a", ["-object", "memory-backend-memfd,id=m,size=256M,share=on",
                                     "-machine", "memory-backend=m", "-chardev",
                                     f"socket,id=v,path={vhost}", "-device",
                                     "vhost-user-blk-pci,chardev=v", *guest.without_bios(w.dir)])
        g.hears("up")
        w.until(lambda: g.writes() > 100, "the guest writes")
        g.stop()
        has(guest.proven(disk, w.dir, [g]), "lost 0, ghosts 0, wrong 0;")
    finally:
        if g:
            g.end()
        for p in daemon, client:
            p.kill()
            p.wait()


def main(only):
    missing = [p for p in NEEDS if not shutil.which(p)]
    if missing or not (LIB / "nbdkit-ibnbd-plugin.so").exists():
        print(f"skip  {' '.join(missing) or 'the plugin was not built'}: tests/setup.sh")
        print("0 passed, 0 failed, 1 skipped")
        return 77
    passed = failed = 0
    for t in (t for t in TESTS if only in t.__name__):
        w = World()
        try:
            t(w)
            passed += 1
        except Exception:
            failed += 1
            print(f"FAIL  {t.__name__}\n{traceback.format_exc()}", flush=True)
        finally:
            w.close()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


signal.alarm(600)
sys.exit(main(sys.argv[1] if sys.argv[1:] else ""))
