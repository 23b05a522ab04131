# SPDX-License-Identifier: GPL-2.0-only
"""Writers are numbered in the order in which they may write.  Whatever an earlier one still brings after a later one had its
turn is a ghost for the checker."""
description = "a client that stood still or died: the disk goes to another one, and what the first one held never lands"
vms = 3
links = 1
faults = True
long = True
deadline = 300
import time
import faults as F

AREA = dict(blocks=256, threads=4, think_us=3000)


def take(t, who, name):
    """Map testdisk0 as soon as the server gives it; the device and the seconds that took."""
    t0 = time.monotonic()
    t.wait(lambda: who.rc(f"map testdisk0 sessname={name}")[0] == 0, 20, f"{who.name} gets the disk")
    return who.sh(f"echo /dev/$(dev_of testdisk0 {name})"), time.monotonic() - t0


def run(t):
    c, s, c2 = t.client, t.server, t.client2
    serve_limit = 6 + 5         # the server's heartbeats, and what it may take to let go

    s.sh("serve; modprobe ibnbd-testdisk cache=0")
    dev = c.sh("map testdisk0")
    c2.fails("map testdisk0 sessname=s2", "not permitted")
    works = [F.Work(t, c, dev, writer=1, **AREA)]
    time.sleep(2)

    # the second one still writes when the first one wakes up
    c.pause()
    dev2, took = take(t, c2, "s2")
    t.below(took, serve_limit, "seconds until the disk is free")
    works.append(F.Work(t, c2, dev2, writer=2, session="s2", **AREA))
    time.sleep(4)
    c.resume()
    before = len(works[0].read_logs().acked)
    time.sleep(15)
    logs = works[0].read_logs()
    t.log(f"the first client after its sleep: {c.sh(f'dev_attr {dev} state_detail')}; {len(logs.acked) - before} more "
          f"acknowledged, {len(logs.failed)} failed")
    t.ok(works[1].flows(1), "the second one was not disturbed")
    works[0].stop(errors_expected=True)
    works[1].stop()
    c2.sh(f"unmap {dev2}")
    c.sh(f"unmap {dev} force")
    works[0].rows.append(dict(fault="F14", what="client asleep, another one writes on", stack="ibnbd", Tdet=took,
                              Nerr=len(works[1].read_logs().failed), note="Tdet: until the other one had the disk"))

    # the second one has written and gone when the first one wakes up
    dev = c.sh("map testdisk0")
    works.append(F.Work(t, c, dev, writer=3, **AREA))
    time.sleep(2)
    c.pause()
    dev2, took = take(t, c2, "s2")
    works.append(F.Work(t, c2, dev2, writer=4, session="s2", **AREA))
    time.sleep(4)
    works[3].stop()
    c2.sh(f"unmap {dev2}")
    c.resume()
    t.wait(lambda: "fenced" in c.sh(f"dev_attr {dev} state_detail"), 20, "the first client finds that somebody else wrote")
    time.sleep(2)
    works[2].stop(errors_expected=True)
    c.sh(f"unmap {dev} force")
    works[2].rows.append(dict(fault="F14", what="client asleep, another one wrote and went", stack="ibnbd", Tdet=took,
                              Nerr=len(works[3].read_logs().failed), note="the first one is fenced"))

    # the power of the client
    dev = c.sh("map testdisk0")
    works.append(F.Work(t, c, dev, writer=5, **AREA))
    time.sleep(3)
    works[4].save()
    c.kill()
    works[4].watch.end()
    works[4].save()
    dev2, took = take(t, c2, "s2")
    t.below(took, serve_limit, "seconds until the disk of the dead client is free")
    works.append(F.Work(t, c2, dev2, writer=6, session="s2", **AREA))
    time.sleep(2)
    works[5].stop()
    c2.sh(f"unmap {dev2}")
    works[4].rows.append(dict(fault="F13", what="client loses its power", stack="ibnbd", Tdet=took, Nerr=0,
                              note="Tdet: until another one had the disk"))
    F.prove(t, s, "/dev/testdisk0", works, 256)
