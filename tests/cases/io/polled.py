# SPDX-License-Identifier: GPL-2.0-only
description = ("polled queues carry the I/O that asks for them, and only that; "
               "a lost path moves it to the others")
long = True
crowd = True
deadline = 240

HCTX = "/sys/kernel/debug/block/{}/hctx"
TRACE = "/sys/kernel/tracing"
# cid 1 and 2 answer by interrupt, one for each of the 2 CPUs; what follows is polled
POLLED = ("3", "4")


def during(t, dev, **fio):
    """Requests that went over each kind of connection while fio did 256 of 4 KiB."""
    c = t.client
    c.sh(f"echo > {TRACE}/trace")
    job = c.fio(dev, size="1m", bs="4k", **fio)
    t.eq(job["error"], 0, "fio's errors")
    got = {"default": 0, "poll": 0}
    for line in c.sh(f"grep -o 'on conn [0-9]*' {TRACE}/trace | sort | "
                     "uniq -c || true").splitlines():
        n, _, _, cid = line.split()
        got["poll" if cid in POLLED else "default"] += int(n)
    return got


def reconnect_s(c, args):
    """Seconds from the end of a path until it is up again, the least of three."""
    dev = c.sh(f"map ram0 sessname=again {args}")
    took = [float(c.sh("p=$(echo /sys/class/ibtrs-client/again/paths/*); "
                       "n() { cut -d' ' -f1 $p/stats/reconnects; }; "
                       "was=$(n); a=$EPOCHREALTIME; echo 1 > $p/reconnect; "
                       "while [ $(n) = $was ]; do usleep 5000; done; "
                       "echo $a $EPOCHREALTIME | awk '{ print $2 - $1 }'")) for _ in range(3)]
    c.sh(f"unmap {dev}")
    return min(took)


def run(t):
    c, s = t.client, t.server
    s.sh("serve sess_queue_depth=64; ram_disks 2 16")
    c.fails("map ram0 nr_poll_queues=3", "this host has 2 CPUs")
    dev = c.sh("map ram0 nr_poll_queues=2")
    t.eq(c.sh(f"dev_attr {dev} nr_poll_queues"), "2", "nr_poll_queues")
    t.eq(c.sh(f"cat /sys/block/{dev[5:]}/queue/io_poll"), "1", "the queue polls")
    t.eq(c.sh(f"cat {HCTX.format(dev[5:])}*/type | sort | uniq -c | tr -s ' ' | xargs"),
         "2 default 2 poll", "queues")
    c.sh(f"[ -e {TRACE}/trace ] || mount -t tracefs none {TRACE}; "
         f"echo 1 > {TRACE}/events/ibtrs_client/ibtrs_clt_req/enable")
    c.fails("map ram1", "taken by its one mapping")
    c.fails("map ram1 nr_poll_queues=1", "needs a session of its own")

    # io_uring alone: a kernel from 6.0 on no longer polls for preadv2(RWF_HIPRI)
    for depth in 1, 8:
        for rw in ("randread", "randwrite"):
            got = during(t, dev, ioengine="io_uring", hipri=1, iodepth=depth, rw=rw)
            t.ok(got["poll"] >= 256 and got["default"] < 16,
                 f"{rw} at depth {depth}, polled: {got}")
    # a flush before a polled write is nobody's to poll for
    c.sh(f"fio --name=f --filename={dev} --direct=1 --ioengine=io_uring --hipri=1 --rw=randwrite "
         "--bs=4k --size=256k --fsync=4 --output=/dev/null")
    got = during(t, dev, ioengine="pvsync2", rw="randread")
    t.ok(got["default"] >= 256 and got["poll"] == 0, f"not polled: {got}")
    # two tasks and more at each queue, which find each other polling it
    c.sh(f"fio_verify {dev} 2m --ioengine=io_uring --hipri=1 --iodepth=4 --numjobs=5 --thread "
         "--offset_increment=3m --output=/tmp/out || "
         "{ cat /tmp/out; false; }", timeout=60)

    # polled I/O outlives its path
    pulse = c.spawn(f"fio --name=p --filename={dev} --direct=1 --ioengine=io_uring --hipri=1 "
                    "--iodepth=4 --rw=randrw --bs=4k --size=8m --time_based "
                    "--runtime=18 --verify=crc32c --output=/tmp/out || { cat /tmp/out; false; }")
    c.sh("sleep 3")
    c.link(0, False)
    t.wait(lambda: c.sh(f"dev_attr {dev} state") == "closed", 12, "the client notices")
    c.link(0, True)
    t.wait(lambda: c.sh(f"dev_attr {dev} state") == "open", 12, "the device is open again")
    t.eq(pulse.wait(60), 0, "polled fio through a lost link: " + pulse.out()[-2000:])
    got = during(t, dev, ioengine="io_uring", hipri=1, rw="randread")
    t.ok(got["poll"] >= 256, f"polled again: {got}")
    c.sh(f"unmap {dev}")

    # a path that ends waits for no tick of a polled queue: each took 0.2 s, one after the other
    again = {args: reconnect_s(c, args) for args in ("", "nr_poll_queues=2")}
    t.below(again["nr_poll_queues=2"] - again[""], 0.25, f"seconds that two queues add: {again}")

    dev = c.sh("map ram0 nr_poll_queues=-1")
    t.eq(c.sh(f"dev_attr {dev} nr_poll_queues"), c.sh("nproc --all"), "-1: one for each CPU")
    c.sh(f"unmap {dev}")
