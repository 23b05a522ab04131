# SPDX-License-Identifier: GPL-2.0-only
"""Units, rules, manuals and completion: what other programs of the system make of them."""
import fnmatch, shutil, subprocess
from kit import *


def has_tool(name):
    return (shutil.which(name)
            or shutil.which(name, path="/usr/bin:/usr/sbin:/sbin:/bin:/usr/lib/systemd"))


def tool(name):
    """A test without its tool has shown nothing."""
    found = has_tool(name)
    if not found:
        raise Failed(f"{name} is missing: tests/setup.sh")
    return found


@test
def units_verify(w):
    analyze = tool("systemd-analyze")
    w.conf("vol1 vol/1 s path=10.0.0.1\nmy-vol d2 s wait start-timeout=5min\n")
    units, gen = w.dir / "units", w.dir / "gen"
    units.mkdir()
    gen.mkdir()
    w.run(gen, program="ibnbd-generator")
    for f in (TOP / "systemd").iterdir():
        (units / f.name).write_text(
            re.sub(r"/usr/sbin/ibnbd(-serverd)?", str(w.build / "ibnbd-faked"), f.read_text()))
    for d in gen.iterdir():
        if d.name.endswith(".wants"):
            (units / d.name).mkdir()
            for link in d.iterdir():
                (units / d.name / link.name).symlink_to(units / "ibnbd-map@.service")
        else:
            shutil.copytree(d, units / d.name)
    (units / "srv-data.mount").write_text(
        "[Unit]\nAfter=blockdev@dev-ibnbd-by\\x2dname-vol1.target remote-fs-pre.target\n"
        "[Mount]\nWhat=/dev/ibnbd/by-name/vol1\nWhere=/srv/data\nType=ext4\nOptions=_netdev\n")
    (units / "remote-fs.target.wants").mkdir()
    for name in ("ibnbd-maps.target", "srv-data.mount"):
        (units / "remote-fs.target.wants" / name).symlink_to(units / name)
    names = ["ibnbd-map@vol1.service", "ibnbd-map@my\\x2dvol.service", "ibnbd-maps.target",
             "ibnbd.service", "ibnbd-retry.service", "ibnbd-server.service",
             "ibnbd-shutdown.service", "ibnbd-suspend.service", "ibnbd-keys.service",
             "ibnbd-mirror.service", "ibnbd-group@data.service", "ibnbd-serverd.service",
             "srv-data.mount", "remote-fs.target"]
    p = subprocess.run([analyze, "verify", "--man=no", *[str(units / n) for n in names]],
                       capture_output=True, text=True, timeout=DEADLINE,
                       env={**w.env, "SYSTEMD_UNIT_PATH":
                            f"{units}:/usr/lib/systemd/system:/lib/systemd/system"})
    # A target waits for its instances only if they say so: they have no default dependencies.
    # What is tried again goes after them.
    ours = dict(l.split("=", 1)
                for l in (TOP / "systemd/ibnbd-map@.service").read_text().splitlines()
                if re.match(r"[A-Z]\w+=", l))
    has(ours["DefaultDependencies"] + " " + ours["Before"], "no ", " ibnbd-maps.target ")
    # Keys are there before anybody proves one, or asks for a proof.
    has((TOP / "systemd/ibnbd-map@.service").read_text(), "After=ibnbd-keys.service",
        "Wants=network-online.target modprobe@ibnbd_client.service ibnbd-keys.service ")
    # What is exported is there first: LVM, md, ZFS as units, anything else gets its time.
    has((TOP / "systemd/ibnbd-server.service").read_text(), "Wants=ibnbd-keys.service",
        " lvm2-monitor.service ", " mdmonitor.service", " zfs-volumes.target ",
        "ExecStart=/usr/sbin/ibnbd server start --wait 30\n",
        "ExecStartPre=-/usr/sbin/ibnbd key load\nExecStart=",
        " ibnbd-keys.service\n")
    has((TOP / "systemd/ibnbd-serverd.service").read_text(), "\nType=notify\n", "\nWatchdogSec=",
        "\nConflicts=ibnbd-server.service\n", " lvm2-monitor.service ", "\nRestart=on-failure\n")
    # Whoever keeps the record is never given up: in_sync of its legs may have stayed 1.
    has((TOP / "systemd/ibnbd-mirror.service").read_text(), "\nStartLimitIntervalSec=0\n",
        "\nRestart=always\n")
    has((TOP / "systemd/ibnbd-retry.service").read_text(), "After=ibnbd-maps.target", "ExecStart=-",
        "TimeoutStartSec=infinity")
    for f in (TOP / "systemd").iterdir():
        if re.search(r"(?m)^(After|Requires|Wants|BindsTo)=.*ibnbd-retry", f.read_text()):
            raise Failed(f"{f.name} waits for ibnbd-retry.service, which may take long")
        # users of a disk are looked for
        hasnt(f.read_text(), "ProtectHome=yes", "ProtectHome=tmpfs", "PrivateTmp=",
              "InaccessiblePaths=")
    ours = [l for l in p.stderr.splitlines() if "ibnbd" in l or "srv-data" in l or "cycle" in l]
    eq((p.returncode, ours), (0, []))


@test
def the_generator_by_hand(w):
    """It writes where it is told to, and nowhere else."""
    w.conf("vol1 vol/1 s path=10.0.0.1\n")
    tmp = Path("/tmp/ibnbd-maps.target.wants")
    before = tmp.exists()
    for args in (), ("",):
        has(w.run(*args, program="ibnbd-generator", want=2).err, "is run by systemd",
            "DIRECTORY writes them there")
    eq(tmp.exists(), before)


@test
def units_have_few_rights(w):
    """What each says of itself, and what systemd makes of it: below four of ten, medium."""
    for f in (TOP / "systemd").glob("*.service"):
        name, text = f.stem, f.read_text()
        has(text, "\nNoNewPrivileges=yes\n", "\nLockPersonality=yes\n",
            "\nMemoryDenyWriteExecute=yes\n", "\nRestrictRealtime=yes\n",
            "\nRestrictNamespaces=yes\n", "\nSystemCallArchitectures=native\n",
            "\nProtectSystem=", "\nLimitCORE=0\n", "\nSystemCallFilter=@system-service",
            "\nCapabilityBoundingSet=CAP_")
        unit = w.put(f"{name}i.service" if name.endswith("@") else f"{name}.service", text)
        p = subprocess.run([tool("systemd-analyze"), "security", "--offline=true", "--no-pager",
                            str(unit)], capture_output=True, text=True, timeout=DEADLINE)
        said = re.search(r"exposure level for .*: ([\d.]+) ", p.stdout)
        if not said or float(said[1]) >= 4:
            raise Failed(f"{name}: {p.stdout[-300:]}{p.stderr}")
    # keys: of who may prove one, and of who asks for proofs
    before = re.search(r"(?m)^Before=(.*)$", (TOP / "systemd/ibnbd-keys.service").read_text())[1]
    has(before.split(), "ibnbd-maps.target", "ibnbd-server.service")


def rules_text():
    """Our rules, each on one line."""
    return re.sub(r"\\\n\s*", "", (TOP / "udev/60-ibnbd.rules").read_text())


@test
def rules_verify(w):
    """Every label is there, every property that a rule uses comes from somewhere;
    udevadm verify where it exists."""
    text = rules_text()
    for l in [l for l in text.splitlines() if l and not l.startswith("#")]:
        if not re.fullmatch(r'(?:[A-Z]+(?:\{[^}]+\})?(?:==|!=|=|\+=)"[^"]*"(?:, |$))+', l):
            raise Failed(f"not a rule: {l}")
    for target in re.findall(r'GOTO="(\w+)"', text):
        has(text, f'LABEL="{target}"')
    helper = (TOP / "tools/host/udev.c").read_text()
    for key in set(re.findall(r"\bIBNBD_[A-Z_]+\b", text)):
        has(helper, f'"{key}"')
    udevadm = tool("udevadm")
    if "verify" in subprocess.run([udevadm, "--help"], capture_output=True, text=True).stdout:
        p = subprocess.run([udevadm, "verify", *map(str, (TOP / "udev").glob("*.rules"))],
                           capture_output=True, text=True, timeout=DEADLINE)
        eq(p.returncode, 0, p.stdout + p.stderr)


def udev(action, state, db=(), probed=(), devtype="disk", kernel="ibnbd0", group="", files=()):
    """The properties and links that our rules give a disk in that state. db: of the last event;
    probed: what blkid would find; files: what there is."""
    env = {"DEVTYPE": devtype, "DISKSEQ": "7", **(dict(db) if action == "remove" else {})}
    plain = {"ACTION": action, "SUBSYSTEM": "block", "KERNEL": kernel}
    links, goto = [], None
    for line in rules_text().splitlines():
        if not line or line.startswith("#"):
            continue
        keys = re.findall(r'([A-Z]+)(?:\{([^}]+)\})?(==|!=|\+=|=)"([^"]*)"', line)
        if goto:
            goto = None if keys[0][0] == "LABEL" and keys[0][3] == goto else goto
            continue
        for key, arg, op, value in keys:
            if op in ("==", "!="):
                now = plain.get(key) or (env.get(arg, "") if key == "ENV"
                                         else state if arg == "ibnbd/state"
                                         else group if arg == "ibnbd/group" else "")
                if key == "TEST":
                    now, value = ("there", "there" if value.replace("$attr{ibnbd/group}", group)
                                  in files else "not there")
                if any(fnmatch.fnmatchcase(now, v) for v in value.split("|")) != (op == "=="):
                    break
            elif (key, arg) == ("IMPORT", "db"):
                if value not in dict(db):
                    break
                env[value] = dict(db)[value]
            elif (key, arg) == ("IMPORT", "program") and "--probe" in value:
                env.update(probed)
            elif key == "ENV":
                env[arg] = re.sub(r"\$env\{(\w+)\}", lambda m: env.get(m[1], ""), value)
            elif key == "SYMLINK":
                links.append(re.sub(r"\$env\{(\w+)\}", lambda m: env.get(m[1], ""), value))
            elif key == "GOTO":
                goto = value
    return {k: v for k, v in env.items() if v}, links


@test
def a_disk_that_is_held_is_left_alone(w):
    """The rules of md, btrfs and LVM read whatever has their type, and would wait with the disk;
    links stay."""
    for kind in ("linux_raid_member", "isw_raid_member", "btrfs", "ext4", "LVM2_member"):
        probed = {"ID_FS_TYPE": kind,
                  "ID_FS_USAGE": "filesystem" if kind in ("btrfs", "ext4") else "raid",
                  "ID_FS_UUID_ENC": "77"}
        env, links = udev("add", "open", probed=probed)
        eq(env["ID_FS_TYPE"], kind)
        for action in ("offline", "change"):
            env, held = udev(action, "closed", db=env)
            eq((env.get("ID_FS_TYPE"), held), (kind if kind == "ext4" else None, links),
               f"{kind}: {action}")
        eq(udev("remove", "", db=env)[0]["ID_FS_TYPE"], kind, "whoever clears up behind it is told")
        env, _ = udev("online", "open", db=env, probed=probed)
        eq((env["ID_FS_TYPE"], "ID_FS_TYPE_HELD" in env), (kind, False))


@test
def a_leg_is_hidden_from_md(w):
    """If the mirror is one of ours; whoever clears up behind it is told of it."""
    probed = {"ID_FS_TYPE": "linux_raid_member", "ID_FS_USAGE": "raid"}
    mine = ["/etc/ibnbd/mirrors.d/data.conf"]
    for action in ("add", "change", "online"):
        env, _ = udev(action, "open", probed=probed, group="data", files=mine)
        eq((env.get("ID_FS_TYPE"), env["ID_FS_USAGE"]), (None, "raid"), action)
    env, _ = udev("offline", "closed", db=env, group="data", files=mine)
    eq(env.get("ID_FS_TYPE"), None)
    eq(udev("remove", "", db=env)[0]["ID_FS_TYPE"], "linux_raid_member")
    for group, files in ("data", []), ("other", mine), ("", mine):
        env, _ = udev("add", "open", probed=probed, group=group, files=files)
        eq(env["ID_FS_TYPE"], "linux_raid_member", (group, files))
    env, _ = udev("add", "open", probed={"ID_FS_TYPE": "ext4"}, group="data", files=mine)
    eq(env["ID_FS_TYPE"], "ext4")


@test
def the_helper_is_fast(w):
    import time
    took = []
    w.client()
    w.conf("".join(f"vol{i} vol/{i} s path=10.0.0.1\n" for i in range(200)))
    w.run("map", "vol/199", "s", "10.0.0.1")
    for _ in range(3):      # the host may be busy
        t = time.monotonic()
        has(w.run("ibnbd0", program="ibnbd-udev").out, "IBNBD_NAME=vol199")
        took.append(time.monotonic() - t)
    eq(min(took) < 2, True, f"200 lines, with sanitizers: {took} s")


@test
def completion_parses(w):
    for shell, check in (("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]),
                         ("fish", ["fish", "--no-execute"])):
        f = TOP / f"tools/share/completion.{shell}"
        tool(shell)
        p = subprocess.run([*check, str(f)], capture_output=True, text=True, timeout=DEADLINE)
        eq((p.returncode, p.stderr), (0, ""), shell)


def bash_complete(w, *words):
    f = TOP / "tools/share/completion.bash"
    script = f"""ibnbd() {{ {w.build}/ibnbd-faked "$@"; }}; compopt() {{ :; }}; source {f}
COMP_WORDS=({' '.join(words)} ''); COMP_CWORD={len(words)}
[ -n "$LAST" ] && {{ COMP_WORDS[{len(words)}]=$LAST; }}
_ibnbd; printf '%s\\n' "${{COMPREPLY[@]}}" """
    return lambda last="": subprocess.run(
        ["bash", "--norc", "-c", script], env={**w.env, "LAST": last},
        capture_output=True, text=True, timeout=DEADLINE).stdout.split()


@test
def bash_completion_completes(w):
    w.client()
    w.conf("inconf d s path=10.0.0.1\n")
    w.run("map", "vol/1", "store1", "10.0.1.7", "--name", "vol1")
    eq(bash_complete(w, "ibnbd")("un"), ["unmap"])
    eq(bash_complete(w, "ibnbd", "path")("re"), ["reconnect", "remove"])
    eq(bash_complete(w, "ibnbd", "unmap")(), ["ibnbd0", "vol1"])
    eq(bash_complete(w, "ibnbd", "maps", "start")(), ["inconf"])
    eq(bash_complete(w, "ibnbd", "map")("--poli"), ["--policy="])
    eq(bash_complete(w, "ibnbd", "map")("--nothing"), [])
    w.env["RUN"] = str(w.dir / "run")
    w.run("map", "vol/2", "$(touch${IFS}$RUN)*", "10.0.1.7")
    w.run("map", "vol/3", "d\u00e4t\u00e4", "10.0.1.7")
    eq(bash_complete(w, "ibnbd", "session", "list")(), ["d\u00e4t\u00e4", "store1"])
    eq((w.dir / "run").exists(), False, "a name is not run")
    eq(bash_complete(w, "ibnbd", "unmap")("--fo"), ["--force", "--forget"])


@test
def zsh_completion_completes(w):
    tool("zsh")
    w.client()
    w.conf("inconf d s path=10.0.0.1\n")
    w.run("map", "vol/1", "store1", "10.0.1.7", "--name", "vol1")
    f = TOP / "tools/share/completion.zsh"
    script = f"""ibnbd() {{ {w.build}/ibnbd-faked "$@" }}
compadd() {{ while [[ $1 != -- ]]; do shift; done; shift; print -l -- ${{(M)@:#$PREFIX*}} }}
_describe() {{ local -a l; l=("${{(@P)2}}"); print -l -- ${{(M)${{l%%:*}}:#$PREFIX*}} }}
words=("$@") CURRENT=$# PREFIX=${{@[$#]}}; source {f}"""
    ask = lambda *words: subprocess.run(["zsh", "-f", "-c", script, "zsh", "ibnbd", *words],
                                        env=w.env, capture_output=True, text=True,
                                        timeout=DEADLINE).stdout.split()
    eq(ask("un"), ["unmap"])
    eq(ask("path", "re"), ["remove", "reconnect"])
    eq(sorted(ask("unmap", "")), ["ibnbd0", "vol1"])
    eq(ask("maps", "start", ""), ["inconf"])
    eq(ask("map", "--poli"), ["--policy="])
    eq(sorted(ask("unmap", "--fo")), ["--force", "--forget"])


@test
def fish_completion_completes(w):
    tool("fish")
    w.client()
    w.run("map", "vol/1", "store1", "10.0.1.7", "--name", "vol1")
    f = TOP / "tools/share/completion.fish"
    script = f"function ibnbd; {w.build}/ibnbd-faked $argv; end; source {f}; complete -C "
    ask = lambda line: [l.split("\t")[0] for l in subprocess.run(
        ["fish", "--no-config", "-c", script + f"'{line}'"], env=w.env,
        capture_output=True, text=True, timeout=DEADLINE).stdout.splitlines()]
    has(ask("ibnbd un"), "unmap")
    has(ask("ibnbd unmap "), "ibnbd0", "vol1")
    has(ask("ibnbd unmap --for"), "--force", "--forget")
    has(ask("ibnbd map --poli"), "--policy")


@test
def manuals_are_clean(w):
    tool("scdoc")
    subs = {"ibnbd.8": "", "ibnbd-maps.conf.5": "maps", "ibnbd-server.conf.5": "server",
            "ibnbd-policy.conf.5": "", "ibnbd-map.service.8": "", "ibnbd-serverd.8": "",
            "ibtrs-peer.1": "", "libibtrs.7": "", "libibnbd.7": "", "nbdkit-ibnbd-plugin.1": "",
            "ibnbd-ping.1": ""}
    eq(sorted(p.stem for p in (TOP / "docs/man").glob("*.scd")), sorted(subs))
    for name, what in subs.items():
        text = re.sub(r"(?m)^@[A-Z]+@$", lambda m: w.run(*["synopsis", *what.split()]).out,
                      (TOP / f"docs/man/{name}.scd").read_text())
        p = subprocess.run(["scdoc"], input=text, capture_output=True, text=True, timeout=DEADLINE)
        eq((p.returncode, p.stderr), (0, ""), name)
        page = w.put(name, p.stdout)
        if has_tool("mandoc"):      # a second opinion
            lint = subprocess.run(["mandoc", "-Tlint", "-W", "warning", str(page)],
                                  capture_output=True, text=True, timeout=DEADLINE).stdout
            eq([l for l in lint.splitlines() if "skipping paragraph macro" not in l], [], name)
    # Every command, option and key of the tables is in a manual.
    text = w.run("synopsis").out
    for line in w.run("help").out.splitlines():
        m = re.match(r"  ([a-z]+(?: [a-z]+)?)  +\S", line)
        if m:
            has(text, f"*ibnbd {m[1]}*")


@test
def every_command_has_help(w):
    for line in w.run("help").out.splitlines():
        m = re.match(r"  ([a-z]+(?: [a-z]+)?)  +\S", line)
        if m and not line.lstrip().startswith("-"):
            r = w.run(*m[1].split(), "--help")
            has(r.out, f"ibnbd {m[1]}", "Options:", "--dry-run")
            eq(r.out, w.run("help", *m[1].split()).out)
            words = re.findall(r"^ +(?:-\w, )?--([a-z-]+)|^  ([a-z_]+)=", r.out, re.M)
            words = [(a or b).replace("_", "-") for a, b in words]
            eq(sorted(set(words)), sorted(words), f"an option of {m[1]} has two meanings")
    has(w.run("--version").out, "ibnbd ")
    has(w.run("--help").out, "COMMAND")
    has(w.run("help", "path").out, "path add", "path policy")
    eq(w.run(want=2).out, w.run("help").out)


@test
def what_was_perhaps_meant(w):
    for args, words in ((("lst",), ["ibnbd list"]), (("path", "ad"), []),
                        (("path", "dele", "x"), ['path: no command "dele"']),
                        (("list", "--filtr", "x"), ["did you mean --filter"]),
                        (("list", "-z"), ["no option -z"]),
                        (("unmap",), ["DEVICE... is missing"]),
                        (("resize", "a", "1G", "b"), ['"b" is too much']),
                        (("unmap", "--all", "a"), ['--all, or "a"? Not both']),
                        (("remap", "a", "--session", "s"), ['--session, or "a"']),
                        (("maps", "save", "a", "--all"), ["Not both"]),
                        (("maps", "start", "--missing", "a"), ["Not both"]),
                        (("session", "reconnect", "a", "--all"), ["Not both"]),
                        (("path", "reconnect", "s", "a", "--all"), ['or "a"']),
                        (("server", "close", "--all", "--force"), ["EXPORT [SESSION] is missing"]),
                        (("maps",), ["ibnbd help maps"])):
        has(w.run(*args, want=2).err, *words)


@test
def the_journal_is_told_how_bad_it_is(w):
    """And nobody else: the variable is inherited by a shell within a unit."""
    run = lambda stream: subprocess.run(f"exec 2>{w.dir}/err; JOURNAL_STREAM={stream} "
                                        f"{w.build}/ibnbd-faked list x", shell=True, env=w.env)
    run(f"$(stat -Lc %d:%i {w.dir}/err)")
    eq((w.dir / "err").read_text()[:10], "<3>ibnbd: ")
    run("1:2")
    eq((w.dir / "err").read_text()[:7], "ibnbd: ")


@test
def words_cut_short(w):
    w.client()
    eq(w.run("sess", "li", "--json").out, w.run("session", "list", "--json").out)
    has(w.run("un", "x", want=3).err, "nothing is mapped")


@test
def words_of_the_rnbd_tool(w):
    w.client()
    w.server()
    w.run("client", "device", "map", "vol/1", "from", "store1", "ip:10.0.0.7",
          "ip:10.0.0.9@ip:10.0.1.7", "ro")
    has(w.log()[-1], "sessname=store1 path=ip:10.0.0.7 path=ip:10.0.0.9@ip:10.0.1.7 "
        "device_path=vol/1 access_mode=ro")
    has(w.run("-s", "map", "vol/2", "from", "store1").out, "device_path=vol/2")
    has(w.run("-s", "unmap", "ibnbd0", "force").out, "echo 'force' > ")
    eq(w.run("dev", "list", "json").out, w.run("list", "--json").out)
    eq(w.run("clt", "list", "csv").out, w.run("list", "--csv").out)
    has(w.run("client", "paths", "list", "noheaders").out, "ip:10.0.0.7")
    hasnt(w.run("srv", "sess", "list").out, "store1")
    has(w.run("server", "device", "list").out, "sdb")
    w.run("path", "delete", "ip:10.0.0.9@ip:10.0.1.7")
    has(w.log()[-1], "remove_path 1")
    w.run("client", "session", "reconnect", "store1")
    # Columns as that tool calls them, in every spelling;
    # behind an option of ours a word may be its value.
    for theirs, ours in (("dev list sessname,devname", "-o session,kname"),
                         ("client device list +identity", "-o +identity"),
                         ("client device list all", "-o all"),
                         ("dev list +hold,-state", "-o +hold,^state"),
                         ("dev list " + "mapping_path," * 60 + "devname", "-o device_path,kname"),
                         ("list sessname,mapping_path", "-o session,device_path"),
                         ("client session list sessname,path_uu,mp_short,tx,rx json", "--json"),
                         ("session list sessname,tx", "-o name,write_bytes"),
                         ("path list sessname,hca_name,rx", "-o session,hca_name,read_bytes"),
                         ("list csv noheaders", "--csv -H"),
                         ("list --sort state", "--sort state"), ("dev list -o devname,hold", None)):
        noun = "session" if "session list" in theirs else "path" if "path list" in theirs else ""
        if ours:
            eq(w.run(*theirs.split()).out, w.run(*noun.split(), "list", *ours.split()).out, theirs)
        else:
            has(w.run(*theirs.split(), want=2).err, 'no column "devname"')
    eq(w.run("server", "device", "list", "sessname,devname").out,
       w.run("server", "list", "-o", "session,export").out)
    eq(w.run("list", "json").out, w.run("list", "--json").out)
    eq(w.run("session", "list", "json").out, w.run("session", "list", "--json").out)
    has(w.run("list", "--", "json", want=3).err, "json: no such device")
    has(w.run("dev", "list", "+identty", want=2).err, 'did you mean "identity"')
    for args in (("client", "device", "list", "xml"), ("list", "xml"), ("session", "list", "xml")):
        r = w.run(*args, want=2)
        has(r.err, "XML is not written", "json")
        eq(r.out, "")
    eq(w.run("version").out, w.run("--version").out)
    for args in (("recover", "ibnbd0"), ("client", "session", "remap", "store1"),
                 ("session", "remap", "store1"), ("remap", "--session", "store1")):
        w.put("sys/block/ibnbd0/ibnbd/state", "closed")
        n = len(w.log())
        w.run(*args)
        eq(w.log()[n:], ["block/ibnbd0/ibnbd/remap_device 1"], args)
    has(w.run("client", "session", "remap", "store9", want=3).err, "session store9 has no device")
    w.run("client", "device", "unmap", "ibnbd0", "force")
    has(w.log()[-1], "unmap_device force")
    # Words of options are words of ours where that tool is not meant.
    w.run("map", "all", "force", "10.0.0.7")
    has(w.log()[-1], "sessname=force", "device_path=all")
