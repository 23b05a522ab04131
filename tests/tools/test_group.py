# SPDX-License-Identifier: GPL-2.0-only
"""Groups: what may be started where, what is proved when it has stopped, and what a status sees."""
import os, shutil, socket, sys, time
from kit import *
from test_system import tool

PARAMS = "module/ibnbd_server/parameters"
US = f"{socket.gethostname()} {'5eed' * 8}"


class Pair:
    """One of the two servers."""
    def __init__(self, w):
        self.w = w
        self.state = w.travels() / "state"
        self.exports = w.root / "srv/exports"
        self.exports.mkdir(parents=True)
        self.disk = w.put("disks/vol1", "x" * 8192)
        (self.exports / "vol1").symlink_to(self.disk)
        self.conf()
        w.server()
        for d in (w.sys / "class/ibnbd-server/ctl/devices").iterdir():
            shutil.rmtree(d)        # nobody has anything open
        shutil.rmtree(w.sys / "class/ibtrs-server")
        self.param("dev_search_path", "")
        self.param("writer_file", f"{self.state}/writers")

    def conf(self, more="", name="data"):
        self.w.conf(f"dev_search_path = /srv/exports\nstate_dir = {self.state}\n{more}",
                    f"groups/{name}.conf")

    def param(self, key, value=None):
        if value is not None:
            self.w.put(f"sys/{PARAMS}/{key}", value)
        return (self.w.sys / PARAMS / key).read_text().strip()

    def group(self, *args, want=0, **how):
        return self.w.run("group", *args, want=want, **how)

    def owner(self):
        f = self.state / "owner"
        return f.read_text().strip() if f.exists() else None


@test
def a_group_is_started_and_stopped(w):
    p = Pair(w)
    has(p.group("status", "data", want=3).out, "data inactive")
    has(p.group("start", "data", want=3).err, f"state_dir {p.state} of group data: No such file")
    p.group("create", "data")
    p.group("create", "data")
    has(p.group("start", "data", "--wait", "soon", want=2).err, "a time is expected")
    eq((w.log(), p.owner()), ([], None), "nothing has happened")
    p.group("start", "data")
    eq((w.log(), p.owner()), ([f"{PARAMS}/dev_search_path /srv/exports"], US))
    has(p.group("status", "data").out, "data active")
    has(p.group("status").out, "data active")
    p.conf("max_maps = 7\n")
    p.group("start", "data")
    eq(p.param("max_maps"), "7", "a change is applied while it is active")
    p.group("stop", "data")
    eq((p.param("dev_search_path"), p.owner()), ("", None))
    p.group("stop", "data")
    has(p.group("status").out, "data inactive")
    eq((p.state / "group").read_text(), "data\n")


@test
def a_group_that_another_host_has_is_not_started(w):
    p = Pair(w)
    p.group("create", "data")
    (p.state / "owner").write_text(f"other {'5eed' * 8}\n")
    has(p.group("start", "data", want=5).err, "other serves it, or was switched off while it did",
        "--force when that host is off")
    eq((p.param("dev_search_path"), p.owner()), ("", f"other {'5eed' * 8}"))
    has(p.group("status", "data", want=3).out, "was not stopped by other")
    p.group("stop", "data")
    eq(p.owner(), f"other {'5eed' * 8}", "that is not ours to say")
    has(p.group("start", "data", "--force").err, "taken over from other")
    eq((p.param("dev_search_path"), p.owner()), ("/srv/exports", US))
    # this host was switched off while it served the group: it is known to be off
    p.param("dev_search_path", "")
    has(p.group("status", "data", want=3).out, "was not stopped by this host")
    p.group("start", "data")


@test
def a_state_that_does_not_travel_is_refused(w):
    """Each server would have records of its own."""
    p = Pair(w)
    p.state.mkdir()
    has(p.group("start", "data", want=3).err, "has no state of group data",
        "is its file system mounted here?", "ibnbd group create data")
    (p.state / "group").write_text("mail\n")
    has(p.group("start", "data", want=2).err, "has the state of group mail, not of data")
    has(p.group("create", "data", want=5).err, "has the state of group mail")
    (w.root / "mnt").mkdir()
    (w.root / "mnt/group").write_text("data\n")
    w.conf(f"dev_search_path = /srv/exports\nstate_dir = {w.root}/mnt\n", "groups/data.conf")
    for verb in ("start", "create"):
        has(p.group(verb, "data", want=1).err, "is on this host's own file system",
            "mount the file system of the group first")
    eq(w.log(), [])


@test
def disks_that_this_host_cannot_have_are_refused(w):
    p = Pair(w)
    p.group("create", "data")
    link = p.exports / "late"
    link.symlink_to(w.dir / "vg/lv")
    has(p.group("start", "data", want=3).err, f"late ({w.dir / 'vg/lv'}) leads to is not there",
        "activate its volume group")
    link.unlink()
    link.symlink_to(Path(sys.executable).resolve())     # it runs: nobody may write to it
    has(p.group("start", "data", want=5).err, "late (", "cannot be written to by this host: ",
        "Text file busy")
    eq((w.log(), p.owner()), ([], None))
    link.unlink()
    p.group("start", "data")


@test
def a_host_serves_a_group_alone(w):
    p = Pair(w)
    p.group("create", "data")
    p.param("writer_file", "/var/lib/ibnbd/writers")
    p.param("dev_search_path", "/etc/ibnbd/exports")
    has(p.group("start", "data", want=5).err, "this host exports /etc/ibnbd/exports already")
    p.param("dev_search_path", "")
    has(p.group("start", "data", want=8).err, "with the records of another server")
    eq((w.log(), p.owner()), ([], None), "its records are never another server's")
    p.group("stop", "data")
    eq(w.log(), [], "what is not ours is not stopped")
    p.param("writer_file", f"{p.state}/writers")
    p.group("start", "data")
    w.conf("dev_search_path = /srv/exports\n", "server.conf")
    has(w.run("server", "start", want=5).err, "group data is active on this host")
    other = Path(f"{p.state}2")
    other.mkdir()
    (other / "group").write_text("mail\n")
    w.conf(f"dev_search_path = /srv/exports\nstate_dir = {other}\n", "groups/mail.conf")
    has(p.group("start", "mail", want=5).err, "this host exports /srv/exports already")


@test
def a_stop_that_proves_nothing_fails(w):
    p = Pair(w)
    p.group("create", "data")
    p.group("start", "data")
    w.put("sys/class/ibnbd-server/ctl/devices/sdb/size", "8")
    t = time.monotonic()
    has(p.group("stop", "data", "--wait", "1", want=5).err, "group data is not stopped: 1 export "
        "and 0 sessions are not closed", "before this host is fenced")
    eq(time.monotonic() - t < 10, True, "within its time")
    eq((p.param("dev_search_path"), p.owner()), ("", US), "closed, and still ours")
    has(p.group("status", "data", want=5).out, "data is not stopped yet")
    agent(w, "monitor", GENERIC)        # NOT_RUNNING would have it started elsewhere
    shutil.rmtree(w.sys / "class/ibnbd-server/ctl/devices/sdb")
    p.group("stop", "data")
    eq(p.owner(), None)


@test
def a_status_sees_what_does_not_answer(w):
    p = Pair(w)
    p.group("create", "data")
    p.group("start", "data")
    p.group("status", "data")
    alive = p.state / "alive"
    alive.unlink()
    os.mkfifo(alive)        # whoever opens it to write waits for a reader
    r = p.group("status", "data", "--wait", "1", want=7)
    has(r.err, f"group data: {p.state} has not answered for 1 seconds")
    has(r.out, "data failed")
    alive.unlink()
    alive.mkdir()
    has(p.group("status", "data", want=1).err, f"{alive} cannot be written: Is a directory")
    alive.rmdir()
    (p.exports / "vol1").unlink()
    (p.exports / "vol1").symlink_to("/proc/self/mem")
    has(p.group("status", "data", want=1).err, "vol1 cannot be read: Input/output error")
    (p.exports / "vol1").unlink()
    (p.exports / "vol1").symlink_to("/dev/data/vol1")       # its volume group is gone
    has(p.group("status", "data", want=1).err, "what vol1 (/dev/data/vol1) leads to is gone")


@test
def a_group_is_what_was_started(w):
    """Not what its file says by now: that would be a server that runs and that nobody knows of."""
    p = Pair(w)
    p.group("create", "data")
    file = w.root / "etc/ibnbd/groups/data.conf"
    other = Path(f"{p.state}2")
    other.mkdir()
    (other / "group").write_text("data\n")
    elsewhere = f"dev_search_path = /srv/exports\nstate_dir = {other}\n"
    for text in (elsewhere, "alow = x\n", None):
        p.conf()
        agent(w, "start", SUCCESS)
        if text is None:
            file.unlink()
        else:
            file.write_text(text)
        has(p.group("status", "data").out, "data active")
        agent(w, "monitor", SUCCESS)
        if text == elsewhere:
            has(p.group("start", "data", want=5).err, f"with its state in {p.state}, not in")
        w.conf("dev_search_path = /srv/exports\n", "server.conf")
        has(w.run("server", "start", want=5).err, "group data is active on this host")
        eq(p.owner(), US)
        agent(w, "stop", SUCCESS)
        eq((p.param("dev_search_path"), p.owner()), ("", None))
        eq(list((w.root / "run/ibnbd").glob("group-*")), [])
    p.conf()
    agent(w, "start", SUCCESS)
    shutil.rmtree(w.sys / "module")     # by hand, and then its file got a mistake
    p.conf("alow = x\n")
    agent(w, "monitor", NOT_RUNNING)
    agent(w, "stop", SUCCESS)
    eq(p.owner(), None)


@test
def a_server_that_is_faster_is_noticed(w):
    """ibnbd-server.service, while the group waits for its disks."""
    p = Pair(w)
    p.group("create", "data")
    late = p.exports / "late"
    late.symlink_to(w.dir / "lv")
    start = subprocess.Popen([w.build / "ibnbd-faked", "group", "start", "data", "--wait", "60"],
                             env=w.env, stderr=subprocess.PIPE, text=True)
    for line in start.stderr:
        if "waiting for what" in line:
            break
    p.param("writer_file", "/var/lib/ibnbd/writers")
    p.param("dev_search_path", "/etc/ibnbd/exports")
    (w.dir / "lv").write_text("x" * 8192)
    has(start.communicate(timeout=DEADLINE)[1], "this host exports /etc/ibnbd/exports already")
    eq((start.returncode, p.owner(), w.log()), (5, None, []))


@test
def the_file_of_a_group(w):
    p = Pair(w)
    has(p.group("start", "mail", want=2).err, "mail.conf is not there")
    for name in ("../data", ".data", "da ta", "-"):
        has(w.run("group", "status", "--", name, want=2).err, "is no name of a group")
    for more, words in (("writer_file = /w\n", "the records of a group are in state_dir"),
                        ("alow = x\n", 'unknown key "alow"')):
        p.conf(more)
        has(p.group("start", "data", want=2).err, words, "has mistakes; nothing was changed")
        has(p.group("status", want=2).out, "data has mistakes")
    for text, words in (("dev_search_path = /srv/exports\n", "there is no state_dir"),
                        (f"dev_search_path = /dev\nstate_dir = {p.state}\n", "not / or /dev"),
                        ("dev_search_path = /x\nstate_dir = x\n", "an absolute path"),
                        (f"state_dir = {p.state}\n", "a dev_search_path of its own")):
        w.conf(text, "groups/data.conf")
        has(p.group("start", "data", want=2).err, words)
    p.conf()
    w.run("server", "check", "--file", w.root / "etc/ibnbd/groups/data.conf")
    shutil.copy(w.root / "etc/ibnbd/groups/data.conf", w.root / "etc/ibnbd/server.conf")
    for verb in ("check", "start"):
        has(w.run("server", verb, want=2).err, "one of a pair", "ibnbd group start NAME")
    eq(w.log(), [])


@test
def the_driver_is_loaded_with_the_records_of_the_group(w):
    p = Pair(w)
    p.group("create", "data")
    shutil.rmtree(w.sys / "module")
    r = p.group("start", "data", "--dry-run")
    has(r.out, f'writer_file="{p.state}/writers"', 'dev_search_path="/srv/exports"')
    eq(p.owner(), None, "nothing was written")
    has(p.group("start", "data", want=8).err, "ibnbd-server is not loaded")
    eq(p.owner(), None, "nothing is served, so nobody has it")


# ---- the resource agent ----

def agent(w, action, want, group="data", fences=None, timeout=20000):
    """As a cluster calls it. fences: what its stonith-enabled says; None: there is no cluster."""
    bins = w.dir / "bin"
    shutil.rmtree(bins, ignore_errors=True)
    bins.mkdir()
    for name, text in (("ibnbd", f'exec {w.build}/ibnbd-faked "$@"'),
                       ("crm_attribute", f"echo {fences}")):
        if name == "ibnbd" or fences:
            (bins / name).write_text(f"#!/bin/sh\n{text}\n")
            (bins / name).chmod(0o755)
    env = {**w.env, "PATH": f"{bins}:/usr/bin:/bin", "OCF_ROOT": "/usr/lib/ocf",
           "OCF_RESKEY_CRM_meta_timeout": str(timeout)}
    if group is not None:
        env["OCF_RESKEY_group"] = group
    p = subprocess.run([TOP / "tools/share/ocf-exports", *([action] if action else [])], env=env,
                       capture_output=True, text=True, timeout=DEADLINE)
    eq(p.returncode, want, f"{action}: {p.stdout}{p.stderr}")
    return p.stdout + p.stderr


SUCCESS, GENERIC, ARGS, UNIMPLEMENTED, INSTALLED, CONFIGURED, NOT_RUNNING = 0, 1, 2, 3, 5, 6, 7


@test
def the_agent_does_what_a_cluster_asks(w):
    p = Pair(w)
    p.group("create", "data")
    agent(w, "validate-all", SUCCESS)
    agent(w, "monitor", NOT_RUNNING)
    agent(w, "stop", SUCCESS)
    agent(w, "start", SUCCESS)
    agent(w, "start", SUCCESS)
    agent(w, "monitor", SUCCESS)
    eq(w.log(), [f"{PARAMS}/dev_search_path /srv/exports"], "started once")
    w.put("sys/class/ibnbd-server/ctl/devices/sdb/size", "8")
    begin = time.monotonic()
    has(agent(w, "stop", GENERIC, timeout=11000), "group data is not stopped")
    eq(5 < time.monotonic() - begin < 11, True, "within the time that the cluster gives it")
    shutil.rmtree(w.sys / "class/ibnbd-server/ctl/devices/sdb")
    agent(w, "stop", SUCCESS)
    agent(w, "stop", SUCCESS)
    agent(w, "monitor", NOT_RUNNING)


@test
def the_agent_takes_over_where_the_cluster_fences(w):
    p = Pair(w)
    p.group("create", "data")
    # by any spelling; and one whose answer is none, or an error, is not known to fence
    for fences in (None, "false", "no", "False", "OFF", "; exit 102", "\"\""):
        (p.state / "owner").write_text("other 1\n")
        has(agent(w, "start", GENERIC, fences=fences), "other serves it, or was switched off")
    eq(w.log(), [])
    agent(w, "start", SUCCESS, fences="true")
    eq(p.owner(), US)


@test
def the_agent_sees_a_server_that_hangs(w):
    p = Pair(w)
    p.group("create", "data")
    agent(w, "start", SUCCESS)
    (p.state / "alive").unlink(missing_ok=True)
    os.mkfifo(p.state / "alive")
    begin = time.monotonic()
    has(agent(w, "monitor", GENERIC, timeout=11000), "has not answered for 6 seconds")
    eq(time.monotonic() - begin < 11, True)
    has(agent(w, "monitor", GENERIC, timeout=4000), "has not answered for 2 seconds")


@test
def the_agent_says_what_is_wrong_with_its_parameters(w):
    p = Pair(w)
    for action in ("start", "stop", "monitor", "validate-all"):
        has(agent(w, action, CONFIGURED, group=None), "the parameter group is missing")
        # a stop that fails would have the host fenced
        has(agent(w, action, SUCCESS if action == "stop" else INSTALLED, group="mail"),
            "mail.conf is not there")
    p.group("create", "data")
    p.conf("alow = x\n")
    for action in ("validate-all", "start", "monitor"):
        agent(w, action, INSTALLED)     # of this host; the other one may be fine
    agent(w, "stop", SUCCESS)
    agent(w, "promote", UNIMPLEMENTED)
    agent(w, None, ARGS)


@test
def the_meta_data_of_the_agent(w):
    import xml.etree.ElementTree as tree
    root = tree.fromstring(agent(w, "meta-data", SUCCESS, group=None))
    eq((root.tag, root.get("name"), root.findtext("version")), ("resource-agent", "exports", "1.1"))
    eq([p.get("name") for p in root.iter("parameter")], ["group"])
    eq({a.get("name") for a in root.iter("action")},
       {"start", "stop", "monitor", "validate-all", "meta-data"})


@test
def the_agent_passes_ocf_tester(w):
    """The tester of resource-agents: each action as OCF wants it, also twice, also before start."""
    tester = tool("ocf-tester")
    p = Pair(w)
    p.group("create", "data")
    agent(w, "monitor", NOT_RUNNING)       # makes the commands that the agent finds
    r = subprocess.run([tester, "-v", "-n", "data", "-o", "group=data",
                        TOP / "tools/share/ocf-exports"], capture_output=True, text=True,
                       env={**w.env, "PATH": f"{w.dir}/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                            "OCF_ROOT": "/usr/lib/ocf"}, timeout=DEADLINE)
    eq(r.returncode, 0, r.stdout + r.stderr)
    has(r.stdout, "passed all tests")
