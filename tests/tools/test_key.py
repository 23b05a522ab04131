# SPDX-License-Identifier: GPL-2.0-only
"""ibnbd key: what it writes, takes and refuses, and what the kernel holds afterwards."""
import base64, subprocess, zlib
from kit import *
from test_list import schema

KEY, NEXT = bytes(range(32)), bytes(range(32, 64))


def text(key, crc=0):
    raw = key + (zlib.crc32(key) ^ crc).to_bytes(4, "little")
    return "ibnbd-key:1:" + base64.b64encode(raw).decode()


def put(w, name, line):
    f = w.put(f"root/etc/ibnbd/keys/{name}", line)
    f.parent.chmod(0o700)
    f.chmod(0o600)
    return f


def ring(w):
    d = w.root / "keyring"
    return {f.name: f.read_bytes() for f in sorted(d.iterdir())} if d.exists() else None


@test
def generate(w):
    """A key of random bytes with its checksum, which nobody else can read."""
    r = w.run("key", "generate", "db-1")
    f = w.root / "etc/ibnbd/keys/db-1"
    has(r.out, "/etc/ibnbd/keys/db-1")
    eq(f.stat().st_mode & 0o777, 0o600, "mode of the file")
    eq(f.parent.stat().st_mode & 0o777, 0o700, "mode of the directory")
    line = f.read_text()
    has(line, "ibnbd-key:1:")
    raw = base64.b64decode(line.strip().rsplit(":", 1)[1])
    eq(len(raw), 36, "bytes of key and checksum")
    eq(raw[32:], zlib.crc32(raw[:32]).to_bytes(4, "little"), "checksum")
    r = w.run("key", "generate", "db-1", want=4)
    has(r.err, "is there already", "--next")
    w.run("key", "generate", "db-1", "--idempotent")
    eq(f.read_text(), line, "the key that was there")
    w.run("key", "generate", "db-1", "--next")
    if (w.root / "etc/ibnbd/keys/db-1.next").read_text() == line:
        raise Failed("two keys are the same")
    for name in ("a.b", "a/b", "a:next", "", "x" * 64):
        has(w.run("key", "generate", name, want=2).err, "cannot be called")


@test
def load(w):
    w.keyring()
    w.run("key", "load")        # a host without keys
    eq(ring(w), {}, "no key")
    put(w, "db-1", text(KEY))
    put(w, "db-1.next", text(NEXT))
    put(w, "db-2", text(NEXT))
    w.run("key", "load")
    eq(ring(w), {"ibnbd:db-1": KEY, "ibnbd:db-1:next": NEXT, "ibnbd:db-2": NEXT},
       "what the kernel has")
    r = w.run("key", "list")
    has(r.out, "KEY", "db-1", "yes, next")
    eq(r.out.count("db-1"), 1, "lines of a name")
    # the change of a key ends with a rename
    (w.root / "etc/ibnbd/keys/db-1.next").rename(w.root / "etc/ibnbd/keys/db-1")
    w.run("key", "load", "db-1")
    eq(ring(w), {"ibnbd:db-1": NEXT, "ibnbd:db-2": NEXT}, "after the rename")
    has(w.run("key", "load", "db-3", want=3).err, "there is no key db-3")
    # and the revocation of one with rm
    put(w, "db-3", text(KEY))
    put(w, "db-3.next", text(NEXT))
    put(w, "db-4", text(KEY))
    w.run("key", "load")
    for name in "db-3", "db-3.next", "db-4":
        (w.root / "etc/ibnbd/keys" / name).unlink()
    w.put("root/keyring/another", "x" * 32)
    dry = w.run("key", "load", "--dry-run").out
    has(dry, "keyctl unlink logon ibnbd:db-3 ", "keyctl unlink logon ibnbd:db-4 ")
    eq(sorted(ring(w)), ["another", "ibnbd:db-1", "ibnbd:db-2", "ibnbd:db-3", "ibnbd:db-3:next",
                         "ibnbd:db-4"], "after a dry run")
    said = w.run("key", "load").out
    eq(sorted(said.splitlines()),
       [f"{name} has no file any more: dropped" for name in ("db-3", "db-3.next", "db-4")],
       "what is said of them")
    (w.root / "keyring/another").unlink()
    eq(ring(w), {"ibnbd:db-1": NEXT, "ibnbd:db-2": NEXT}, "after rm and load")
    eq(w.run("key", "load").out, "", "another load")
    w.run("key", "remove", "db-1")
    eq(ring(w), {"ibnbd:db-2": NEXT}, "after remove")
    eq((w.root / "etc/ibnbd/keys/db-1").exists(), False, "its file")
    w.run("key", "remove", "db-1", want=3)
    w.run("key", "remove", "db-1", "--idempotent")
    # a directory that cannot be read is not an empty one
    keys = w.root / "etc/ibnbd/keys"
    keys.rename(w.root / "etc/ibnbd/kept")
    nowhere = lambda p: p.symlink_to("nowhere")
    for put_there in (nowhere, lambda p: p.write_text("")):
        put_there(keys)
        for args in ((), ("db-2",)):
            has(w.run("key", "load", *args, want=1).err, "cannot read /etc/ibnbd/keys: ",
                "the loaded keys stay")
            eq(ring(w), {"ibnbd:db-2": NEXT}, "what the kernel has")
        has(w.run("doctor", want=None).out, "cannot read /etc/ibnbd/keys: ")
        keys.unlink()
    etc = keys.parent
    etc.rename(w.root / "etc/kept")
    nowhere(etc)
    has(w.run("key", "load", want=1).err, "etc/ibnbd leads nowhere")
    eq(ring(w), {"ibnbd:db-2": NEXT}, "without the directory of it all")
    etc.unlink()
    (w.root / "etc/kept").rename(etc)
    has(w.run("key", "load").out, "db-2 has no file any more: dropped")
    eq(ring(w), {}, "without the directory")


@test
def refused(w):
    """A file that is no key, or that others can read, keeps no other key out."""
    w.keyring()
    put(w, "good", text(KEY))
    bad = put(w, "bad", text(KEY))
    for line, why in ((text(KEY, 1), "the checksum of the key is wrong"),
                      (text(KEY)[:-1], "another length"), (text(KEY) + "A", "another length"),
                      ("ibnbd-key:2:" + "A" * 48, "does not begin with ibnbd-key:1:"),
                      ("", "does not begin with"),
                      (text(KEY).replace("A", "*", 1), "a character that is no base64")):
        bad.write_text(line + "\n")
        r = w.run("key", "load", want=1)
        has(r.err, "/etc/ibnbd/keys/bad", why)
        hasnt(r.err, text(KEY)[12:])
        eq(ring(w), {"ibnbd:good": KEY}, line)
    bad.write_text(text(KEY) + "\n")
    others = "others than root can read it"
    for mode, why in ((0o644, others), (0o640, others), (0o620, "its group can write to it")):
        bad.chmod(mode)
        has(w.run("key", "load", "bad", want=1).err, why, "chmod")
        eq(ring(w), {"ibnbd:good": KEY}, oct(mode))
    bad.chmod(0o600)
    w.run("key", "load")
    eq(ring(w), {"ibnbd:bad": KEY, "ibnbd:good": KEY}, "with the right mode")


@test
def no_key_stays_in_memory(w):
    """What was read is wiped, also of a file that is refused, and what was moved to make room; and
    what has a key leaves no core."""
    w.keyring()
    f = put(w, "db-1", text(KEY))
    wiped = w.root / "keys/wiped"
    for more in (0, 40000, 17 << 20):
        f.write_text(text(KEY) + "\n" * more)
        wiped.write_text("")
        w.run("key", "load", want=1 if more > 16 << 20 else 0)
        hasnt(wiped.read_text(), "!")
        sizes = [int(n) for n in wiped.read_text().split()]
        eq(max(sizes) >= min(f.stat().st_size, 16 << 20), True, f"{more}: {sizes}")
        # each buffer that became too small
        eq([n for n in sizes if 12000 < n < 16384] != [], more > 0, f"{more}: {sizes}")
    wiped.write_text("")
    w.run("key", "generate", "db-2")
    w.run("key", "list")
    eq(len(wiped.read_text().split()) > 4, True)
    hasnt(wiped.read_text(), "!")


@test
def without_driver(w):
    put(w, "db-1", text(KEY))
    has(w.run("key", "load", want=8).err, "there is no keyring .ibnbd", "modprobe ibtrs-core")
    eq(ring(w), None, "keyring")


@test
def keyring_of_a_user(w):
    """/proc/keys has lines that a user made up, by a key with newlines in its name, and that
    user's keyrings: root takes none of them for the driver's."""
    line = lambda key, name: (f"{key:08x} I------     1 perm 1f1f0000     0     0 keyring   "
                              f"{name}: empty\n")
    spoofs = (("1", "user;1000;1000;3f010000;x\n" + line(2, ".ibnbd")),
              ("2", "keyring;1000;1000;3f030000;x;.ibnbd"),
              ("3", "keyring;0;0;3f030000;x;.ibnbd"), ("4", "keyring;0;1000;3f030000;.ibnbd"),
              ("5", "keyring;1000;0;3f030000;.ibnbd"), ("6", "user;0;0;3f010000;.ibnbd"),
              ("7", "keyring;0;0;3f030000;.ibnbd2"),
              # and that of a driver that was unloaded
              ("9", "keyring;0;0;1f1f0000;.ibnbd"), ("9-revoked", ""), ("taken", ""))
    before = (f"00000001 I--Q---     1 perm 3f010000  1000  1000 user      x\n{line(2, '.ibnbd')}"
              + "".join(line(n, ".ibnbd") for n in (3, 4, 5, 6, 7, 8, 9, 0))
              + "\n .ibnbd\n-2a .ibnbd\nfffffffffffffffffffff keyring .ibnbd: empty\n")
    w.keyring(before, spoofs)
    put(w, "db-1", text(KEY))
    w.run("key", "load")
    eq((w.root / "keys/taken").read_text(), "2a\n", "the keyring that is used")
    eq(ring(w), {"ibnbd:db-1": KEY}, "keys")
    (w.root / "keys/2a").unlink()
    has(w.run("key", "load", want=8).err, "there is no keyring .ibnbd")
    eq((w.root / "keys/taken").read_text(), "2a\n", "no other is")


@test
def kept_by_the_kernel(w):
    """A key that cannot be taken out of the kernel is no key that is gone."""
    w.keyring()
    f = put(w, "db-1", text(KEY))
    (w.root / "keyring/ibnbd:db-1").mkdir()
    said = "cannot take key db-1 out of the kernel: Is a directory; it still counts"
    has(w.run("key", "remove", "db-1", want=1).err, said)
    eq(f.exists(), True, "its file")
    f.unlink()
    for args in ((), ("db-1",)):
        r = w.run("key", "load", *args, want=1)
        has(r.err, said)
        hasnt(r.out + r.err, "dropped", "there is no key")


@test
def options(w):
    """auth= goes to the driver, comes back from it, and server.conf knows it."""
    w.client()
    w.conf("vol1 vol/1 store1 path=10.0.1.7 auth=db-1\nvol2 vol/2 store1 auth=db-2\n")
    has(w.run("maps", "check", want=2).err, "auth of session store1 is another one")
    w.conf("vol1 vol/1 store1 path=10.0.1.7 auth=db-1\n")
    w.run("maps", "check")
    w.run("map", "vol1")
    has(w.log(), "auth=db-1")
    w.conf("dev_search_path = /srv\nauth = required\n", "server.conf")
    hasnt(w.run("server", "check").err, "any host that reaches the port")
    w.conf("dev_search_path = /srv\nauth = maybe\n", "server.conf")
    has(w.run("server", "check", want=2).err, "off, optional or required is expected")


@test
def vectors(w):
    """The golden vectors of the unit tests are what their generator computes."""
    made = subprocess.run([str(TOP / "tests/unit/auth_vectors.py")], stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    eq(made, (TOP / "tests/unit/auth_vectors.h").read_text(), "tests/unit/auth_vectors.h")
    byte = {name: bytes.fromhex(re.sub(r"[\s,]|0x", "", text)) for name, text in
            re.findall(r"golden_(\w+)\[\d+\] = \{([^}]*)\}", made)}
    has((TOP / "docs/protocol.md").read_text(), *(f"| {part.hex()} |" for part in (
        byte["challenge"][40:72], byte["challenge"][72:], byte["proof"][8:], byte["ks"],
        byte["conn_req"][48:], byte["conn_rsp"][28:44])))


@test
def listed(w):
    """What is in files and what is in the kernel, as JSON; a name with neither is none."""
    w.keyring()
    eq(w.json("key", "list")["keys"], [])
    put(w, "db-1", text(KEY))
    put(w, "db-1.next", text(NEXT))
    w.run("key", "load")
    (w.root / "etc/ibnbd/keys/db-1.next").unlink()
    w.put("root/keyring/ibnbd:old", "x" * 32)
    said = w.json("key", "list")
    schema(said)
    eq(said["keys"],
       [{"name": "db-1", "file": True, "next_file": False, "loaded": True, "next_loaded": True,
         "file_error": None, "next_file_error": None},
        {"name": "old", "file": False, "next_file": False, "loaded": True, "next_loaded": False,
         "file_error": None, "next_file_error": None}])


@test
def listed_as_the_doctor_sees_it(w):
    """A file that is no key is none."""
    w.keyring()
    for name, make, words in (("dir", lambda f: f.mkdir(), "it is a directory"),
                              ("fifo", os.mkfifo, "it is a FIFO"),
                              ("empty", lambda f: f.touch(0o600), "it is no key"),
                              ("nul", lambda f: put(w, f.name, text(KEY)[:20] + "\0"), "length"),
                              ("open", lambda f: put(w, f.name, text(KEY)).chmod(0o644),
                               "others than root can read it")):
        f = put(w, "x", "").with_name(name)
        f.with_name("x").unlink()
        make(f)
        r = w.run("key", "list", "--noheadings")
        eq(r.out.split(), [name, "bad", "-"])
        has(r.err, f"{f}: ", words)
        key, = w.json("key", "list")["keys"]
        schema({"schema": "ibnbd/1", "keys": [key]})
        has(key["file_error"], words)
        has(w.run("doctor", want=None).out, words)
        f.rmdir() if f.is_dir() else f.unlink()
    put(w, "db-1", text(KEY))
    put(w, "db-1.next", "nonsense")
    has(w.run("key", "list").out, "yes, bad next")


@test
def the_doctor_of_a_user(w):
    """What a user cannot see is no key that is missing."""
    w.client()
    w.conf("vol1 vol/1 store1 path=10.0.1.7 auth=db-1\n")
    put(w, "db-1", text(KEY))
    if os.getuid():
        (w.root / "etc/ibnbd/keys").chmod(0)
    else:
        w.dir.chmod(0o755)
    said = w.json("doctor", want=None, user=None if os.getuid() else 12345)
    found, = [f for f in said["findings"] if f["check"] == "key"]
    (w.root / "etc/ibnbd/keys").chmod(0o700)
    eq((found["level"], found["message"]),
       ("ok", "keys are not looked at: /etc/ibnbd/keys is root's"))


@test
def the_doctor(w):
    """A key that is missing, that others can read, or that nobody has loaded."""
    w.client()
    w.conf("vol1 vol/1 store1 path=10.0.1.7 auth=db-1\n")
    keys = lambda: [f for f in w.json("doctor", want=None)["findings"] if f["check"] == "key"]
    found, = keys()
    has(found["message"], "vol1 needs the key db-1, which is not in /etc/ibnbd/keys")
    eq(found["level"], "error")
    has(found["hint"], "ibnbd key generate db-1")
    file = put(w, "db-1", text(KEY))
    eq(keys(), [], "no driver is loaded yet: the key waits for it")
    w.keyring()
    found, = keys()
    eq((found["level"], found["message"]), ("warning", "key db-1 is not loaded"))
    w.run("key", "load")
    eq(keys(), [])
    file.chmod(0o644)
    found, = keys()
    eq(found["level"], "error")
    has(found["message"], "/etc/ibnbd/keys/db-1: others than root can read it")
    file.chmod(0o600)
    w.conf("", "maps.conf")
    w.conf("dev_search_path = /srv\nauth = required\n", "server.conf")
    eq(keys(), [])
    file.unlink()
    loaded, found = keys()
    eq(loaded["level"], "warning")
    has(loaded["message"], "key db-1 is loaded and has no file")
    has(loaded["hint"], "ibnbd key load")
    has(found["message"], "auth = required, and this host has no key")
    w.run("key", "load")
    found, = keys()
    has(found["message"], "auth = required, and this host has no key")
