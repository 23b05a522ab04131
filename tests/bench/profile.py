#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Where the instructions of an I/O go: exact counts per function and per room.

    tests/bench/profile.py ibnbdN rr4k-qd1 [rw4k-16x2 ..]
    tests/bench/profile.py --qemu rig ibnbdN rr4k-qd1   in the rig's QEMU instead of the host's

The machine of bench.py, under a QEMU plugin that counts how often each block of instructions ran
while fio did a fixed number of I/Os.  Functions are those of the guest's kallsyms; `user` is fio
and everything else outside the kernel.  Written to bench/out/profile-TARGET-JOB.txt.
"""
import argparse, bisect, sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bench, image, launch, vm             # noqa: E402

IOS = 1000
ROOMS = [   # of functions in the kernel proper: first match wins
    ("blk", "block layer"), ("bio", "block layer"), ("__blk", "block layer"),
    ("submit_bio", "block layer"), ("sbitmap", "block layer"),
    ("io_submit", "aio"), ("aio", "aio"), ("__x64_sys_io", "aio"), ("read_events", "aio"),
    ("iov_iter", "aio"), ("lookup_ioctx", "aio"),
    ("crc32", "crc"), ("__crc32", "crc"), ("crypto", "crc"), ("chksum", "crc"),
    ("memcpy", "memcpy"), ("copy_user", "memcpy"), ("memset", "memcpy"), ("clear_page", "memcpy"),
    ("skb", "network"), ("__skb", "network"), ("ip_", "network"), ("__ip_", "network"),
    ("net", "network"), ("__net", "network"),
    ("dev_", "network"), ("__dev", "network"), ("udp", "network"), ("fib_", "network"),
    ("dst_", "network"), ("neigh", "network"),
    ("kmem", "slab"), ("__kmem", "slab"), ("kfree", "slab"), ("__slab", "slab"),
    ("kmalloc", "slab"), ("__kmalloc", "slab"), ("___slab", "slab"),
    ("tasklet", "softirq"), ("__do_softirq", "softirq"), ("irq_", "softirq"),
    ("__local_bh", "softirq"), ("__tasklet", "softirq"),
    ("_raw_", "locks"), ("native_queued", "locks"), ("rcu", "rcu"), ("__rcu", "rcu"),
    ("schedule", "scheduler"), ("__schedule", "scheduler"), ("pick_next", "scheduler"),
    ("enqueue", "scheduler"), ("dequeue", "scheduler"),
    ("update_", "scheduler"), ("try_to_wake", "scheduler"), ("ttwu", "scheduler"),
    ("__queue_work", "scheduler"), ("queue_work", "scheduler"),
    ("process_one_work", "scheduler"), ("worker_thread", "scheduler"),
    ("check_preempt", "scheduler"), ("set_next", "scheduler"),
]


class ProfiledVM(vm.VM):
    """Counts blocks into `counts` of its directory."""
    plugin = cpu = None

    def _command(self):
        args = super()._command()
        if self.cpu:
            args[args.index("-cpu") + 1] = self.cpu
        return [*args, "-plugin", f"file={self.plugin},out={self.dir}/counts"]


def symbols(text):
    """Sorted addresses, and (name, module) of each."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 3 and words[1] in "tTwW":
            found.append((int(words[0], 16), words[2],
                          words[3].strip("[]") if len(words) > 3 else ""))
    found.sort()
    return [f[0] for f in found], [f[1:] for f in found]


def room(name, module):
    return module or next((r for prefix, r in ROOMS if name.startswith(prefix)), "kernel, other")


def counts(machine, script):
    """(name, module) -> instructions between the marks around @script."""
    machine.sh(f"mark start\n{script}\nmark stop\ncp /proc/kallsyms /h/kallsyms")
    addrs, names = symbols(machine.vm.get("kallsyms"))
    functions = Counter()
    for line in Path(f"{machine.vm.dir}/counts").read_text().splitlines():
        addr, length, times = line.split()
        at = int(addr, 16)
        functions[names[bisect.bisect_right(addrs, at) - 1]
                  if at else ("user", "user")] += int(length) * int(times)
    return functions


def profile(machine, job):
    """What a job with 3 times IOS more I/Os costs more: its start and end cancel out."""
    rw, kib, depth, jobs, _ = bench.JOBS[job]
    ios = 3 * IOS * jobs

    def work(n):
        if machine.target == "floor":
            request, reply = (0, kib << 10) if "read" in rw else (kib << 10, 0)
            return f". /h/peers.sh; floor_run {request} {reply} {depth * jobs} {n * jobs}"
        fio = machine.fio(job, 1, "--output=/dev/null")
        return fio.replace("--time_based", "").replace("--runtime=1", f"--io_size={n * kib}k")

    counts(machine, work(IOS))
    few = counts(machine, work(IOS))
    functions = counts(machine, work(4 * IOS))
    functions.subtract(few)
    rooms = Counter()
    for (name, module), cost in functions.items():
        rooms[room(name, module)] += cost
    lines = [f"{machine.target} {job}: {sum(functions.values()) / ios:.0f} instructions per I/O",
             "", "rooms"]
    lines += [f"{cost / ios:8.0f}  {name}" for name, cost in rooms.most_common()
              if cost / ios >= 20]
    for ours in (True, False):
        lines += ["", "functions of our modules" if ours else "all other functions"]
        lines += [f"{cost / ios:8.0f}  {name} [{room(name, module)}]"
                  for (name, module), cost in functions.most_common()
                  if cost / ios >= (5 if ours else 40)
                  and module.startswith(("ibtrs", "ibnbd", "rtrs", "rnbd")) == ours]
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("target", choices=bench.TARGETS)
    p.add_argument("job", nargs="+", choices=list(bench.JOBS))
    p.add_argument("--qemu", choices=["host", "rig"], default="host")
    p.add_argument("--cpu", help=f"instead of {vm.COUNTED_CPU}")
    o = p.parse_args()
    here = bench.REPO / "tests/bench"
    ProfiledVM.host_qemu, ProfiledVM.cpu = o.qemu == "host", o.cpu
    api = "-DPLUGIN_API=1" if o.qemu == "host" else "-DPLUGIN_API=4"
    ProfiledVM.plugin = image.compiled(here / "profile.c", "-shared", "-fPIC", api)
    mark = image.compiled(here / "mark.c", "-static")
    vm.VM = ProfiledVM
    out = bench.REPO / "bench/out"
    out.mkdir(parents=True, exist_ok=True)
    with launch.alone():
        kver = image.default_kver()
        boot = vm.Boot(kver, [here / "floor", *launch.module_dirs(kver)],
                       [*launch.programs(), (mark, "bin/mark")])
        try:
            machine = bench.Machine(boot, o.target)
            try:
                for job in o.job:
                    text = profile(machine, job)
                    name = f"profile-{o.target}-{job}" + "-rig" * (o.qemu == "rig")
                    (out / f"{name}.txt").write_text(text)
                    print(text)
            finally:
                machine.off()
        finally:
            boot.close()


if __name__ == "__main__":
    main()
