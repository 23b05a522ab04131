# SPDX-License-Identifier: GPL-2.0-only
"""A name leads to its disk, or nowhere, whatever udev is busy with: a disk that hangs under its
probe, a record that it has dropped, a number that is given again."""
import image
description = ("the links are there when the command returns, stay while the disk hangs, and go "
               "with it, also when udev has dropped its record")
deadline = 150
programs = [image.REPO / "build/tools/ibnbd-udev"]

TIME = 12           # seconds that udev gives to an event; it is 180 where nobody says so
NAMES = "ls -l /dev/ibnbd/by-name /dev/disk/by-path /dev/disk/by-uuid 2> /dev/null || true"


def run(t):
    c, s = t.client, t.server
    if c.rc("type udevadm ibnbd > /dev/null")[0]:
        t.skip("no udevadm, or no ibnbd command, in the machines")
    s.sh("ram_disks 4 16; modprobe dm-mod; dmsetup mknodes; "
         "dmsetup create d0 --table '0 32768 linear /dev/ram1 0'; dmsetup mknodes; serve")
    c.put("60-ibnbd.rules", (image.REPO / "udev/60-ibnbd.rules").read_bytes())
    c.sh("cp /h/60-ibnbd.rules /lib/udev/rules.d/; cp /bin/ibnbd-udev /lib/udev/; "
         f"ln -sf udevadm /bin/systemd-udevd; systemd-udevd --daemon --event-timeout={TIME}; "
         "udevadm trigger --action=add; udevadm settle --timeout=20", timeout=60)

    t.log("--- done is said when the links are there, or gone")
    out = c.sh("""
        for i in 1 2 3; do
            ibnbd map ram0 s1 10.0.0.2 --name n0
            mkfs.ext4 -q -F /dev/ibnbd/by-name/n0
            ibnbd unmap n0
            [ ! -e /dev/ibnbd/by-name/n0 ] && [ ! -L /dev/ibnbd/by-name/n0 ] || fail "still there"
        done 2>&1""", timeout=60)
    t.ok("udev has not" not in out, out)

    t.log("--- the disk hangs under the probe")
    c.sh("ibnbd map mapper/d0 s1 10.0.0.2 --name h; mkfs.ext4 -q -F /dev/ibnbd/by-name/h; "
         "udevadm settle --timeout=20")
    uuid = c.sh("blkid -p -o value -s UUID /dev/ibnbd0")
    record = f"/run/udev/data/b{c.sh('cat /sys/block/ibnbd0/dev')}"
    links = sorted(c.sh(f"sed -n 's/^S://p' {record}").split())
    t.ok(f"disk/by-uuid/{uuid}" in links and "ibnbd/by-name/h" in links, f"links {links}")
    s.sh("dmsetup suspend --noflush --nolockfs d0")
    c.sh("echo 1 > /proc/sys/vm/drop_caches; udevadm trigger --action=change /sys/block/ibnbd0; "
         f"udevadm settle --timeout={TIME + 2}", timeout=60)
    t.eq(sorted(c.sh(f"sed -n 's/^S://p' {record}").split()), links,
         "what was known before stays, and udev has killed nobody")
    out = c.sh("ibnbd map ram0 s1 10.0.0.2 --name n1 2>&1")
    t.eq(out, "/dev/ibnbd1", "another disk meanwhile")
    t.eq(c.sh("for n in n1 h; do readlink /dev/ibnbd/by-name/$n; done").split(),
         ["../../ibnbd1", "../../ibnbd0"], "each name leads to its disk")
    s.sh("dmsetup resume d0")
    c.sh("ibnbd unmap n1; udevadm settle --timeout=20; ibnbd unmap h")
    t.ok(not c.rc(f"find /dev/ibnbd /dev/disk -type l 2> /dev/null | grep .")[1], c.sh(NAMES))

    t.log("--- udev has dropped its record: it has killed a rule of somebody else's")
    c.sh("ibnbd map ram2 s1 10.0.0.2 --name lost; rm " + record + "; ibnbd unmap lost; "
         "udevadm settle --timeout=20; ibnbd map ram3 s1 10.0.0.2 --name other")
    t.eq(c.sh("for n in /dev/ibnbd/by-name/*; do readlink $n; done"), "../../ibnbd0", c.sh(NAMES))
    t.eq(c.sh("ls /dev/ibnbd/by-name; find /run/udev/links -path '*lost*' -name 'b*'"), "other",
         "and nothing else leads there, or is noted to")

    t.log("--- nor has it heard of the removal")
    c.sh("ibnbd unmap other; mkdir -p /dev/ibnbd/by-name /run/udev/links/x\\\\x2fold; "
         "ln -s ../../ibnbd0 /dev/ibnbd/by-name/old; mkdir /dev/x; ln -s ../ibnbd0 /dev/x/old; "
         f"touch /run/udev/links/x\\\\x2fold/{record[15:]}; ibnbd map ram0 s1 10.0.0.2 --name new")
    t.eq(c.sh("ls /dev/ibnbd/by-name; ls /dev/x 2> /dev/null || true"), "new",
         "the names go when the number is given again")
    c.sh("ibnbd unmap new; udevadm control --exit; rm -rf /dev/x /dev/ibnbd")
    s.sh("wait_for 20 dmsetup remove d0")
