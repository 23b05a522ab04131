# SPDX-License-Identifier: GPL-2.0-only
"""Two machines on which a case runs tests/hardware/run.sh over ssh: hardware/kit and ended."""
import os, shutil, subprocess, tempfile
from pathlib import Path
import image, vm

DROPBEAR = Path("/usr/sbin/dropbear")
SOURCE = ("DIR=/run/ibnbd-hardware JOURNAL=$DIR/journal; . /h/agent.sh; . /h/host.sh; ")
SMALL = ["--jobs", "2", "--sizes", "4,64", "--depth", "4", "--seconds", "0.3", "--ramp", "0",
         "--verify-mib", "8", "--perftest-count", "50", "--perftest-sizes", "4096", "--away", "3"]
ONE = ["--jobs", "1", "--sizes", "4", "--perftest-count", "0"]
# what run.sh might change; the disk's first and last MiB are blank before and after
LOOK = ("cut -d' ' -f1 /proc/modules | sort; ls /sys/block; ip -brief addr; ip route; "
        "ip -6 route | sed 's/expires.*//' | sort; cat /proc/mounts; "
        "ls -d /run/ibnbd-hardware 2> /dev/null || true")


class Hardware:
    """Two machines that ssh reaches."""
    def __init__(self, t):
        for program in (DROPBEAR, "/usr/bin/ssh", "/usr/bin/ssh-keygen"):
            if not os.path.exists(program):
                t.skip(f"no {program} on this host")
        self.t, self.dir = t, Path(tempfile.mkdtemp(prefix="hardware."))
        self.number = 0
        key = self.dir / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        for g in t.guests:
            g.put("authorized_keys", key.with_suffix(".pub").read_text())
            g.sh("mkdir -p /root/.ssh /etc/dropbear; cp /h/authorized_keys /root/.ssh/; "
                 "chmod 700 /root /root/.ssh; chmod 600 /root/.ssh/authorized_keys; "
                 "echo /bin/bash > /etc/shells; modprobe virtio_blk; dropbear -R -s -j -k")
            for f in ("agent.sh", "host.sh"):
                g.put(f, (image.REPO / "tests/hardware/kit" / f).read_text())
        self.words = ["root@127.0.0.1", "root@127.0.0.1", "--ssh",
                      f"-i {key} -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no "
                      "-o LogLevel=ERROR",
                      "--ssh-server", f"-p {t.server.door}", "--ssh-client",
                      f"-p {t.client.door}"]

    def start(self, *words):
        self.number += 1
        self.out = self.dir / f"report{self.number}"
        self.log = self.dir / f"log{self.number}"
        with open(self.log, "w") as log:
            return subprocess.Popen([image.REPO / "tests/hardware/run.sh", *self.words,
                                     "--out", self.out, *words], stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=subprocess.STDOUT)

    def said(self):
        text = self.log.read_text()
        self.t.log(text)
        return text

    def run(self, *words, seconds=400):
        """(exit status, what it said)"""
        child = self.start(*words)
        try:
            return child.wait(seconds * vm.SLOW), self.said()
        finally:
            child.kill()

    def report(self):
        return (self.out / "report.md").read_text()

    def close(self):
        for f in self.dir.glob("report*"):
            if f.is_dir():
                shutil.copytree(f, self.t.logdir / f.name, dirs_exist_ok=True)
        shutil.rmtree(self.dir)


def look(t):
    return {g.name: g.sh(LOOK) for g in t.guests}


def same(t, before, what):
    for g in t.guests:
        if g.vm.alive:
            t.eq(g.sh(LOOK), before[g.name], f"{what}: {g.name} is as it was")
