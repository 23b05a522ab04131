# SPDX-License-Identifier: GPL-2.0-only
import os, subprocess, sys, tempfile, time
from pathlib import Path

description = ("what tests/hardware/run.sh starts on a host undoes its journal, whatever ends the "
               "connection, and goes on when a line of it cannot be undone")
vms = 0
deadline = 90
crowd = True
KIT = Path(__file__).resolve().parents[2] / "hardware/kit"

# ssh of this machine to itself; a /run of its own, where the journal is. When run.sh loses patience
# and kills it, the agent is left, as it is on another host.
SSH = '#!/bin/bash\nwhile [ $# -gt 2 ]; do shift; done\nbash -c "$2"\nexit $?\n'
RUN = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
import host
host.LEASE, host.BEAT = 3, 1
end, a, b, c = sys.argv[2:6]
h = host.Host("server", "here")
h.sh("begin")
# the last one first: b stands in the way of a
h.sh(f"undo rmdir {a}; mkdir {a}; undo rmdir {a}/{b}; mkdir {a}/{b}; undo false never")
mark = h.sh("mark")
h.sh(f"undo rm -f {c}; touch {c}")
assert os.path.exists(c)
assert h.restore(mark) == [] and not os.path.exists(c) and os.path.exists(f"{a}/{b}")
h.sh(f"undo rm -f {c}; touch {c}")
other = host.Host("client", "here")
rc, said = other.run("begin")
assert rc and "another run is busy here" in said, said
other.close()
assert os.path.exists(c)
h.spawn(f"sleep 1000; touch {c}.late")
if end == "told":
    left = h.restore()
    assert left == ["server (here): cannot be undone: false never"], left
elif end == "lease":

    h.tell = lambda line: None
    time.sleep(8)
elif end == "killed":
    os.kill(os.getpid(), 9)
h.close()
"""


def run(t):
    t.ok(os.getuid() == 0, "a mount namespace needs root")
    for end in ("told", "closed", "lease", "killed"):
        with tempfile.TemporaryDirectory(prefix="agent.") as top:
            top = Path(top)
            (top / "ssh").write_text(SSH)
            (top / "ssh").chmod(0o755)
            (top / "run.py").write_text(RUN)
            a, c = top / "a", top / "c"
            # who is killed leaves an agent behind: the namespace lasts until that has ended
            child = subprocess.Popen(
                ["unshare", "-m", "bash", "-c",
                 'mount -t tmpfs run /run; "$@"; rc=$?; for ((i = 0; i < 300; i++)); do '
                 '[ -e /run/ibnbd-hardware/journal ] || break; sleep 0.1; done; '
                 'ls /run/ibnbd-hardware; cat /run/ibnbd-hardware/left; echo "status $rc"',
                 "-", sys.executable, top / "run.py", KIT, end, a, "b", c],
                env=dict(os.environ, PATH=f"{top}:{os.environ['PATH']}"), text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            t0 = time.monotonic()
            said = child.communicate(timeout=80)[0]
            t.log(end, said, f"{time.monotonic() - t0:.1f} s")
            t.match(said, "status 137" if end == "killed" else "status 0", f"{end}: exit status")
            t.eq([a.exists(), c.exists()], [False, False], f"{end}: undone")
            t.match(said, "^left$", f"{end}: what could not be undone is kept")
            t.match(said, "cannot be undone: false never")
            t.ok("journal" not in said, f"{end}: the journal is gone")
            t.ok(not Path(f"{c}.late").exists(), f"{end}: jobs are gone")
