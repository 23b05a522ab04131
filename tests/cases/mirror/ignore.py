# SPDX-License-Identifier: GPL-2.0-only
"""A leg with unflushed=ignore stands for an in-kernel server: it loses its power under a load that
flushes again and again, and its disk forgets what no flush has covered.  The machine itself lives
on behind a dark link, which is the same to the client and to the disk; it goes when ten writes,
answered, have had no flush behind them.  A bit of the bitmap stands for 4 KiB here, 1/8000 of the
disk, as 64 MiB, mdadm's default, do on a disk of 512 GiB.  The default of unflushed= sends again
what was lost, and the watch takes that leg back."""
description = ("a server that says nothing of its cache loses its power under a load that flushes: "
               "its leg is copied whole, one of a server that does is taken back by the bitmap")
long = True
vms = 3
links = 2
deadline = 240
import faults as F, mirrors as M, time
programs = M.PROGRAMS
STATE = "/sys/class/ibtrs-client/{}/paths/*/state"
POWER_CUT = f"""
look() {{ IFS=' =' read -r _ _ _ w _ f _ fua _ < {M.P}/counts; }}
at=; n=0; end=$((SECONDS + 30))
while [ $SECONDS -lt $end ]; do
	look
	[ "$f $fua" = "$at" ] || {{ at="$f $fua"; n=$w; }}
	if [ $((w - n)) -ge 10 ]; then
		net_loss 1 100
		look
		[ "$f $fua" != "$at" ] || break
		net_loss 1 0
	fi
	sleep 0.01
done
echo 1 > {M.P}/power_cut
echo 1 > {M.CTL}/testdisk0/cache_lost
echo "unflushed writes: $((w - n))"
"""


def scene(t, servers, how):
    c = t.client
    m = M.Mirror(t, servers, ("", f"unflushed={how}"), chunk="4K").watch()
    w = F.Work(t, c, m.dev, writer=5, threads=2, flush=32, blocks=256, think_us=10000,
               states=" ".join(map(STATE.format, "ab")))
    time.sleep(3)
    m.b.server.sh(POWER_CUT, timeout=60)
    c.link(1, False)
    m.b.server.sh("net_loss 1 0")
    m.dropped(m.b)
    time.sleep(0.7)
    w.stop()
    time.sleep(M.FORGETS)
    c.link(1, True)
    m.is_(m.b, "open", "the server is back")
    m.said("copied whole: .*unflushed=ignore" if how == "ignore" else
           "is back: what was written meanwhile is copied")
    t.ok(m.healed(), "the leg is whole")
    t.eq(m.compare(f"unflushed={how}"), "", "the halves")
    m.prove(w)
    c.sh("ibnbd unmap --forget data-a data-b; rm /etc/ibnbd/mirrors.d/data.conf")


def run(t):
    servers = M.machines(t)
    for how in "ignore", "auto":
        scene(t, servers, how)
    M.leave(t)
