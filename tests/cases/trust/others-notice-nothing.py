# SPDX-License-Identifier: GPL-2.0-only
"""What a request of an innocent client takes while another machine says anything, leaves paths half
open, opens disks without end, or guesses at keys, as fast as it can, beside what it takes while
that machine only keeps its processors busy: the machines share those of the host, and that is no
doing of the server.  The machine has a key, but for the half-open paths, and says all of it behind
that.  In turn, since the host has other things to do: each interval is compared with the one before
it, and the median of these is what counts."""
description = ("beside a client without sense, floods of half-open paths, storms of OPENs and "
               "guesses at keys, the median request of another client takes less than twice its "
               "time")
vms = 3
long = True
deadline = 600
import statistics
import keys
import messages
programs = [messages.PROGRAM]

ROUNDS = 7
SPEAK = "/sys/module/ibnbd_speak/parameters"
STRANGER = "/sys/module/ibnbd_stranger/parameters"
KEY, BAD = "22" * 32, "11" * 32
AS = f"echo 'name=other secret={{}}' > {STRANGER}/whom; "
OPENS = ("{{ cat /h/hello; while :; do cat /h/{}; done; }} | IBTRS_KEY=/etc/ibnbd/keys/other "
         "ibtrs-peer say ip:10.0.0.2 > /dev/null")
BUSY = "while :; do :; done & while :; do :; done"
ATTACKS = {
    "a client without sense": f"for ((i = 0; ; i++)); do echo \"$i 20\" > {SPEAK}/wild; done",
    "half-open paths": "while :; do knock 10.0.0.2 count=20 > /dev/null; done",
    "half-open paths with a key": AS.format(KEY) +
        f"while :; do echo 'half 1; on 1; half 1; on 2; half 1' > {STRANGER}/tell || true; done",
    "OPENs": OPENS.format("ro"),
    "OPENs to write": OPENS.format("rw"),
    "messages of any kind": AS.format(KEY) +
        f"for ((i = 0; ; i++)); do echo \"$i 20\" > {STRANGER}/roam; done",
    "guesses": AS.format(BAD) +
        f"for ((i = 0; ; i++)); do echo \"$i 20\" > {STRANGER}/guess; done",
}


def median_us(t, dev, beside):
    """Of all requests of a second, one at a time."""
    job = t.client2.spawn(beside)
    t.client2.sh("sleep 0.2")
    fio = t.client.fio(dev, rw="randread", bs="4k", iodepth=1, time_based=1, runtime=1, size="8m")
    t.eq(job.rc, None, "what goes on beside it: " + job.out())
    job.kill()
    t.eq(fio["error"], 0, "fio")
    return fio["read"]["clat_ns"]["percentile"]["50.000000"] / 1000


def times(t, dev, attack):
    """How many times longer."""
    busy, attacked = [], []
    for _ in range(ROUNDS):
        busy.append(median_us(t, dev, BUSY))
        attacked.append(median_us(t, dev, attack))
    t.log(f"microseconds beside a busy machine {busy}, beside an attacker {attacked}")
    return statistics.median(a / b for a, b in zip(attacked, busy))


def run(t):
    c, s, d = t.client, t.server, t.client2
    s.sh("ram_disks 10 8; serve auth=optional handshake_timeout_s=5")
    keys.give(s, other=keys.text(KEY))
    keys.give(d, other=keys.text(KEY))
    for name, text in (("hello", messages.HELLO + "\n"), ("ro", messages.storm("ram", 8, False)),
                       ("rw", messages.storm("ram", 8, True))):
        (d.vm.share / name).write_text(text)
    dev = c.sh("map ram9")
    d.sh("modprobe ibnbd-speak to=ip:10.0.0.2 disk=ram8 auth=other; "
         "modprobe ibnbd-stranger to=ip:10.0.0.2")
    found = {name: times(t, dev, attack) for name, attack in ATTACKS.items()}
    t.log(f"times: {found}")
    for name, n in found.items():
        t.below(n, 2, f"times the median request beside a busy machine, beside {name}")
    t.eq(c.sh("cat /sys/class/ibtrs-client/s1/paths/*/stats/reconnects"), "0 0", "its path")
    d.sh("modprobe -r ibnbd-speak ibnbd-stranger")
    c.sh(f"unmap {dev}")
