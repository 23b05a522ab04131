# SPDX-License-Identifier: GPL-2.0-only
"""Writers are numbered in the order in which they may write.  Whatever an earlier one still brings
after a later one had its turn is a ghost for the checker.  Figures but Nerr of F13 are those of
the client that gets the disk."""
description = ("a client that stood still or died: "
               "the disk goes to another one, and what the first one held never lands")
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
    t.wait(lambda: who.rc(f"map testdisk0 sessname={name}")[0] == 0, 20,
           f"{who.name} gets the disk")
    return who.sh(f"echo /dev/$(dev_of testdisk0 {name})"), time.monotonic() - t0


def run(t):
    c, s, c2 = t.client, t.server, t.client2
    serve_limit = F.within(6 + 5)       # the server's heartbeats, and what it may take to let go
    stall = lambda w, since: w.stall(since, time.monotonic(), w.read_logs())

    c.spawn("exec ibnbd monitor > /h/monitor")
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
    begin = time.monotonic()
    time.sleep(4)
    c.resume()
    before = len(works[0].read_logs().acked)
    time.sleep(15)
    logs = works[0].read_logs()
    state, failed = c.sh(f"dev_attr {dev} state_detail"), len(logs.failed) + len(logs.read_errors)
    t.log(f"the first client after its sleep: {state}; "
          f"{len(logs.acked) - before} more acknowledged, {failed} failed")
    t.ok(failed or "fenced" in state,
         f"the first one has heard that the disk is another's: {state}, {failed} errors")
    t.ok(works[1].flows(1), "the second one was not disturbed")
    stalled = stall(works[1], begin)
    t.below(stalled, F.within(3), "longest pause of the second one")
    works[0].stop(errors_expected=True)
    works[1].stop()
    c2.sh(f"unmap {dev2}")
    c.sh(f"unmap {dev} force")
    works[0].rows.append(dict(fault="F14", what="client asleep, another one writes on",
                              stack="ibnbd", Tdet=took, Tstall=stalled,
                              Nerr=len(works[1].read_logs().failed),
                              note="Tdet: until the other one had the disk"))

    # the second one has written and gone when the first one wakes up
    dev = c.sh("map testdisk0")
    works.append(F.Work(t, c, dev, writer=3, **AREA))
    time.sleep(2)
    c.pause()
    dev2, took = take(t, c2, "s2")
    works.append(F.Work(t, c2, dev2, writer=4, session="s2", **AREA))
    begin = time.monotonic()
    time.sleep(4)
    stalled = stall(works[3], begin)
    works[3].stop()
    c2.sh(f"unmap {dev2}")
    c.resume()
    t.wait(lambda: "fenced" in c.sh(f"dev_attr {dev} state_detail"), 20,
           "the first client finds that somebody else wrote")
    time.sleep(2)
    works[2].stop(errors_expected=True)
    c.sh(f"unmap {dev} force")
    works[2].rows.append(dict(fault="F14", what="client asleep, another one wrote and went",
                              stack="ibnbd", Tdet=took, Tstall=stalled,
                              Nerr=len(works[3].read_logs().failed),
                              note="the first one is fenced"))

    # the same while the first one has nothing to write, once with somebody who has
    # the disk open and once without
    for user in "sleep 1000", "":
        dev = c.sh("map testdisk0")
        if user:
            job = c.spawn(f"exec {user} < {dev}")
        c.pause()
        dev2, _ = take(t, c2, "s2")
        c2.sh(f"dd if=/dev/zero of={dev2} bs=4k seek=1000 count=1 oflag=direct status=none; "
              f"unmap {dev2}")
        c.resume()
        want = "fenced" if user else "open"
        t.wait(lambda: c.sh("cut -d' ' -f1 "
                            "/sys/class/ibtrs-client/s1/paths/*/stats/reconnects") != "0", 20,
               "the first one is back")
        t.wait(lambda: c.sh(f"dev_attr {dev} state_detail") == want, 20,
               f"with {user or 'nobody'} on it, it is {want}")
        if user:
            t.match(c.sh(f"dev_attr {dev} reason"), "another client may have written", "the reason")
            t.match(c.sh("cat /h/monitor"),
                    f"{dev[5:]} offline fenced: another client may have written", "the uevent")
            job.kill()
        c.sh(f"unmap {dev} force")

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
    begin = time.monotonic()
    time.sleep(2)
    stalled = stall(works[5], begin)
    works[5].stop()
    c2.sh(f"unmap {dev2}")
    works[4].rows.append(dict(fault="F13", what="client loses its power", stack="ibnbd", Tdet=took,
                              Tstall=stalled, Nerr=0, note="Tdet: until another one had the disk"))
    F.prove(t, s, "/dev/testdisk0", works, 256)
