# SPDX-License-Identifier: GPL-2.0-only
description = ("every file of the sysfs ABI, both sides and both layers: "
               "there, with its mode and its format, and in docs/sysfs.md")
crowd = True
deadline = 180
import re

RO, RW, OWN, LINK = "444", "644", "400", "777"
N, WORDS = r"\d+", r"\S.*"
ADDR = r"ip:10\.0\.0\.%d"
USAGE = r"Usage: echo .*"

# Below /sys: file, mode, what it reads as. Files that in-kernel peers have first, then ours.
CLIENT = [
    ("class/ibnbd-client/ctl/map_device", RW, USAGE),
    ("class/ibnbd-client/ctl/last_error", RO, r".*"),
    ("class/ibnbd-client/ctl/devices/dir!disk@s1", LINK, None),
    ("block/ibnbd0/ibnbd/unmap_device", RW, USAGE),
    ("block/ibnbd0/ibnbd/remap_device", RW, USAGE),
    ("block/ibnbd0/ibnbd/resize", RW, USAGE),
    ("block/ibnbd0/ibnbd/state", RO, "open"),
    ("block/ibnbd0/ibnbd/session", RO, "s1"),
    ("block/ibnbd0/ibnbd/mapping_path", RO, "dir/disk"),
    ("block/ibnbd0/ibnbd/access_mode", RO, "migration"),
    ("block/ibnbd0/ibnbd/nr_poll_queues", RO, "0"),
    ("block/ibnbd0/ibnbd/state_detail", RO, "open"),
    ("block/ibnbd0/ibnbd/reason", RO, ""),
    ("block/ibnbd0/ibnbd/hold", RW, "30"),
    ("block/ibnbd0/ibnbd/group", RO, "pair"),
    ("block/ibnbd0/ibnbd/failfast", RW, "9"),
    ("block/ibnbd0/ibnbd/in_sync", RW, "0"),
    ("block/ibnbd0/ibnbd/io_timeout", RW, "7"),
    ("block/ibnbd0/ibnbd/identity", RO, r"uuid [0-9a-f]{32}|hardware [0-9a-f]{32}|"),
    ("block/ibnbd0/ibnbd/features", RO, "zeroes identity durability words"),
    ("block/ibnbd0/ibnbd/name", RO, "gold"),
    ("block/ibnbd0/ibnbd/write_zeroes", RO, "auto"),
    ("block/ibnbd0/ibnbd/write_cache", RO, "on"),
    ("block/ibnbd0/ibnbd/unflushed", RO, "fence"),
    ("block/ibnbd0/ibnbd/retain_mb", RO, "64"),
    ("block/ibnbd0/ibnbd/unflushed_bytes", RO, "0"),
    ("block/ibnbd0/ibnbd/kept", RO, "no"),
    ("block/ibnbd0/ibnbd/replays", RO, "0 0"),
    ("block/ibnbd0/ibnbd/losses", RO, "0"),
    ("block/ibnbd0/ibnbd/other_writers", RO, "0"),
    ("block/ibnbd0/ibnbd/oldest_ms", RO, "0"),
    ("class/ibtrs-client/s1/add_path", RW, USAGE),
    ("class/ibtrs-client/s1/last_error", RO, ""),
    ("class/ibtrs-client/s1/max_reconnect_attempts", RW, "-1"),
    ("class/ibtrs-client/s1/mpath_policy", RW, r"min-inflight \(MI: 1\)"),
    ("class/ibtrs-client/s1/uuid", OWN, r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ("class/ibtrs-client/s1/dest_port", RO, "1234"),
    ("class/ibtrs-client/s1/hb_interval_ms", RO, "1000"),
    ("class/ibtrs-client/s1/hb_misses", RO, "7"),
    ("class/ibtrs-client/s1/reconnect_delay_ms", RO, "50"),
    ("class/ibtrs-client/s1/reconnect_max_ms", RO, "2000"),
    ("class/ibtrs-client/s1/auth", RO, ""),
    ("class/ibtrs-client/s1/paths/{path}/state", RO, "connected"),
    ("class/ibtrs-client/s1/paths/{path}/state_detail", RO, "up"),
    ("class/ibtrs-client/s1/paths/{path}/reconnect", RW, USAGE),
    ("class/ibtrs-client/s1/paths/{path}/disconnect", RW, USAGE),
    ("class/ibtrs-client/s1/paths/{path}/remove_path", RW, USAGE),
    ("class/ibtrs-client/s1/paths/{path}/hca_name", RO, "rxe0"),
    ("class/ibtrs-client/s1/paths/{path}/hca_port", RO, "1"),
    ("class/ibtrs-client/s1/paths/{path}/src_addr", RO, ADDR % 1),
    ("class/ibtrs-client/s1/paths/{path}/dst_addr", RO, ADDR % 2),
    ("class/ibtrs-client/s1/paths/{path}/cur_latency", RO, r"\d+ ns"),
    ("class/ibtrs-client/s1/paths/{path}/stats/rdma", RW, r"\d+( \d+){5}"),
    ("class/ibtrs-client/s1/paths/{path}/stats/reconnects", RW, "0 0"),
    ("class/ibtrs-client/s1/paths/{path}/stats/cpu_migration_from", RW, r"\d+( \d+)*"),
    ("class/ibtrs-client/s1/paths/{path}/stats/cpu_migration_to", RW, r"\d+( \d+)*"),
    ("class/ibtrs-client/s1/paths/{path}/stats/reset_all", RW, USAGE),
]
SERVER = [
    ("class/ibtrs-server/s1/auth", RO, ""),
    ("class/ibtrs-server/s1/paths/{path}/hca_name", RO, "rxe0"),
    ("class/ibtrs-server/s1/paths/{path}/hca_port", RO, "1"),
    ("class/ibtrs-server/s1/paths/{path}/src_addr", RO, ADDR % 1),
    ("class/ibtrs-server/s1/paths/{path}/dst_addr", RO, ADDR % 2),
    ("class/ibtrs-server/s1/paths/{path}/disconnect", RW, USAGE),
    ("class/ibtrs-server/s1/paths/{path}/stats/rdma", RW, r"\d+( \d+){3}"),
    ("class/ibnbd-server/ctl/last_error", RO, r".*"),
    ("class/ibnbd-server/ctl/policy", "600", ""),
    ("class/ibnbd-server/ctl/devices/ram0/block_dev", LINK, None),
    ("class/ibnbd-server/ctl/devices/ram0/size", RO, "32768"),
    ("class/ibnbd-server/ctl/devices/ram0/identity", RO, r"none|(uuid|hardware):[0-9a-f]{32}"),
    ("class/ibnbd-server/ctl/devices/ram0/copy", RW, "auto"),
    ("class/ibnbd-server/ctl/devices/ram0/claimed", RO, "[01]"),
    ("class/ibnbd-server/ctl/devices/ram0/resize", RW, USAGE),
    ("class/ibnbd-server/ctl/devices/ram0/cache_epoch", RO, "[0-9a-f]{16}"),
    ("class/ibnbd-server/ctl/devices/ram0/cache_lost", RW, USAGE),
    ("class/ibnbd-server/ctl/devices/ram0/sessions/s1/read_only", RO, "0"),
    ("class/ibnbd-server/ctl/devices/ram0/sessions/s1/access_mode", RO, "migration"),
    ("class/ibnbd-server/ctl/devices/ram0/sessions/s1/mapping_path", RO, "dir/disk"),
    ("class/ibnbd-server/ctl/devices/ram0/sessions/s1/device_id", RO, N),
    ("class/ibnbd-server/ctl/devices/ram0/sessions/s1/force_close", RW, USAGE),
]
MODULES = ("ibtrs_core", "ibtrs_client", "ibtrs_server", "ibnbd_client", "ibnbd_server")
# Where nothing else may be, beside what the driver core puts there
TREES = {"client": ("class/ibnbd-client/ctl", "block/ibnbd0/ibnbd", "class/ibtrs-client/s1"),
         "server": ("class/ibtrs-server/s1", "class/ibnbd-server/ctl")}
CORE = re.compile(r"/(power|uevent|subsystem|device)(/|$)")


def as_mapped(text):
    """The files of options that docs/sysfs.md has and the table above has not."""
    known = {file for file, _, _ in CLIENT}
    row = r"(?m)^\| ([^|]+) \| 0(\d+) \| [^|]*, as (?:mapped|in the grammar) \|"
    for title, tree in (("### /sys/block/ibnbdN", "block/ibnbd0/ibnbd"),
                        ("## Transport client", "class/ibtrs-client/s1")):
        part = text.split(f"\n{title}")[1].split("\n#")[0]
        for names, mode in re.findall(row, part):
            for name in re.findall(r"\w+", names):
                if f"{tree}/{name}" not in known:
                    yield f"{tree}/{name}", mode, r"\S*"


def files(g, tree):
    out = g.sh(f"cd /sys; find {tree}/ -mindepth 1 \\( -type f -o -type l \\)")
    return {f.replace("//", "/") for f in out.splitlines() if not CORE.search(f)}


def check(t, g, table, trees, path):
    for file, mode, want in table:
        file = file.format(path=path)
        got = g.sh(f"stat -c %a '/sys/{file}'")
        t.eq(got, mode, f"mode of {file}")
        if mode == LINK:
            g.sh(f"test -d '/sys/{file}/'")
            continue
        text = g.sh(f"cat '/sys/{file}'; echo .")
        t.ok(text.endswith("\n.") or text == ".", f"{file} ends with a newline: {text!r}")
        t.ok(re.fullmatch(want, text[:-1].strip().split("\n")[0]),
             f"{file} reads {text!r}, want {want!r}")
    known = {f.format(path=path) for f, _, _ in table}
    there = set().union(*(files(g, tree) for tree in trees))
    t.eq(sorted(there - known), [], "files that no table knows")


def check_admin(t, g, table, trees, path):
    """Root without CAP_SYS_ADMIN, as in a container that sysfs was lent to, writes to none."""
    before = sorted(set().union(*(files(g, tree) for tree in trees)))
    words = "1 0 force normal auto /tmp ip:10.0.0.2 rr"
    asked = [(f"/sys/{file.format(path=path)}", words) for file, mode, _ in table
             if mode != LINK and int(mode, 8) & 0o222]
    modules = " ".join(f"/sys/module/{m}/parameters" for m in MODULES)
    params = g.sh(f"for d in {modules}; do [ ! -d $d ] || find $d -type f -perm /222; done")
    want = writable(t) if g is t.server else []
    t.eq(sorted(p.rsplit("/", 1)[1] for p in params.split()), want, "parameters to be written")
    asked += [(file, "1 auto required") for file in params.split()]
    script = "".join(f"for w in {words}; do {{ echo $w > '{file}'; }} 2>&1 | "
                     f"grep -q 'not permitted' || echo \"$w > {file}\"; done\n"
                     for file, words in asked)
    t.eq(g.sh(f"cat > /tmp/asked << 'EOF'\n{script}EOF\nlessen admin bash /tmp/asked",
              timeout=90), "", "what was written")
    t.eq(sorted(set().union(*(files(g, tree) for tree in trees))), before,
         "what is there afterwards")


def check_load(t, s):
    """Who may load a module may say its parameters, with CAP_SYS_MODULE alone."""
    s.sh("rmmod ibnbd_server ibtrs_server; lessen admin modprobe ibtrs-server name_keep_s=7 "
         "legacy_clients; lessen admin modprobe ibnbd-server allow=session:s1 max_maps=9 claim=N "
         "auth=optional dev_search_path=/exp")
    at = "/sys/module/ib%s_server/parameters/%s"
    for module, name, value in (("trs", "name_keep_s", "7"), ("trs", "legacy_clients", "Y"),
                                ("nbd", "allow", "session:s1"), ("nbd", "max_maps", "9"),
                                ("nbd", "claim", "N"), ("nbd", "auth", "optional"),
                                ("nbd", "dev_search_path", "/exp")):
        t.eq(s.sh(f"cat {at % (module, name)}"), value, f"{name}, said at load")
    s.sh(f"echo 8 > {at % ('trs', 'name_keep_s')}; echo Y > {at % ('nbd', 'claim')}")
    s.fails(f"echo many > {at % ('trs', 'name_keep_s')}", "Invalid argument")
    t.eq(s.sh(f"cat {at % ('trs', 'name_keep_s')} {at % ('nbd', 'claim')}"), "8\nY",
         "what root wrote later")


def writable(t):
    """The server's parameters with mode 0644, as docs/sysfs.md has them."""
    text = document(t)
    return sorted(n for names in re.findall(r"(?m)^\| ib\w+-server \| ([^|]+) \| [^|]+ \| 0644 \|",
                                            text) for n in re.findall(r"\w+", names))


def document(t):
    return (t.case.path.parents[3] / "docs/sysfs.md").read_text()


def check_documented(t):
    text = document(t)
    documented = set(re.findall(r"[\w/]+", " ".join(re.findall(r"(?m)^\| ([^|]+)\|", text))))
    names = {n for word in documented for n in (word, word.split("/")[-1])}
    for file, _, _ in CLIENT + SERVER:
        name = file.rsplit("/", 1)[1]
        t.ok(name.startswith("dir!disk") or name in names or name.replace("_to", "_from") in names,
             f"docs/sysfs.md does not have {file}")


def check_parameters(t, g, module):
    """The parameters and modes in the table of docs/sysfs.md are those of the module."""
    text = document(t)
    want = {}
    for names, mode in re.findall(rf"(?m)^\| {module} \| ([^|]+) \| [^|]+ \| 0(\d+) \|", text):
        want.update({n: mode for n in re.findall(r"\w+", names)})
    got = dict(l.split() for l in g.sh(f"cd /sys/module/{module.replace('-', '_')}/parameters && "
                                       "stat -c '%n %a' *").splitlines())
    t.eq(got, want, f"parameters of {module}")


def resets(t, g, base, files):
    for file in files:
        g.fails(f"echo 2 > '{base}/{file}'", "Invalid argument")
        g.sh(f"echo 1 > '{base}/{file}'")


def check_counts(t, dev, client, server):
    """After a reset: 8 reads of 4 KiB, 5 writes of 16 KiB; the header of 32 bytes
    counts, too (docs/sysfs.md)."""
    want = f"8 {8 * (4096 + 32)} 5 {5 * (16384 + 32)}"
    t.client.sh(f"dd if={dev} of=/dev/null bs=4k count=8 iflag=direct status=none; "
                f"dd if=/dev/zero of={dev} bs=16k count=5 oflag=direct status=none")
    t.eq(t.client.sh(f"cat {client}"), want + " 0 0", "the client's statistics")
    t.eq(t.server.sh(f"cat {server}"), want, "the server's statistics")


def check_names(t, c, s):
    """Names that would be one with '/' written as '!' are two entries, here and on the server; and
    the command takes what it printed."""
    s.sh("ln -s /dev/ram1 '/exp/dir!disk'; truncate -s 16M '/exp/a!b.img' '/exp/c#2'; "
         "ln -s /dev/ram2 /exp/d\u00e4t\u00e4")
    for name in ("dir!disk", "a!b.img", "c#2", "d\u00e4t\u00e4"):
        c.sh(f"ibnbd map '{name}' s1 ro")
    names = lambda g, side: sorted(g.sh(f"cd /sys/class/ibnbd-{side}/ctl/devices; "
                                        "printf '%s\\n' *").splitlines())
    t.eq(names(c, "client"),
         sorted(["dir!disk@s1", "dir\\x21disk@s1", "a\\x21b.img@s1", "c#2@s1",
                 "d\u00e4t\u00e4@s1"]), "links")
    t.eq(names(s, "server"),
         sorted(["ram0", "ram1", "ram2", "!exp!a\\x21b.img", "!exp!c\\x232"]), "exports")
    t.ok("d\u00e4t\u00e4" in c.sh("ibnbd list -r -H -o device_path").splitlines(),
         "UTF-8 for scripts")
    c.sh("ibnbd list -r -H -o device_path | grep -v '^dir/disk$' | while read -r d; do "
         "ibnbd unmap \"$d\" || exit 1; done")
    t.eq(names(c, "client"), ["dir!disk@s1"], "the others are unmapped")


def run(t):
    c, s = t.client, t.server

    s.sh("ram_disks 3 16; mkdir -p /exp/dir; ln -s /dev/ram0 /exp/dir/disk; "
         "serve dev_search_path=/exp")
    dev = c.sh("map dir/disk access_mode=migration hold=30 io_timeout=7 name=gold group=pair "
               "failfast=9 write_cache=on unflushed=fence hb_misses=7 reconnect_delay_ms=50 "
               "reconnect_max_ms=2000")
    t.eq(dev, "/dev/ibnbd0")
    c.sh(f"dd if={dev} of=/dev/null bs=4k count=8 iflag=direct status=none")
    path = "ip:10.0.0.1@ip:10.0.0.2"
    client = CLIENT + list(as_mapped(document(t)))
    check(t, c, client, TREES["client"], path)
    check(t, s, SERVER, TREES["server"], path)
    check_admin(t, c, client, TREES["client"], path)
    check_admin(t, s, SERVER, TREES["server"], path)
    check_documented(t)
    check_parameters(t, c, "ibtrs-client")
    check_parameters(t, s, "ibtrs-server")
    check_parameters(t, s, "ibnbd-server")

    # what may be written, and what must not be
    b, p = f"/sys/block/{dev[5:]}/ibnbd", "/sys/class/ibtrs-client/s1"
    for file, good, bad in ((f"{b}/hold", "-1", "-2"), (f"{b}/hold", "0", "x"),
                            (f"{b}/io_timeout", "0", "-1"), (f"{b}/failfast", "3600", "0"),
                            (f"{b}/in_sync", "1", "x"), (f"{b}/in_sync", "0", "2"),
                            (f"{p}/max_reconnect_attempts", "9999", "-2"),
                            (f"{p}/max_reconnect_attempts", "-1", "")):
        c.sh(f"echo {good} > {file}; [ $(cat {file}) = {good} ]")
        c.fails(f"echo {bad} > {file}", "Invalid argument")
        t.eq(c.sh(f"cat {file}"), good, f"{file} after a refused write")
    for word, want in (("0", "round-robin (RR: 0)"), ("rr", "round-robin (RR: 0)"),
                       ("MI", "min-inflight (MI: 1)"), ("2", "min-latency (ML: 2)"),
                       ("Min-Latency", "min-latency (ML: 2)"),
                       ("min-inflight", "min-inflight (MI: 1)")):
        t.eq(c.sh(f"echo {word} > {p}/mpath_policy; cat {p}/mpath_policy"), want, f"policy {word}")
    for word in ("3", "r", "mix", "''"):
        c.fails(f"echo {word} > {p}/mpath_policy", "Invalid argument")
    resets(t, c, f"{p}/paths/{path}/stats",
           ["rdma", "reconnects", "cpu_migration_from", "cpu_migration_to", "reset_all"])
    t.match(c.sh(f"cat {p}/paths/{path}/stats/rdma"), r"^0 0 0 0 \d+ 0$", "after a reset")
    resets(t, s, f"/sys/class/ibtrs-server/s1/paths/{path}/stats", ["rdma"])
    check_counts(t, dev, f"{p}/paths/{path}/stats/rdma",
                 f"/sys/class/ibtrs-server/s1/paths/{path}/stats/rdma")
    e = "/sys/class/ibnbd-server/ctl/devices/ram0"
    s.sh(f"for w in always never auto; do echo $w > {e}/copy; [ $(cat {e}/copy) = $w ]; done")
    for file, bad in (("copy", "maybe"), ("resize", "2"), ("cache_lost", "2"),
                      ("sessions/s1/force_close", "yes")):
        s.fails(f"echo {bad} > {e}/{file}", "Invalid argument")
    check_names(t, c, s)
    c.sh(f"unmap {dev}")
    check_load(t, s)
