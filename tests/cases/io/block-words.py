# SPDX-License-Identifier: GPL-2.0-only
"""guest/blockwords.c asks, this compares: what our disk answers is what sd or nvme answers of the
same disk, or stands in ALLOWED with its reason."""
description = ("each ioctl and odd request gets sd's or nvme's answer; "
               "what the server's disk refuses is not asked for again; 4Kn disks, loop, ext4")
long = True
crowd = True
deadline = 240
needs = ["scsi_debug"]

P = "/sys/module/ibnbd_testdisk/parameters"
DISK = ("modprobe sd_mod; modprobe scsi_debug dev_size_mb=16 delay=0 lbpu=1 lbpws=1 "
        "sector_size={}; wait_for 10 test -b /dev/sda; ")
# over its own loopback: the target reads and writes the same disk
NVME = """
s=/sys/kernel/config/nvmet
grep -q /sys/kernel/config /proc/mounts || {
    modprobe configfs
    mount -t configfs none /sys/kernel/config
}
modprobe -a nvmet-tcp nvme-tcp
ip link set lo up
mkdir $s/subsystems/words $s/subsystems/words/namespaces/1 $s/ports/1
echo 1 > $s/subsystems/words/attr_allow_any_host
echo /dev/sda > $s/subsystems/words/namespaces/1/device_path
echo 1 > $s/subsystems/words/namespaces/1/enable
cd $s/ports/1
echo tcp > addr_trtype; echo ipv4 > addr_adrfam
echo 127.0.0.1 > addr_traddr; echo 4420 > addr_trsvcid
ln -s $s/subsystems/words subsystems/words
echo transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn=words > /dev/nvme-fabrics
wait_for 10 test -b /dev/nvme0n1
"""
NO_NVME = """
s=/sys/kernel/config/nvmet
echo 1 > /sys/class/nvme/nvme0/delete_controller
rm $s/ports/1/subsystems/words
rmdir $s/ports/1 $s/subsystems/words/namespaces/1 $s/subsystems/words
modprobe -r nvmet-tcp nvme-tcp
"""

# question: (answer, why it is neither sd's nor nvme's)
ALLOWED = {
    "BLKSECTGET": ("256", "the server grants requests of 128 KiB"),
    "IOC_PR_REGISTER": ("EOPNOTSUPP", "the protocol carries no persistent reservations"),
}


def words(guest, dev):
    out = guest.sh(f"blockwords {dev}", timeout=60)
    return dict(line.split(" ", 1) for line in out.splitlines())


def compare(t, ours, others):
    """Ours is somebody's answer, or has a reason; and no reason is left over."""
    wrong = []
    for question, answer in ours.items():
        theirs = {name: w.get(question) for name, w in others.items()}
        if answer in theirs.values():
            continue
        if question in ALLOWED and answer == ALLOWED[question][0]:
            continue
        wrong.append(f"{question}: {answer}, but {theirs}")
    t.eq(wrong, [], "answers that are nobody else's")


def ask(t, sector):
    c, s = t.client, t.server
    s.sh(DISK.format(sector))
    c.sh(DISK.format(sector))
    sd = words(c, "/dev/sda")
    nvme = {}
    if not c.rc("modinfo -n nvmet-tcp nvme-tcp")[0]:
        c.sh(NVME, timeout=60)
        nvme = words(c, "/dev/nvme0n1")
        c.sh(NO_NVME, timeout=60)
    dev = c.sh("map sda")
    ours = words(c, dev)
    for name, w in ("sd", sd), ("nvme", nvme), ("ibnbd", ours):
        t.log(f"{name} {sector}: {w}")
    t.eq(sorted(set(ours) ^ set(sd)), [], "questions")
    compare(t, ours, {"sd": sd, "nvme": nvme})
    c.sh(f"unmap {dev}")
    # read-only by its mapping: as a disk that somebody has made so, and
    # BLKROSET does not make it another
    dev = c.sh("map sda ro")
    by_mapping = words(c, dev)
    c.sh(f"unmap {dev}")
    as_set = {q.removeprefix("set-ro-"): a for q, a in ours.items() if q.startswith("set-ro-")}
    for name in "ro-", "ro-set-rw-":
        t.eq({q.removeprefix(name): a for q, a in by_mapping.items()
              if q.startswith(name) and q[len(name):] in as_set}, as_set, name)
    c.sh("unload scsi_debug")
    s.sh("wait_for 10 unload scsi_debug")


def set_read_only(t):
    """What an administrator has set outlives a reconnect, and holds for a file system, too."""
    c = t.client
    dev = c.sh("map testdisk0")
    path = lambda word: c.sh("for p in /sys/class/ibtrs-client/s1/paths/*; do "
                             f"echo 1 > $p/{word}; done")
    c.sh(f"mkfs.ext4 -q {dev}; blockdev --setro {dev}")
    path("disconnect")
    t.wait(lambda: c.sh(f"dev_attr {dev} state") == "closed", 10, "the device is held")
    path("reconnect")
    t.wait(lambda: c.sh(f"dev_attr {dev} state") == "open", 10, "the device is open again")
    t.eq(c.sh(f"blockdev --getro {dev}"), "1", "read-only")
    c.fails(f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct conv=notrunc status=none",
            "not permitted")
    c.sh(f"mkdir -p /mnt; mount {dev} /mnt 2> /dev/null; grep ' /mnt ext4 ro' /proc/mounts; "
         f"umount /mnt; blockdev --setrw {dev}; "
         f"mount {dev} /mnt; touch /mnt/x; umount /mnt; unmap {dev}")


def refused(t):
    """What the server's disk refuses is asked for once; the block layer does the rest, as with
    sd. Another link, another try."""
    c, s = t.client, t.server
    s.sh("modprobe ibnbd-testdisk fail_errno=95")
    dev = c.sh("map testdisk0")
    limits = "cd /sys/block/ibnbd0/queue; cat discard_max_bytes write_zeroes_max_bytes"
    before = c.sh(limits).split()
    t.ok("0" not in before, f"the disk can do both: {before}")
    count = lambda kind: int(dict(w.split("=") for w in s.sh(f"cat {P}/counts").split())[kind])
    for kind, option, works in (("zeroes", "-z", True), ("discard", "", False),
                                ("erase", "-s", False)):
        s.sh(f"echo 0 > {P}/counts; echo {kind} > {P}/fail")
        order = f"blkdiscard {option} -o 0 -l 65536 {dev}"
        seen = []
        for n in range(4):
            if works:
                c.sh(order)
            elif kind == "discard" and not n:
                c.rc(order)     # a discard is advice: the block layer forgives one that was sent
            else:
                c.fails(order, "not supported")
            seen.append(count(kind))
        # The server asks twice: the first time its disk may not wait,
        # and might refuse for that alone.
        t.ok(seen[0] in (1, 2) and seen == 4 * seen[:1],
             f"requests of {kind} that the disk has seen, for the first of four only: {seen}")
        s.sh(f"echo none > {P}/fail")
    t.eq(c.sh(limits).split(), ["0", "0"], "limits")
    c.sh("for p in /sys/class/ibtrs-client/s1/paths/*; do echo 1 > $p/disconnect; "
         "echo 1 > $p/reconnect; done")
    t.wait(lambda: c.sh(limits).split() == before, 10,
           "limits, when the disk has been opened again")
    c.sh(f"for o in -z '' -s; do blkdiscard $o -o 0 -l 65536 {dev}; done; unmap {dev}")


def sectors_of_4096(t):
    """A 4Kn disk: a file system, a loop device on it and one in a file, a file system in each."""
    c, s = t.client, t.server
    s.sh("unload ibnbd_testdisk; modprobe ibnbd-testdisk lbs=4096 size_mb=160")
    dev = c.sh("map testdisk0")
    c.sh(f"""
        modprobe loop; mkfs.ext4 -q {dev}; mkdir -p /mnt/a /mnt/b; mount {dev} /mnt/a
        truncate -s 64M /mnt/a/image
        for opts in "" "--direct-io=on" "-b 4096"; do
            l=$(losetup -f --show $opts /mnt/a/image)
            mkfs.ext4 -q -F $l; mount $l /mnt/b
            head -c 1000000 /dev/urandom > /mnt/b/file; a=$(md5sum < /mnt/b/file); umount /mnt/b
            echo 3 > /proc/sys/vm/drop_caches; mount $l /mnt/b
            [ "$(md5sum < /mnt/b/file)" = "$a" ]; umount /mnt/b
            losetup -d $l
        done
        umount /mnt/a
        l=$(losetup -f --show -b 4096 {dev}); [ "$(blockdev --getss $l)" = 4096 ]
        mkfs.ext4 -q -F $l; mount $l /mnt/b; echo word > /mnt/b/file; umount /mnt/b; losetup -d $l
        mount {dev} /mnt/a; [ "$(cat /mnt/a/file)" = word ]; umount /mnt/a
        e2fsck -fn {dev} > /dev/null
        printf 'label: gpt\\n,16M\\n,\\n' | sfdisk -q {dev}; wait_for 5 test -b {dev}p2
        mkfs.ext4 -q -F {dev}p1; mount {dev}p1 /mnt/a; umount /mnt/a; unmap {dev}""", timeout=120)


def run(t):
    t.server.sh("serve")
    t.client.sh("modprobe ibnbd-client")
    ask(t, 512)
    ask(t, 4096)
    refused(t)
    set_read_only(t)
    sectors_of_4096(t)
