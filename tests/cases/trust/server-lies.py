# SPDX-License-Identifier: GPL-2.0-only
"""ibnbd-lies is a server of which every sixth message is spoiled, of another size, too early, or
asked for by nobody: answers to CONN_REQ, proofs, chunks, answers to requests, keys, events."""
description = ("whatever a server says, a client goes on: its sessions end when they are told to, "
               "and the next one, with a server that does not lie, works; sizes, slots and data "
               "are believed within bounds")
crowd = True
import base64, os, re

SAID = "/sys/module/ibnbd_lies/parameters/said"
ENOUGH = int(os.environ.get("IBNBD_EXCHANGES") or 1000)    # messages
GROWS, STRAYS = 7, 240
SEED = int(os.environ.get("IBNBD_SEED") or 24)
deadline = 180 + ENOUGH // 5
# messages, how many of them one lie is in, requests of a mapping: most lies end the
# connection, so a disk that works is lied to where they are rare
PHASES = (ENOUGH // 20 + 150, 6, 8), (ENOUGH // 3, 40, 60), (ENOUGH * 2 // 3, 200, 300)
WORDS = "hold=1 io_timeout=3"


def secret(c):
    """What the client's key is, in hex: this server has it, too."""
    text = c.sh("cat /etc/ibnbd/keys/db-1")
    return base64.b64decode(text.rsplit(":", 1)[1])[:32].hex()


def lies(t, seed, enough, odds, requests):
    c, s = t.client, t.server
    s.sh(f"modprobe ibnbd-lies seed={seed} odds={odds} secret={secret(c)}")
    c.sh("rm -f /tmp/stop")
    job = c.spawn(f'maploop 12 {requests} {2000 + 20 * requests} "$(paths) {WORDS}"')
    s.sh(f"until read -r _ n _ < {SAID}; [ $n -ge {enough} ]; do sleep 1; done",
         timeout=60 + enough // 6)
    c.sh("touch /tmp/stop")
    job.wait(60 + requests // 5)
    *numbers, shown = s.sh(f"cat {SAID}").split()
    conns, messages, lied, proved = map(int, numbers)
    t.log(f"seed {seed}, odds {odds}: {conns} connections, {proved} of them with a proof, "
          f"{messages} messages, {lied} lies")
    # on a slow host most messages are heartbeats, and few of these are lies
    t.ok(lied > messages // (10 * odds), f"{lied} lies were among {messages} messages")
    t.ok(proved > 3, f"on {proved} connections it had proved the key before it lied")
    c.sh("wait_for 20 eval '[ -z \"$(ls /sys/class/ibtrs-client | grep -v ctl)\" ]'", timeout=60)
    t.below(int(shown, 16), 1 << 47, "the highest address that the client has shown")
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


def bounds(t):
    """A disk that grows without end, reads without all their data, slots without number."""
    c, s = t.client, t.server
    at = "/sys/module/ibnbd_lies/parameters"
    s.sh("modprobe ibnbd-lies odds=0 steady=1")
    dev = c.sh("map steady sessname=steady", timeout=60)
    read = f"dd if={dev} of=/dev/null bs=%s count=1 iflag=direct status=none"
    before = len(c.kernel_news())
    s.sh(f"echo {GROWS} > {at}/grow")
    c.sh(f"{read % '4k'}; wait_for 60 eval "
         f"'[ $(blockdev --getsize64 {dev}) = {(1 << 20) + GROWS * 4096} ]'", timeout=90)
    times = [float(at) for at in re.findall(r"\[ *([\d.]+)\] .*detected capacity change",
                                            c.kernel_news()[before:])]
    t.eq(len(times), GROWS, "how often its size changed: the last is not lost")
    t.ok(times[-1] - times[0] > GROWS - 3, f"once a second at most, it was at {times}")

    # a request that is answered so three times fails, and the disk is opened again each time
    s.sh(f"echo {STRAYS} > {at}/wrong")
    events, seconds = map(float, c.sh(
        f"n=$(cat /sys/kernel/uevent_seqnum); t0=$(uptime_s); "
        f"for i in $(seq {STRAYS // 3}); do {read % '4k'} 2> /dev/null || true; done; since $t0; "
        "echo $(($(cat /sys/kernel/uevent_seqnum) - n))", timeout=90).split()[::-1])
    t.eq(s.sh(f"cat {at}/wrong"), "0", "requests that are still to be answered so")
    t.ok(int(c.sh(f"blockdev --getsize64 {dev}")) >= (1 << 20) + (GROWS + STRAYS // 2) * 4096,
         "it was opened again as often, and has grown")
    t.ok(events < 3 * seconds + 12 or seconds > STRAYS // 4,
         f"{events} uevents of {STRAYS} new sizes in {seconds} s")

    for lacking in 512, 1 << 20:
        s.sh(f"echo {lacking} > {at}/lacking")
        for size in "4k", "16k":
            c.fails(read % size, "Input/output error")
    s.sh(f"echo 0 > {at}/lacking")
    c.sh(f"{read % '4k'}; {read % '16k'}")

    # Keys repeat after 256 registrations: what it says of one could be meant for a later one.
    for inval, words in (1, "unexpected message"), (2, "without a request to do so"):
        before = len(c.kernel_news())
        s.sh(f"echo {inval} > {at}/inval")
        job = c.spawn(read % "16k")
        t.wait(lambda: words in c.kernel_news()[before:], 20,
               f"no key is taken for invalidated because the server says so: {words}")
        s.sh(f"echo 0 > {at}/inval")
        t.eq(job.wait(30), 0, "the read, sent again: " + job.out())
    c.sh(f"unmap {dev}")

    # ETIMEDOUT that a server says is an answer: what that flush should have covered is sent again
    dev = c.sh("map kept sessname=kept unflushed=replay retain_mb=1", timeout=60)
    s.sh(f"echo 2 > {at}/wrong_op; echo 110 > {at}/wrong_errno; echo 1 > {at}/wrong")
    c.sh(f"dd if=/dev/zero of={dev} bs=16k count=36 oflag=direct status=none")
    t.wait(lambda: c.sh(f"dev_attr {dev} replays").split()[0] == "1", 30, "the way back")
    c.sh(f"unmap {dev}")

    s.sh(f"echo 8193 > {at}/depth")
    c.fails("map deep sessname=deep", "", timeout=60)
    t.match(c.sh("cat $(ctl)/last_error"), "more than 8192 slots", "the reason")
    s.sh("modprobe -r ibnbd-lies")


def run(t):
    c, s = t.client, t.server
    t.allow(r"I/O error, dev ibnbd|Buffer I/O error on dev ibnbd")
    c.sh("modprobe ibnbd-client; ibnbd key generate db-1; ibnbd key load")
    early(t)
    bounds(t)
    s.sh(f"modprobe ibnbd-lies odds=0 secret={secret(c)}")
    dev = c.sh("map proved auth=db-1", timeout=60)
    t.eq(c.sh("cat /sys/class/ibtrs-client/s1/auth"), "db-1", "what it has proved while true")
    c.sh(f"unmap {dev} force")
    s.sh("modprobe -r ibnbd-lies")
    for i, (enough, odds, requests) in enumerate(PHASES):
        lies(t, SEED + i, enough, odds, requests)
    s.sh("ram_disks 1 16; serve")
    c.sh("dev=$(map ram0); dd if=/dev/zero of=$dev bs=64k count=4 oflag=direct status=none; "
         "unmap $dev; modprobe ibnbd-speak to=ip:10.0.0.2", timeout=60)
    t.below(int(c.sh("cat /sys/module/ibnbd_speak/parameters/chunks"), 16), 1 << 47,
            "the highest address of a chunk")
    c.sh("modprobe -r ibnbd-speak")
