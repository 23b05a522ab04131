# SPDX-License-Identifier: GPL-2.0-only
"""The identity of a disk is a hash of a text that the kernel shows: the hash is computed here once
more, since another value would fence every client of a server that is upgraded."""
description = "which disk it is: the hash stays as it was, and what cannot be read is said"
deadline = 120
needs = ["sd_mod", "scsi_debug"]

EXPORTS = "/run/devices"
M = (1 << 64) - 1


def siphash(key, data):
    """SipHash-2-4."""
    k = key[0], key[1]
    v = [k[0] ^ 0x736f6d6570736575, k[1] ^ 0x646f72616e646f6d,
         k[0] ^ 0x6c7967656e657261, k[1] ^ 0x7465646279746573]
    rot = lambda x, b: (x << b | x >> (64 - b)) & M

    def rounds(n):
        for _ in range(n):
            v[0] = (v[0] + v[1]) & M
            v[1] = rot(v[1], 13) ^ v[0]
            v[0] = rot(v[0], 32)
            v[2] = (v[2] + v[3]) & M
            v[3] = rot(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & M
            v[3] = rot(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & M
            v[1] = rot(v[1], 17) ^ v[2]
            v[2] = rot(v[2], 32)
    tail = len(data) % 8
    words = [int.from_bytes(data[i:i + 8], "little") for i in range(0, len(data) - tail, 8)]
    words.append(int.from_bytes(data[len(data) - tail:], "little") | (len(data) & 0xff) << 56)
    for m in words:
        v[3] ^= m
        rounds(2)
        v[0] ^= m
    v[2] ^= 0xff
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def hashed(kind, text):
    halves = (siphash((0x69626e62642d6964, n), text.encode()) for n in (1, 2))
    return f"{kind}:" + b"".join(h.to_bytes(8, "little") for h in halves).hex()


def run(t):
    c, s = t.client, t.server
    s.sh("serve; ram_disks 1 16; modprobe -a dm-mod loop sd_mod; "
         "modprobe scsi_debug dev_size_mb=16 delay=0; wait_for 10 test -b /dev/sda; "
         "dmsetup create d --uuid T-1 --table '0 8192 linear /dev/ram0 0'; "
         "[ -e /dev/mapper/d ] || dmsetup mknodes; truncate -s 32M /tmp/f; "
         "printf 'label: gpt\\nstart=2048,size=8192\\n' | sfdisk -q /tmp/f; "
         "losetup -P /dev/loop0 /tmp/f; wait_for 5 test -b /dev/loop0p1; "
         "printf 'label: gpt\\nstart=2048,size=8192\\n' | sfdisk -q /dev/sda; "
         "wait_for 5 test -b /dev/sda1", timeout=60)
    text = lambda what: s.sh(f"cat /sys/block/{what}").strip()
    uuid = lambda part: s.sh(f"grep -h PARTUUID= /sys/class/block/{part}/uevent || "
                             f"blkid -p -o value -s PART_ENTRY_UUID /dev/{part}").split("=")[-1]
    wwid = "device/wwid:" + text("sda/device/wwid")
    # ibnbd-serverd writes it there a moment later
    identity = lambda name: s.sh(f"f={EXPORTS}/{name}/identity; wait_for 5 test -e $f; cat $f")
    maps = {}
    for disk, export, want in (
            ("mapper/d", "dm-0", hashed("uuid", "dm/uuid:T-1")),
            ("sda", "sda", hashed("hardware", wwid)),
            ("loop0p1", "loop0p1", hashed("uuid", "partuuid:" + uuid("loop0p1"))),
            ("ram0", "ram0", "none")):
        maps[disk] = c.sh(f"map {disk} access_mode=ro")
        t.eq(identity(export), want, f"the identity of {disk}")
    c.sh(f"unmap {maps['sda']}")
    dev = c.sh("map sda1 access_mode=ro")
    t.eq(identity("sda1"), hashed("uuid", f"partuuid:{uuid('sda1')} {wwid}"),
         "a partition of a disk with a name")

    c.sh(f"unmap {dev}")
    for d in ("mapper/d", "loop0p1", "ram0"):
        c.sh(f"unmap {maps[d]}")
    if s.serves_user():      # reads /sys/dev/block
        return

    t.log("--- what cannot be read is not taken for none")
    s.sh("mkdir -p /tmp/empty; mount --bind /tmp/empty /sys/block")
    dev = c.sh("map sda access_mode=ro")
    t.eq(identity("sda"), "none (cannot be read: -19)", "without /sys/block")
    t.match(s.sh("dmesg"), "/sys/block/sda/dev does not say 8:0: is sysfs mounted at /sys",
            "the log")
    t.match(s.rc("ibnbd doctor")[1], "sda is exported without an identity: none .cannot be read",
            "the doctor")
    s.sh("umount /sys/block")
    c.sh(f"unmap {dev}; unmap $(map sda access_mode=ro)")
