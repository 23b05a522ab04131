# SPDX-License-Identifier: GPL-2.0-only
"""The disks are pulled, and come back as other instances of the same ones, without what they had
only cached.  The flush behind the last writer finds no disk any more, so neither ended clean."""
description = ("a disk that is pulled and put back under a running server has another cache epoch: "
               "what it lost is sent again, or told")
crowd = True
deadline = 120
needs = ["sd_mod", "scsi_debug"]

CTL = "/sys/class/ibnbd-server/ctl/devices"
SETTINGS = "replay", "fence"
# each has 1 MiB of a store that they share
PUT = ("head -c 65536 /dev/zero | tr '\\0' {} | dd of={} bs=64k seek={} iflag=fullblock "
       "oflag=direct status=none")
FIND = """
for d in /sys/bus/scsi/devices/{host}:0:*:0/block/*; do
	t=${{d#*/devices/*:*:}}
	ln -sfn /dev/${{d##*/}} /exp/disk${{t%%:*}}
done
[ -e /exp/disk1 ]
"""


def run(t):
    c, s = t.client, t.server
    attr = lambda dev, name: c.sh(f"dev_attr {dev} {name}")
    got = lambda at: s.sh(f"dd if=/exp/disk0 bs=64k skip={at} count=1 iflag=direct status=none | "
                          "tr '\\0' 0 | tr -s A-Z0")
    t.allow("Synchronize Cache.* failed|I/O error, dev sd")
    host = s.sh("modprobe sd_mod; modprobe scsi_debug dev_size_mb=16 num_tgts=2; "
                "cd /sys/bus/pseudo/drivers/scsi_debug/adapter0; echo host*").split("host")[1]
    s.sh("mkdir -p /exp; wait_for 10 eval '" + FIND.format(host=host) + "'")
    t.eq(s.sh("cat /sys/block/$(basename $(readlink /exp/disk0))/queue/write_cache"), "write back",
         "the disks' cache")
    s.sh("serve dev_search_path=/exp")
    devs = [c.sh(f"map disk{i} unflushed={how} hold=-1") for i, how in enumerate(SETTINGS)]
    for at, dev in enumerate(devs):
        c.sh(PUT.format("A", dev, at))
        t.eq(got(at), "A", "the disk has it")
    epochs = lambda: None if s.serves_user() else s.sh(f"cat {CTL}/*/cache_epoch").split()
    before = epochs()       # ibnbd-serverd does not show them

    s.sh("for i in 0 1; do echo 1 > /sys/block/$(basename $(readlink /exp/disk$i))/device/delete; "
         "rm /exp/disk$i; done")
    c.sh("echo 1 > $(echo /sys/class/ibtrs-client/s1/paths/*)/disconnect")
    t.wait(lambda: not s.sh("exports"), 30, "the server has let them go")
    s.sh(f"echo '- - -' > /sys/class/scsi_host/host{host}/scan; "
         "wait_for 10 eval '" + FIND.format(host=host) + "'; "
         "dd if=/dev/zero of=/exp/disk0 bs=64k count=2 oflag=direct status=none")
    t.eq((got(0), got(1)), ("0", "0"), "what they had only cached is gone")
    c.sh("echo 1 > $(echo /sys/class/ibtrs-client/s1/paths/*)/reconnect")

    t.wait(lambda: [attr(dev, "state_detail") for dev in devs] == ["open", "fenced"], 40,
           "replay goes on, fence is told")
    t.eq((attr(devs[0], "replays"), got(0)), ("1 65536", "A"), "it was sent again")
    t.match(attr(devs[1], "reason"), "the last 1 MiB written were not flushed", "the reason")
    c.sh(f"echo 1 > /sys/block/{devs[1][5:]}/ibnbd/remap_device")
    after = epochs()
    t.ok(before is None or len(after) == 2 and not set(before) & set(after),
         f"other epochs: {before}, {after}")
    c.sh("".join(f"unmap {dev}; " for dev in devs))
