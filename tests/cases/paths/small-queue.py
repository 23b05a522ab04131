# SPDX-License-Identifier: GPL-2.0-only
"""mlx5 has room for 32768 units of 64 bytes in a send queue, of which a work request takes as many
as its segments need; it says so by failing. Modules for tests fail in the same way, above
ibtrs/sq_units."""
description = "a queue pair that the RDMA device cannot make is asked for again, with a smaller one"
deadline = 150

UNITS = "/sys/kernel/debug/ibtrs/sq_units"


def run(t):
    c, s = t.client, t.server
    s.sh("serve sess_queue_depth=2048 max_chunk_size=69632; ram_disks 1 64")
    c.sh("modprobe ibnbd-client")
    s.sh(f"echo 256 > {UNITS}")
    # 193 work requests of 32 segments are what 2048 units hold
    for units in (32768, 2048):
        c.sh(f"echo {units} > {UNITS}")
        dev = c.sh("map ram0 hold=0")
        c.sh(f"fio --name=x --filename={dev} --direct=1 --ioengine=libaio --iodepth=1500 "
             f"--size=48m --rw=randread --bs=4k > /dev/null; "
             f"fio_verify {dev} 32m --iodepth=600", timeout=90)
        c.sh(f"unmap {dev}")
    c.sh(f"echo 1 > {UNITS}")
    c.fails("map ram0", "sess_queue_depth")
    c.sh(f"echo 0 > {UNITS}; unmap $(map ram0)")
    s.sh(f"echo 1 > {UNITS}")
    c.fails("map ram0", "the server says: .*sess_queue_depth")
    s.sh(f"echo 0 > {UNITS}")
