# SPDX-License-Identifier: GPL-2.0-only
"""Whatever can take a disk for itself is tried against a disk that a client writes to, and the
other way round.  ram0 is a disk, loop0 one with two partitions, dm-0 one with two names."""
description = ("two masters on one disk: what a client writes to the server does not use, "
               "and what the server uses no client writes to (law L23)")
crowd = True
needs = ["ibnbd-slowfn"]
deadline = 180

EXPORTS = "/sys/class/ibnbd-server/ctl/devices"
USED = ("ram0 refused: it is in use on the server: "
        "it, or a part of it, is mounted, swap, or below md, LVM")
MD = "/sys/block/md127/md"
NEW_MD = (f"[ -e {MD} ] || {{ echo md127 > /sys/module/md_mod/parameters/new_array; "
          f"echo none > {MD}/metadata_version; echo 1 > {MD}/raid_disks; }}")
# who, what it needs, how it takes /dev/ram0, and how it lets go
USERS = (
    ("swap", "mkswap /dev/ram0 > /dev/null", "busybox swapon /dev/ram0",
     "swapoff /dev/ram0; mkfs.ext4 -q -F /dev/ram0"),
    ("a mount", "", "mount /dev/ram0 /mnt", "umount /mnt"),
    ("a read-only mount", "", "mount -o ro /dev/ram0 /mnt", "umount /mnt"),
    ("the device mapper, as LVM has it", "",
     "dmsetup create lv --table '0 8192 linear /dev/ram0 0'", "dmsetup remove lv"),
    ("md", NEW_MD, f"echo $(cat /sys/block/ram0/dev) > {MD}/new_dev",
     f"echo clear > {MD}/array_state; wait_for 5 test ! -e {MD}"),
)


def run(t):
    c, s = t.client, t.server
    claimed = lambda export: s.sh(f"cat {EXPORTS}/{export}/claimed")
    refused = lambda: s.sh("cat /sys/class/ibnbd-server/ctl/last_error")

    s.sh(f"serve; ram_disks 3 16; modprobe -a loop dm-mod raid1; mkdir -p /mnt; "
         "mkfs.ext4 -q -F /dev/ram0; truncate -s 32M /tmp/f; "
         "printf ',16M\\n,\\n' | sfdisk -q /tmp/f; "
         "losetup -P /dev/loop0 /tmp/f; wait_for 5 test -b /dev/loop0p2; "
         "mkfs.ext4 -q -F /dev/loop0p1; dmsetup create d --table '0 32768 linear /dev/ram1 0'; "
         "[ -e /dev/mapper/d ] || dmsetup mknodes; ln -sfn mapper/d /dev/other", timeout=60)

    # so that no mapping below has to connect
    c.sh("map ram2 access_mode=ro; map ram2 access_mode=ro sessname=s2")

    t.log("--- the server uses it")
    for who, needs, take, leave in USERS:
        s.sh(f"{needs}\n{take}")
        c.fails("map ram0", "busy|use on the server")
        t.match(refused(), USED, f"{who}: what the server says")
        s.sh(leave)
    c.sh("unmap $(map ram0)")
    s.sh("mount /dev/loop0p1 /mnt")
    c.fails("map loop0p1 access_mode=migration", "busy|use on the server")
    c.sh("unmap $(map loop0p1 access_mode=ro)")
    c.fails("map loop0", "busy|use on the server")
    t.match(refused(), "it, or a part of it, is mounted", "a partition is mounted")
    c.sh("unmap $(map loop0p2)")
    s.sh("umount /mnt; dmsetup create lv --table '0 8192 linear /dev/loop0 0'")
    c.fails("map loop0p2", "busy|use on the server")
    t.match(refused(), "the disk that it is a partition of is in use on the server as a whole",
            "the whole disk is used")
    s.sh("dmsetup remove lv")

    t.log("--- a client writes to it")
    dev = c.sh("map ram0")
    ro = c.sh("map ram0 sessname=s2 access_mode=ro")
    c.sh(f"unmap {ro}")
    t.eq(claimed("ram0"), "1", "claimed")
    t.match(s.sh("ibnbd server list -r -o export,claimed"), "ram0 (yes|1|true)", "server list")
    s.sh(NEW_MD)
    for _, _, take, _ in USERS:
        s.fails(take, "[Bb]usy|in use|already mounted")
    s.fails("mkfs.ext4 -q /dev/ram0", "in use by the system")
    s.fails("wipefs -aq /dev/ram0", "busy")
    c.sh(f"e2fsck -fn {dev} > /tmp/fsck 2>&1 || {{ cat /tmp/fsck; exit 1; }}; unmap {dev}")
    s.sh("mount /dev/ram0 /mnt; umount /mnt")

    t.log("--- one disk by several names")
    whole = c.sh("map loop0")
    s.fails("mount /dev/loop0p1 /mnt", "busy|already mounted")
    s.fails("blockdev --rereadpt /dev/loop0", "busy")
    c.fails("map loop0p2", "busy|use on the server")
    t.match(refused(), "another client has the whole disk mapped for writing",
            "the partition of a mapped disk")
    c.sh(f"unmap $(map loop0p2 access_mode=ro sessname=s2); unmap {whole}")
    part = c.sh("map loop0p1")
    c.fails("map loop0 sessname=s2", "busy|use on the server")
    t.match(refused(), "another client has a partition of it mapped for writing",
            "the disk of a mapped partition")
    c.sh(f"unmap $(map loop0p2 sessname=s2); unmap {part}")
    dev = c.sh("map mapper/d")
    c.fails("map other", "open for writing")
    c.fails("map dm-0 sessname=s2", "open for writing")
    c.sh(f"unmap {dev}")
    first = c.sh("map ram0 access_mode=migration")
    second = c.sh("map ram0 access_mode=migration sessname=s2")
    c.sh(f"unmap {first}")
    t.eq(claimed("ram0"), "1", "claimed for the second")
    s.fails("mount /dev/ram0 /mnt", "busy|already mounted")
    c.sh(f"unmap {second}")
    s.sh("mount /dev/ram0 /mnt; umount /mnt")

    t.log("--- how it ends")
    dev = c.sh("map mapper/d")
    path = lambda word: c.sh("for p in /sys/class/ibtrs-client/s1/paths/*; do "
                             f"echo 1 > $p/{word}; done")
    put = f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none"
    path("disconnect")
    path("reconnect")
    c.sh(f"wait_for 20 eval '[ $(dev_attr {dev} state_detail) = open ]'; {put}")
    t.eq(claimed("dm-0"), "1", "after the link was lost")
    take = 'dmsetup create lv --table "0 8192 linear /dev/mapper/d 0"'
    s.sh("dmsetup suspend --nolockfs d")
    job = c.spawn(put)
    t.wait(lambda: c.sh(f"awk '{{ print $2 }}' /sys/block/{dev[5:]}/inflight") == "1", 10,
           "the write is under way")
    s.spawn(f"sleep 1; echo 1 > {EXPORTS}/dm-0/sessions/s1/force_close")
    s.sh("sleep 2")
    s.fails(take, "[Bb]usy")
    s.sh(f"dmsetup resume d; wait_for 10 eval '{take}'")
    c.sh(f"unmap {dev} force")
    c.fails("map mapper/d", "busy|use on the server")
    s.sh("dmsetup remove lv")
    job.wait(10)

    t.log("--- the server takes it while its modules are gone")
    dev = c.sh("map ram0")
    s.sh("unload $OUR_MODULES; mount /dev/ram0 /mnt; serve", timeout=60)
    t.wait(lambda: c.sh(f"dev_attr {dev} reason") != "" and "refused" in refused(), 30,
           "it is refused when it comes back")
    t.match(refused(), USED, "the server's reason")
    t.match(c.sh(f"dev_attr {dev} reason"), "in use", "the client's reason")
    s.sh("umount /mnt")
    c.sh(f"wait_for 30 eval '[ $(dev_attr {dev} state_detail) = open ] || "
         f"echo 1 > /sys/block/{dev[5:]}/ibnbd/remap_device'; unmap {dev}")

    t.log("--- it gets its size later")
    dev = c.sh("map loop2")
    s.sh("truncate -s 16M /tmp/late; losetup /dev/loop2 /tmp/late")
    t.wait(lambda: c.sh(f"blockdev --getsize64 {dev}") == str(16 << 20), 10, "its size")
    t.eq(claimed("loop2"), "1", "and its claim")
    s.fails("mkfs.ext4 -q /dev/loop2", "in use by the system")
    c.sh(f"unmap {dev}")
    # opening it for the claim takes longer than three looks at its size
    s.sh("modprobe ibnbd-testdisk inserted=0")
    dev = c.sh("map testdisk0")
    s.sh("cd /sys/module/ibnbd_testdisk/parameters; echo 1500 > open_ms; echo 1 > inserted")
    t.wait(lambda: c.sh(f"blockdev --getsize64 {dev}") == str(64 << 20), 10, "its size")
    s.sh("sleep 3; echo 0 > /sys/module/ibnbd_testdisk/parameters/open_ms")
    s.fails("mkfs.ext4 -q /dev/testdisk0", "in use by the system")
    c.sh(f"unmap {dev}")
    s.sh("modprobe -r ibnbd-testdisk")      # a second claim would hold it

    t.log("--- the administrator lets go")
    s.sh("mount /dev/ram0 /mnt; echo N > /sys/module/ibnbd_server/parameters/claim")
    dev = c.sh("map ram0")
    t.eq(claimed("ram0"), "0", "with claim=no")
    rc, out = s.rc("ibnbd doctor")
    t.match(out,
            "session s1 may write to ram0, and this host uses it as well: it is mounted on /mnt",
            "the doctor")
    both = c.sh("map loop0; map loop0p2").split()
    c.sh(f"for d in {dev} {' '.join(both)}; do unmap $d; done")
    s.sh("umount /mnt; echo Y > /sys/module/ibnbd_server/parameters/claim")

    t.log("--- files")
    s.sh("truncate -s 16M /tmp/image; losetup /dev/loop1 /tmp/image; "
         "echo /tmp > /sys/module/ibnbd_server/parameters/dev_search_path")
    c.fails("map image", "busy|use on the server")
    t.match(refused(), "a loop device or a program of the server has the file open for writing",
            "a file below a loop device")
    s.sh("losetup -d /dev/loop1")
    first, second = (c.sh("map image access_mode=migration"),
                     c.sh("map image access_mode=migration sessname=s2"))
    c.sh(f"for i in 1 2 3; do unmap {first}; unmap {second}; map image access_mode=migration; "
         "map image access_mode=migration sessname=s2; done")
    t.eq(claimed("!tmp!image"), "0", "a file is not claimed")
    c.sh("for d in $(dev_of image s1) $(dev_of image s2); do unmap /dev/$d; done")

    t.log("--- an open that is under way hides nobody, and is nobody else")
    s.sh("ln -sfn /tmp/image /tmp/same; modprobe ibnbd-slowfn func=dentry_open")
    ms = "/sys/module/ibnbd_slowfn/parameters"
    for foreign in (True, False):
        if foreign:
            writer = s.spawn("exec sleep 1000 >> /tmp/image")
        # a CPU of the server stands still meanwhile; RDMA gives up a link after less than 4 s
        s.sh(f"echo 2000 > {ms}/ms")
        hits = int(s.sh(f"cat {ms}/hits"))
        slow = c.spawn("map same access_mode=migration sessname=s2")
        t.wait(lambda: int(s.sh(f"cat {ms}/hits")) > hits, 10, "the open is under way")
        s.sh(f"echo 0 > {ms}/ms")
        rc, out = c.rc("map image access_mode=migration")
        t.eq(rc != 0, foreign, f"with a writer of the server's own: {foreign}: {out}")
        t.eq(slow.wait(20) != 0, foreign, "and the one that was under way")
        if foreign:
            t.match(refused(), "a program of the server has the file open", "the reason")
            writer.kill()
            writer.wait(20)     # until then the file is open for writing
    s.sh("modprobe -r ibnbd-slowfn")
