# SPDX-License-Identifier: GPL-2.0-only
"""A client that was let in says what no driver would: names of every byte, operations, sizes and
devices that there are not, messages of every length and type.  Half of it without a key, half of it
by a client that has proved one."""
description = ("a client whose messages make no sense is answered each time, and "
               "nobody else notices: disks that it may not write to stay as they are")
crowd = True
vms = 3
import os
import re
import keys

WILD = "/sys/module/ibnbd_speak/parameters/wild"
ENOUGH = int(os.environ.get("IBNBD_EXCHANGES") or 1000)    # messages
SEED = int(os.environ.get("IBNBD_SEED") or 24)
deadline = 150 + ENOUGH // 5


def wild(t, seed, enough):
    t.client2.sh(f"echo '{seed} {enough}' > {WILD}", timeout=120 + ENOUGH // 10)
    sent, good = map(int, t.client2.sh(f"cat {WILD}").split())
    t.log(f"seed {seed}: {sent} messages, {good} of them good")
    t.eq(sent, enough, "messages that were answered")
    t.ok(enough // 100 < good < enough, f"{good} were good: neither all nor none")
    stays(t)


def stays(t):
    """What makes no sense is answered: no path is lost for it.  On the debug kernel, which is ten
    times as slow, a path may be lost in hours for that alone."""
    lost = t.client2.sh("cat /sys/class/ibtrs-client/speak/paths/*/stats/reconnects")
    slow = re.findall(r"ibtrs speak: .*: path lost: (?:no sign of life|a send queue is)",
                      t.client2.kernel_news())
    t.log(f"reconnects: {lost}; {slow}")
    t.ok(lost == "0 0" or t.image.debug and len(slow) >= int(lost.split()[0]),
         f"the path stays: {lost}")


def run(t):
    c, s, d = t.client, t.server, t.client2
    s.sh("ram_disks 3 16; serve max_maps=64; "
         r"printf 'ram0 session:speak rw\nram1 session:s1 rw\n* ro\n' | policy; "
         "for i in 1 2; do dd if=/dev/urandom of=/dev/ram$i bs=1M count=4 status=none; done; "
         "sync; sha256sum /dev/ram2 > /tmp/sum")
    dev = c.sh("map ram1")
    # on the debug kernel its I/O would have the processors, and the messages take hours
    pulse = c.spawn(f"iopulse {dev} 4 2000 rw {400000 if t.image.debug else 20000}")
    d.sh("modprobe ibnbd-speak to=ip:10.0.0.2 disk=ram0")
    wild(t, SEED, ENOUGH // 2)
    keys.share("db-1", s, d)
    d.sh("modprobe -r ibnbd-speak")
    s.sh("server_set auth=optional")
    c.sh("wait_for 30 paths_up s1 1", timeout=60)
    d.sh("modprobe ibnbd-speak to=ip:10.0.0.2 disk=ram0 auth=db-1")
    t.match(s.sh("wait_for 5 test -e /run/sessions/speak; cat /run/sessions/speak/auth"), "db-1",
            "it has proved its key")
    wild(t, SEED + 1, ENOUGH - ENOUGH // 2)
    d.sh("modprobe -r ibnbd-speak")
    c.sh("pkill -TERM iopulse")
    t.eq(pulse.wait(20), 0, "the other client's I/O: " + pulse.out())
    s.sh("sha256sum -c /tmp/sum")
    c.sh(f"unmap {dev}")
