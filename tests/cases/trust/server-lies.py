# SPDX-License-Identifier: GPL-2.0-only
"""ibnbd-lies is a server of which every sixth message is spoiled, of another size, too early, or
asked for by nobody: answers to CONN_REQ, proofs, chunks, answers to requests, keys, events."""
description = ("whatever a server says, a client goes on: its sessions end when they are told to, "
               "and the next one, with a server that does not lie, works")
crowd = True
import os

SAID = "/sys/module/ibnbd_lies/parameters/said"
ENOUGH = int(os.environ.get("IBNBD_EXCHANGES") or 1000)    # messages
SEED = int(os.environ.get("IBNBD_SEED") or 24)
deadline = 150 + ENOUGH // 5
MAPS = """
lie() {
    local n=0 d key
    while [ ! -e /tmp/stop ]; do
        key=
        [ $((n++ % 8)) -gt 0 ] || key=auth=db-1
        d=$(map d$n sessname=lie$1 hold=1 $key) || continue
        timeout 2 dd if=$d of=/dev/null bs=16k count=8 iflag=direct || true
        timeout 2 dd if=/dev/zero of=$d bs=4k count=8 oflag=direct || true
        unmap $d force
    done
}
rm -f /tmp/stop
for k in 1 2 3 4 5 6 7 8 9 10 11 12; do lie $k & done > /dev/null 2>&1
wait
"""


def lies(t, seed, enough, seconds):
    c, s = t.client, t.server
    s.sh(f"modprobe ibnbd-lies seed={seed}")
    job = c.spawn(MAPS)
    t.wait(lambda: int(s.sh(f"cat {SAID}").split()[1]) >= enough, seconds, f"{enough} messages")
    c.sh("touch /tmp/stop")
    job.wait(60)
    t.log(f"seed {seed}: connections, messages, lies: {s.sh(f'cat {SAID}')}")
    t.ok(int(s.sh(f"cat {SAID}").split()[2]) > enough // 20, "enough lies were among them")
    c.sh("wait_for 20 eval '[ -z \"$(ls /sys/class/ibtrs-client | grep -v ctl)\" ]'", timeout=60)
    t.below(int(s.sh("cat /sys/module/ibnbd_lies/parameters/shown"), 16), 1 << 47,
            "the highest address that the client has shown")
    s.sh("modprobe -r ibnbd-lies")


def early(t):
    """Its answer to a trial that is over, in the place of INFO_RSP."""
    c, s = t.client, t.server
    s.sh("modprobe ibnbd-lies odds=0")
    dev = c.sh("for i in $(seq 20); do map true$i hold=60 && break; done 2> /dev/null", timeout=60)
    s.sh("echo 1 > /sys/module/ibnbd_lies/parameters/early")
    c.sh("p=$(echo /sys/class/ibtrs-client/s1/paths/*); echo 1 > $p/reconnect || true; "
         "wait_for 20 eval '[ $(cut -d\" \" -f2 $p/stats/reconnects) -ge 2 ]'", timeout=60)
    t.eq(c.kernel_news().count(": up, "), 1, "how often it was up: no path goes up without chunks")
    c.sh(f"unmap {dev} force")
    s.sh("modprobe -r ibnbd-lies")


def run(t):
    c, s = t.client, t.server
    t.allow(r"I/O error, dev ibnbd|Buffer I/O error on dev ibnbd")
    c.sh("modprobe ibnbd-client; ibnbd key generate db-1; ibnbd key load")
    early(t)
    lies(t, SEED, ENOUGH, 60 + ENOUGH // 6)
    s.sh("ram_disks 1 16; serve")
    c.sh("dev=$(map ram0); dd if=/dev/zero of=$dev bs=64k count=4 oflag=direct status=none; "
         "unmap $dev; modprobe ibnbd-speak to=ip:10.0.0.2", timeout=60)
    t.below(int(c.sh("cat /sys/module/ibnbd_speak/parameters/chunks"), 16), 1 << 47,
            "the highest address of a chunk")
    c.sh("modprobe -r ibnbd-speak")
