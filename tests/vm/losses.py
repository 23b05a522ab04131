# SPDX-License-Identifier: GPL-2.0-only
"""A server that stops, or loses its power, under writers that flush: with each setting of
unflushed=, on each kind of export, all at once.  For the case durability/kill.

The disk is ibnbd-testdisk over the server's virtual disk: what no flush has carried there goes with
its machine.  It has five partitions: three are exported as they are, the others have a file system
with three files each, one with direct I/O (journal of metadata), one through the page cache
(data=journal).
"""
import shutil, sys
from collections import defaultdict
import image

sys.path.append(str(image.REPO / "tests/stamp"))
import check

SETTINGS = ("replay", "fence", "ignore")
KINDS = ("blockio", "direct", "buffered")
BLOCKS = 512            # that each writer comes back to
FLUSH = 24              # after so many operations
MOUNTS = (("direct", 5, "-o commit=300"), ("buffered", 6, "-o data=journal,commit=300"))
MOUNTED = " ".join(f"/mnt/{kind}" for kind, _, _ in MOUNTS)
PARTS = "\n".join(f",{mib}M" for mib in (4, 4, 4)) + "\n,,E\n,16M\n,\n"
P = "/sys/module/ibnbd_testdisk/parameters"
REASON = "the last [1-9][0-9]* MiB written were not flushed"

DISK = ("modprobe virtio_blk; wait_for 5 test -b /dev/vda; "
        "modprobe ibnbd-testdisk backing=/dev/vda size_mb=64; "
        "wait_for 5 test -b /dev/testdisk0p6; ")
UP = "mkdir -p /exp; " + "".join(
    f"mkdir -p /mnt/{kind}; mount {options} /dev/testdisk0p{part} /mnt/{kind}; "
    + "".join(f"ln -sfn /mnt/{kind}/{how} /exp/{kind}-{how}; " for how in SETTINGS)
    for kind, part, options in MOUNTS) + "".join(
    f"ln -sfn /dev/testdisk0p{i} /exp/blockio-{how}; " for i, how in enumerate(SETTINGS, 1))
SERVE = "serve dev_search_path=/exp writer_file=/h/writers"


class Loss:
    """The machines, the nine devices, their writers."""
    def __init__(self, t, seed):
        self.t, self.c, self.s, self.seed, self.round = t, t.client, t.server, seed, 0
        s, c = self.s, self.c
        s.sh("modprobe virtio_blk; wait_for 5 test -b /dev/vda; "
             f"echo '{PARTS}' | sfdisk -q /dev/vda; " + DISK + "".join(
                 f"mkfs.ext4 -q -F /dev/testdisk0p{part}; " for _, part, _ in MOUNTS), 90)
        s.sh(UP + f"for f in {MOUNTED}; do for i in " + " ".join(SETTINGS) + "; do "
             f"dd if=/dev/zero of=$f/$i bs=4k count={BLOCKS} conv=fsync status=none; done; done; "
             "sync; echo 3000000 > /proc/sys/vm/dirty_writeback_centisecs; " + SERVE, 60)
        self.devs, self.logs = {}, defaultdict(list)
        for kind in KINDS:
            for how in SETTINGS:
                self.devs[kind, how] = c.sh(f"map {kind}-{how} unflushed={how} hold=-1")

    def attr(self, key, name):
        return self.c.sh(f"dev_attr {self.devs[key]} {name}")

    def attrs(self, name):
        lines = self.c.sh("; ".join(f"dev_attr {dev} {name}" for dev in self.devs.values()))
        return dict(zip(self.devs, lines.splitlines()))

    def name(self, key):
        return f"loss{self.round}-{'-'.join(key)}"

    def begin(self):
        """Writers on all of them, each with numbers of its own."""
        self.round += 1
        self.jobs = {key: self.c.spawn(
            f"exec stamp run {dev} /h/{self.name(key)} writer={self.round} threads=1 max=2 "
            f"blocks={BLOCKS} think_us=4000 reads=20 flush={FLUSH} seed={self.seed + n}")
            for n, (key, dev) in enumerate(self.devs.items())}
        self.t.wait(lambda: all(self.flushed(key) for key in self.devs), 60, "flushes everywhere")

    def flushed(self, key):
        path = self.c.vm.share / f"{self.name(key)}.0"
        return path.exists() and "\nF " in path.read_text()

    def end(self):
        self.c.sh("pkill -TERM -x stamp || true")
        for key, job in self.jobs.items():
            rc = job.wait(60)
            fenced = key[1] == "fence" and rc == 1
            self.t.ok(rc == 0 or fenced or key[1] == "ignore" and rc in (1, 3),
                      f"{key}: stamp says {rc}: {job.out()[-500:]}")

    def wait_open(self, what, but=()):
        self.t.wait(lambda: all(state == ("fenced" if key in but else "open")
                                for key, state in self.attrs("state_detail").items()),
                    60, f"{what}: all go on, but {but or 'none'}")

    # ---- what befalls the server -------------------------------------------------------------
    def power_cut(self):
        s = self.s
        s.kill()
        kept = (s.vm.share / "writers").read_bytes()
        s.boot()
        (s.vm.share / "writers").write_bytes(kept)
        s.sh(DISK + UP + SERVE, 60)

    def reload(self):
        self.s.sh("unload $OUR_MODULES; " + SERVE, 60)

    def reboot(self):
        """In good order: what systemd does, then the power."""
        self.s.sh(f"unload $OUR_MODULES; umount {MOUNTED}; modprobe -r ibnbd-testdisk", 60)
        self.power_cut()

    # ---- the verdict -------------------------------------------------------------------------
    def orderly(self, what, act):
        """It costs none of the writers anything, who run."""
        t = self.t
        before = self.attrs("replays"), self.attrs("losses")
        act()
        self.wait_open(what)
        t.eq((self.attrs("replays"), self.attrs("losses")), before, f"{what}: nothing is replayed")

    def loses_power(self):
        """Ends the writers.
        Returns how many acknowledged writes the devices with unflushed=ignore have lost."""
        t = self.t
        replays, losses = self.attrs("replays"), self.attrs("losses")
        self.s.kill()
        at_risk = {key: int(v) for key, v in self.attrs("unflushed_bytes").items()}
        t.log(f"not flushed: {at_risk}")
        fenced = [key for key in self.devs if key[1] == "fence" and at_risk[key]]
        self.power_cut()
        self.wait_open("power cut", fenced)
        for key in fenced:
            t.match(self.attr(key, "reason"), REASON, f"{key}: the reason")
        self.end()
        now = self.attrs("replays")
        for key in self.devs:
            if key[1] == "replay" and at_risk[key]:
                t.ok(int(now[key].split()[0]) > int(replays[key].split()[0]), f"{key}: replayed")
        for key in fenced:
            self.c.sh(f"echo 1 > /sys/block/{self.devs[key][5:]}/ibnbd/remap_device")
            t.eq(int(self.attr(key, "losses")), int(losses[key]) + 1, f"{key}: the loss is taken")
        # Through the client, for what is exported is nobody else's.
        self.c.sh("; ".join(f"stamp scan {dev} {BLOCKS} /h/{self.name(key)}-scan"
                            for key, dev in self.devs.items()), timeout=120)
        return sum(self.prove(key) for key in self.devs)

    def prove(self, key):
        """P2 where it is sent again, P1 where it is fenced."""
        c, t, name = self.c, self.t, self.name(key)
        saved = t.logdir / "stamp"
        saved.mkdir(exist_ok=True)
        for path in [c.vm.share / f"{name}-scan", *c.vm.share.glob(f"{name}.[0-9]*")]:
            shutil.copy(path, saved)
            path.unlink()
        self.logs[key].append(saved / name)
        verdict = check.check(saved / f"{name}-scan", self.logs[key])
        t.log(f"{'/'.join(key)}: {verdict.line()}", *verdict.texts[:20])
        t.ok(verdict.logs.acked and verdict.logs.flushes, f"{key}: it has written and flushed")
        if key[1] == "ignore":
            return verdict.lost + verdict.ghost
        t.ok(not verdict.breaks(key[1] == "fence"),
             f"{key}: {verdict.line()}\n" + "\n".join(verdict.texts[:10]))
        return 0
