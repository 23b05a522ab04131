# SPDX-License-Identifier: GPL-2.0-only
"""Two servers on one disk, which the resource agent is called on as a cluster would. The disk
forgets what no flush has carried to it when the host that has it loses its power, and the state of
the group lies on it, so what the other server finds is what a real one would."""
description = ("a group of exports goes from one server to the other, planned and after a power "
               "cut; its clients see a pause, no error, nothing lost; who is late is fenced")
vms = 3
disk = 64
shared = True
faults = True
deadline = 600
import time
import image
import faults as F
import keys
programs = [image.REPO / "tools/share/ocf-exports"]

ADDRESS = "10.0.0.9"
DISK = ("modprobe virtio_blk; wait_for 5 test -b /dev/vda; "
        "modprobe ibnbd-testdisk backing=/dev/vda size_mb=64; "
        "wait_for 5 test -b /dev/testdisk0p2; ")
# what is on each of the two hosts, and comes back with it
CONF = """
mkdir -p /etc/ibnbd/groups /etc/ibnbd/exports /mnt/state
printf 'dev_search_path = /etc/ibnbd/exports\\nstate_dir = /mnt/state\\npolicy = optional\\n' \\
	> /etc/ibnbd/groups/data.conf
ln -sfn /dev/testdisk0p1 /etc/ibnbd/exports/vol1
printf '#!/bin/sh\\necho true\\n' > /bin/crm_attribute; chmod 755 /bin/crm_attribute
"""
AGENT = "OCF_RESKEY_group=data OCF_RESKEY_CRM_meta_timeout=40000 sh /bin/ocf-exports "
STORAGE = DISK + "mount /dev/testdisk0p2 /mnt/state; "
CLAIM = f"ip addr add {ADDRESS}/24 dev eth0; arping -q -U -c 2 -I eth0 {ADDRESS}; "
RELEASE = f"ip addr del {ADDRESS}/24 dev eth0; umount /mnt/state; modprobe -r ibnbd-testdisk"
SUCCESS, GENERIC, CONFIGURED, INSTALLED, NOT_RUNNING = 0, 1, 6, 5, 7


class Pair:
    """The part of the cluster: resources in their order, and what it is told of them."""
    def __init__(self, t):
        self.t, self.active, self.standby = t, t.server, t.client2

    def agent(self, m, action, want=SUCCESS):
        rc, out = m.rc(AGENT + action, 60)
        self.t.eq(rc, want, f"{m.name}: {action}: {out}")
        return out

    def up(self, m):
        m.sh(STORAGE + CLAIM, 60)
        begin = time.monotonic()
        self.agent(m, "start")
        self.t.below(time.monotonic() - begin, F.within(10), "seconds until the group is served")
        self.agent(m, "monitor")

    def down(self, m):
        self.agent(m, "stop")
        self.t.eq(m.sh("ls -d /sys/module/ibnbd_server 2> /dev/null || true"), "",
                  "nothing is left that could write")
        m.sh(RELEASE)
        self.agent(m, "monitor", NOT_RUNNING)

    def swap(self):
        self.active, self.standby = self.standby, self.active

    def switch(self):
        self.down(self.active)
        self.up(self.standby)
        self.swap()

    def cut(self):
        """The cluster's fencing. The rig's network is in the server, which gets its power back."""
        self.active.kill()
        if self.active is self.t.server:
            self.active.start()

    def take_over(self):
        self.up(self.standby)
        self.swap()

    def returns(self):
        """What was cut has booted; it has the group no more."""
        if self.standby.killed:
            self.standby.start()
        self.standby.ready()
        self.standby.sh(CONF)
        self.agent(self.standby, "monitor", NOT_RUNNING)


def refusals(t, pair):
    """What a cluster, or who sets one up, may do wrong."""
    s = t.server
    s.sh(CONF + DISK)
    rc, out = s.rc("sh /bin/ocf-exports monitor")
    t.eq(rc, CONFIGURED, out)
    rc, out = s.rc(f"{AGENT.replace('data', 'none')} start")
    t.eq(rc, INSTALLED, out)
    pair.agent(s, "monitor", NOT_RUNNING)
    t.match(pair.agent(s, "start", GENERIC), "on this host's own file system", "nothing is mounted")
    s.sh("mkfs.ext4 -q -F /dev/testdisk0p2; mount /dev/testdisk0p2 /mnt/state")
    t.match(pair.agent(s, "start", GENERIC), "has no state of group data")
    s.sh("ibnbd group create data; mkfs.ext4 -q -F /dev/testdisk0p1; mkdir -p /mnt/x; "
         "mount /dev/testdisk0p1 /mnt/x")
    t.match(pair.agent(s, "start", GENERIC), "vol1 .* is in use on this host")
    s.sh("umount /mnt/x; blkdiscard -z /dev/testdisk0p1; umount /mnt/state; "
         "modprobe -r ibnbd-testdisk; ! [ -e /sys/module/ibnbd_server ]")


def both_servers(t, pair):
    """Paths to both servers in place of an address that moves; both have the client's key."""
    c = t.client
    keys.share("db-1", c, t.server, t.client2)
    pair.down(pair.active)
    for m in t.server, t.client2:
        m.sh("echo 'auth = required' >> /etc/ibnbd/groups/data.conf")
    pair.up(pair.active)
    dev = c.sh("map vol1 auth=db-1 unflushed=replay hold=-1 path=ip:10.0.0.1@ip:10.0.0.2 "
               "path=ip:10.0.0.1@ip:10.0.0.3")
    c.sh(f"dd if=/dev/zero of={dev} bs=1M count=24 oflag=direct conv=fsync status=none")
    w = F.Work(t, c, dev, writer=3, blocks=512, think_us=4000, flush=24)
    path = lambda m, attr: c.sh(
        f"cat /sys/class/ibtrs-client/s1/paths/*@ip:10.0.0.{3 if m is t.client2 else 2}/{attr}")
    one_up = lambda: w.watch.state and sum(map(w.up, w.watch.state.values())) == 1

    def refuses():
        seen = []       # it tries again and again: what it is between two attempts

        def waits():
            seen.append(path(pair.standby, "state_detail"))
            return seen[-1].startswith("waiting")
        t.wait(waits, 10, "the path to the other one waits for its next attempt")
        said = seen[-1]
        t.match(said, "^waiting -111 .*another host serves its group", "the path to the other one")
        t.ok("marginal" not in said, "it is as good as any")
    refuses()
    for name, what, heal in (("planned switch", pair.switch, None),
                             ("power cut", pair.cut, pair.take_over)):
        row = w.fault("F32", f"{name}, paths to both servers", what, heal, hold=2, up=one_up,
                      recover=60, from_healed=True)
        w.limit(row, Nerr=0, **{"Trec": 4} if heal else {})
        if not heal:
            refuses()
    pair.returns()
    w.end("/dev/testdisk0p1", server=pair.active)


def run(t):
    c, pair = t.client, Pair(t)
    # a power cut may tear what was on its way
    t.allow("EXT4-fs .testdisk0p2.: recovery complete|EXT4-fs .*warning: mounting fs with errors")
    t.server.sh("modprobe virtio_blk; wait_for 5 test -b /dev/vda; "
                "printf 'label: gpt\\n,24M\\n,\\n' | sfdisk -q /dev/vda", 60)
    refusals(t, pair)
    t.client2.sh(CONF)
    pair.up(t.server)
    dev = c.sh(f"map vol1 unflushed=replay hold=-1 path=ip:10.0.0.1@ip:{ADDRESS}")
    w = F.Work(t, c, dev, blocks=512, think_us=4000, flush=24)
    for i in (1, 2):
        row = w.fault("F30", f"planned switch to the other server, {i}", pair.switch, down=[0],
                      recover=60)
        w.limit(row, Nerr=0)
    replays = c.sh(f"dev_attr {dev} replays")
    t.eq(replays, "0 0", "a planned switch costs no replay")
    for i in (1, 2):
        row = w.fault("F31", f"power cut of the active server, the other takes over, {i}", pair.cut,
                      pair.take_over, hold=2, down=[0], recover=60, from_healed=True)
        w.limit(row, Trec=4, Nerr=0)
        pair.returns()
    t.ok(int(c.sh(f"dev_attr {dev} replays").split()[0]) > 0, "what was lost was sent again")
    w.end("/dev/testdisk0p1", server=pair.active)

    t.log("--- a client behind another writer, over a power cut and over a planned switch")

    def power_cut(b_goes):
        pair.cut()
        b_goes()
        pair.take_over()
        pair.returns()

    def switch(b_goes):
        b_goes()
        pair.switch()
    F.late_writer(t, lambda: pair.active, ADDRESS, power_cut)
    F.late_writer(t, lambda: pair.active, ADDRESS, switch)
    both_servers(t, pair)
    pair.down(pair.active)
