# SPDX-License-Identifier: GPL-2.0-only
"""Two machines with one target between them, for lines.py: like bench.Machine, but the client and
the server have a machine each, so only what really goes between them does."""
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

    def sh(self, script, timeout=600):
        return self.vm.sh(script, timeout)

    def off(self):
        self.vm.off()
        self.peer.off()
