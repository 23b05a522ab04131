# SPDX-License-Identifier: GPL-2.0-only
"""A mirror as `ibnbd mirror create` makes it, for the cases mirror/*: a leg from each of two
servers, each in a session of its own, and `ibnbd mirror watch` in place of its unit.

    servers = mirrors.machines(t)           md's rules and tools in the client, servers' disks
    m = mirrors.Mirror(t, servers, ("unflushed=fence", ""))
    m.watch()                               from here on it heals itself
    m.hot(); m.put("x", 16); m.lose(m.a)    I/O that never pauses, a write, a cache that is lost
    m.said("copied whole")                  what the watch says
    m.compare("what")                       words for what differs between the halves, below md
"""
import re, time
import faults as F, image, vm

MDADM = image.CACHE / "mdadm"
PROGRAMS = [MDADM / "mdadm", image.REPO / "build/tools/ibnbd-udev"]
P = "/sys/module/ibnbd_testdisk/parameters"
CTL = "/sys/class/ibnbd-server/ctl/devices"
RECORD = "/var/lib/ibnbd/mirrors/data"
SIZE, BLOCK = 32, 4096      # MiB, bytes
DROP = 5            # failfast=: seconds after which the driver lets a dark leg go
FORGETS = 16        # md forgets a chunk when nobody has written it for 5 to 10 s; a pass more


def machines(t, size=SIZE, backed=()):
    """Skips where there is no md. The rules are as they are installed. Returns the servers; what
    those of `backed` have flushed outlives a power cut of the machine."""
    if not (MDADM / "mdadm").exists():
        t.skip("no mdadm: tests/vm/mdadm.sh")
    c = t.client
    if c.rc("modprobe raid1")[0]:
        t.skip("this kernel has no raid1")
    rules(c)
    servers = t.server, t.client2
    for s in servers:
        serve(s, size, s.name in backed)
    return servers


def serve(s, size=SIZE, backed=False):
    """A disk that forgets what no flush has covered."""
    before, words = (("modprobe virtio_blk; wait_for 5 test -b /dev/vda; ", "backing=/dev/vda")
                     if backed else ("", ""))
    s.sh(f"{before}modprobe ibnbd-testdisk size_mb={size} serial={s.name} {words}; serve")


def rules(c):
    """What the packages install on a client, also for one that has booted."""
    c.put("60-ibnbd.rules", (image.REPO / "udev/60-ibnbd.rules").read_bytes())
    for f in "63-md-raid-arrays.rules", "64-md-raid-assembly.rules":
        c.put(f, (MDADM / f).read_bytes())
    c.sh("rm -rf /etc/mdadm /etc/ibnbd; mkdir -p /etc/ibnbd; cp /h/*.rules /lib/udev/rules.d/; "
         "cp /bin/ibnbd-udev /lib/udev/; ln -sf ../bin/mdadm /sbin/mdadm; modprobe ibnbd-client; "
         "udev_start")


def leave(t):
    """The next case of these machines begins without mirrors."""
    t.client.sh(f"pkill -x ibnbd || true; rm -rf /etc/mdadm /etc/ibnbd {RECORD}")


def path_of(client, server):
    """Over the server's own link: 0 for the machine `server`, 1 for client2."""
    link = server.vm.host - 2
    return f"path=ip:10.0.{link}.{client.vm.host},ip:10.0.{link}.{server.vm.host}"


def map_of(client, server, session, words="hold=-1"):
    return client.sh(f"map testdisk0 sessname={session} {words} "
                     f"{path_of(client, server).replace(',', '@')}", timeout=60)


class Leg:
    def __init__(self, m, server, session, disk):
        self.m, self.server, self.session, self.disk = m, server, session, disk
        self.name = f"data-{session}"       # of its mapping
        self.find()

    def find(self):
        """Its disk, which a boot and a new mapping give another number."""
        self.dev = self.m.c.rc(f"ibnbd list -r -H -o path {self.name}")[1].strip()
        self.kname = self.dev[5:]

    @property
    def md(self):
        return f"/sys/block/{self.m.md0}/md/dev-{self.kname}"


class Mirror:
    """chunk: of the bitmap, if it is to be another one than the command makes."""
    def __init__(self, t, servers, options=("", ""), chunk="64K", disks=("testdisk0", "testdisk0"),
                 how="--assume-clean"):
        self.t, self.c, self.job, self.watcher = t, t.client, None, None
        c = self.c
        legs = []
        for s, session, words, disk in zip(servers, "ab", options, disks):
            s.sh(f"blkdiscard -z /dev/{disk}; dd if=/dev/zero of=/dev/{disk} bs=512 count=0 "
                 "conv=fsync,notrunc status=none")
            legs.append(f"\"{disk} {session} {path_of(c, s)} {words}\"")
        force = "--force" if any("ignore" in words for words in options) else ""
        c.sh(f"ibnbd mirror create data {' '.join(legs)} {how} {force} --no-reload", timeout=60)
        c.sh("wait_for 10 test -b /dev/md/data; udevadm settle --timeout=20")
        self.dev = c.sh("readlink -f /dev/md/data").strip()
        self.md0 = self.dev[5:]
        if chunk:
            c.sh(f"mdadm --grow {self.dev} --bitmap=none; "
                 f"mdadm --grow {self.dev} --bitmap=internal --bitmap-chunk={chunk}")
        self.legs = [Leg(self, s, session, disk)
                     for s, session, disk in zip(servers, "ab", disks)]
        self.a, self.b = self.legs
        self.offset = int(c.sh(f"cat {self.a.md}/offset")) * 512
        self.size = int(c.sh(f"cat /sys/block/{self.md0}/md/component_size")) << 10

    # ---- what keeps it whole ---------------------------------------------------------------------
    def watch(self, told=True):
        """`told`: returns when it has told the driver that both legs are in sync, if they are."""
        self.watcher = self.c.spawn("exec ibnbd mirror watch 2>&1")
        if told and self.whole():
            for leg in self.legs:
                self.t.wait(lambda: self.attr(leg, "in_sync") == "1", 20, f"{leg.name} in_sync")
        return self

    def unwatch(self):
        if self.watcher:
            self.c.sh("pkill -TERM -x ibnbd || true")
            self.watcher.wait(60)
            self.t.log(f"the watch said:\n{self.watcher.out()}")
            self.watcher = None

    def said(self, text, seconds=40, since=0):
        self.t.wait(lambda: re.search(text, self.watcher.out()[since:]), seconds,
                    f"the watch says: {text}")

    def record(self):
        return self.c.rc(f"cat {RECORD}")[1].split()

    # ---- looking ---------------------------------------------------------------------------------
    def attr(self, leg, name):
        return self.c.rc(f"dev_attr {leg.dev} {name}")[1]

    def is_(self, leg, state, what, seconds=40):
        self.t.wait(lambda: self.attr(leg, "state_detail") == state, seconds, f"{what}: {state}")

    def md(self, name):
        return self.c.rc(f"cat /sys/block/{self.md0}/md/{name}")[1]

    def state(self, leg):
        """What md says of it: in_sync,failfast .., faulty .., or nothing."""
        rc, out = self.c.rc(f"cat {leg.md}/state 2> /dev/null")
        return "" if rc else out

    def whole(self):
        for leg in self.legs:
            leg.find()
        rc, out = self.c.rc(f"cd /sys/block/{self.md0}/md && cat degraded sync_action && cat "
                            + " ".join(f"dev-{leg.kname}/state" for leg in self.legs))
        words = out.split()
        return (rc == 0 and words[:2] == ["0", "idle"]
                and all("in_sync" in word for word in words[2:4]))

    def dropped(self, leg, seconds=25):
        self.t.wait(lambda: "in_sync" not in self.state(leg), seconds, f"md drops {leg.name}")

    def removed(self, leg):
        self.t.wait(lambda: not self.state(leg), 25, f"the watch removes {leg.name}")

    def healed(self, seconds=40):
        """True when the array is whole and idle within that time."""
        end = time.monotonic() + seconds * vm.SLOW
        while time.monotonic() < end:
            if self.whole():
                return True
            time.sleep(0.5)
        self.t.log(self.c.rc("cat /proc/mdstat; dmesg | tail -n 20")[1])
        return False

    # ---- an application --------------------------------------------------------------------------
    def put(self, char, at, mib=4, flush=False):
        """64 KiB of that character at the beginning of each of these MiB."""
        how = "conv=notrunc,fsync" if flush else "conv=notrunc"
        self.c.sh(f"head -c 65536 /dev/zero | tr '\\0' {char} > /tmp/put; "
                  f"for i in {' '.join(str(at + i) for i in range(mib))}; do "
                  f"dd if=/tmp/put of={self.dev} bs=64k seek=$((i * 16)) oflag=direct {how} "
                  "status=none; done")

    def flush(self):
        """fsync() of an application; it must succeed."""
        self.c.sh(f"dd if=/dev/zero of={self.dev} bs=512 count=0 conv=fsync,notrunc status=none")

    def hot(self):
        """Somebody writes 4 KiB again and again, without a flush. md writes no superblock
        meanwhile, nor a page of its bitmap, which would flush the legs; it does in forget()."""
        self.c.sh(f"echo 0 > /sys/block/{self.md0}/md/safe_mode_delay; "
                  f"echo 60 > /sys/block/{self.md0}/md/bitmap/time_base")
        self.job = self.c.spawn(f"exec fio --name=hot --filename={self.dev} --rw=randwrite --bs=4k "
                                "--offset=1m --size=64k --direct=1 --ioengine=psync "
                                "--thread --rate_iops=50 --time_based --runtime=600 > /dev/null")
        time.sleep(2)

    def forget(self):
        """Until md has forgotten which chunks were written last while both legs were there."""
        self.c.sh(f"echo 5 > /sys/block/{self.md0}/md/bitmap/time_base")
        time.sleep(FORGETS)

    def cool(self):
        if self.job:
            self.job.kill()
            self.job.wait(30)
            self.job = None

    # ---- a server --------------------------------------------------------------------------------
    def lose(self, *legs, told=True):
        """Their disks lose what no flush has covered; `told`: the servers know, afterwards, since
        a server flushes what it closes. No leg is back before all have lost it: md would write
        its superblock to the other one, and flush it."""
        for leg in legs:
            tell = f"; echo 1 > {CTL}/{leg.disk}/cache_lost" if told else ""
            leg.server.sh(f"echo 1 > {P}/shut; echo 1 > {P}/power_cut{tell}")
        for leg in legs:
            leg.server.sh(f"echo 0 > {P}/shut")

    def on_disk(self, leg, at, mib=4):
        """Which characters stand at the beginning of these MiB of a half; 0 for none."""
        return leg.server.sh(
            f"for i in {' '.join(str(at + i) for i in range(mib))}; do "
            f"dd if=/dev/{leg.disk} bs=4k skip=$(({self.offset // BLOCK} + i * 256)) count=16 "
            "iflag=direct status=none; done | tr '\\0' 0 | tr -s a-zA-Z0-9 | fold -w 1 | sort -u "
            "| tr -d '\\n'")

    def spoil(self, leg, char, at):
        """Other data on the leg, at that MiB, of which neither md nor the driver knows."""
        leg.server.sh(f"head -c 65536 /dev/zero | tr '\\0' {char} | dd of=/dev/{leg.disk} bs=64k "
                      f"seek={self.offset + (at << 20)} oflag=seek_bytes conv=notrunc,fsync "
                      "iflag=fullblock status=none")

    def half(self, leg):
        leg.server.sh(f"dd if=/dev/{leg.disk} of=/h/half bs=64k skip={self.offset} "
                      f"count={self.size} iflag=direct,skip_bytes,count_bytes status=none",
                      timeout=60)
        path = leg.server.vm.share / "half"
        data = path.read_bytes()
        path.unlink()
        return data

    def compare(self, what):
        """Words for what differs between the halves of an array that is idle; "" if nothing."""
        time.sleep(1)
        self.t.eq(self.md("sync_action"), "idle", "the array is idle")
        one, two = (self.half(leg) for leg in self.legs)
        bad = [i for i in range(0, self.size, BLOCK) if one[i:i + BLOCK] != two[i:i + BLOCK]]
        if not bad:
            return ""
        show = lambda data: "".join(sorted({chr(data[i] or 48) for i in bad}))[:20]
        return (f"{what}: {len(bad)} blocks of 4 KiB differ below md, whose array is "
                f"{'whole' if self.whole() else 'not whole'}; slot 0 has {show(one)!r} there, "
                f"slot 1 {show(two)!r}")

    def prove(self, w):
        """Stops the array; what stamp wrote to it is on each half."""
        self.unwatch()
        self.c.sh("ibnbd mirror stop data")
        for leg in self.legs:
            leg.server.sh("modprobe loop")
            loop = leg.server.sh(f"losetup -f --show -o {self.offset} /dev/{leg.disk}")
            F.prove(self.t, leg.server, loop, [w], w.blocks)
            leg.server.sh(f"losetup -d {loop}")
            w.rows = []

    # ---- an administrator ------------------------------------------------------------------------
    def manual(self, heading):
        """Types what docs/mirror.md says below that heading. A line that fails is in the log, and
        the next one is tried, as people do."""
        text = (image.REPO / "docs/mirror.md").read_text().split(f"## {heading}\n", 1)[1]
        for line in re.search(r"```sh\n(.*?)```", text, re.S)[1].splitlines():
            self.c.rc(line.split("#")[0], timeout=60)

    def copied(self, what):
        """The watch has copied a leg whole."""
        self.said("is copied whole")
        self.t.ok(self.healed(), f"{what}: the leg is whole again")

    def end(self):
        self.cool()
        self.unwatch()
        self.c.sh("ibnbd mirror stop data; ibnbd unmap --forget data-a data-b; "
                  f"rm -f /etc/ibnbd/mirrors.d/data.conf {RECORD}", timeout=60)
