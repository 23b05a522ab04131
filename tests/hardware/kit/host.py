# SPDX-License-Identifier: GPL-2.0-only
"""A host under test: an agent (agent.sh) on it, over one ssh connection that lasts for the run.

The agent undoes what it has changed when the connection ends, for whatever reason, so nothing here
has to be there for that.  What runs on the host are scripts; functions of agent.sh, host.sh and
stacks.sh are there for them.
"""
import base64, itertools, queue, shlex, subprocess, threading, time
from pathlib import Path

HERE = Path(__file__).resolve().parent
KIT = "\n".join((HERE / f).read_text() for f in ("agent.sh", "host.sh", "stacks.sh"))
LEASE = 60          # seconds after which a host that hears nothing undoes everything
BEAT = 10
# the connection must not be taken for dead while a busy host is slow, nor kept for ever
SSH = ["-o", "BatchMode=yes", "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3",
       "-o", "ConnectTimeout=15"]


class HostError(Exception):
    """A script failed on a host, or could not be run."""


class HostLost(HostError):
    """The host does not answer any more."""


class Job:
    def __init__(self, host, number):
        self.host, self.number, self.end = host, number, queue.Queue()

    def wait(self, seconds):
        """(exit status, output)"""
        try:
            answer = self.end.get(timeout=seconds)
        except queue.Empty:
            self.kill()
            raise HostError(f"{self.host.name}: no end after {seconds:.0f} s") from None
        if answer is None:
            raise HostLost(f"{self.host.name} ({self.host.target}) does not answer any more")
        return answer

    def kill(self):
        self.host.tell(f"KILL {self.number}")


class Host:
    """name: server or client; target: what ssh calls it; ssh: more words for ssh."""
    def __init__(self, name, target, ssh=(), sudo=False):
        self.name, self.target, self.ssh, self.sudo = name, target, list(ssh), sudo
        self.jobs, self.numbers = {}, itertools.count(1)
        self.lost, self.lock = False, threading.Lock()
        self.connect()

    def connect(self):
        start = ('read -r kit; KIT=$(base64 -d <<< "$kit"); '
                 f'eval "$KIT"; LEASE={LEASE} agent')
        remote = f"bash -c {shlex.quote(start)}"
        if self.sudo:
            remote = f'sudo -n env SSH_CONNECTION="$SSH_CONNECTION" {remote}'
        # in a group of its own: a ^C at the terminal is for us, who say what is undone
        self.process = subprocess.Popen(["ssh", *SSH, *self.ssh, self.target, remote], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, start_new_session=True)
        self.lost = False
        self.tell(base64.b64encode(KIT.encode()).decode())
        ready = self.process.stdout.readline().split()
        if ready[:1] != ["READY"]:
            self.lost = True
            self.process.kill()
            raise HostLost(f"{self.target}: no agent: {self.process.stderr.read()[-500:].strip()}")
        self.boot_id = ready[1]
        if ready[2] != "0":
            self.close()
            raise HostError(f"{self.target}: not root there; log in as root, or say --sudo")
        threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()
        threading.Thread(target=self._beat, args=(self.process,), daemon=True).start()

    def _listen(self, process):
        for line in process.stdout:
            verb, number, status, *out = line.split()
            if verb == "DONE" and int(number) in self.jobs:
                self.jobs.pop(int(number)).end.put(
                    (int(status), base64.b64decode(out[0]).decode(errors="replace").strip()
                     if out else ""))
        self.lost = True
        for job in list(self.jobs.values()):
            job.end.put(None)

    def _beat(self, process):
        while process.poll() is None:
            time.sleep(BEAT)
            try:
                self.tell("PING")
            except HostLost:
                return

    def tell(self, line):
        try:
            with self.lock:
                self.process.stdin.write(line + "\n")
                self.process.stdin.flush()
        except (OSError, ValueError):
            self.lost = True
        if self.lost:
            raise HostLost(f"{self.name} ({self.target}) does not answer any more")

    def spawn(self, script):
        job = Job(self, next(self.numbers))
        self.jobs[job.number] = job
        self.tell(f"RUN {job.number} {base64.b64encode(script.encode()).decode()}")
        if self.lost:               # between the two
            job.end.put(None)
        return job

    def run(self, script, seconds=60):
        return self.spawn(script).wait(seconds)

    def sh(self, script, seconds=60):
        """Output of a script that must succeed."""
        rc, out = self.run(script, seconds)
        if rc:
            raise HostError(f"{self.name} ({self.target}): {out[-1500:] or f'status {rc}'}")
        return out

    def restore(self, mark="", seconds=900):
        """Undo what was done since the mark, or everything; what could not be undone, as text."""
        rc, out = self.run(f"restore {mark}", seconds)
        return [f"{self.name} ({self.target}): {line}" for line in out.splitlines()] if rc else []

    def close(self):
        """The agent undoes what is left, and ends."""
        try:
            self.process.stdin.close()
            self.process.wait(LEASE)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
        self.process.wait()


def return_of(host, seconds):
    """What became of a host that was lost, and of our changes there: text, and is all well?"""
    end, why = time.monotonic() + seconds, ""
    boot_id = host.boot_id
    while True:
        try:
            host.connect()
            break
        except HostError as e:
            why = str(e)
        if time.monotonic() > end:
            return (f"{host.name} ({host.target}) was lost and is not back ({why}). It undoes its "
                    f"changes by itself within {LEASE} s, or has forgotten them when it boots; "
                    "when it is back, `run.sh --restore` makes sure", False)
        time.sleep(3)
    if host.boot_id != boot_id:
        host.close()
        return f"{host.name} ({host.target}) was lost and has booted: nothing of ours is left", True
    host.run("wait_for 120 test ! -e /run/ibnbd-hardware/owner -o ! -e /proc/$(cat "
             "/run/ibnbd-hardware/owner 2> /dev/null || echo none)", 150)
    left = host.restore()
    host.close()
    return (f"{host.name} ({host.target}) was lost, and has undone its changes"
            + "".join(f"; {x}" for x in left), not left)
