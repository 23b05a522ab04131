# SPDX-License-Identifier: GPL-2.0-only
"""A logical volume of type raid1 over the disks of two servers, as docs/mirror.md has it: without
mdadm, and without ibnbd-mirror.service.  One leg's link is dark for longer than hold=, and it is
taken back by its bitmap; then it loses its cache, is fenced, and is copied whole."""
description = ("LVM's raid1 over two servers: it goes on without a leg after hold=, takes it back "
               "by --refresh when nothing was lost, copies it whole by the manual's commands when "
               "it was fenced, and the halves are equal")
long = True
vms = 3
links = 2
deadline = 240
import re
import image, mirrors as M
LVM2 = image.CACHE / "lvm2"
programs = [*M.PROGRAMS, LVM2 / "lvm", LVM2 / "libdevmapper-event.so.1.02.1"]
HOLD = 10           # of b; a is never dark, and a host that is slow is not to fail it
# nobody runs LVM's rules here
CONF = """devices { use_devicesfile = 0 obtain_device_list_from_udev = 0 }
activation { udev_sync = 0 udev_rules = 0 monitoring = 0 }
global { use_lvmpolld = 0 event_activation = 0 }
"""
SET_UP = """mkdir -p /etc/lvm /run/lvm /run/lock/lvm; cp /h/lvm.conf /etc/lvm/
	for i in pvcreate pvremove pvscan vgcreate vgextend vgreduce vgchange lvcreate lvconvert \\
		lvchange lvs pvs; do
		printf '#!/bin/sh\\nLD_LIBRARY_PATH=/bin exec /bin/lvm %s "$@"\\n' $i > /bin/$i
		chmod +x /bin/$i
	done
	echo 100000 > /proc/sys/dev/raid/speed_limit_min"""
BEGIN, SIZE = 2, 16     # MiB: where the volume lies on each disk, behind label and bitmap


def run(t):
    if not (LVM2 / "lvm").exists():
        t.skip("no lvm2: tests/vm/mdadm.sh")
    c, servers = t.client, M.machines(t)
    if c.rc("modprobe dm-raid")[0]:
        t.skip("this kernel has no dm-raid")
    c.put("lvm.conf", CONF)
    c.sh(SET_UP)
    a = M.map_of(c, servers[0], "a", "hold=120").strip()
    b = M.map_of(c, servers[1], "b", f"hold={HOLD} unflushed=fence").strip()

    def health(text, what, seconds=60):
        """How each leg is (A in sync, a copied, D dropped), and what md does."""
        t.wait(lambda: text in c.rc("dmsetup status vg-data")[1], seconds, f"{what}: {text}")

    def put(char, flush=True):
        c.sh(f"head -c 1048576 /dev/zero | tr '\\0' {char} | dd of=/dev/vg/data bs=64k "
             f"oflag=direct conv=notrunc{',fsync' if flush else ''} iflag=fullblock status=none",
             timeout=60)

    def manual(first):
        """The block of docs/mirror.md that begins with this word."""
        text = (image.REPO / "docs/mirror.md").read_text().split("## LVM", 1)[1]
        for line in re.search(rf"```sh\n({first}.*?)```", text, re.S)[1].splitlines():
            c.sh(line.replace("/dev/ibnbd/by-name/b", b), timeout=60)

    def equal(what):
        one, two = (s.sh(f"dd if=/dev/testdisk0 bs=1M skip={BEGIN} count={SIZE} iflag=direct "
                         "status=none | md5sum") for s in servers)
        t.eq(one, two, what)

    c.sh(f"pvcreate -y {a} {b}; vgcreate -s 1m vg {a} {b}; "
         f"lvcreate -y --type raid1 -m1 -L {SIZE}m -n data vg", timeout=60)
    health("AA 32768/32768 idle", "made")
    put("o")
    t.log("--- b is dark for longer than hold=")
    c.link(1, False)
    put("n")
    health(" AD ", "dropped")
    c.rc("lvs -a vg")       # and LVM remembers that the disk could not be read
    c.link(1, True)
    t.wait(lambda: c.rc(f"dev_attr {b} state_detail")[1] == "open", 40, "b is back")
    t.match(c.sh("dmsetup status vg-data"), " AD ")     # nothing happens by itself
    manual("pvscan")
    health("AA 32768/32768 idle", "taken back")
    equal("after --refresh")

    t.log("--- b loses its cache, and is fenced")
    put("u", flush=False)
    servers[1].sh(f"echo 1 > {M.P}/shut; echo 1 > {M.P}/power_cut; "
                  f"echo 1 > {M.CTL}/testdisk0/cache_lost; echo 0 > {M.P}/shut")
    put("v")
    health(" AD ", "dropped")
    t.eq(c.rc(f"dev_attr {b} state_detail")[1], "fenced", "b")
    t.ok(c.rc(f"ibnbd remap {b}")[0], "remap is refused: dm has it open")
    manual("vgreduce")
    health("AA 32768/32768 idle", "copied whole")
    equal("after a fence")
    c.sh("vgchange -an vg")
