# SPDX-License-Identifier: GPL-2.0-only
"""maps release and restore: hold= shortened before a shutdown, and for the time of a suspend."""
from kit import *


@test
def release_before_a_shutdown(w):
    w.client()
    w.conf("up ram0 store1 path=10.0.1.7\ndown ram1 store2 path=10.0.1.8 hold=-1\n"
           "short ram2 store2 hold=3\n")
    w.run("maps", "start", "up", "down", "short")
    for p in (w.sys / "class/ibtrs-client/store2/paths").iterdir():
        (p / "state").write_text("disconnected\n")
    before = len(w.log())
    w.run("maps", "release", "--dry-run")
    eq(len(w.log()), before)
    w.run("maps", "release")
    eq(sorted(w.log()[before:]), ["block/ibnbd0/ibnbd/hold 10", "block/ibnbd1/ibnbd/hold 5"])
    w.put("root/dev/ibnbd0", "259:0")
    for root in ("259:0 / / rw - ext4 /dev/root rw", "0:45 / / rw - btrfs /dev/ibnbd0 rw"):
        (w.root / "proc/self/mountinfo").write_text(f"36 25 {root}\n")
        (w.sys / "block/ibnbd0/ibnbd/hold").write_text("100\n")
        before = len(w.log())
        w.run("maps", "release")
        eq([x for x in w.log()[before:] if "ibnbd0" in x], [], root)


@test
def release_before_a_sleep(w):
    """ibnbd-suspend.service: what hold= was comes back, whatever happened meanwhile."""
    w.client()
    w.conf("up ram0 store1 path=10.0.1.7\ndown vol/1 store2 path=10.0.1.8 hold=-1\n"
           "short ram2 store2 hold=3\ngone ram3 store2\nmine ram4 store2\n")
    w.run("maps", "start", "up", "down", "short", "gone", "mine")
    for p in (w.sys / "class/ibtrs-client/store2/paths").iterdir():
        (p / "state").write_text("disconnected\n")
    holds = lambda *n: [(w.sys / f"block/ibnbd{i}/ibnbd/hold").read_text().strip()
                        for i in n or range(5)]
    before, noted = holds(), w.root / "run/ibnbd/released"
    eq(before, ["100", "-1", "3", "100", "100"])
    w.run("maps", "restore")                                    # nothing was released
    w.run("maps", "release", "--remember", "--dry-run")
    eq((holds(), noted.exists()), (before, False))
    has(w.run("maps", "release", "--remember", want=1).err, "run/ibnbd/released", "No such file",
        "it stays as it is")
    eq(holds(), before, "what cannot be noted is not changed")

    (w.root / "run").mkdir()
    w.run("maps", "release", "--remember")
    eq(holds(), ["10", "5", "3", "5", "5"])
    w.run("maps", "release", "--remember")                      # once more forgets nothing
    # the administrator's word is later than ours
    (w.sys / "block/ibnbd4/ibnbd/hold").write_text("77\n")
    w.run("unmap", "ibnbd3")
    w.run("maps", "restore", "--dry-run")
    eq(holds(0, 1, 2), ["10", "5", "3"])
    said = w.run("maps", "restore").err
    eq(holds(0, 1, 2, 4), ["100", "-1", "3", "77"])
    has(said, "after 100 seconds again", "waits for ever again")
    eq(noted.exists(), False)
    has(w.run("maps", "restore").err or "nothing", "nothing")

    noted.write_text("nonsense\n")
    has(w.run("maps", "restore", want=1).err, '"nonsense"')
    noted.write_text("100 10 ram0@store9\n")                    # mapped no more
    w.run("maps", "restore")
    eq(noted.exists(), False)
