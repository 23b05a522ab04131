# SPDX-License-Identifier: GPL-2.0-only
"""list, show, session, path, stat, metrics, dump: the same objects in every form."""
import csv, io, json, time
from kit import *


def busy_world(w):
    w.client()
    w.run("map", "vol/1", "store1", "10.0.1.7", "10.0.2.7", "--name", "vol1")
    w.run("map", "vol/2", "store1", "ro")
    w.run("map", 'we"ird,\\dev', "store2", "ip:fd00::7")
    p = w.sys / "class/ibtrs-client/store1/paths/ip:10.0.0.1@ip:10.0.2.7"
    (p / "state").write_text("disconnected\n")
    (p / "state_detail").write_text("waiting -110 the server did not answer\n")
    (w.sys / "block/ibnbd1/ibnbd/state_detail").write_text("held\n")
    (w.sys / "block/ibnbd1/ibnbd/reason").write_text("no path\n")


def closed(schema):
    """The schema as it stands, without the room that a version leaves for more: a key that it does
    not know is a misspelt one."""
    if isinstance(schema, list):
        return [closed(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    known = ({"additionalProperties": False}
             if schema.get("type") == "object" and "properties" in schema else {})
    return {**known, **{k: closed(v) for k, v in schema.items()}}


def schema(doc, *keys):
    try:
        import jsonschema
    except ImportError:
        raise Failed("python3-jsonschema is missing: tests/setup.sh")
    try:
        jsonschema.validate(doc, closed(json.loads((TOP / "tools/share/schema.json").read_text())))
    except jsonschema.ValidationError as e:
        raise Failed(f"{e.message} at {list(e.absolute_path)}: {json.dumps(doc)[:2000]}")
    has(list(doc), *keys)


@test
def the_schema_finds_misspelt_keys(w):
    w.client()
    doc = w.json("map", "vol/1", "store1", "10.0.1.7")
    schema(doc, "devices")
    for bad in ({**doc, "devcies": []},
                {"schema": "ibnbd/1", "devices": [{**doc["devices"][0], "sizes": 1}]},
                {"devices": []}):
        try:
            schema(bad)
        except Failed:
            continue
        raise Failed(f"accepted: {bad}")


@test
def json_of_streams_is_valid(w):
    busy_world(w)
    docs = [json.loads(l) for l in w.run("stat", "-i", "0.1", "-c", "2", "--json").out.splitlines()]
    eq(len(docs), 2)
    for doc in docs:
        schema(doc, "devices", "paths", "interval_seconds")
    p = subprocess.Popen([str(w.build / "ibnbd-faked"), "monitor", "--json", "-c", "1", "-T", "20"],
                         env=w.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    time.sleep(1.5)
    (w.sys / "block/ibnbd0/ibnbd/state_detail").write_text("held\n")
    out, _ = p.communicate(timeout=DEADLINE)
    for line in out.splitlines():
        schema(json.loads(line), "kind", "object", "event", "detail", "time")
    eq(len(out.splitlines()), 1)


@test
def nothing_mapped(w):
    for driver in (False, True):
        if driver:
            w.client()
        eq(w.run("list").out, "")
        for cmd in (("list",), ("session", "list"), ("path", "list"), ("server", "list"),
                    ("server", "exports"), ("stat",), ("dump",), ("maps", "show"),
                    ("maps", "check"), ("doctor",)):
            doc = w.json(*cmd, want=None)
            eq(doc["schema"], "ibnbd/1", cmd)
            schema(doc)
        eq(w.json("list")["devices"], [])


@test
def text_is_golden(w):
    busy_world(w)
    w.server()
    out = ""
    for args in (("list",), ("list", "-o", "+identity,^up", "--bytes"),
                 ("list", "--sort", "^kname", "-H"), ("list", "-t"),
                 ("list", "-P", "-o", "kname,name,device_path"),
                 ("list", "-r", "-o", "kname,reason"), ("list", "--csv"),
                 ("list", "-f", "detail=held"), ("list", "-f", "detail!=held", "-o", "kname"),
                 ("list", "vol1"), ("session", "list"), ("session", "list", "store2", "-o", "all"),
                 ("path", "list"), ("server", "list"), ("server", "exports", "-H"),
                 ("show", "vol1"), ("show", "store2"), ("show", "sdb"), ("stat",), ("metrics",)):
        out += f"$ ibnbd {' '.join(args)}\n" + w.run(*args).out + "\n"
    w.golden("text.txt", out)


@test
def a_tree_has_what_was_asked_for(w):
    busy_world(w)
    whole, one = w.run("list", "-t").out, w.run("list", "-t", "vol1").out
    eq([w in one for w in ("store1 (client)", "/dev/ibnbd0", "/dev/ibnbd1", "store2")],
       [True, True, False, False])
    eq((one.splitlines()[-1][:2], whole.count("└─")), ("└─", 2))
    eq(w.run("list", "-t", "ibnbd0", "ibnbd1", "ibnbd2").out, whole)
    for args in (("list", "--session", "store9"), ("list", "-t", "-S", "store9"),
                 ("list", "-t", "vol9")):
        has(w.run(*args, want=3).err, "9: no such ")
    eq(w.json("list", "--session", "store9", want=3)["devices"], [])


@test
def json_is_valid_everywhere(w):
    busy_world(w)
    w.server()
    w.conf("vol1 vol/1 store1 path=10.0.1.7 path=10.0.2.7\nbad line\n")
    for cmd in (("list",), ("session", "list"), ("path", "list"), ("server", "list"),
                ("server", "exports"), ("stat",), ("dump",), ("show", "vol1"), ("maps", "show"),
                ("maps", "check"), ("doctor",), ("dump", "--anonymize")):
        schema(w.json(*cmd, want=None))
    d = w.json("list")["devices"]
    eq([x["kname"] for x in d], ["ibnbd0", "ibnbd1", "ibnbd2"])
    eq(d[2]["device_path"], 'we"ird,\\dev')
    eq((d[1]["read_only"], d[1]["name"], d[1]["reason"], d[0]["reason"], d[0]["size"]),
       (True, None, "no path", None, 1 << 30))


@test
def json_does_not_depend_on_columns(w):
    busy_world(w)
    eq(w.json("list"), w.json("list", "-o", "kname"))
    eq(len(w.json("list", "-f", "session=store2")["devices"]), 1)
    has(w.run("list", "--json=2", want=2).err, "schema 1")


@test
def json_of_bytes_that_are_not_utf8(w):
    w.client()
    w.run("map", "d", "s", "10.0.0.2")
    (w.sys / "block/ibnbd0/ibnbd/mapping_path").write_bytes(b"a\xff\xc3b\x07\n")
    eq(w.json("list")["devices"][0]["device_path"], "a\\xff\\xc3b\u0007")


@test
def csv_can_be_read(w):
    busy_world(w)
    rows = list(csv.reader(io.StringIO(w.run("list", "--csv", "-o", "kname,device_path").out)))
    eq(rows, [["KNAME", "DEVICE"], ["ibnbd0", "vol/1"], ["ibnbd1", "vol/2"],
              ["ibnbd2", 'we"ird,\\dev']])


@test
def columns_that_are_wrong(w):
    has(w.run("list", "-o", "kname,sesion", want=2).err, 'did you mean "session"')
    has(w.run("list", "--sort", "xyz", want=2).err, "--list-columns")
    has(w.run("list", "-f", "kname", want=2).err, "COLUMN=TEXT")
    has(w.run("path", "list", "--list-columns").out, "latency")


@test
def list_unknown(w):
    busy_world(w)
    r = w.run("list", "vol1", "nix", want=3)
    has(r.out, "ibnbd0")
    has(r.err, "nix")
    has(w.run("session", "list", "stor1", want=3).err, 'did you mean "store1"')


@test
def colours(w):
    busy_world(w)
    hasnt(w.run("list").out, "\033")
    has(w.run("list", "--color=always").out, "\033[")
    hasnt(w.run("list", "--color", "never").out, "\033")
    has(w.run("list", "--color=pink", want=2).err, "auto, always or never")


@test
def stat_rates(w):
    busy_world(w)
    out = w.run("stat", "-i", "0.1", "-c", "2").out
    eq(out.count("device "), 2)
    has(out, "rB/s", "read", "unflushed\n", " 5M\n")
    eq(json.loads(w.run("stat", "--json").out)["devices"][0]["unflushed_bytes"], 5 << 20)
    lines = w.run("stat", "-i", "0.1", "-c", "3", "--json").out.splitlines()
    eq(len(lines), 3)
    eq([p["reads"] for p in json.loads(lines[1])["paths"]], [0, 0, 0])
    eq(json.loads(lines[0])["paths"][0]["read_bytes"], 4096)
    has(w.run("stat", "-i", "never", want=2).err, "a number")


@test
def metrics_are_prometheus_text(w):
    busy_world(w)
    params = "sys/module/ibtrs_server/parameters/"
    w.put(params + "auth_keys", "db-1 3 0\ndb-2 0 7\n")
    w.put(params + "auth_failures", "12\n")
    seen = set()
    for line in w.run("metrics").out.splitlines():
        if line.startswith("#"):
            continue
        name, _, rest = line.partition("{") if "{" in line else line.partition(" ")
        float(line.rsplit(" ", 1)[1])
        key = line.rsplit(" ", 1)[0]
        if key in seen:
            raise Failed(f"twice: {key}")
        seen.add(key)
    has(w.run("metrics").out,
        'ibnbd_device_state{device="ibnbd1",name="",session="store1",export="vol/2",'
        'state="held"} 1',
        'ibnbd_path_up{session="store1",path="ip:10.0.0.1@ip:10.0.2.7",hca="rxe0"} 0',
        'export="we\\"ird,\\\\dev"',
        'ibnbd_server_key_let_in_total{key="db-1"} 3',
        'ibnbd_server_key_refused_total{key="db-2"} 7', 'ibnbd_server_auth_failures_total 12')


@test
def dump_anonymous(w):
    busy_world(w)
    w.server()
    w.put("sys/module/ibnbd_server/parameters/writer_file", "/mnt/acme/writers")
    w.put("sys/class/ibtrs-client/store1/auth", "acme-key")
    w.put("sys/class/ibtrs-server/clt1/auth", "acme-key")
    path = "sys/class/ibtrs-client/store1/paths/ip:10.0.0.1@ip:10.0.2.7/state_detail"
    detail = "waiting marginal -13 the server says: ip:10.0.0.1 of acme may not\""
    w.put(path, detail)
    has(w.run("dump").out, "store1", "10.0.1.7", "/srv/exports", "acme-key", "/mnt/acme",
        "acme may")
    out = w.run("dump", "--anonymize").out
    hasnt(out, "store1", "store2", "10.0.", "vol/1", "/srv", "disk.img", "clt1", "acme", "says",
          "/mnt")
    doc = json.loads(out)
    schema(doc)
    has(out, '"state_detail": "waiting marginal -13 reason-')
    keys = [s["auth"] for s in doc["sessions"] + doc["server_sessions"] if s["auth"]]
    eq((len(keys), len(set(keys))), (2, 1), "one key has one word")
    for plain in ("up", "waiting -110", "idle"):
        w.put(path, plain)
        has(w.run("dump", "--anonymize").out, f'"state_detail": "{plain}"')
    eq(out.count('"session": "session-'), 3 + 3 + 3 + 2)


@test
def a_closed_pipe_is_no_crash(w):
    import subprocess
    busy_world(w)
    r, wr = os.pipe()
    os.close(r)
    p = subprocess.run([str(w.build / "ibnbd-faked"), "list"], env=w.env, stdout=wr,
                       stderr=subprocess.PIPE, text=True, timeout=DEADLINE)
    os.close(wr)
    eq(p.returncode in (1, -13), True, p)
    p = subprocess.run([str(w.build / "ibnbd-faked"), "list"], env=w.env,
                       stdout=open("/dev/full", "w"), stderr=subprocess.PIPE, text=True)
    eq(p.returncode, 1)
    has(p.stderr, "cannot write the output")
