# SPDX-License-Identifier: GPL-2.0-only
"""Most of its time is emulation: a disk is added in 55 ms and taken away in 26 ms (add_disk and
del_gendisk, sysfs, uevents), and the server's thousand brd disks need 39 s to be unloaded."""
description = ("a thousand disks on one session: "
               "names, numbers, data and the way back, within a bounded time and memory")
deadline = 480
long = True
mem = 2048

N = 1000


def run(t):
    c, s = t.client, t.server

    # disks of 1 MiB; nothing of them is allocated before it is written
    s.sh(f"modprobe brd rd_nr={N} rd_size=1024 max_part=0; serve; "
         f"wait_for 20 test -b /dev/ram{N - 1}")
    c.sh("modprobe ibnbd-client")
    before = int(c.sh("memory_kib"))
    # the file is written as it is: a helper in shell would take longer than the mapping
    c.sh(f"""
        p=$(paths) m=$(ctl)/map_device
        for ((i = 0; i < {N}; i++)); do echo "sessname=s1 $p device_path=ram$i" > $m || exit; done
        """, timeout=200)
    t.eq(c.sh("ls /sys/class/ibtrs-client"), "s1", "one session")
    t.eq(c.sh("ls $(ctl)/devices | wc -l; ls -d /sys/block/ibnbd* | wc -l; "
              "ls /dev/ibnbd* | wc -l").split(), [str(N)] * 3, "disks")
    t.eq(s.sh("ls /sys/class/ibnbd-server/ctl/devices | wc -l"), str(N), "exports")
    t.below((before - int(c.sh("memory_kib"))) / N, 512, "KiB that a disk costs its client")

    # each has its own data: a mark in every 37th, written and read by all means beside each other
    c.sh(f"""
        for ((i = 0; i < {N}; i += 37)); do
            d=$(readlink -f $(ctl)/devices/ram$i@s1)
            echo "disk $i" | dd of=/dev/${{d##*/}} bs=4k conv=sync oflag=direct status=none &
        done
        wait
        """, timeout=60)
    want = "\n".join(f"disk {i}" for i in range(0, N, 37))
    t.eq(s.sh(f"for ((i = 0; i < {N}; i += 37)); do head -n 1 /dev/ram$i | tr -d '\\0'; done",
              timeout=60), want, "marks on the server")
    t.eq(s.sh("head -c 6 /dev/ram1 | tr -d '\\0'"), "", "a neighbour")
    # more than the server admits to one session
    s.sh("[ $(cat /sys/module/ibnbd_server/parameters/max_maps) = 1024 ]")

    # they all come back after a loss of the link
    c.link(0, False)
    t.wait(lambda: c.sh("cat /sys/block/ibnbd7/ibnbd/state") == "closed", 15, "the client notices")
    c.link(0, True)
    t.wait(lambda: c.sh("cat /sys/block/ibnbd*/ibnbd/state | sort -u") == "open", 60,
           "all of them are open again")
    c.sh(f"dd if=/dev/ibnbd{N - 1} of=/dev/null bs=64k count=4 iflag=direct status=none")

    # Half of them have requests, five hundred at a time. Each device asks about its own, and all
    # fail in about the time that one of them takes.
    c.sh("for f in /sys/block/ibnbd*/ibnbd/hold; do echo 8 > $f; done", timeout=60)
    devs = ":".join(f"/dev/ibnbd{i}" for i in range(N // 2))
    c.spawn(f"ulimit -n 4096; fio --name=x --filename={devs} --rw=randread --bs=4k --direct=1 "
            "--ioengine=libaio --iodepth=500 --size=500m --time_based --runtime=300 "
            "--output=/dev/null")
    c.sh("wait_for 30 eval 'set -- $(cat /sys/block/ibnbd3/stat); [ $1 -gt 2 ]'")
    c.link(0, False)
    first, last = c.sh("""
        count() { grep -lx failed /sys/block/ibnbd*/ibnbd/state_detail | wc -l; }
        now() { cut -d ' ' -f 1 /proc/uptime; }
        wait_for 60 eval '[ $(count) -gt 0 ]'; now
        wait_for 60 eval '[ $(count) -eq %d ]'; now
        """ % N, timeout=140).split()
    t.below(float(last) - float(first), 15, "seconds from the first that failed to the last")
    c.link(0, True)

    c.sh("""
        for f in /sys/block/ibnbd*/ibnbd/unmap_device; do echo normal > $f; done
        wait_for 60 sh -c '! ls -d /sys/block/ibnbd* 2> /dev/null'
        wait_for 10 test ! -e /sys/class/ibtrs-client/s1
        """, timeout=200)
    s.sh("wait_for 10 sh -c '[ -z \"$(ls /sys/class/ibnbd-server/ctl/devices)\" ]'")
