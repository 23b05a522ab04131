# SPDX-License-Identifier: GPL-2.0-only
"""Two paths, one of them silently dead, and the server's modules are loaded anew
meanwhile: its devices have other numbers now, and the path that comes back first must not
be taken for one of the old session."""
description = ("a path that comes back to a restarted server is not used beside one "
               "that still seems to be up")
links = 2
faults = True
deadline = 150
import faults as F

DISK = "modprobe virtio_blk; wait_for 5 test -b /dev/vda; serve"
disk = 64


def run(t):
    c, s = t.client, t.server
    s.sh(DISK)
    dev = c.sh("map vda unflushed=ignore")     # what is unflushed is another case's matter
    c.sh("paths_up s1 2")
    pulse = c.spawn(f"iopulse {dev} 2 500 rw")
    c.sh("sleep 1; dmesg -C")
    s.link(1, False)                    # silence on link 1: the client needs seconds to find out
    s.sh(f"unload $OUR_MODULES >&2; {DISK}")
    t.wait(lambda: c.sh("paths_up s1 1 && echo yes || true") == "yes"
           and "up, queue depth" in c.sh("dmesg"), 20, "the first path is back")
    s.link(1, True)
    t.wait(lambda: c.sh("paths_up s1 2 && echo yes || true") == "yes", 20, "both paths are back")
    c.sh("sleep 1; pkill -TERM iopulse")
    t.eq(pulse.wait(20), 0, "iopulse: " + pulse.out())
    t.log(pulse.out())
    news = [line for line in c.sh("dmesg").splitlines()
            if "path lost" in line or "up, queue depth" in line or "link " in line]
    t.log(*news)
    lost = [i for i, line in enumerate(news) if "path lost" in line]
    up = [i for i, line in enumerate(news) if "up, queue depth" in line]
    t.eq(len(lost), 2, "paths lost")
    t.ok(lost[1] < up[0], "a path of the new session was used while one of the old seemed to be up")
    t.ok(any("link down" in line for line in news),
         "the session came up anew, and so its devices were opened again")
    end = dict(word.split("=") for word in pulse.out().split() if "=" in word)
    t.eq(end["errs"], "0", "I/O errors")
    t.below(int(end["longest_ms"]), 1000 * F.within(12),
            "longest pause, ms, most of it the server's: its modules go and come")
