# SPDX-License-Identifier: GPL-2.0-only
"""I/O is at most 8 KiB: soft-RoCE repeats a memory registration when it repeats the packets around
it, and then has a dead queue pair (law L12); requests of that size register nothing."""
description = "lost, doubled, reordered and late packets, links that flap: slower, without an error"
links = 2
disk = 64
faults = True
long = True
deadline = 300
import time
import faults as F

LEAK_KIB = 12 * 1024        # as in run.py


def run(t):
    c, s = t.client, t.server
    both = lambda words: [m.sh(f"tc qdisc replace dev eth{i} root {words}")
                          for m in (c, s) for i in (0, 1)]

    s.sh("serve; modprobe ibnbd-testdisk cache=0")
    dev = c.sh("map testdisk0")
    w = F.Work(t, c, dev, think_us=3000)
    time.sleep(5)
    clean = rate(w, time.monotonic() - 4)
    for words, what, flaps in (("loss 1%", "1 % of packets lost", 0),
                               ("loss 10%", "10 % of packets lost", None),
                               ("delay 5ms 3ms reorder 25% duplicate 1%",
                                "late, reordered, doubled packets", 0),
                               ("delay 50ms 10ms", "50 ms late", 0)):
        begin = time.monotonic()
        row = w.fault("F4", what, lambda: both(f"netem limit 10000 {words}"),
                      lambda: both("pfifo limit 10000"), hold=12)
        lost = sum(begin < h and not w.up(text) for h, _, text in w.watch.changes)
        row["note"] = (f"{100 * rate(w, begin, begin + 12) / clean:.0f} % of the clean rate, "
                       f"{lost} paths lost")
        w.limit(row, Nerr=0)
        t.ok(flaps is None or lost <= flaps, f"{what}: {lost} times a path was given up")

    def flap(*links):
        for i in range(16):
            c.link(links[i % len(links)], bool(i // len(links) & 1))
            time.sleep(1)
    heal = lambda: [c.link(i, True) for i in (0, 1)]
    memory = lambda: [int(m.sh("memory_kib")) for m in (c, s)]
    tries = lambda: [sum(map(int, line.split()[1:]))
                     for line in sorted(c.sh("path_attr s1 stats/reconnects").splitlines())]
    free, tried = memory(), tries()
    row = w.fault("F7", "one of two links: 1 s on, 1 s off", lambda: flap(0), heal, hold=16)
    w.limit(row, Nerr=0, Tstall=4, Trec=5)
    lost, tried = [a - b for a, b in zip(free, memory())], [b - a for a, b in zip(tried, tries())]
    w.remark(f"{lost} KiB, {tried} times connected or tried")
    t.below(max(lost), LEAK_KIB, "KiB that did not come back from flapping")
    t.below(tried[0], 8 * 3, "attempts to connect the path that flaps, 8 times")
    t.eq(tried[1], 0, "attempts to connect the other one")
    row = w.fault("F8", "both links flap in turn", lambda: flap(0, 1), heal, hold=16)
    w.limit(row, Nerr=0, Trec=5)
    w.end("/dev/testdisk0")


def rate(w, since, until=None):
    until = until or time.monotonic()
    off = w.watch.offset(since)
    return sum(since < ms / 1e3 + off < until
               for ms, _ in w.completions(w.read_logs())) / (until - since)
