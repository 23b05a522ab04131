#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Does the cost of an I/O stay what it is when there is more of everything?

    tests/bench/scale.py [devices paths depth connect memory fair wall]

devices, paths, depth: thousand instructions per 4 KiB random read (counted as in bench.py), net of
the same job on as many local RAM disks.  connect: milliseconds of guest time (500 million
instructions a second) to map the first disk over 18 connections.  memory: what clients cost, kernel
memory and queue pairs, by their number and their CPUs.  fair: shares of four busy disks of one
session.  wall: ratio of ours to the kernel's rnbd on two virtual CPUs by the wall clock, in
alternating pairs; one virtual CPU hides contention.  Fails when a bound of issue "scale" is broken;
the figures of a run are printed, none is kept.
"""
import argparse, json, statistics, subprocess, sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bench, image, launch, vm             # noqa: E402

GROWTH = 1.10       # of the cost of an I/O
CONNECT_MS = 100
SHARE = 0.5         # of the fair one
WALL_PAIRS = 3
SESSION_MIB = 80     # of a client with one CPU: chunks 66, bounce buffers 4, queues, keys, records
# queues of one more connection, both ends; 2 of them soft-RoCE's send queue of the client
CONN_MIB = 3.5


def fio(devs, depth, seconds=0.3, jobs=1, rw="randread", engine="libaio"):
    """One fio over all disks together; thousand instructions per I/O on a counted machine."""
    return (f"fio --name=j --direct=1 --ioengine={engine} --bs=4k --thread --group_reporting "
            f"--time_based --norandommap --clocksource=clock_gettime --randseed=7 --rw={rw} "
            f"--filename={':'.join(devs)} --iodepth={depth} --numjobs={jobs} "
            f"--runtime={seconds} --output-format=json --output=/h/fio.json")


def iops(machine, command):
    rc, out = machine.run(command, 600)
    if rc:
        raise vm.VMError(f"fio: {out[-1000:]}")
    text = machine.get("fio.json")
    return [p["read"]["iops"] + p["write"]["iops"]
            for p in json.loads(text[text.index("{"):])["jobs"]]


def cost(machine, devs, depth):
    iops(machine, fio(devs, depth, 0.1))
    return 500 / (sum(iops(machine, fio(devs, depth))) / 1000)


def counted(boot, disks, links=1, append="", family="ibnbd", mem=1536):
    machine = vm.counted(boot, append=append, mem=mem)
    machine.boot(120)
    mib = max(2, 64 // disks)
    sh(machine, f"net_up {links}; ram_disks {disks} {mib}; FAMILY={family}; serve; "
       "modprobe $FAMILY-client")
    return machine


def sh(machine, script):
    return machine.sh(script, 300)


def mapped(machine, n, words="", first=0, family="ibnbd"):
    out = sh(machine, f"FAMILY={family}; for ((i = {first}; i < {n}; i++)); "
             f"do d=$(map ram$i {words}); echo none > /sys/block/${{d#/dev/}}/queue/scheduler; "
             "echo $d; done")
    return out.split()


def net(machine, devs, local, depth):
    return cost(machine, devs, depth) - cost(machine, local, depth)


def grows(name, figures):
    """Each of {n: cost} against the first."""
    base = next(iter(figures.values()))
    print(f"{name}: " + ", ".join(f"{n} {v:.1f}" for n, v in figures.items())
          + " thousand instructions per I/O")
    return [f"{name} {n}: {v / base:.2f} times the cost of the first" for n, v in figures.items()
            if v > base * GROWTH]


def devices(boot):
    machine, devs, figures = counted(boot, 64), [], {}
    try:
        for n in (1, 4, 16, 64):
            devs += mapped(machine, n, first=len(devs))
            figures[n] = net(machine, devs, [f"/dev/ram{i}" for i in range(n)], 32)
    finally:
        machine.off()
    return grows("devices", figures)


def paths(boot):
    figures = {}
    for n in (1, 2, 4):
        machine = counted(boot, 1, links=n)
        try:
            figures[n] = net(machine, mapped(machine, 1), ["/dev/ram0"], 32)
        finally:
            machine.off()
    return grows("paths", figures)


def depth(boot):
    machine, figures = counted(boot, 1), {}
    try:
        devs = mapped(machine, 1)
        for n in (1, 4, 16, 64, 256, 512):
            figures[n] = net(machine, devs, ["/dev/ram0"], n)
    finally:
        machine.off()
    return grows("depth", figures)


def connect(boot):
    machine = counted(boot, 1, append="possible_cpus=17")
    try:
        line = "sessname=s1 device_path=ram0 $(paths 1)"
        sh(machine, f'b=${{EPOCHREALTIME/./}}; map_line "{line}"; e=${{EPOCHREALTIME/./}}; '
           'echo $((e - b)) > /h/us')
        ms = int(machine.get("us")) / 1000
        conns = len(sh(machine, "rdma resource show qp | grep ' type RC '").splitlines()) // 2
        print(f"connect: {ms:.1f} ms for the first disk of a session with {conns} connections")
        return [f"connect: {ms:.0f} ms"] if ms >= CONNECT_MS else []
    finally:
        machine.off()


def memory(boot):
    """Clients and their server in one machine, so that both sides are counted: one path each, a
    connection per CPU and one more.

    A client's share must neither grow with their number nor with their connections more than the
    queues of these cost.
    """
    bad = []
    print("memory, both sides: CPUs of a client, clients, queue pairs, "
          "MiB of each client (first ones, last ones)")
    for cpus, clients in ((1, 64), (4, 48), (16, 32)):
        machine = counted(boot, clients + 1, append=f"possible_cpus={cpus}",
                          mem=2048 + 150 * clients)
        try:
            free = [int(sh(machine, "memory_kib"))]
            for n in range(1, clients + 1):
                sh(machine, f"map ram{n} sessname=m{n}")
                free.append(int(sh(machine, "memory_kib")))
            qps = len(sh(machine, "rdma resource show qp | grep ' type RC '").splitlines())
            # the first one loads and fills caches
            each = [(a - b) / 1024 for a, b in zip(free[1:], free[2:])]
            first, last = statistics.median(each[:8]), statistics.median(each[-8:])
            print(f"memory: {cpus:2} {clients:2} {qps:4}  {first:.1f} {last:.1f}")
            if qps != 2 * clients * (cpus + 1):
                bad.append(f"memory: {qps} queue pairs of {clients} clients with {cpus} CPUs")
            if last > first * GROWTH:
                bad.append(f"memory: client {clients} takes {last:.0f} MiB, "
                           f"the first ones {first:.0f}")
            if first > SESSION_MIB + CONN_MIB * (cpus - 1):
                bad.append(f"memory: {first:.0f} MiB per client with {cpus} CPUs")
        finally:
            machine.off()
    return bad


def two_cpus(boot, family, disks):
    machine = vm.machines(boot, 1, smp=2, mem=1536)[0]
    machine.boot(120)
    sh(machine, f"net_up 1; ram_disks {disks} 32; FAMILY={family}; serve; modprobe $FAMILY-client")
    return machine


def fair(boot):
    """The same demand from all four;
    then one asks for eight times as much as each of the others."""
    machine, bad = two_cpus(boot, "ibnbd", 4), []
    try:
        devs = mapped(machine, 4)
        for name, depths in (("equal", (64, 64, 64, 64)), ("one greedy", (256, 32, 32, 32))):
            each = " ".join(f"--name=j{i} --filename={d} --iodepth={q}"
                            for i, (d, q) in enumerate(zip(devs, depths)))
            rates = iops(machine, "fio --direct=1 --ioengine=libaio --bs=4k --rw=randread "
                         "--time_based --runtime=8 --norandommap --output-format=json "
                         f"--output=/h/fio.json {each}")
            # a fair share is a quarter, or what was asked for if that is less
            fair_share = [min(0.25, q / sum(depths)) for q in depths]
            shares = [r / sum(rates) for r in rates]
            print(f"fair, {name}: shares " + ", ".join(f"{s:.2f}" for s in shares))
            bad += [f"fair, {name}: disk {i} got {s:.2f}" for i, s in enumerate(shares)
                    if s < SHARE * fair_share[i]]
    finally:
        machine.off()
    return bad


def wall(boot):
    polled = "io_uring --hipri"
    jobs = {"read qd1": (1, 1, "randread"), "write qd1": (1, 1, "randwrite"),
            "read 32x2": (32, 2, "randread"), "write 32x2": (32, 2, "randwrite"),
            "read qd1 polled": (1, 1, "randread", polled),
            "read 32x2 polled": (32, 2, "randread", polled)}
    ratios = {j: [] for j in jobs}
    for pair in range(WALL_PAIRS):
        rates = {}
        for family in ("ibnbd", "rnbd")[::1 if pair % 2 else -1]:
            machine = two_cpus(boot, family, 2)
            try:
                devs = (mapped(machine, 1, family=family)
                        + mapped(machine, 2, "sessname=polled nr_poll_queues=2", 1, family))
                for j, (q, n, rw, *engine) in jobs.items():
                    rates[family, j] = sum(iops(
                        machine, fio([devs[bool(engine)]], q, 2, n, rw, *engine)))
            finally:
                machine.off()
        for j in jobs:
            ratios[j].append(rates["ibnbd", j] / rates["rnbd", j])
    for j, r in ratios.items():
        print(f"wall, {j}: I/Os per second, ours / rnbd: " + ", ".join(f"{x:.2f}" for x in r)
              + f", median {statistics.median(r):.2f}")
    return [f"wall, {j}: slower than rnbd" for j, r in ratios.items() if statistics.median(r) < 1]


PARTS = {f.__name__: f for f in (devices, paths, depth, connect, memory, fair, wall)}


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("part", nargs="*", help=" ".join(PARTS))
    o = p.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    parts = o.part or list(PARTS)
    unknown = [x for x in parts if x not in PARTS]
    if unknown:
        p.error(f"no part {unknown[0]}; there are {' '.join(PARTS)}")
    kver = image.default_kver()
    if "wall" in parts:
        subprocess.run([bench.REPO / "tests/interop/build-peer.sh", kver], check=True)
    failed = []
    with launch.alone():
        boot = launch.boot_image(kver)
        try:
            for part in parts:
                try:
                    failed += PARTS[part](boot)
                except vm.VMError as e:
                    failed.append(f"{part}: {e}")
        finally:
            boot.close()
    for f in failed:
        print(f"FAIL {f}")
    print(f"{len(parts)} parts run, {len(failed)} bounds broken")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
