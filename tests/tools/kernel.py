# SPDX-License-Identifier: GPL-2.0-only
"""The drivers, as far as the command sees them: a process that is asked by fake.c, over a socket,
for what a write to a file of sysfs would do, and answers with the errno.  Behaves as docs/sysfs.md
says; a device called E-NAME is refused with that errno, each one while there is a file refuse with
its name."""
import errno, os, re, select, shutil, signal, socket, sys, time, traceback
from pathlib import Path

SYS = CTL = asker = None        # of the write that this process does
SYSFS = (Path(__file__).resolve().parents[2] / "docs/sysfs.md").read_text()


def options(heading):
    """{option of a mapping: default} of those that have a file below a heading of docs/sysfs.md."""
    rows = {key: default.strip() for key, default in re.findall(
        r"^\| (\w+)(?: \*\*\+\*\*)? \|[^|]*\|[^|]*\|([^|]*)\|",
        part("### The mapping grammar"), re.M)}
    files = re.findall(r"\w+", " ".join(re.findall(r"^\| ([^|]+) \|", part(heading), re.M)))
    return {key: rows[key] for key in files if key in rows}


def part(heading):
    return re.split(r"\n##", SYSFS.split(f"\n{heading}")[1])[0]


def put(path, **files):
    path.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        f = path / name.replace("__", "/")
        f.parent.mkdir(parents=True, exist_ok=True)
        f.write_text(f"{text}\n")


def refuse(err, why=""):
    if why:
        (CTL / "last_error").write_text(why + "\n")
    sys.exit(err)


def ip(text):
    return text if text.startswith(("ip:", "gid:")) else "ip:" + text


def add_path(session, text, state="connected"):
    src, _, dst = text.replace(",", "@").rpartition("@")
    src, dst = ip(src or "10.0.0.1"), ip(dst)
    p = SYS / f"class/ibtrs-client/{session}/paths/{src}@{dst}"
    if p.exists():
        sys.exit(errno.EEXIST)
    if dst.endswith(".99"):
        sys.exit(errno.ETIMEDOUT)
    put(p, state=state, state_detail="up" if state == "connected" else "waiting -110 no answer",
        hca_name="rxe0", hca_port=1, src_addr=src, dst_addr=dst, cur_latency="12345 ns",
        reconnect="", disconnect="", remove_path="", stats__rdma="10 4096 20 8192 1 0",
        stats__reconnects="1 0")


def add_session(name, m):
    policy = {
        "round-robin": "round-robin (RR: 0)", "min-latency": "min-latency (ML: 2)",
    }.get(m.get("policy"), "min-inflight (MI: 1)")
    put(SYS / f"class/ibtrs-client/{name}", add_path="", mpath_policy=policy,
        uuid="3bd1c0de-0000-4000-8000-000000000001",
        **{key: m.get(key, default)
           for key, default in options("## Transport client").items()})
    for p in m["paths"]:
        if not p.endswith(".99"):
            add_path(name, p)


def add_dev(index, m):
    d = SYS / f"block/ibnbd{index}"
    put(d, size=2097152, dev=f"259:{index}", ro=int(m.get("access_mode") == "ro"),
        stat="5 0 40 7 6 0 48 9 0 10 16 0 0 0 0 2 1",
        ibnbd__unmap_device="", ibnbd__remap_device="", ibnbd__resize="",
        ibnbd__state="open", ibnbd__state_detail="open", ibnbd__reason="",
        ibnbd__session=m["sessname"], ibnbd__mapping_path=m["device_path"],
        ibnbd__unflushed_bytes=5 << 20, ibnbd__losses=1, ibnbd__replays="3 8192", ibnbd__kept="no",
        ibnbd__other_writers=2, ibnbd__oldest_ms=40, ibnbd__in_sync=0,
        **{f"ibnbd__{key}": m.get(key, default)
           for key, default in options("### /sys/block/ibnbdN").items()},
        ibnbd__identity="uuid 00112233445566778899aabbccddeeff",
        ibnbd__features="zeroes identity durability words")
    link = CTL / "devices" / linkname(m)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(f"../../../../block/ibnbd{index}")


def linkname(m):
    dev = (m["device_path"].replace("\\x", "\\x5cx").replace("!", "\\x21")
           .replace("@", "\\x40").replace("/", "!"))
    return f"{dev}@{m['sessname']}"


def map_device(text):
    (CTL / "last_error").write_text("\n")
    m = {"paths": []}
    for word in text.split():
        key, _, value = word.partition("=")
        if key == "path":
            m["paths"].append(value)
        else:
            m[key] = value
    dev, session = m["device_path"], m["sessname"]
    if dev.startswith("SLOW"):
        select.select([asker], [], [], int(dev[4:]))        # readable when the command has died
        refuse(errno.ETIMEDOUT, "no answer")
    if (SYS / "refuse").exists():
        refuse(getattr(errno, (SYS / "refuse").read_text().strip()), "the server is gone")
    if dev.startswith("E-"):
        refuse(getattr(errno, dev[2:]),
               f"device {dev} of session {session}: the server refuses ({dev[2:]})")
    link = CTL / "devices" / linkname(m)
    if link.is_symlink():
        refuse(errno.EEXIST, f"device {dev} of session {session} is already mapped as "
               f"/dev/{os.path.basename(os.readlink(link))}")
    if not (SYS / f"class/ibtrs-client/{session}").exists():
        if not m["paths"]:
            refuse(errno.ENXIO, f"there is no session {session} and no path")
        if all(p.endswith(".99") for p in m["paths"]):
            refuse(errno.ETIMEDOUT, f"session {session}: no answer")
        add_session(session, m)
    index = 0
    while (SYS / f"block/ibnbd{index}").exists():
        index += 1
    add_dev(index, m)


def unmap(d, text):
    if text not in ("normal", "force"):
        refuse(errno.EINVAL)
    if (d / "busy").exists() and text == "normal":
        refuse(errno.EBUSY)
    session = (d / "ibnbd/session").read_text().strip()
    for link in (CTL / "devices").iterdir():
        if os.path.basename(os.readlink(link)) == d.name:
            link.unlink()
    shutil.rmtree(d)
    if not any(s.read_text().strip() == session for s in SYS.glob("block/*/ibnbd/session")):
        shutil.rmtree(SYS / f"class/ibtrs-client/{session}", ignore_errors=True)


def path_order(p, name):
    if name == "remove_path":
        shutil.rmtree(p)
    elif name == "disconnect":
        put(p, state="disconnected", state_detail="closed")
    elif (p / "dead").exists():
        sys.exit(errno.ENOTCONN)
    else:
        put(p, state="connected", state_detail="up")


def policy(p, text):
    """The text is logged as its lines; the grammar is for the command's own parser here."""
    if not text.endswith("\nend\n") or (SYS / "refuse").exists():
        sys.exit(errno.EINVAL)
    p.write_text(text[:-4])


def write(path, written):
    p, text = Path(path), written.strip()
    with open(SYS / "log", "a", errors="surrogateescape") as log:
        log.write(f"{os.path.relpath(p, SYS)} {text}\n")
    with open(SYS / "times", "a") as times:
        times.write(f"{time.monotonic()}\n")
    if not p.exists():
        sys.exit(errno.ENOENT)
    if (SYS / "incapable").exists():
        sys.exit(errno.EPERM)       # of ibtrs_admin(), which says nothing in last_error
    if p.name == "map_device":
        map_device(text)
    elif p.name == "unmap_device":
        unmap(p.parents[1], text)
    elif p.name == "remap_device":
        (CTL / "last_error").write_text("\n")
        state = p.parent / "state"
        if state.read_text().strip() == "open":
            sys.exit(errno.EALREADY)
        put(p.parent, state="open", state_detail="open", reason="")
    elif p.name == "resize" and (p.parent / "state").read_text() != "open\n":
        refuse(errno.ENOENT)
    elif p.name == "resize" and int(text) % 8:
        refuse(errno.EINVAL, f"{p.parents[1].name}: resize: "
               "not a number of whole logical blocks of 4096 bytes")
    elif p.name == "resize":
        (p.parents[1] / "size").write_text(text + "\n")
    elif p.name == "add_path":
        add_path(p.parent.name, text)
    elif p.name in ("remove_path", "disconnect", "reconnect") and text == "1":
        if "ibtrs-client" in path:
            path_order(p.parent, p.name)
        else:
            shutil.rmtree(p.parent)
    elif p.name == "force_close":
        shutil.rmtree(p.parent)
    elif p.name == "policy":
        policy(p, written)
    elif p.name == "mpath_policy":
        p.write_text(text + " (X: 0)\n")
    elif text == "re-add":              # md
        if (p.parent / "refuse").exists():
            sys.exit(errno.EBUSY)
        p.write_text("spare,failfast\n")
    elif p.name == "sync_action":
        p.write_text("idle\n")
    else:
        p.write_text(text + "\n")


def answer():
    """The asker sends SYSFS PATH TEXT, each with a NUL behind it."""
    global SYS, CTL
    err = errno.EIO
    try:
        words = b""
        while words.count(b"\0") < 3:
            words += asker.recv(65536) or sys.exit()    # the command has died
        root, path, text, _ = os.fsdecode(words).split("\0")
        SYS = Path(root)
        CTL = SYS / "class/ibnbd-client/ctl"
        write(path, text)
        err = 0
    except SystemExit as e:
        err = e.code or 0
    except BaseException:
        traceback.print_exc()
    try:
        asker.send(bytes([err]))
    finally:
        os._exit(0)


def start(at):
    """Answers at this socket, each asker in a process of its own, until the caller has ended."""
    global asker
    lives, held = os.pipe()     # the caller alone keeps `held`
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(at))
        at.chmod(0o666)
        s.listen(64)
        if os.fork():
            os.close(lives)
            return
        os.close(held)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while s in select.select([s, lives], [], [])[0]:
            asker = s.accept()[0]
            if not os.fork():
                break
            asker.close()
        else:
            os._exit(0)
    answer()
