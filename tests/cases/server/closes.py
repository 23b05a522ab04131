# SPDX-License-Identifier: GPL-2.0-only
description = "a server that is closed while a disk hangs keeps nobody waiting but who unloads it"
crowd = True
deadline = 120
import time
import vm

P = "/sys/module/ibnbd_server/parameters"
DELAY = 12


def run(t):
    c, s = t.client, t.server
    delay = DELAY * max(1, vm.SLOW / 2)
    s.sh("serve; modprobe ibnbd-testdisk cache=0")
    dev = c.sh(f"map testdisk0 hold={60 + 4 * int(delay)}")
    s.sh(f"echo {int(1000 * delay)} > /sys/module/ibnbd_testdisk/parameters/delay_ms")
    write = c.spawn(f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none")
    t.wait(lambda: c.sh(f"cat /sys/block/{dev[5:]}/inflight").split()[1] != "0", 10,
           "the write is out")
    time.sleep(1)
    t0 = time.monotonic()
    s.sh(f"echo > {P}/dev_search_path")
    t.eq(s.sh(f"cat {P}/dev_search_path"), "", "the path, at once")
    s.sh(f"cat {P}/* > /dev/null")
    rc, out = s.rc(f"echo /dev > {P}/dev_search_path")
    t.ok(rc != 0 and "busy" in out, f"it cannot be opened again before it has closed: {rc} {out}")
    t.below(time.monotonic() - t0, delay - 4, "seconds for all that")
    c.fails("map testdisk0 sessname=s2", "")
    t.ok("path_close_work" not in s.sh("cat /proc/[0-9]*/stack 2> /dev/null || true"),
         "no worker waits for the path's requests")
    s.sh(f"wait_for {int(delay) + 10} eval 'echo /dev > {P}/dev_search_path' 2> /dev/null",
         timeout=60)
    t.match(s.kernel_news(), "closed: dev_search_path is empty", "the server's log")
    t.eq(write.wait(60), 0, "the write, held and repeated: " + write.out())
    c.sh(f"dd if={dev} of=/dev/null bs=4k count=1 iflag=direct status=none")
