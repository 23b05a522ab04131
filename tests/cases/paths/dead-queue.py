# SPDX-License-Identifier: GPL-2.0-only
"""A send queue that says nothing any more, on either side: no completion, no error, and heartbeats
go on over the service connection."""
description = ("a send queue that died without a word is found by a probe; "
               "its requests go over a new connection; a slow disk breaks nothing")
faults = True
deadline = 200

CLIENT, SERVER = "/sys/kernel/debug/ibtrs/client", "/sys/kernel/debug/ibtrs/server"
RECONNECTS = "set -- $(cat /sys/class/ibtrs-client/s1/paths/*/stats/reconnects); echo $1"
POLLED = ("fio --name=p --filename=%s --direct=1 --ioengine=io_uring --hipri=1 --iodepth=4 "
          "--rw=randrw --bs=4k --size=8m --time_based --runtime=15 --verify=crc32c "
          "--output=/tmp/out || { cat /tmp/out; false; }")


def figures(out):
    return dict(word.split("=") for word in out.split() if "=" in word)


def polled(t):
    """Its completions are seen only by who polls, and that one waits for them for ever."""
    c = t.client
    dev = c.sh("map ram1 sessname=polled nr_poll_queues=2")
    job = c.spawn(POLLED % dev)
    c.sh(f"sleep 2; echo stuck times=1 > {CLIENT}/submit")
    t.wait(lambda: int(c.sh(RECONNECTS.replace("s1", "polled"))) > 0, 20,
           "the path of the polled queue was taken down and is up again")
    t.eq(job.wait(60), 0, "polled fio through a dead queue: " + job.out()[-2000:])
    t.match(c.sh(f"cat {CLIENT}/submit; echo off > {CLIENT}/submit"), "hits=1", "the fault")
    c.sh(f"unmap {dev}")


def service(t, dev):
    """The connection for messages; its peer's heartbeats go on arriving on it, and the other
    connections are busy."""
    c = t.client
    before = int(c.sh(RECONNECTS))
    c.sh(f"echo stuck times=1 > {CLIENT}/submit")
    second = c.spawn("map ram1")
    t.wait(lambda: "hits=1" in c.sh(f"cat {CLIENT}/submit"), 10, "a message is stuck")
    pulse = c.spawn(f"iopulse {dev} 4 500 rw 20000")
    t.wait(lambda: int(c.sh(RECONNECTS)) > before, 15, "the path was taken down and is up again")
    c.sh("pkill -TERM iopulse")
    t.eq(pulse.wait(20), 0, "iopulse: " + pulse.out())
    mapped = second.wait(30) == 0
    t.log(f"map while its message was stuck: {second.out()}")
    c.sh(f"unmap {second.out().strip() if mapped else '$(map ram1)'}; echo off > {CLIENT}/submit")


def run(t):
    c, s = t.client, t.server
    s.sh("serve; ram_disks 2 32")
    dev = c.sh("map ram0")
    for where, arm, why in ((c, f"{CLIENT}/submit", "a send queue is stuck"),
                            (s, f"{SERVER}/reply", "a send queue is stuck")):
        before = int(c.sh(RECONNECTS))
        pulse = c.spawn(f"iopulse {dev} 4 500 rw")
        c.sh("sleep 1")
        where.sh(f"echo stuck times=1 > {arm}")
        t.wait(lambda: int(c.sh(RECONNECTS)) > before, 15,
               "the path was taken down and is up again")
        c.sh("sleep 1; pkill -TERM iopulse")
        t.eq(pulse.wait(20), 0, "iopulse: " + pulse.out())
        t.log(pulse.out())
        end = figures(pulse.out())
        t.eq(end["errs"], "0", "I/O errors")
        t.below(int(end["longest_ms"]), 12000, "longest pause, ms")
        t.match(where.sh(f"cat {arm}"), "hits=1", "the fault was there")
        t.match(where.sh("dmesg"), why, "and was found for what it is")
        where.sh(f"echo off > {arm}")

    service(t, dev)
    polled(t)

    # a slow disk is none of this: 9 s for one request, and the path stays
    before = int(c.sh(RECONNECTS))
    s.sh(f"echo delay=9000 times=1 > {SERVER}/request")
    c.sh(f"dd if={dev} of=/dev/null bs=4k count=1 iflag=direct", timeout=30)
    t.match(s.sh(f"cat {SERVER}/request; echo off > {SERVER}/request"), "hits=1",
            "the delay was there")
    t.eq(int(c.sh(RECONNECTS)), before, "reconnects while a disk was slow")

    for text in "stuck times=", "nonsense", "error=5000", "delay=0", "error=5 drop", "every=0 drop":
        c.fails(f"echo '{text}' > {CLIENT}/completion", "Invalid argument")
    c.sh(f"echo error=5 times=1 path=10.0.9.9 > {CLIENT}/completion; "
         f"dd if={dev} of=/dev/null bs=4k count=1 iflag=direct")
    t.match(c.sh(f"cat {CLIENT}/completion; echo off > {CLIENT}/completion"), "hits=0",
            "a fault of another path")
