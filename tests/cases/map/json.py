# SPDX-License-Identifier: GPL-2.0-only
"""What tests/tools checks on trees that it made itself, checked on real ones: the drivers'
attributes are what the command takes them for."""
description = ("JSON and metrics of real devices in each state agree with the schema: "
               "nothing loaded, nothing mapped, open, held, fenced, unmapped")
long = True
crowd = True
links = 2
deadline = 180
import json, pathlib, re, sys
import vm

sys.path.insert(0, str(pathlib.Path(vm.__file__).parents[1] / "tools"))
import test_list

VERBS = ("list", "session list", "path list", "server list", "server exports", "stat", "dump",
         "dump --anonymize", "maps show", "maps check", "doctor")
METRIC = re.compile(r'# (HELP|TYPE) \w+ .+|\w+(\{(\w+="([^"\\]|\\.)*",?)*\})? -?[0-9.e+-]+|# EOF')


def ask(t, g, words):
    """One JSON document of the command, valid, without complaints beside it."""
    rc, out = g.rc(f"ibnbd {words} --json 2> /tmp/err")
    t.ok(out, f"{words}: {rc}, {g.sh('cat /tmp/err')}")
    doc = json.loads(out)
    test_list.schema(doc)
    return doc


def ask_all(t, g, *more):
    docs = {words: ask(t, g, words) for words in VERBS + more}
    for line in g.sh("ibnbd metrics").splitlines():
        t.ok(METRIC.fullmatch(line), f"metrics: {line}")
    return docs


# What may be null of something that works, here and on a server.
NULLS = {"devices": {"group", "identity", "link", "name", "reason"}, "sessions": {"auth"},
         "paths": set(), "exports": set()}
SERVER = {"sessions": {"auth", "dest_port", "hb_interval_ms", "hb_misses", "inflight",
                       "max_reconnect_attempts", "policy", "reconnect_delay_ms", "reconnect_max_ms",
                       "reconnects", "uuid"},
          "paths": {"failovers", "inflight", "latency", "reconnects", "reconnects_failed",
                    "state_detail"}}
SERVER["server_sessions"] = SERVER["sessions"]


def unknown(t, docs, may):
    """What the command did not find an attribute for is null: none is misspelt, here or there."""
    for words, doc in docs.items():
        for key, most in may.items():
            for x in doc.get(key, []):
                null = {k for k, v in x.items() if v is None}
                t.ok(null <= most, f"{words}: {key}: unknown: {sorted(null - most)}")


def run(t):
    c, s = t.client, t.server
    for g in c, s:
        t.eq(ask_all(t, g)["list"]["devices"], [], "nothing is loaded")
    s.sh("serve; ram_disks 2 16")
    c.sh("modprobe ibnbd-client")
    t.eq(ask_all(t, c)["list"]["devices"], [], "nothing is mapped")
    t.eq(ask_all(t, s)["server exports"]["exports"], [], "nothing is exported")
    rw, ro = c.sh("map ram0"), c.sh("map ram1 sessname=s2 access_mode=ro")
    names = [d[5:] for d in (rw, ro)]
    c.sh("paths_up s1 2; paths_up s2 2")

    docs = ask_all(t, c, f"show {names[0]}", "show s1")
    unknown(t, docs, NULLS)
    devs = {d["kname"]: d for d in docs["list"]["devices"]}
    t.eq(sorted(devs), sorted(names), "devices")
    t.eq([(devs[n]["device_path"], devs[n]["session"], devs[n]["read_only"], devs[n]["size"])
          for n in names],
         [("ram0", "s1", False, 16 << 20), ("ram1", "s2", True, 16 << 20)], "what they are")
    t.eq((len(docs["session list"]["sessions"]), len(docs["path list"]["paths"])), (2, 4),
         "sessions, paths")
    docs = ask_all(t, s)
    t.eq(sorted(e["block_dev"] for e in docs["server exports"]["exports"]),
         ["ram0", "ram1"], "exports")
    t.eq(sorted(x["name"] for x in docs["dump"]["server_sessions"]), ["s1", "s2"],
         "the server's sessions")
    unknown(t, docs, {**NULLS, **SERVER})

    c.sh("for p in /sys/class/ibtrs-client/s1/paths/*/disconnect; do echo 1 > $p; done")
    s.sh("echo 1 > /sys/class/ibnbd-server/ctl/devices/ram1/sessions/*/force_close")
    state = lambda n: c.sh(f"cat /sys/block/{n}/ibnbd/state_detail")
    t.wait(lambda: [state(n) for n in names] == ["held", "fenced"], 10,
           "one is held, one is fenced")
    devs = {d["kname"]: d for d in ask_all(t, c, f"show {names[0]}", f"show {names[1]}",
                                           "show s1")["list"]["devices"]}
    t.match(devs[names[0]]["reason"], "no path", "reason")
    t.match(devs[names[1]]["reason"], "closed the export", "reason")
    ask_all(t, s)
    c.sh("ibnbd unmap --all --force")
    t.eq(ask_all(t, c)["list"]["devices"], [], "unmapped")
