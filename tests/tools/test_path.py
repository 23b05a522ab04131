# SPDX-License-Identifier: GPL-2.0-only
"""path, session, server, doctor, monitor."""
import json, subprocess, time
from kit import *
from test_key import KEY, put as put_key, text as key_text


def mapped(w):
    w.client()
    w.run("map", "vol/1", "store1", "10.0.1.7", "10.0.2.7", "--name", "vol1")


KEPT = 'writer_file="/var/lib/ibnbd/writers"'


@test
def path_add(w):
    mapped(w)
    w.run("path", "add", "store1", "10.0.3.7", "10.0.1.9,10.0.4.7")
    eq(w.log()[-2:], ["class/ibtrs-client/store1/add_path ip:10.0.3.7",
                      "class/ibtrs-client/store1/add_path ip:10.0.1.9@ip:10.0.4.7"])
    has(w.run("path", "add", "store1", "10.0.3.7", want=4).err, "there already")
    w.run("path", "add", "store1", "10.0.3.7", "--idempotent")
    has(w.run("path", "add", "store1", "10.0.0.99", want=7).err, "timed out")
    has(w.run("path", "add", "store2", "10.0.0.9", want=3).err, 'did you mean "store1"')
    has(w.run("path", "add", "store1", "10.0.0.", want=2).err, "malformed IPv4")


@test
def path_orders(w):
    mapped(w)
    w.run("path", "disconnect", "store1", "10.0.2.7")
    has(w.run("path", "disconnect", "store1", "10.0.1.7", want=5).err, "last path", "--force")
    has(w.run("path", "remove", "store1", "rxe0:1", want=2).err, "stands for 2 paths")
    has(w.run("path", "reconnect", "store1", "10.0.1.7", want=4).err, "is connected")
    w.run("path", "reconnect", "store1", "ip:10.0.0.1@ip:10.0.2.7")
    w.run("path", "remove", "store1", "10.0.0.1,10.0.2.7")
    eq([p["dst_addr"] for p in w.json("path", "list")["paths"]], ["ip:10.0.1.7"])
    has(w.run("path", "remove", "store1", "10.9.9.9", want=3).err, "has no path")
    w.run("path", "remove", "store1", "10.9.9.9", "--idempotent")
    w.run("path", "remove", "store1", "10.0.1.7", "--force")


@test
def reconnect_tells_why(w):
    mapped(w)
    p = w.sys / "class/ibtrs-client/store1/paths/ip:10.0.0.1@ip:10.0.2.7"
    for name, text in (("state", "disconnected"), ("state_detail", "waiting -111 refused"),
                       ("dead", "")):
        (p / name).write_text(text + "\n")
    has(w.run("path", "reconnect", "store1", "10.0.2.7", want=7).err, "it is waiting -111 refused")
    w.run("session", "reconnect", "store1", want=7)
    (p / "dead").unlink()
    w.run("session", "reconnect", "--all")
    eq(w.json("session", "list")["sessions"][0]["state"], "up")


@test
def policy(w):
    mapped(w)
    eq(w.run("path", "policy", "store1").out, "min-inflight\n")
    w.run("path", "policy", "store1", "rr")
    eq(w.log()[-1], "class/ibtrs-client/store1/mpath_policy round-robin")
    has(w.run("path", "policy", "store1", "fast", want=2).err,
        "round-robin, min-inflight or min-latency")


@test
def server_close(w):
    w.server()
    has(w.run("server", "close", "sdb", want=2).err, "open by 2 sessions")
    has(w.run("server", "close", "sdb", "clt1", want=2).err, "--force")
    w.run("server", "close", "sdb", "clt1", "--force")
    eq(w.log(), ["class/ibnbd-server/ctl/devices/sdb/sessions/clt1/force_close 1"])
    has(w.run("server", "close", "sdc", "--force", want=3).err, 'did you mean "sdb"')
    w.run("server", "close", "/dev/sdb", "--all", "--force")
    eq([o["export"] for o in w.json("server", "list")["opens"]], ["!srv!disk.img"])
    w.put("root/srv/disk.img")
    (w.root / "link").symlink_to(w.root / "srv")
    has(w.run("server", "close", "/srv/disk2.img", "--force", want=3).err,
        "no client has an export")
    opens = w.sys / "class/ibnbd-server/ctl/devices/!srv!disk.img/sessions"
    for word in ("/srv/disk.img", "/link/disk.img", "!srv!disk.img"):
        shutil.copytree(opens / "clt1", w.dir / "kept")
        w.run("server", "close", word, "--force")
        eq((w.log()[-1], list(opens.iterdir())),
           ("class/ibnbd-server/ctl/devices/!srv!disk.img/sessions/clt1/force_close 1", []))
        (w.dir / "kept").rename(opens / "clt1")
    w.run("server", "disconnect", "clt2")
    has(w.run("server", "disconnect", "clt9", want=3).err, "no client")


@test
def two_sessions_of_one_name(w):
    """Of two keys: the second one is clt1#2, there and below an export, and has a disk of its own;
    what clt2 has open twice is clt2's."""
    w.server()
    opens, srv = (w.sys / "class" / d for d in (
        "ibnbd-server/ctl/devices/sdb/sessions", "ibtrs-server"))
    shutil.copytree(srv / "clt1", srv / "clt1#2")
    shutil.copytree(opens / "clt1", opens / "clt1#2")
    shutil.copytree(opens / "clt2", opens / "clt2#2")
    eq({x["name"]: x["nr_devices"] for x in w.json("session", "list")["sessions"]},
       {"clt1": 2, "clt1#2": 1, "clt2": 2})
    w.run("server", "disconnect", "clt1#2")
    w.run("server", "close", "sdb", "clt1#2", "--force")
    eq(w.log(), ["class/ibtrs-server/clt1#2/paths/ip:10.0.0.1@ip:10.0.0.2/disconnect 1",
                 "class/ibnbd-server/ctl/devices/sdb/sessions/clt1#2/force_close 1"])


@test
def a_server_in_user_space(w):
    """What ibnbd-serverd says in /run is listed like the driver's, beside it and alone."""
    at = "root/run/ibnbd-serverd/devices/!srv!db1"
    has(w.run("server", "close", "!srv!db1", "--force", want=8).err, "is not loaded")
    for name, text in (("size", 2048), ("identity", "file:" + "0f" * 16), ("claimed", 0),
                       ("sessions/vm7/mapping_path", "db1"), ("sessions/vm7/access_mode", "rw"),
                       ("sessions/vm7/read_only", 0), ("sessions/vm7/device_id", 77),
                       ("sessions/vm7/force_close", "")):
        w.put(f"{at}/{name}", text)
    for name, text in ("auth", "db-1"), ("paths/ip:10.0.0.7/src_addr", "ip:10.0.0.7"):
        w.put(f"root/run/ibnbd-serverd/sessions/vm7/{name}", text)
    w.put("root/run/ibnbd-serverd/sessions/vm7/paths/ip:10.0.0.7/disconnect", "")
    w.conf("dev_search_path = /srv\n", "server.conf")
    w.put("root/srv/db1")
    opens = w.json("server", "list")["opens"]
    eq([(o["export"], o["session"], o["access_mode"], o["device_id"]) for o in opens],
       [("!srv!db1", "vm7", "rw", 77)])
    said = w.run("server", "exports").out
    has(said, "!srv!db1")
    has(said, "search path: /srv")
    has(w.run("doctor", want=None).out, "ibnbd-serverd runs, clients have 1 of its exports open")
    hasnt(w.run("doctor", want=None).out, "nothing is exported")
    eq([(s["name"], s["side"], s["auth"], s["state"], s["nr_devices"])
        for s in w.json("session", "list")["sessions"]], [("vm7", "server", "db-1", "up", 1)])
    eq([(p["session"], p["side"], p["src_addr"]) for p in w.json("path", "list")["paths"]],
       [("vm7", "server", "ip:10.0.0.7")])
    for verb, instead in ("start", "systemctl reload"), ("stop", "systemctl stop"):
        err = w.run("server", verb, want=5).err
        has(err, "ibnbd-serverd exports here", f"{instead} ibnbd-serverd")
    w.server()
    eq(sorted({o["export"] for o in w.json("server", "list")["opens"]}),
       ["!srv!db1", "!srv!disk.img", "sdb"])
    w.run("server", "close", "!srv!db1", "--force")
    w.run("server", "disconnect", "vm7")
    eq(w.log(), ["../root/run/ibnbd-serverd/devices/!srv!db1/sessions/vm7/force_close 1",
                 "../root/run/ibnbd-serverd/sessions/vm7/paths/ip:10.0.0.7/disconnect 1"])


@test
def server_without_the_driver(w):
    has(w.run("server", "close", "sdb", want=8).err, "not loaded",
        "systemctl enable --now ibnbd-server")


@test
def server_conf(w):
    w.server()
    conf = w.conf("dev_search_path = /srv/new/%SESSNAME%\nallow = 10.0.0.0/24 session:db*\n"
                  "write-zeroes = yes\n", "server.conf")
    w.run("server", "check")
    w.run("server", "start")
    params = "module/ibnbd_server/parameters"
    eq(w.log(), [f"{params}/write_zeroes Y", f"{params}/allow 10.0.0.0/24 session:db*",
                 f"{params}/dev_search_path /srv/new/%SESSNAME%"])
    w.run("server", "start")
    eq(len(w.log()), 3, "started again changes nothing")
    has(w.run("server", "stop", want=5).err, "open by clients")
    w.run("server", "stop", "--force")
    eq(w.log()[-1], f"{params}/dev_search_path ")
    out = ""
    for text in ("dev_search_path = srv\n", "dev_search_path=/srv/../x\n",
                 "allow = 10.0.0.0/99\n", "alow = x\n", "port_nr = 0\n", "port_nr = 01234\n",
                 "max_maps = 0100\n", "max_maps = 00\n", "copy = some\n", "max_maps\n",
                 "writer_file = w\n", "copy = auto\ncopy = auto\n", "write_zeroes = maybe\n",
                 "", "dev_search_path = /srv\n"):
        conf.write_text(text)
        r = w.run("server", "check", want=None)
        out += f"## {text!r}\n{r.err}{r.out}\n"
        if r.rc:
            n = len(w.log())
            w.run("server", "start", want=2)
            eq(len(w.log()), n)
    w.golden("server-conf.txt", out)
    for allow in ("session:x*", "0.0.0.0/0", "10.0.0.1 session:a gid:::/0"):
        conf.write_text(f"dev_search_path = /srv\nallow = {allow}\n")
        has(w.run("server", "check").err, "allow is no protection",
            "any host that reaches the port")
        conf.write_text(f"dev_search_path = /srv\nallow = {allow}\nauth = required\n")
        hasnt(w.run("server", "check").err, "whoever")
    conf.write_text("dev_search_path = /srv/exports\nport_nr = 4321\n")
    has(w.run("server", "start", want=1).err, "port_nr stays 1234: clients are connected",
        "systemctl restart ibnbd-server")


@test
def server_conf_narrows_first_and_loosens_last(w):
    """No export is open between two of its steps to whom neither the old nor the new file lets in.
    """
    w.server()
    params = "module/ibnbd_server/parameters"

    def steps(before, after):
        for key, value in ({"auth": "off", "allow": "", "claim": "Y"} | before).items():
            w.put(f"sys/{params}/{key}", value)
        w.put(f"sys/{params}/dev_search_path", "/srv/a")
        w.conf("dev_search_path = /srv/b\n" + "".join(f"{k} = {v}\n" for k, v in after.items()),
               "server.conf")
        n = len(w.log())
        w.run("server", "start")
        return [l.split(" ")[0].rsplit("/")[-1] for l in w.log()[n:]]

    last, search, net = "dev_search_path", ["dev_search_path"], "10.0.1.0/24"
    eq(steps({"auth": "required"}, {"auth": "off"}), search + ["auth"])
    eq(steps({"auth": "required"}, {"auth": "optional"}), search + ["auth"])
    eq(steps({"auth": "off"}, {"auth": "required"}), ["auth", last])
    eq(steps({"auth": "required"}, {"auth": "off", "allow": net}), ["allow", last, "auth"])
    eq(steps({"allow": net}, {"auth": "required"}), ["auth", last, "allow"])
    eq(steps({}, {"claim": "no"}), search + ["claim"])
    for narrow, wide in ((net, ""), ("10.0.1.7", net), (net, "10.0.0.0/15"), (net, "0.0.0.0/0"),
                         (net, f"{net} 10.0.2.1"), ("session:a", ""), (f"{net} session:a", net),
                         ("gid:fe80::1", "gid:fe80::/10"), ("session:a", "session:b session:a")):
        eq(steps({"allow": narrow}, {"allow": wide}), search + ["allow"], f"{narrow}, {wide}")
        eq(steps({"allow": wide}, {"allow": narrow}), ["allow", last], f"{wide}, {narrow}")
    for a, b in ((net, "10.0.2.0/24"), (net, "session:a"), ("10.0.1.128/25", "10.0.1.0/25"),
                 ("10.0.1.7 10.0.1.8", "10.0.1.8 10.0.1.9"), ("::/0", "0.0.0.0/0")):
        eq(steps({"allow": a}, {"allow": b}), ["allow", last], f"{a}, {b}")


@test
def server_port_changes_when_nobody_is_connected(w):
    """By a module that is loaded anew;
    with clients the rest is set all the same, and that is said."""
    w.server()
    w.conf("dev_search_path = /srv/new\nallow = 10.0.0.1\nport_nr = 99\n", "server.conf")
    params = "module/ibnbd_server/parameters"
    has(w.run("server", "start", want=1).err, "port_nr stays 1234: clients are connected",
        "ibnbd server stop --force")
    eq(w.log(), [f"{params}/allow 10.0.0.1", f"{params}/dev_search_path /srv/new"])
    hasnt(w.run("server", "start", "-n", want=1).out, "modprobe")
    w.run("server", "stop", "--force")
    shutil.rmtree(w.sys / "class/ibtrs-server")
    shutil.rmtree(w.sys / "class/ibnbd-server/ctl/devices")
    # with the module ibtrs-core may go, and with that the keys: they are back before who needs them
    put_key(w, "db-1", key_text(KEY))
    put_key(w, "bad", "no key")
    r = w.run("server", "start", "-n")
    has(r.err, "/etc/ibnbd/keys/bad: it is no key")
    eq(r.out,
       'modprobe -r ibnbd-server\n'
       'keyctl add logon ibnbd:db-1 (from its file) .ibnbd\n'
       f'modprobe ibnbd-server {KEPT} port_nr="99" allow="10.0.0.1" dev_search_path="/srv/new"\n')
    has(w.run("server", "start", "--no-modprobe", want=1).err,
        "port_nr stays 1234: the driver cannot be unloaded", "modprobe -r ibnbd-server")
    eq(w.log()[-1], f"{params}/dev_search_path /srv/new")
    w.put(f"sys/{params}/port_nr", 99)
    eq(w.run("server", "start", "-n").out, "")


@test
def server_start_loads_the_module_with_everything(w):
    put_key(w, "db-1", key_text(KEY))
    w.conf("dev_search_path = /srv\nallow = 10.0.0.1 10.0.0.2\nport_nr = 99\n", "server.conf")
    eq(w.run("server", "start", "-n").out,
       'keyctl add logon ibnbd:db-1 (from its file) .ibnbd\n'
       f'modprobe ibnbd-server {KEPT} port_nr="99" allow="10.0.0.1 10.0.0.2" '
       'dev_search_path="/srv"\n')
    (w.root / "etc/ibnbd/server.conf").unlink()
    has(w.run("server", "start", want=3).err, "is not there")


@test
def server_keeps_who_wrote_where_it_is_told(w):
    conf = w.conf("dev_search_path = /srv\nwriter_file = /srv/state/w\n", "server.conf")
    eq(w.run("server", "start", "-n").out,
       'modprobe ibnbd-server writer_file="/srv/state/w" dev_search_path="/srv"\n')
    conf.write_text("dev_search_path = /srv\nwriter_file =\n")
    eq(w.run("server", "start", "-n").out,
       'modprobe ibnbd-server writer_file="" dev_search_path="/srv"\n')
    has(w.run("server", "check").err, "each restart fences clients that hold writes")
    conf.write_text("dev_search_path = /srv\nwriter_file = none\n")
    eq(w.run("server", "start", "-n").out,
       'modprobe ibnbd-server writer_file="none" dev_search_path="/srv"\n')
    # one that runs does as it was told when it was loaded
    w.server()
    conf.write_text("dev_search_path = /srv/exports\n")
    w.run("server", "start")
    conf.write_text("dev_search_path = /srv/exports\nwriter_file = /srv/state/w\n")
    has(w.run("server", "start", want=1).err, "writer_file stays /var/lib/ibnbd/writers: ",
        "systemctl restart ibnbd-server")
    forgets = "no file that keeps who wrote last"
    hasnt(w.run("doctor", want=None).out, forgets)
    w.put("sys/module/ibnbd_server/parameters/writer_file")
    has(w.run("doctor", want=None).out, forgets)
    for key in ("writer_file", "claim"):
        (w.sys / f"module/ibnbd_server/parameters/{key}").unlink()
    w.run("server", "start")    # a driver that is older than the keys
    eq(w.log(), [])


@test
def server_lets_go_of_its_claim(w):
    conf = w.conf("dev_search_path = /srv/exports\nclaim = no\n", "server.conf")
    eq(w.run("server", "start", "-n").out,
       f'modprobe ibnbd-server {KEPT} claim="N" dev_search_path="/srv/exports"\n')
    w.server()
    w.run("server", "start")
    eq(w.log(), ["module/ibnbd_server/parameters/claim N"])
    w.put("sys/module/ibnbd_server/parameters/claim", "N")
    conf.write_text("dev_search_path = /srv/exports\n")
    w.run("server", "start")
    eq(w.log()[-1], "module/ibnbd_server/parameters/claim Y")


# ---- doctor ----

def findings(w, **how):
    return {(f["check"], f["level"]): f for f in w.json("doctor", want=None, **how)["findings"]}


def host(w, built=True, headers=True):
    w.put("root/proc/sys/kernel/osrelease", "6.1.0-9-amd64")
    w.put("root/etc/os-release", 'PRETTY_NAME="Debian"\nID=debian')
    if headers:
        w.put("root/lib/modules/6.1.0-9-amd64/build/Makefile")
    if built:
        w.put("root/lib/modules/6.1.0-9-amd64/updates/dkms/ibnbd-client.ko.xz")
    w.put("sys/class/infiniband/rxe0/ports/1/state", "4: ACTIVE")
    w.put("sys/class/infiniband/rxe0/ports/1/link_layer", "Ethernet")


@test
def doctor_all_well(w):
    host(w)
    mapped(w)
    w.put(SECOND + "/hca_name", "rxe1")
    r = w.run("doctor")
    hasnt(r.out, "error", "warning")
    has(r.out, "driver ibnbd-client", "all 2 paths work", "rxe0 port 1 is active")


SECOND = "sys/class/ibtrs-client/store1/paths/ip:10.0.0.1@ip:10.0.2.7"


@test
def doctor_of_a_server(w):
    """It maps nothing, and is well without the client's driver."""
    host(w)
    w.conf("dev_search_path = /srv/exports\nallow = 10.0.0.0/8\n", "server.conf")
    has(findings(w)["server.conf", "warning"]["hint"], "systemctl enable --now ibnbd-server")
    w.server()
    w.put("sys/module/ibnbd_server/parameters/allow", "10.0.0.0/8")
    r = w.run("doctor")
    has(r.out, "driver ibnbd-server ")
    hasnt(r.out, "ibnbd-client")
    w.conf("vol1 d s path=127.0.0.1\n")
    has(findings(w)["loaded", "error"]["hint"], "modprobe ibnbd-client")


def server_disk(w, disk, number, part=None):
    """A disk of the server, and perhaps a partition of it, with their nodes."""
    for name, below, n in ((disk, disk, number),
                           *([(part, f"{disk}/{part}", number + 1)] if part else [])):
        w.put(f"sys/block/{below}/dev", f"8:{n}")
        w.put(f"root/dev/{name}", f"8:{n}")
        link = w.sys / f"dev/block/8:{n}"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../block/{below}")
    if part:
        w.put(f"sys/block/{disk}/{part}/partition", 1)


@test
def doctor_of_a_disk_with_two_masters(w):
    """What clients have, and what they may ask for; by mount, swap, device mapper and md, on the
    disk, below and above it."""
    host(w)
    w.server()
    server_disk(w, "sdb", 16, "sdb1")
    mounts, swaps = w.root / "proc/self/mountinfo", w.root / "proc/swaps"
    export = lambda: [f for f in w.json("doctor", want=None)["findings"] if f["check"] == "export"]
    eq(export(), [])
    for take, words in ((lambda: mounts.write_text(
                            "36 25 8:16 / /srv/data rw - ext4 /dev/sdb rw\n"),
                         "it is mounted on /srv/data"),
                        (lambda: mounts.write_text(
                            "36 25 8:17 / /srv/part rw - ext4 /dev/sdb1 rw\n"),
                         "it is mounted on /srv/part"),
                        (lambda: swaps.write_text("Filename Type\n/dev/sdb1 partition 9 0 -2\n"),
                         "/dev/sdb1 is swap"),
                        (lambda: w.put("sys/block/sdb/holders/dm-3/dm/name", "vg0-data"),
                         "dm-3 (vg0-data) is built on it"),
                        (lambda: w.put("sys/block/sdb/sdb1/holders/md7/md/level", "raid1"),
                         "md7 is built on it")):
        take()
        f, = export()
        eq(f["level"], "error")
        has(f["message"], "session clt1 may write to sdb, and this host uses it as well: ", words)
        has(f["hint"], "ibnbd server close sdb --all --force")
        mounts.write_text("")
        swaps.write_text("")
        shutil.rmtree(w.sys / "block/sdb/holders", ignore_errors=True)
        shutil.rmtree(w.sys / "block/sdb/sdb1/holders", ignore_errors=True)
    # the file of the other export
    w.put("sys/block/loop4/loop/backing_file", "/srv/disk.img")
    has(export()[0]["message"], "clt1 may write to !srv!disk.img", "loop4 is built on it")
    shutil.rmtree(w.sys / "block/loop4")
    # a reader alone
    shutil.rmtree(w.sys / "class/ibnbd-server/ctl/devices/sdb/sessions/clt1")
    mounts.write_text("36 25 8:16 / /srv/data rw - ext4 /dev/sdb rw\n")
    f, = export()
    eq(f["level"], "warning")
    has(f["message"], "session clt2 reads sdb, which this host uses: it is mounted on /srv/data")
    mounts.write_text("")
    # nobody knows which disk it is
    identity = "sys/class/ibnbd-server/ctl/devices/sdb/identity"
    w.put(identity, "none (cannot be read: -13)")
    f, = export()
    eq(f["level"], "warning")
    has(f["message"], "sdb is exported without an identity: none (cannot be read: -13)")
    has(f["hint"], "mount sysfs at /sys", "dmesg")
    w.put(identity, "none")
    # what nobody has mapped yet: a partition of a disk that is used as a whole
    server_disk(w, "sdc", 32, "sdc1")
    d = w.root / "srv/exports"
    d.mkdir(parents=True)
    (d / "vol1").symlink_to(w.root / "dev/sdc1")
    eq(export(), [])
    w.put("sys/block/sdc/holders/dm-1/dm/name", "mpatha")
    f, = export()
    eq(f["level"], "warning")
    has(f["message"], "vol1 is offered (sdc1), and no client can map it for writing",
        "dm-1 (mpatha)")
    has(f["hint"], "global_filter")
    w.put("sys/module/ibnbd_server/parameters/claim", "N")
    f, = export()
    eq(f["level"], "error")
    has(f["message"], "a client may write to it while this host uses it, for claim = no")
    w.put("sys/module/ibnbd_server/parameters/dev_search_path", "/srv/%SESSNAME%")
    has(export()[0]["message"], "exports/vol1 is offered")
    w.put("sys/module/ibnbd_server/parameters/dev_search_path", "/dev")
    eq(export(), [])


@test
def doctor_no_headers(w):
    host(w, built=False, headers=False)
    eq(findings(w)["headers", "error"]["hint"], "apt install linux-headers-6.1.0-9-amd64")
    w.put("root/etc/os-release", 'NAME=x\nID="rocky"\nID_LIKE="rhel centos fedora"')
    eq(findings(w)["headers", "error"]["hint"], "dnf install kernel-devel-6.1.0-9-amd64")


@test
def doctor_not_built(w):
    host(w, built=False)
    has(findings(w)["built", "error"]["hint"], "install the package ibnbd-dkms")
    dkms_source(w)
    has(findings(w)["built", "error"]["hint"], "dkms autoinstall -k 6.1.0-9-amd64")


def dkms_source(w, release=""):
    version = re.search(r'PACKAGE_VERSION="(.*)"', (TOP / "dkms.conf").read_text())[1] + release
    w.put(f"root/usr/src/ibnbd-{version}/dkms.conf", (TOP / "dkms.conf").read_text())
    return version


@test
def doctor_of_an_rpm(w):
    """There the version of DKMS has the release of the package in it."""
    host(w, built=False)
    dkms_source(w, ".9-1")
    has(findings(w)["built", "error"]["hint"], "install the package")
    version = dkms_source(w, "-1.el9")
    has(findings(w)["built", "error"]["hint"], f"/var/lib/dkms/ibnbd/{version}/build/make.log")


@test
def doctor_kernel_left_out(w):
    """What DKMS is told to leave out, autoinstall does not bring."""
    host(w, built=False)
    dkms_source(w)
    for release, words in (("5.9.16-1-amd64", ("needs 5.10 or newer", "boot a newer kernel")),
                           ("7.4.0-rc1-amd64",
                            ("tested with kernels up to 7.3",
                             "touch /etc/ibnbd/allow-untested-kernels; "
                             "dkms autoinstall -k 7.4.0-rc1-amd64"))):
        w.put("root/proc/sys/kernel/osrelease", release)
        w.put(f"root/lib/modules/{release}/build/Makefile")
        f = findings(w)
        has(f["kernel", "error"]["message"] + f["kernel", "error"]["hint"], *words)
        eq(("built", "error") in f, False)
    w.put("root/etc/ibnbd/allow-untested-kernels")
    has(findings(w)["built", "error"]["hint"], "dkms autoinstall")
    for release in ("5.10.0-1-amd64", "7.3-rc4-amd64", "7.3.5"):
        w.put("root/proc/sys/kernel/osrelease", release)
        eq(("kernel", "error") in findings(w), False, release)
    config = "# x\nCONFIG_BLOCK=y\nCONFIG_KEYS=y\nCONFIG_INFINIBAND=m\n"
    w.put("root/boot/config-7.3.5", config + "# CONFIG_INFINIBAND_ADDR_TRANS is not set")
    has(findings(w)["kernel", "error"]["message"],
        "configured without CONFIG_INFINIBAND_ADDR_TRANS")
    w.put("root/boot/config-7.3.5", config + "CONFIG_INFINIBAND_ADDR_TRANS=y")
    eq(("kernel", "error") in findings(w), False)


@test
def doctor_secure_boot(w):
    host(w)
    efi = w.root / "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    efi.parent.mkdir(parents=True)
    efi.write_bytes(b"\6\0\0\0\1")
    w.put("root/dev/kmsg", "4,100,1,-;Loading of module with unavailable key is rejected\n"
          " SUBSYSTEM=x")
    has(findings(w)["secure-boot", "error"]["hint"], "DKMS has no key yet", "dkms build --force")
    key = b"\x30\x82\0\1 certificate\n"
    w.put("root/var/lib/dkms/mok.pub").write_bytes(key)
    mok, new = (efi.with_name(f"Mok{n}-605dab50-e046-4300-abb6-3dd810dd8b23")
                for n in ("ListRT", "New"))
    for level, line in (("error", "4,100,1,-;Loading of module with unavailable key is rejected"),
                        ("warning", "")):
        w.put("root/dev/kmsg", line)
        for f in new, mok:
            f.unlink(missing_ok=True)
        has(findings(w)["secure-boot", level]["hint"], "mokutil --import", "Enroll MOK")
        new.write_bytes(b"\7\0\0\0" + key)
        has(findings(w)["secure-boot", level]["hint"], "for the next boot: reboot", "Enroll MOK")
        mok.write_bytes(b"\6\0\0\0 another " + key + b" a third")
        found = findings(w).get(("secure-boot", level))
        if line:
            has(found["hint"], "not signed with: dkms build --force")
        else:
            eq(found, None)


@test
def doctor_rdma_stack(w):
    host(w)
    w.put("root/dev/kmsg", "4,100,1,-;ibtrs_core: disagrees about version of symbol "
          "ib_dealloc_pd_user")
    has(findings(w)["rdma-stack", "error"]["hint"], "dkms build --force")
    for line, message, hint in (
            ("ibnbd_client: disagrees about version of symbol module_layout",
             "built for another kernel than the one that runs: ibnbd_client: ", "dkms build"),
            ("ibtrs_core: version magic '6.1.0-8 SMP ' should be '6.1.0-9 SMP '",
             "built for another kernel than the one that runs: ibtrs_core: ", "dkms build"),
            ("ibnbd_client: disagrees about version of symbol ibtrs_clt_open",
             "another ibtrs_core than the one that is loaded", "modprobe -r ")):
        w.put("root/dev/kmsg", f"4,100,1,-;{line}")
        f = findings(w)
        has(f["built", "error"]["message"], message, line)
        has(f["built", "error"]["hint"], hint)
        eq(("rdma-stack", "error") in f, False)
    w.put("root/dev/kmsg", "4,100,1,-;libfoo: disagrees about version of symbol module_layout")
    eq(("built", "error") in findings(w), False)


@test
def doctor_rdma(w):
    host(w)
    w.put("sys/class/infiniband/rxe0/ports/1/state", "1: DOWN")
    has(findings(w)["rdma", "warning"]["hint"], "ip link set")
    shutil.rmtree(w.sys / "class/infiniband")
    has(findings(w)["rdma", "error"]["hint"], "rdma link add rxe0 type rxe")


@test
def doctor_server(w):
    host(w)
    w.client()
    w.conf("vol1 d s path=127.0.0.1 path=fd00:dead::1\n")
    f = findings(w)
    has(f["server", "ok"]["message"], "there is a machine at ip:127.0.0.1")
    has(f["server", "error"]["message"], "fd00:dead::1 does not answer")
    has(f["mapped", "error"]["hint"], "ibnbd map vol1")
    w.conf("vol1 d s path=localhost path=store1.invalid\n")
    f = findings(w)
    has(f["server", "ok"]["message"], "there is a machine at ip:")
    has(f["server", "error"]["message"] + f["server", "error"]["hint"],
        "vol1: the host store1.invalid cannot be resolved", "/etc/hosts")
    has(f["boot", "warning"]["hint"], "systemctl enable ibnbd-maps.target")
    w.put("sys/class/ibnbd-client/ctl/last_error",
          "session s: path ip:10.0.0.1: connection refused (-111)")
    has(findings(w)["port", "error"]["hint"], "port_nr there, dest_port here")
    w.put("sys/class/ibnbd-client/ctl/last_error",
          "cannot connect session s (-17): x: ip:10.0.0.1: the server says: "
          "the session name is taken by ip:10.0.0.3: unmap there")
    f = findings(w)
    has(f["refused", "error"]["message"], "taken by ip:10.0.0.3")
    has(f["refused", "error"]["hint"], "another session name")


@test
def doctor_what_runs(w):
    host(w)
    mapped(w)
    w.put(SECOND + "/hca_name", "rxe1")
    p = w.dir / SECOND
    (p / "state").write_text("disconnected\n")
    (p / "state_detail").write_text("waiting -111 connection refused\n")
    (w.sys / "block/ibnbd0/ibnbd/state_detail").write_text("fenced\n")
    (w.sys / "block/ibnbd0/ibnbd/reason").write_text("another disk behind the name\n")
    f = findings(w)
    has(f["path", "warning"]["hint"], "does not listen")
    has(f["device", "error"]["message"], "another disk behind the name")
    eq(w.run("doctor", want=2).out.count("hint:"), 2)
    (p / "state_detail").write_text("waiting -17 the server says: the session name is taken by "
                                    "ip:10.0.0.3: unmap there, or use another name here\n")
    f = findings(w)
    has(f["path", "warning"]["message"], "the session name is taken by ip:10.0.0.3")
    has(f["path", "warning"]["hint"], "two hosts use one session name")
    (p / "state_detail").write_text("waiting -13 the server says: "
                                    "the client's address is not on the allow-list\n")
    has(findings(w)["path", "warning"]["hint"], "ibnbd server check")
    (p / "state_detail").write_text("waiting marginal -90 full-size packets are lost\n")
    has(findings(w)["path", "warning"]["hint"], "MTU")
    eq(w.run("stat").out.count("  marginal\n"), 1)
    has(w.run("metrics").out, "ibnbd_path_marginal{", "path=\"ip:10.0.0.1@ip:10.0.2.7\"")
    (p / "state").write_text("connected\n")
    (p / "state_detail").write_text("up marginal -110 no sign of life from the peer\n")
    has(findings(w)["path", "warning"]["message"], "works, but failed again and again")
    has(findings(w)["path", "warning"]["hint"], "trusted again")
    (p / "state").write_text("disconnected\n")
    (p / "state_detail").write_text("closed\n")
    hints = findings(w)["path", "warning"]["hint"].split("; ibnbd ")
    eq(hints[0], "ibnbd session reconnect store1")
    w.run(*hints[0].split()[1:])
    eq((p / "state").read_text(), "connected\n", "what it says can be done")
    w.run(*hints[1].split()[:2], want=2)


@test
def a_disk_of_the_server_that_hangs(w):
    host(w)
    mapped(w)
    oldest = w.sys / "block/ibnbd0/ibnbd/oldest_ms"
    oldest.write_text("9999\n")
    hasnt(w.run("list").out, "oldest request")
    oldest.write_text("31500\n")
    for args in (), ("-o", "kname,detail"), ("--tree",):
        has(w.run("list", *args).out, "open, oldest request 31 s")
    # what scripts read stays as it was
    for args in ("-r",), ("-P",), ("--csv",), ("-f", "state=open", "-H", "-r", "-o", "state"):
        hasnt(w.run("list", *args).out, "oldest request")
    eq(w.json("list")["devices"][0]["oldest_ms"], 31500)
    has(findings(w)["slow", "warning"]["message"], "its oldest request has waited for 31 s")
    has(w.run("metrics").out, 'ibnbd_device_oldest_request_seconds{device="ibnbd0"', "} 31.5\n")
    (w.sys / "block/ibnbd0/ibnbd/state_detail").write_text("held\n")
    eq(("slow", "warning") in findings(w), False, "held is told already")


@test
def doctor_netdev(w):
    host(w)
    mapped(w)
    w.put("root/etc/fstab", "/dev/ibnbd0 /srv ext4 defaults 0 0")
    has(findings(w)["netdev", "error"]["hint"], "add _netdev")


# ---- monitor ----

@test
def monitor_tells_states(w):
    mapped(w)
    p = subprocess.Popen([str(w.build / "ibnbd-faked"), "monitor", "--json", "-c", "2", "-T", "20"],
                         env=w.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    time.sleep(1.5)
    path = w.sys / "class/ibtrs-client/store1/paths/ip:10.0.0.1@ip:10.0.2.7"
    (path / "state_detail").write_text("breaking -110\n")
    time.sleep(1)
    (w.sys / "block/ibnbd0/ibnbd/state_detail").write_text("held\n")
    out, _ = p.communicate(timeout=DEADLINE)
    eq(p.returncode, 0)
    events = [json.loads(l) for l in out.splitlines()]
    eq([(e["kind"], e["event"], e["detail"]) for e in events],
       [("path", "connected", "breaking -110"), ("device", "held", None)])
    eq(w.run("monitor", "-T", "1", "-c", "1", want=7).out, "")
    eq(w.run("monitor", "-T", "1").out, "")
    has(w.run("monitor", "-c", "2x", want=2).err, "a number is expected")
