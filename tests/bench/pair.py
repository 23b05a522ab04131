# SPDX-License-Identifier: GPL-2.0-only
"""Two machines with one target between them, for lines.py: like bench.Machine, but the client and
the server have a machine each, so only what really goes between them does."""
import re
import bench, case, vm                      # noqa: E402

SERVER = "10.0.0.2"


class Pair:
    """.vm is the client, .peer the server; .devs the client's disks."""
    def __init__(self, boot, target, disks, smp, mem, before=""):
        self.target = target
        self.vm, self.peer = vm.machines(boot, 2, 1, smp=smp, mem=mem)
        try:
            vm.start_all([self.vm, self.peer], 120)
            for m in (self.vm, self.peer):
                case.bring_up(m, 1, [self.vm, self.peer])
                m.put("peers.sh", (bench.REPO / "tests/bench/peers.sh").read_text())
                m.sh(f". /h/peers.sh; {before}", 300)
            names = [f"ram{i}" for i in range(disks)]
            self.peer.sh(f"ram_disks {disks} {bench.RAM_MIB}; . /h/peers.sh; "
                         + self.serve([f"/dev/{n}" for n in names]), 300)
            self.devs = self.sh(". /h/peers.sh; " + self.map(names)).split()
            self.steer(smp)
        except BaseException:
            self.off()
            raise

    def family(self):
        return "rnbd" if self.target.startswith("rnbd") else "ibnbd"

    def serve(self, devs):
        if self.target == "nvme":
            return f"nvmet_serve {' '.join(devs)}; nvmet_port 1 {SERVER}"
        return f"FAMILY={self.family()}; serve always_invalidate={self.target[-1]}"

    def map(self, names):
        if self.target == "nvme":
            return (f"nvme_connect {SERVER}; for ((i = 1; i <= {len(names)}; i++)); "
                    "do disk /dev/nvme0n$i; done")
        return f"FAMILY={self.family()}; for d in {' '.join(names)}; do disk $(map $d); done"

    def steer(self, cpus):
        """Each connection is handled by the CPU whose requests it carries, as with an adapter,
        which has a completion queue for each CPU: that one is found by what a read there sends."""
        def sent():
            return {qp["lqpn"]: int(qp["sq-psn"]) for qp in self.queue_pairs(self.vm)}

        order = []
        for cpu in range(cpus):
            before = sent()
            self.sh(f"fio --name=x --filename={self.devs[0]} --cpus_allowed={cpu} --thread "
                    "--direct=1 --rw=read --bs=4k --number_ios=64 --size=256k > /dev/null")
            after = sent()
            order.append(max(before, key=lambda qp: (after[qp] - before[qp]) & 0xffffff))
        if len(set(order)) != cpus:
            raise vm.VMError(f"{self.target}: CPUs have the queue pairs {order}")
        theirs = {qp["rqpn"]: qp["lqpn"] for qp in self.queue_pairs(self.peer)}
        self.steered = set(order)
        for m, qps in (self.vm, order), (self.peer, [theirs[qp] for qp in order]):
            m.spawn(f"exec steer eth0 {' '.join(qps)} > /h/steer")
            m.sh("wait_for 20 grep -q steers /h/steer", 60)

    def queue_pairs(self, m):
        return [dict(zip(words[::2], words[1::2])) for words in map(
            str.split, re.findall("lqpn.*type RC.*", m.sh("rdma resource show qp", 60)))]

    def check(self):
        """A path that was made anew has queue pairs that nobody steers."""
        if not self.steered <= {qp["lqpn"] for qp in self.queue_pairs(self.vm)}:
            said = "\n".join(f"{m.name}: {line}" for m in (self.vm, self.peer)
                             for line in m.kernel_log().splitlines() if "whose" not in line)[-2000:]
            raise vm.VMError(f"{self.target}: its connections were made anew\n{said}")

    def sh(self, script, timeout=600):
        return self.vm.sh(script, timeout)

    def off(self):
        self.vm.off()
        self.peer.off()
