# SPDX-License-Identifier: GPL-2.0-only
"""Two writers of small files, each of which is synced, and told of when that has succeeded; a
third one syncs nothing.  The disk loses its cache again and again.  With replay the file system
notices nothing; with fence it ends like one whose disk has lost its power, and is repaired so."""
description = ("ext4 and XFS that sync all the time on a disk that loses its cache: fsck finds "
               "nothing, and each file that was synced is there")
deadline = 600
P = "/sys/module/ibnbd_testdisk/parameters"
CTL = "/sys/class/ibnbd-server/ctl/devices/testdisk0"
LOSE = (f"echo 1000 > {P}/open_ms; echo 1 > {CTL}/cache_lost; echo 1 > {P}/power_cut; "
        f"echo 0 > {P}/open_ms")
LOSSES = 4
KINDS = {
    "ext4": ("mkfs.ext4 -q -F", "e2fsck -fn"),
    "xfs": ("mkfs.xfs -q -f", "xfs_repair -n"),
}
# Each file has its number; who cannot sync it has told of the last one.
WRITER = """
exec 2> /dev/null
mkdir -p /mnt/{0}
n=0
while [ ! -e /tmp/stop ]; do
	n=$((n + 1))
	{{ printf %020000d $n > /mnt/{0}/$n.new && sync /mnt/{0}/$n.new &&
		mv /mnt/{0}/$n.new /mnt/{0}/$n && sync /mnt/{0}; }} || break
	echo $n >> /h/synced{0}
	[ $((n % 3)) != 0 ] || rm /mnt/{0}/$((n / 3))
	[ $((n % 3)) != 0 ] || echo $((n / 3)) >> /h/removed{0}
done
exit 0
"""
# There is always something that no flush has covered.
BUSY = """
exec 2> /dev/null
while [ ! -e /tmp/stop ]; do
	dd if=/dev/zero of=/mnt/busy bs=4k count=32 oflag=direct conv=notrunc status=none || break
done
exit 0
"""
VERIFY = """
for d in 1 2; do
	sort -n /h/synced$d > /tmp/s; touch /h/removed$d; sort -n /h/removed$d > /tmp/r
	for n in $(sort /tmp/s /tmp/r | uniq -u); do
		# it may have been removed just before the end
		[ -e /mnt/$d/$n ] || [ $((n * 3)) -ge $(tail -n 1 /tmp/s) ] ||
			{ echo "$d/$n is not there"; exit 1; }
		[ ! -e /mnt/$d/$n ] || [ "$(cat /mnt/$d/$n)" = "$(printf %020000d $n)" ] ||
			{ echo "$d/$n is broken"; exit 1; }
	done
	wc -l < /tmp/s
done
"""


def scene(t, kind, how):
    c, s = t.client, t.server
    make, check = KINDS[kind]
    attr = lambda name: c.sh(f"dev_attr {dev} {name}")
    dev = c.sh(f"map testdisk0 unflushed={how} hold=-1")
    c.sh(f"rm -f /tmp/stop /h/synced? /h/removed?; modprobe {kind}; {make} {dev} > /dev/null; "
         f"mkdir -p /mnt; mount -t {kind} {dev} /mnt", timeout=90)
    writers = [c.spawn(WRITER.format(i)) for i in (1, 2)] + [c.spawn(BUSY)]
    synced = lambda: sum(int(n) for n in c.sh("for i in 1 2; do wc -l < /h/synced$i || echo 0; "
                                              "done 2> /dev/null").split())
    for i in range(LOSSES):
        before = synced()
        t.wait(lambda: synced() > before + 5, 60, f"{kind}, {how}: it syncs")
        s.sh(LOSE)
        t.wait(lambda: attr("state") == "open" or attr("state_detail") == "fenced", 60,
               f"{kind}, {how}: it has been told")
        if how == "fence" and attr("state_detail") == "fenced":
            break
    told = attr("state_detail") == "fenced"
    c.sh("touch /tmp/stop")
    for w in writers:
        w.wait(90)
    c.sh("umount /mnt", timeout=60)
    if told:
        c.sh(f"echo 1 > /sys/block/{dev[5:]}/ibnbd/remap_device")
        c.sh(f"mount -t {kind} {dev} /mnt && umount /mnt", timeout=60)
    c.sh(f"echo 3 > /proc/sys/vm/drop_caches; {check} {dev} > /tmp/check 2>&1 || "
         "{ cat /tmp/check; exit 1; }", timeout=90)
    t.log(c.sh(f"mount -t {kind} {dev} /mnt; {VERIFY}umount /mnt", timeout=120))
    t.eq(told, how == "fence", f"{kind}, {how}: is the loss told?")
    if how == "replay":
        t.ok(int(attr("replays").split()[0]) > 0, f"{kind}: something was sent again")
    c.sh(f"unmap {dev}")


def run(t):
    t.server.sh("modprobe ibnbd-testdisk size_mb=400; serve")
    for kind in KINDS:
        for how in "replay", "fence":
            t.log(f"--- {kind}, {how}")
            scene(t, kind, how)
