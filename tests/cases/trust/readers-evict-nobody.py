# SPDX-License-Identifier: GPL-2.0-only
"""
The server keeps a record of who wrote last to a disk, 4096 of them at most.  A reader makes none,
however many names it opens.
"""
description = ("a stranger who opens thousands of files read-only makes the server forget no "
               "writer, and waits for no writers file")
crowd = True
vms = 3
long = True
deadline = 400
import messages
programs = [messages.PROGRAM]

RECORDS = 4096      # of ibnbd/server/writer.c


def run(t):
    c, s, d = t.client, t.server, t.client2
    s.sh("mkdir -p /exp; mount -t tmpfs none /exp; truncate -s 1M /exp/mine; "
         f"for ((i = 0; i < {RECORDS + 8}; i++)); do : > /exp/f$i; done; "
         "serve dev_search_path=/exp copy=always", timeout=60)
    dev = c.sh("map mine hold=400")
    put = f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none"
    c.sh(f"{put}; for p in /sys/class/ibtrs-client/s1/paths/*; do echo 1 > $p/disconnect; done")
    t.wait(lambda: c.sh(f"dev_attr {dev} state_detail").startswith("held"), 20,
           "the disk waits for its link")
    job = c.spawn(put)
    s.sh("wait_for 20 eval '[ -z \"$(ls /run/devices/)\" ]'")
    (d.vm.share / "storm").write_text(f"{messages.HELLO}\n" +
                                      messages.storm("f", RECORDS + 8, False))
    said = d.sh("ibtrs-peer say ip:10.0.0.2 < /h/storm | cut -c1-2 | sort | uniq -c", timeout=300)
    t.eq(said.split(), [str(2 * (RECORDS + 8) + 1), "0"], "answers to all messages")
    c.sh("for p in /sys/class/ibtrs-client/s1/paths/*; do echo 1 > $p/reconnect; done")
    t.eq(job.wait(60), 0, "what was held is written: nobody else wrote. " + job.out())
    t.eq(c.sh(f"dev_attr {dev} state"), "open", "the disk")
    c.sh(f"unmap {dev}")
    s.sh("unload $OUR_MODULES; umount /exp")
