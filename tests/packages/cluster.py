#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A pair of servers under Pacemaker and corosync, as docs/pair.md tells people to make one: two
Debians with our packages and Debian's own cluster, a shelf with LVM, then DRBD. And the kernel's
NVMe target in our place on DRBD, by Debian's own agents: its rows stand beside ours.

    tests/packages/cluster.py [--suite bookworm|trixie] [WORD]..    scenes whose names have a WORD

The commands are those of docs/pair.md: what stands in its blocks is run, with the names of the
test's disks. A client of the rig has a disk of the group mapped by the group's address, and runs
the writers of tests/stamp on it. The rig fences: fence_rig asks it to. Last line: N passed, N
failed, N skipped. Logs: build/systems/cluster-SUITE.
"""
import argparse, re, subprocess, sys, tempfile, threading, time, types
from pathlib import Path
from system import BOOT, System, TOP, launch, own_boot, own_disk, prepare, vm
import case, peers
import faults as F

sys.path.insert(0, str(TOP / "tests/nbdkit"))
import guest as stamp_builder

PACKAGES = ("pacemaker", "pacemaker-cli-utils", "corosync", "pcs", "resource-agents", "drbd-utils",
            "psmisc")
NAMES = ("store-a", "store-b")
ADDRESS = "10.0.0.9"
PAUSE = 10              # seconds, behind the cluster's own detection
HOLD = 300              # seconds a client waits for a server
LOAD = dict(blocks=512, think_us=4000, flush=24)
SCENES = []

COROSYNC = """totem {
	version: 2
	cluster_name: pair
	transport: knet
	crypto_cipher: none
	crypto_hash: none
}
nodelist {
	node {
		name: store-a
		nodeid: 1
		ring0_addr: 10.9.0.1
	}
	node {
		name: store-b
		nodeid: 2
		ring0_addr: 10.9.0.2
	}
}
quorum {
	provider: corosync_votequorum
	two_node: 1
}
logging {
	to_syslog: yes
}
"""


def scene(f):
    """Decorator: a scene is a function of one Cluster."""
    SCENES.append(f)
    return f


def block(words):
    """The block of docs/pair.md in which a line begins with these words."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", (TOP / "docs/pair.md").read_text(), re.M | re.S)
    found = [b for b in blocks if re.search(f"^{re.escape(words)}", b, re.M)]
    if len(found) != 1:
        raise SystemExit(f"docs/pair.md has {len(found)} blocks with {words!r}")
    return found[0]


class Ours:
    """What the group serves, and how the client has it."""
    agents = ("exports",)
    lines = ""

    def work(self, t):
        dev = t.client.sh(f"map vol1 unflushed=replay hold={HOLD} path=ip:10.0.0.1@ip:{ADDRESS}",
                          60)
        return F.Work(t, t.client, dev, **LOAD)

    def proven(self, t, w):
        """Behind the server: the whole volume, read where it is served."""
        w.stop()
        t.client.sh(f"unmap {w.dev}")
        s = t.server
        s.sh("for i in {1..100}; do [ -z \"$(exports)\" ] && break; sleep 0.1; done")
        F.prove(t, s, "/dev/data/vol1", [w], w.blocks)


class Nvmet:
    """The kernel's NVMe target over RDMA. Its client gives up when ours would."""
    agents = ("subsystem", "namespace", "port")
    lines = "".join(f"pcs resource create data-{agent} ocf:heartbeat:nvmet-{agent} {words} "
                    "op start timeout=60 op stop timeout=60 op monitor timeout=60 --group data\n"
                    for agent, words in (
                        ("subsystem", "nqn=sub0 serial=rig"),
                        ("namespace", "nqn=sub0 backing_path=/dev/data/vol1 "
                                      "uuid=11111111-2222-3333-4444-666666666661"),
                        ("port", f"nqns=sub0 type=rdma addr={ADDRESS}")))

    def work(self, t):
        t.client.put("peers.sh", peers.SCRIPT.read_text())
        t.client.sh(f". /h/peers.sh; NVME_WORDS=ctrl_loss_tmo={HOLD} nvme_connect {ADDRESS}; "
                    "wait_for 30 test -b /dev/nvme0n1; cd /sys/class/nvme/nvme0; "
                    "grep . kato reconnect_delay ctrl_loss_tmo", 60)
        return F.Work(t, t.client, "/dev/nvme0n1", stack=peers.Nvme.stack, lenient=True,
                      states="/sys/class/nvme/nvme0/state", **LOAD)

    def proven(self, t, w):
        peers.finish(t, w, disk="/dev/data/vol1")


class Store(System):
    """A server: its own disk, that of the shelf, and one that DRBD copies."""
    def __init__(self, name, boot, host, nics, logdir, root, shelf):
        super().__init__(name, boot, host, nics, mem=1024, logdir=logdir,
                         append=f"systemd.hostname={name}")
        self.disk = root
        own = boot.workdir / f"{name}.copy"
        with open(own, "wb") as f:
            f.truncate(256 << 20)
        for ident, path in ("shelf", shelf), ("copy", own):
            self.more += ("-drive", f"file={path},format=raw,if=none,id={ident},cache=unsafe,"
                          "file.locking=off", "-device",
                          f"virtio-blk-pci,drive={ident},serial={ident}")


class Node(case.Guest):
    """A server in the hands of the test."""
    def heard(self):
        self.kmsg_start = self.console_start = 0

    def ready(self, timeout=BOOT):
        self.vm.ready(2 * timeout)
        self.t.wait(lambda: self.rc("systemctl is-active multi-user.target")[0] == 0, timeout,
                    f"{self.name}: multi-user.target")


class Cluster(case.T):
    def __init__(self, suite, logs, pristine, kver):
        self.stack = Ours()
        self.boot = launch.boot_image()
        self.second = own_boot(kver, tempfile.mkdtemp(dir=self.boot.workdir))
        shelf = self.boot.workdir / "shelf"
        with open(shelf, "wb") as f:
            f.truncate(256 << 20)
        net = tempfile.mkdtemp(prefix="net.", dir=self.boot.workdir)
        hubs, stores = [], []
        for i in range(2):          # 0: clients, 1: the cluster's own. The hubs are the client's.
            hub = ["-netdev", f"hubport,id=n{i},hubid={i}"]
            for s in NAMES:
                hub += vm._wire(net, "client", s, i, f"w{i}{s}")
                hub += ["-netdev", f"hubport,id=p{i}{s},hubid={i},netdev=w{i}{s}"]
            hubs.append(hub)
        client = vm.VM("client", self.boot, 1, hubs, logdir=logs)
        for host, s in enumerate(NAMES, 2):
            root = own_disk(pristine, logs / f"{s}.img")
            nics = [vm._wire(net, s, "client", i, f"n{i}") for i in range(2)]
            stores.append(Store(s, self.second, host, nics, logs, root, shelf))
        client.boot()
        case.bring_up(client, 1, [client])
        super().__init__(types.SimpleNamespace(links=1), [client], logs, self.boot)
        self.stores = [Node(m, self) for m in stores]
        self.guests += self.stores
        self.fenced, self.dark, self.over = [], None, threading.Event()
        self.whole = lambda: None               # waits until either of them could serve
        self.plugs = threading.Thread(target=self.pull_plugs, daemon=True)

    # ---- machines --------------------------------------------------------------------------------
    def up(self):
        self.plugs.start()
        for s in self.stores:
            s.start()
        for s in self.stores:
            s.ready()
            self.configure(s)

    def close(self):
        self.over.set()
        for g in self.guests:
            g.vm.kill()
        for s in self.stores:
            s.vm.disk.unlink(missing_ok=True)
        self.boot.close()

    def pull_plugs(self):
        """Thread: what fence_rig asks for. Who has no network does not reach a plug."""
        while not self.over.wait(0.05):
            for s in self.stores:
                asked = s.vm.share / "fence" if s.vm.boots else None
                if not asked or not asked.exists() or s is self.dark:
                    continue
                name = asked.read_text().strip()
                asked.unlink()
                self.fenced.append((time.monotonic(), name))
                self.log(f"{s.name} fences {name}")
                for victim in self.stores:
                    if victim.name == name and victim.vm.alive:
                        victim.kill()
                (s.vm.share / "fence.done").write_text("")

    def configure(self, s):
        """What an administrator does on both; docs/pair.md."""
        s.put("corosync.conf", COROSYNC)
        s.vm.share.joinpath("stamp").write_bytes(stamp_builder.stamp().read_bytes())
        s.put("data.res", re.sub("disk /dev/sdb", "disk /dev/vdc", block("resource data {")))
        groups = re.sub(r"(?s)systemctl disable.*", "", block("cat > /etc/ibnbd/groups"))
        s.sh("install -m 755 /h/stamp /usr/local/bin/stamp; cp /h/corosync.conf /etc/corosync; "
             "printf '10.9.0.1 store-a\\n10.9.0.2 store-b\\n' >> /etc/hosts\n"
             "cp /h/data.res /etc/drbd.d; mkdir -p /etc/ibnbd/groups /srv/data-state\n"
             "sed -i 's|^\\t# system_id_source = .*|\\tsystem_id_source = \"uname\"|' "
             "/etc/lvm/lvm.conf; lvmconfig global/system_id_source | grep uname\n"
             f"systemctl -q disable --now ibnbd-server\n{groups}\nsync", 60)

    # ---- the cluster -----------------------------------------------------------------------------
    def alive(self):
        return next(s for s in self.stores if s.vm.alive and s is not self.dark)

    def other(self, s):
        return self.stores[1 - self.stores.index(s)]

    def where(self):
        """The one that serves; None: none does."""
        rc, out = self.alive().rc(f"crm_resource --resource data-{self.stack.agents[-1]} --locate "
                                  "2>&1", 60)
        on = re.findall(r"is running on: (\S+)", out)
        return next((s for s in self.stores if [s.name] == on[:1]), None)

    @property
    def server(self):
        """The same, for case.T and faults.Work too."""
        return self.where() or self.alive()

    @server.setter
    def server(self, _):
        pass

    def join(self):
        """Both run the cluster's engines; the resources go where those put them."""
        for s in self.stores:
            s.sh("systemctl start corosync pacemaker", 60)
        self.wait(lambda: all(sorted(s.rc("crm_node -p")[1].split()) == sorted(NAMES)
                              for s in self.stores), 90, "both are members")
        # it writes its version when it has been elected; pcs would make the same set of properties
        self.wait(lambda: not self.stores[0].rc("crm_attribute -t crm_config -n dc-version -G")[0],
                  90, "one of them is the DC")

    def running(self, timeout=90):
        """All resources of the group are started somewhere."""
        def started():
            out = self.alive().rc("crm_mon -1 -r")[1]
            return all(re.search(rf"data-{agent}\s.*Started", out)
                       for agent in ("lvm", "state", "ip", *self.stack.agents))
        self.wait(started, timeout, "the group is started")

    def settled(self):
        """Nothing is under way in the cluster."""
        self.alive().sh("crm_resource --wait --timeout 120", 150)

    def reset(self):
        self.alive().sh("crm_resource --cleanup; stonith_admin --cleanup --history '*'", 60)


# ---- what happens --------------------------------------------------------------------------------

def standby(t, old):
    """It is to be maintained; the other one takes the group."""
    t.other(old).sh(f"crm_standby -N {old.name} -v on", 60)
    t.wait(lambda: t.where() is t.other(old), 90, "the other one has the group")
    t.other(old).sh(f"crm_standby -N {old.name} -D", 60)


def returns(t):
    """What was cut is given its power back, and becomes a member again."""
    t.dark = None
    for s in t.stores:
        if not s.vm.alive:
            s.start()
            s.ready()
    t.join()
    t.settled()
    t.reset()


def agent_seconds(t, old):
    """What the agents of what serves took to stop on the old one, if that lives, and to start."""
    seconds = 0
    for agent in t.stack.agents:
        ops = t.alive().sh("cibadmin -Q --xpath "
                           f"\"//lrm_resource[@id='data-{agent}']/lrm_rsc_op\"", 60)
        took = {}
        for op in re.findall("<lrm_rsc_op [^>]*>", ops):
            word = dict(re.findall(r'([\w-]+)="([^"]*)"', op))
            took[word["on_node"], word["operation"]] = int(word["exec-time"]) / 1e3
        seconds += took[t.other(old).name, "start"] + took.get((old.name, "stop"), 0)
    return seconds


def takes_over(t, w, number, what, strike, cut):
    """One takeover under load: no error, and our part of the pause is below PAUSE. The cluster's
    engine and the other agents, some twenty shell scripts, are slow in an emulated machine."""
    t.settled()
    t.whole()
    old, before = t.server, len(t.fenced)
    begin = time.monotonic()
    row = w.fault(number, what, lambda: strike(old),
                  lambda: t.wait(lambda: t.where() is t.other(old), 120, f"{what}: it is taken"),
                  down=[0], hold=0, detect=60, recover=60, from_healed=True)
    t.eq([n for _, n in t.fenced[before:]], [old.name] if cut else [], f"{what}: fenced")
    known = t.fenced[before][0] - begin if cut else 0
    agent = agent_seconds(t, old)
    w.remark(f"{old.name} had it; {known:.1f} until it was fenced, the agent {agent:.1f}")
    if not w.lenient:
        w.limit(row, Nerr=0, Trec=PAUSE - agent)
    if cut:
        returns(t)


def takeovers(t, w):
    """Each twice in a row."""
    def dark(old):
        t.dark = old
        for i in range(2):
            old.vm.link(i, False)
    replays = lambda: t.client.sh(f"dev_attr {w.dev} replays")
    for i in 1, 2:
        takes_over(t, w, "F30", f"planned switch {i}", lambda old: standby(t, old), False)
    t.ok(w.lenient or replays() == "0 0", "a planned switch costs no replay")
    for i in 1, 2:
        takes_over(t, w, "F31", f"power cut {i}", lambda old: old.kill(), True)
    for i in 1, 2:
        takes_over(t, w, "F32", f"network dark {i}", dark, True)
    t.ok(w.lenient or int(replays().split()[0]) > 0, "what was lost was sent again")


def volumes(t, on):
    """The volume group and what is in it, made on the first server."""
    made = re.sub("500G", "64M", re.sub("/dev/mapper/shelf0", on, block("vgcreate")))
    t.stores[0].sh(f"{made}mount /dev/data/state /srv/data-state\n"
                   "ibnbd group create data; umount /srv/data-state; vgchange -an data", 60)
    t.stores[1].sh("mkdir -p /srv/data-state")


def served(t, lines):
    """The resources of the group, and its takeovers under load."""
    ours = re.search("^pcs resource create data-exports .*\n", lines, re.M)[0]
    lines = lines.replace(ours, t.stack.lines or ours)
    t.join()
    t.stores[0].sh("pcs property set stonith-enabled=true; pcs stonith create plug fence_rig "
                   "pcmk_host_list='store-a store-b'\n" + lines, 300)
    t.running()
    t.settled()
    w = t.stack.work(t)
    takeovers(t, w)
    t.stack.proven(t, w)


@scene
def shelf_with_lvm(t):
    """One disk that both have. And a client that comes late, behind another writer."""
    volumes(t, "/dev/vdb")
    served(t, block("pcs resource create data-lvm"))

    def planned(b_goes):
        b_goes()
        standby(t, t.server)

    def cut(b_goes):
        t.server.kill()
        b_goes()
        t.running()
        returns(t)
    for between in planned, cut:
        F.late_writer(t, lambda: t.server, ADDRESS, between)


@scene
def drbd_with_lvm(t):
    """A disk that DRBD copies, protocol C; each takeover leaves a resync, under the load. A server
    whose copy is not whole cannot take over, so the next blow waits for that."""
    for s in t.stores:
        s.sh("modprobe drbd; drbdadm create-md --force data; drbdadm up data\n"
             "sed -i 's/^\t# global_filter = .*/\tglobal_filter = [ \"r|^\\/dev\\/vdc$|\" ]/' "
             "/etc/lvm/lvm.conf; lvmconfig devices/global_filter", 60)
    a, b = t.stores
    a.sh("wait_for 30 sh -c 'drbdadm cstate data | grep -x Connected'\n"
         "drbdadm new-current-uuid --clear-bitmap data; drbdadm primary data", 60)
    volumes(t, "/dev/drbd0")
    a.sh("drbdadm secondary data; drbdadm down data")
    b.sh("drbdadm down data")
    mark = "# the lines of the shelf come here\n"
    lines = block("pcs resource create data-drbd")
    assert mark in lines
    t.whole = lambda: t.server.sh(
        "wait_for 180 sh -c 'drbdadm dstate data | grep -x UpToDate/UpToDate'", 240)
    served(t, lines.replace(mark, block("pcs resource create data-lvm")))


@scene
def nvmet_on_drbd(t):
    """The same, but for what serves it."""
    t.stack = Nvmet()
    for s in t.stores:
        s.sh("echo nvmet-rdma > /etc/modules-load.d/nvmet.conf; modprobe nvmet-rdma; sync")
    drbd_with_lvm(t)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--suite", default="bookworm")
    p.add_argument("word", nargs="*")
    o = p.parse_args()
    scenes = [f for f in SCENES if not o.word or any(w in f.__name__ for w in o.word)]
    logs = TOP / "build/systems" / f"cluster-{o.suite}"
    pristine, kver = prepare(o.suite, PACKAGES, logs)
    turn = launch.alone()
    passed, failed, rows = 0, 0, []
    try:
        for f in scenes:
            t0 = time.monotonic()
            t = Cluster(o.suite, logs, pristine, kver)
            t.log(f"== {f.__name__}")
            try:
                t.up()
                f(t)
                bad = [b for g in t.guests for b in g.trouble(t.allowed)]
                if bad:
                    raise case.Failed(bad[0])
                passed += 1
                print(f"ok    cluster {o.suite}: {f.__name__} ({time.monotonic() - t0:.0f} s)",
                      flush=True)
            except (case.Failed, vm.VMError) as e:
                failed += 1
                t.log(f"FAIL {e}")
                for s in t.stores:
                    if s.vm.alive:
                        s.rc("crm_mon -1 -r; drbdadm status; "
                             "journalctl -b --no-pager | tail -n 200", 60)
                print(f"FAIL  cluster {o.suite}: {f.__name__} ({time.monotonic() - t0:.0f} s, "
                      f"{t.logdir})\n{e}", flush=True)
                break
            finally:
                rows += t.figures
                t.close()
    finally:
        turn.close()
    print("\n".join(F.table(rows)))
    print(f"{passed} passed, {failed} failed, {len(scenes) - passed - failed} skipped")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
