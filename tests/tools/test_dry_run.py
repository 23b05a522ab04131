# SPDX-License-Identifier: GPL-2.0-only
"""--dry-run, wherever it stands:
nothing is written to the driver, no file changes, and what would be written is told."""
from kit import *
from test_group import Pair
from test_key import KEY, text
from test_list import schema
from test_mirror import by_files

# Each command that changes something, with words that would change something in machine() below.
CHANGES = (
    ("map vol/9 store9 10.0.9.7",), ("map vol/9 store1 --name vol9 --save",),
    ("map vol/1 store1 ro --name vol1 --save-only",), ("map vol3",),
    ("unmap vol1",), ("unmap vol1 --forget",), ("unmap --all --force",),
    ("remap ibnbd1",), ("remap --all",), ("remap --session store1",), ("remap vol1 --force",),
    ("resize vol1 2G",), ("resize vol1 1M --force",),
    ("path add store1 10.0.3.7",), ("path remove store1 10.0.1.7 --force",),
    ("path disconnect store1 10.0.1.7 --force",),
    ("path reconnect store1 10.0.2.7",), ("path reconnect store1 --all",),
    ("path policy store1 rr",), ("session reconnect store1",), ("session reconnect --all",),
    ("server close sdb --all --force",), ("server disconnect clt1",),
    ("server start",), ("server stop --force",),
    ("maps save vol1",), ("maps save --all", 9), ("maps remove vol3",),
    ("maps tidy",), ("maps start vol3",),
    ("maps start --missing",), ("maps stop vol1",),
    ("maps apply --prune",), ("maps release",), ("maps release --remember",), ("maps restore",),
    ("mirror create data vol3 vol1 --force",), ("mirror check m",), ("mirror replace m o",),
    ("mirror stop m",), ("mirror assemble s",), ("mirror watch -c 1",),
    ("key generate db-2",), ("key generate --next db-1",), ("key load",), ("key remove db-1",),
)
# the same of machine_of_a_pair()
GROUPS = (("group create mail",), ("group start data",), ("group stop data",))
READS = ("list", "show vol1", "stat", "path list", "session list", "server list", "server exports",
         "server check", "group status", "maps check", "maps show", "metrics", "doctor", "dump",
         "monitor -T 1", "help map", "key list", "mirror status")


def machine(w):
    by_files(w)
    w.server()
    w.conf("vol1 vol/1 store1 path=10.0.1.7 nofail\nvol3 vol/3 store3 path=10.0.3.7\n",
           "maps.conf.d/50-saved.conf")
    w.conf("dev_search_path = /srv/new\n", "server.conf")
    w.run("map", "vol/1", "store1", "10.0.1.7", "10.0.2.7", "--name", "vol1")
    w.run("map", "vol/2", "store1")
    w.run("map", "vol/4", "store1", "--name", "gone")
    w.put("root/etc/ibnbd/keys/db-1", text(KEY)).chmod(0o600)
    w.keyring()
    w.put("root/keyring/ibnbd:db-1")
    w.put("root/run/ibnbd/released", "55 100 vol!1@store1")
    w.conf("uuid = 5:6:7:8\nleg = gone\nleg = never\n", "mirrors.d/s.conf")
    w.put("root/var/lib/ibnbd/mirrors/s", "gone")
    w.put("root/dev/ibnbd2.super", "5:6:7:8 A. 0")
    w.put("sys/block/ibnbd1/ibnbd/state", "closed")
    w.put("sys/class/ibtrs-client/store1/paths/ip:10.0.0.1@ip:10.0.2.7/state", "disconnected")


def machine_of_a_pair(w):
    p = Pair(w)
    p.group("create", "data")
    p.group("start", "data")
    p.conf("max_maps = 7\n")
    w.conf(f"dev_search_path = /srv/exports\nstate_dir = {p.state}2\n", "groups/mail.conf")


def everything(w):
    """Each file of the machine, and when it was written;
    the log of what came to the driver is one of them."""
    return {str(p):
            (p.lstat().st_mtime_ns,
             os.readlink(p) if p.is_symlink() else p.is_file() and p.read_bytes())
            for top in filter(None, (w.dir, w.storage)) for p in sorted(top.rglob("*"))}


def changes_nothing(w, changes):
    before = everything(w)
    for text, *rc in changes:
        words = text.split()
        for args in (("--dry-run", *words), (*words, "-n")):
            r = w.run(*args, want=rc[0] if rc else 0)
            eq(r.out != "", True, f"{text} says what it would do")
            after = everything(w)
            eq([k for k in before.keys() | after.keys() if before.get(k) != after.get(k)], [], text)


@test
def dry_run_changes_nothing(w):
    machine(w)
    before = everything(w)
    changes_nothing(w, CHANGES)
    for text in READS:
        w.run("-n", *text.split(), want=None)
        eq(everything(w), before, text)


@test
def dry_run_of_a_group_changes_nothing(w):
    machine_of_a_pair(w)
    changes_nothing(w, GROUPS)
    before = everything(w)
    w.run("group", "status", "data", "-n")
    eq(everything(w), before)


@test
def dry_run_is_tried_for_each_command(w):
    tried = [t[0] for t in CHANGES + GROUPS] + list(READS)
    for line in w.run("help").out.splitlines():
        m = re.match(r"  ([a-z]+(?: [a-z]+)?)  +\S", line)
        if m and not any(t == m[1] or t.startswith(m[1] + " ") for t in tried):
            raise Failed(f"nobody tries ibnbd {m[1]} --dry-run")


@test
def without_dry_run_each_changes_something(w):
    """Or the test above has shown nothing."""
    for text, *rc in CHANGES + GROUPS:
        other = World()
        try:
            (machine_of_a_pair if (text, *rc) in GROUPS else machine)(other)
            before = everything(other)
            other.run(*text.split(), want=None)
            eq(everything(other) != before, True, text)
        finally:
            other.close()


@test
def json_is_a_document_in_a_dry_run_too(w):
    machine(w)
    words = {"map": ("map vol/9 store9 10.0.9.7", "map vol/9 store1 --name vol9 --save",
                     "map vol/1 store1 --name vol1 --save-only", "map vol3"),
             "show": ("show vol1",), "mirror check": ("mirror check m",),
             "monitor": ()}      # (a stream, a line for each event)
    for line in w.run("help").out.splitlines():
        m = re.match(r"  ([a-z]+(?: [a-z]+)?)  +\S", line)
        if not m or "--json" not in w.run("help", *m[1].split()).out:
            continue
        for text in words.get(m[1], (m[1],)):
            schema(w.json(*text.split(), "-n", want=None))
    eq(w.json("map", "vol/9", "store9", "10.0.9.7", "-n")["devices"], [])
    eq(w.json("map", "vol/9", "store9", "10.0.9.7", "--name", "vol9", "--save-only")["devices"], [])


@test
def commands_can_be_given_to_a_shell(w):
    w.client()
    w.conf("its \"a's$(x)\" s[b] path=ip:[fe80::1%eth0] path=10.0.0.2\n")
    said = w.run("maps", "show", "--as-commands").out
    words = subprocess.run(["sh", "-c", said.replace("ibnbd map", "printf '%s\\n'", 1)],
                           capture_output=True, text=True, cwd=w.dir).stdout.split("\n")
    eq(words, ["a's$(x)", "s[b]", "path=ip:fe80::1%eth0", "path=ip:10.0.0.2", "name=its", ""])
    said = w.run("maps", "start", "-n", "its").out
    w.put("map_device")
    eq(subprocess.run(["sh", "-c", said.replace(
        "/".join((str(w.sys), "class/ibnbd-client/ctl")), str(w.dir))]).returncode, 0)
    eq((w.dir / "map_device").read_text(),
       "sessname=s[b] path=ip:fe80::1%eth0 path=ip:10.0.0.2 device_path=a's$(x) name=its\n")
