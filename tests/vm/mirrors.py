# SPDX-License-Identifier: GPL-2.0-only
"""A mirror as docs/mirror.md makes it, for the cases mirror/*: a leg from each of two servers, each
in a session of its own, the rule of the manual, and the commands that it tells to type.

    servers = mirrors.machines(t)           md's rules and tools in the client, servers' disks
    m = mirrors.Mirror(t, servers, ("unflushed=fence", ""))
    m.hot(); m.put("x", 16); m.lose(m.a)    I/O that never pauses, a write, a cache that is lost
    m.manual("Copy a leg whole", m.a)       what the manual says below that heading
    m.compare("what")                       words for what differs between the halves, below md
"""
import re, time
import faults as F, image, vm

MDADM = image.CACHE / "mdadm"
PROGRAMS = [MDADM / "mdadm", image.REPO / "build/tools/ibnbd-udev"]
P = "/sys/module/ibnbd_testdisk/parameters"
CTL = "/sys/class/ibnbd-server/ctl/devices"
SIZE, BLOCK = 32, 4096      # MiB, bytes
DROP = 5            # seconds after which the rule lets a dark leg go
FORGETS = 16        # md forgets a chunk when nobody has written it for 5 to 10 s; a pass more


def machines(t):
    """Skips where there is no md. The rule is as the manual installs it. Returns the servers."""
    if not (MDADM / "mdadm").exists():
        t.skip("no mdadm: tests/vm/mdadm.sh")
    c = t.client
    if c.rc("modprobe raid1")[0]:
        t.skip("this kernel has no raid1")
    for f in "udev/60-ibnbd.rules", "udev/65-ibnbd-md.example", "udev/md-readd":
        c.put(f.split("/")[1], (image.REPO / f).read_bytes())
    for f in "63-md-raid-arrays.rules", "64-md-raid-assembly.rules":
        c.put(f, (MDADM / f).read_bytes())
    c.sh("mkdir -p /usr/share/ibnbd /etc/udev/rules.d; cp /h/*.rules /lib/udev/rules.d/; "
         "cp /h/65-ibnbd-md.example /etc/udev/rules.d/66-ibnbd-md.rules; "
         "cp /bin/ibnbd-udev /lib/udev/; ln -sf ../bin/mdadm /sbin/mdadm; rm -rf /etc/mdadm\n"
         "cp /h/md-readd /usr/share/ibnbd/; chmod 755 /usr/share/ibnbd/md-readd; udev_start")
    servers = t.server, t.client2
    for s in servers:       # whose disks forget what no flush has covered
        s.sh(f"modprobe ibnbd-testdisk size_mb={SIZE} serial={s.name}; serve")
    return servers


def leave(t):
    """The next case of these machines begins without the rule."""
    t.client.sh("rm -rf /etc/udev/rules.d/66-ibnbd-md.rules /etc/mdadm; udevadm control --reload")


def map_of(client, server, session, words="hold=-1"):
    """Over the server's own link: 0 for the machine `server`, 1 for client2."""
    link = server.vm.host - 2
    return client.sh(f"map testdisk0 sessname={session} {words} path=ip:10.0.{link}."
                     f"{client.vm.host}@ip:10.0.{link}.{server.vm.host}", timeout=60)


class Leg:
    def __init__(self, server, session, dev, disk="testdisk0"):
        self.server, self.session, self.dev, self.disk = server, session, dev, disk
        self.name = dev[5:]
        self.md = f"/sys/block/md0/md/dev-{self.name}"


class Mirror:
    def __init__(self, t, servers, options=("", ""), chunk="64K"):
        self.t, self.c, self.job, self.legs = t, t.client, None, []
        c = self.c
        for s, session, words in zip(servers, "ab", options):
            s.sh("blkdiscard -z /dev/testdisk0; dd if=/dev/zero of=/dev/testdisk0 bs=512 count=0 "
                 "conv=fsync,notrunc status=none")
            self.legs.append(Leg(s, session, map_of(c, s, session, f"hold=-1 {words}")))
        self.a, self.b = self.legs
        c.sh("mdadm --create /dev/md0 --run --assume-clean --level=1 --raid-devices=2 "
             f"--metadata=1.2 --bitmap=internal --bitmap-chunk={chunk} --failfast "
             f"{self.a.dev} {self.b.dev}")
        c.sh("wait_for 10 test -b /dev/md0; udevadm settle --timeout=20")
        self.offset = int(c.sh(f"cat {self.a.md}/offset")) * 512
        self.size = int(c.sh("cat /sys/block/md0/md/component_size")) << 10

    # ---- looking ---------------------------------------------------------------------------------
    def attr(self, leg, name):
        return self.c.rc(f"dev_attr {leg.dev} {name}")[1]

    def is_(self, leg, state, what, seconds=40):
        self.t.wait(lambda: self.attr(leg, "state_detail") == state, seconds, f"{what}: {state}")

    def md(self, name):
        return self.c.rc(f"cat /sys/block/md0/md/{name}")[1]

    def state(self, leg):
        """What md says of it: in_sync,failfast .., faulty .., or nothing."""
        rc, out = self.c.rc(f"cat {leg.md}/state 2> /dev/null")
        return "" if rc else out

    def whole(self):
        rc, out = self.c.rc("cd /sys/block/md0/md && cat degraded sync_action && cat "
                            + " ".join(f"dev-{leg.name}/state" for leg in self.legs))
        words = out.split()
        return (rc == 0 and words[:2] == ["0", "idle"]
                and all("in_sync" in word for word in words[2:4]))

    def dropped(self, leg, seconds=25):
        self.t.wait(lambda: "in_sync" not in self.state(leg), seconds, f"md drops {leg.name}")

    def removed(self, leg):
        self.t.wait(lambda: not self.state(leg), 25, f"the rule removes {leg.name}")

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
                  f"dd if=/tmp/put of=/dev/md0 bs=64k seek=$((i * 16)) oflag=direct {how} "
                  "status=none; done")

    def flush(self):
        """fsync() of an application; it must succeed."""
        self.c.sh("dd if=/dev/zero of=/dev/md0 bs=512 count=0 conv=fsync,notrunc status=none")

    def hot(self):
        """Somebody writes 4 KiB again and again, without a flush. md writes no superblock
        meanwhile, nor a page of its bitmap, which would flush the legs; it does in forget()."""
        self.c.sh("echo 0 > /sys/block/md0/md/safe_mode_delay; "
                  "echo 60 > /sys/block/md0/md/bitmap/time_base")
        self.job = self.c.spawn("exec fio --name=hot --filename=/dev/md0 --rw=randwrite --bs=4k "
                                "--offset=1m --size=64k --direct=1 --ioengine=psync "
                                "--thread --rate_iops=50 --time_based --runtime=600 > /dev/null")
        time.sleep(2)

    def forget(self):
        """Until md has forgotten which chunks were written last while both legs were there."""
        self.c.sh("echo 5 > /sys/block/md0/md/bitmap/time_base")
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
        self.c.sh("mdadm --stop /dev/md0")
        for leg in self.legs:
            leg.server.sh("modprobe loop")
            loop = leg.server.sh(f"losetup -f --show -o {self.offset} /dev/{leg.disk}")
            F.prove(self.t, leg.server, loop, [w], w.blocks)
            leg.server.sh(f"losetup -d {loop}")
            w.rows = []

    # ---- an administrator ------------------------------------------------------------------------
    def manual(self, heading, leg):
        """Types what docs/mirror.md says below that heading, for this leg in place of data-b and
        the other one in place of data-a. A line that fails is in the log, and the next one is
        tried, as people do."""
        text = (image.REPO / "docs/mirror.md").read_text().split(f"## {heading}\n", 1)[1]
        commands = re.search(r"```sh\n(.*?)```", text, re.S)[1]
        for name, own in ("data-b", leg), ("data-a", self.legs[leg is self.a]):
            commands = commands.replace(f"/dev/ibnbd/by-name/{name}", own.dev)
            commands = commands.replace(name, own.name)
        for line in commands.replace("/dev/md/data", "/dev/md0").splitlines():
            self.c.rc(line.split("#")[0])

    def copy_whole(self, leg, what):
        self.manual("Copy a leg whole", leg)
        self.t.ok(self.healed(), f"{what}: the leg is whole again")

    def end(self):
        self.cool()
        self.c.sh("mdadm --stop /dev/md0; " + "".join(f"unmap {leg.dev} force; "
                                                      for leg in self.legs))
