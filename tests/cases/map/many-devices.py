# SPDX-License-Identifier: GPL-2.0-only
description = ("several devices on one session share its slots; "
               "data stays on the disk it was written to")
long = True
crowd = True
deadline = 240


def run(t):
    c, s = t.client, t.server

    s.sh("serve sess_queue_depth=16; ram_disks 6 16")
    devs = [c.sh(f"map ram{i}") for i in range(6)]
    t.eq(devs, [f"/dev/ibnbd{i}" for i in range(6)], "names")
    t.eq(c.sh("ls /sys/class/ibtrs-client"), "s1", "one session")
    jobs = " ".join(f"--name=d{i} --filename={d} --verify_pattern=0x{i}{i}{i}{i}"
                    for i, d in enumerate(devs))
    c.sh("fio --direct=1 --ioengine=libaio --rw=randwrite --bsrange=4k-64k --size=12m --iodepth=16 "
         "--verify=pattern --verify_fatal=1 --do_verify=1 --thread "
         f"--randrepeat=0 {jobs} > /tmp/out 2>&1 || {{ cat /tmp/out; false; }}", timeout=150)
    for i, d in enumerate(devs):        # each disk holds its own mark, seen from the server
        c.sh(f"(yes disk-0{i} || true) | "
             f"dd of={d} bs=64k count=8 iflag=fullblock oflag=direct status=none")
    for i in range(6):
        t.eq(s.sh(f"head -c 524288 /dev/ram{i} | sort -u"), f"disk-0{i}", f"content of ram{i}")
    for d in devs[1:]:
        c.sh(f"unmap {d}")
    c.sh(f"dd if={devs[0]} of=/dev/null bs=64k count=8 iflag=direct status=none")
