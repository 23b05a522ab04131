#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Whole Debian systems in virtual machines: systemd, udev, fstab, LVM, LUKS and apt with disks of
ours, over boots and shutdowns.

    tests/packages/boot.py [--suite bookworm|trixie] [WORD]..
        the first step, and those whose names contain a WORD

The client is a Debian made by debootstrap (root.sh image) with the packages of `make deb` in it,
whose modules DKMS has built; it boots its distribution's stock kernel from a disk.  The server is a
machine of the rig.  Every step takes the two machines as it finds them and says what it needs:
client_up(), server_up(), and what the first step saved.  Last line: N passed, N failed, N skipped.
Logs: build/systems/SUITE.
"""
import argparse, sys, time
import secure
from system import BOOT, Failed, Test, launch, prepare, vm

UUID = "01234567-89ab-cdef-0123-456789abcdef"
STEPS = []


def step(f):
    """Decorator: a step is a function of one Test; what it returns is told beside its name."""
    STEPS.append(f)
    return f


# what each unit must have in force, and how exposed it may be (systemd-analyze security)
CONFINED = "NoNewPrivileges LockPersonality MemoryDenyWriteExecute RestrictRealtime"
EXPOSED = {"ibnbd-server": 39, "ibnbd-keys": 39, "ibnbd-map@data": 39}


def keys_come_first(t):
    """They are loaded when the first unit that wants them starts; and what units may do."""
    t.sh("a=$(systemctl show -P ExecMainExitTimestampMonotonic ibnbd-keys); [ $a -gt 0 ]\n"
         "for u in ibnbd-server ibnbd-map@data; do systemctl is-active $u\n"
         "    s=$(systemctl show -P ExecMainStartTimestampMonotonic $u); echo $u $a $s; "
         "[ $s -gt $a ]; done\n"
         "ibnbd key list; ibnbd key list | grep -E '^db-1 +yes'")
    for unit, most in EXPOSED.items():
        t.sh(f"for p in {CONFINED}; do echo $p; [ $(systemctl show -P $p {unit}) = yes ]; done; "
             f"[ $(systemctl show -P ProtectSystem {unit}) = strict ]; "
             f"systemd-analyze security --no-pager --threshold={most} {unit} | tail -n 1")


def key_on_both(t):
    """A disk that is mapped with the key, at the next boot, too; then the drivers are loaded anew,
    which forgets the keys, and it comes back."""
    text = t.sh("cat /etc/ibnbd/keys/db-1")
    t.sh(f"mkdir -p -m 700 /etc/ibnbd/keys; umask 077; echo '{text}' > /etc/ibnbd/keys/db-1; "
         "ibnbd key load; echo optional > /sys/module/ibnbd_server/parameters/auth",
         machine=t.server)
    t.sh("ibnbd key load; ibnbd map vda2 s3 10.0.0.2 --name keyed --auth db-1 --hold 600 --save",
         60)
    t.sh("systemctl daemon-reload; systemctl start ibnbd-keys; umount /data; "
         "systemctl stop ibnbd-maps.target ibnbd-map@data ibnbd-map@keyed; "
         "ibnbd unmap --all; modprobe -r ibnbd_client ibtrs_core; "
         "[ ! -e /sys/module/ibtrs_core ] || { lsmod | grep ib; false; }",
         120)
    t.sh("systemctl start ibnbd-maps.target; "
         "for i in $(seq 30); do [ -b /dev/ibnbd/by-name/keyed ] && break; sleep 1; done; "
         "[ -b /dev/ibnbd/by-name/keyed ]; mountpoint -q /data || mount /data", 120)


FSTAB = "_netdev,nofail,x-systemd.device-timeout=infinity"


@step
def saved_mapping_comes_back(t):
    """apt install, ibnbd map --save, a line in fstab by UUID: after a reboot it is mounted again,
    the links are the same, and keys were loaded before the server and the maps."""
    t.server_up()
    t.client_up()
    if t.sh("ibnbd map vda1 s1 10.0.0.2 --name data --hold 600 --save", 60) != "/dev/ibnbd0":
        raise Failed("map")
    # its session closes and is opened again (the number may be another one)
    if t.sh("ibnbd remap --force data; udevadm settle; "
            "ibnbd list -H -r -o name,hold data").split()[1:] != ["data", "600"]:
        raise Failed("remap --force")
    t.sh(f"mkfs.ext4 -q -U {UUID} -L data /dev/ibnbd/by-name/data; mkdir -p /data /lvm /luks; "
         f"udevadm settle; echo 'UUID={UUID} /data ext4 defaults 0 2' >> /etc/fstab")
    t.doctor("netdev", "error", "/data", f"UUID={UUID}", "add _netdev")
    t.sh(f"sed -i '$s/defaults/{FSTAB}/' /etc/fstab; systemctl daemon-reload; ibnbd maps check; "
         "mount /data; echo one > /data/file; sync")
    # a server beside it, which exports nothing: who has the key may come
    t.sh("ibnbd key generate db-1; mkdir -p /exports; "
         "printf 'dev_search_path = /exports\\nauth = required\\n' > /etc/ibnbd/server.conf; "
         "ibnbd server check; systemctl -q enable ibnbd-server")
    key_on_both(t)
    before = t.links()
    t.log(f"links: {before}")
    for want in (f"/dev/disk/by-uuid/{UUID}", "/dev/disk/by-label/data", "/dev/ibnbd/by-name/data",
                 "/dev/ibnbd/by-session/s1/vda1"):
        if before.get(want) != "vda1":
            raise Failed(f"{want} does not lead to vda1: {before}")
    if (not any(l.startswith("/dev/disk/by-id/ibnbd-") for l in before)
            or not any(l.startswith("/dev/disk/by-path/ibnbd-") for l in before)):
        raise Failed(f"by-id and by-path: {before}")
    down, up = t.reboot()
    t.mounted("/data")
    if t.sh("cat /data/file") != "one" or t.links() != before:
        raise Failed(f"after the reboot: {t.links()}, before: {before}")
    keys_come_first(t)
    t.sh("[ $(cat /sys/class/ibtrs-client/s3/auth) = db-1 ]; ibnbd unmap keyed; "
         "ibnbd maps remove keyed")
    t.sh("for u in ibnbd-map@data ibnbd-shutdown ibnbd-maps.target; "
         "do systemctl is-active $u; done; "
         "[ -z \"$(systemctl list-units --failed -q --no-legend 'ibnbd*')\" ]; "
         "d=$(readlink -f /dev/ibnbd/by-name/data); "      # its number may be another one
         "grep -F '[none]' /sys/block/${d##*/}/queue/scheduler; ibnbd doctor || [ $? = 1 ]")
    return f"down {down:.0f} s, up {up:.0f} s"


@step
def mirror_comes_back(t):
    """A mirror made by one command, and a line in fstab: ibnbd-mirror.service starts the array at
    the next boot, takes a leg back and copies one whole, all inside of its sandbox."""
    t.server_up()
    t.client_up()
    # (two legs of one server are refused otherwise)
    t.sh("ibnbd mirror create m 'vda2 m1 10.0.0.2' 'vda3 m2 10.0.0.2' --assume-clean --force\n"
         "wait_for 30 test -b /dev/md/m; udevadm settle\n"
         "wait_for 30 systemctl is-active ibnbd-mirror\n"
         "mkfs.ext4 -q -L mir /dev/md/m; mkdir -p /mir; udevadm settle\n"
         f"echo 'LABEL=mir /mir ext4 {FSTAB} 0 2' >> /etc/fstab; systemctl daemon-reload\n"
         "ibnbd maps check; mount /mir; echo mir > /mir/file; sync\n"
         "systemd-analyze security --no-pager --threshold=39 ibnbd-mirror | tail -n 1", 180)
    down, up = t.reboot()
    late = t.mounted("/data", "/mir")
    whole = ("[ $(cat /sys/block/md*/md/degraded) = 0 ] "
             "&& [ $(cat /sys/block/md*/md/sync_action) = idle ]")
    said = "journalctl --sync; journalctl -b -u ibnbd-mirror -o cat --no-pager | grep -F "
    t.sh("[ $(cat /mir/file) = mir ]; systemctl is-active ibnbd-mirror; ibnbd mirror status m\n"
         "mdadm -q /dev/md/m --fail /dev/ibnbd/by-name/m-b")
    t.wait(f"{said} 'm-b is back' && {whole}", 60, "the leg is taken back")
    t.sh("until mdadm -q /dev/md/m --fail /dev/ibnbd/by-name/m-b --remove "
         "/dev/ibnbd/by-name/m-b; do sleep 0.2; done")
    t.wait(f"{said} 'm-b is copied whole' && {whole}", 60, "the leg is copied whole")
    pid = t.sh("systemctl show -P MainPID ibnbd-mirror").strip()
    t.sh(f"kill -STOP {pid}")
    t.wait(f"p=$(systemctl show -P MainPID ibnbd-mirror); [ $p -gt 0 ] && [ $p != {pid} ] "
           "&& systemctl is-active ibnbd-mirror", 120, "a watch that hangs is started again")
    t.sh("umount /mir; sed -i '/LABEL=mir/d' /etc/fstab; ibnbd mirror stop m\n"
         "rm /etc/ibnbd/mirrors.d/m.conf\n"
         "mdadm --zero-superblock /dev/ibnbd/by-name/m-a /dev/ibnbd/by-name/m-b\n"
         "wipefs -qa /dev/ibnbd/by-name/m-a; wipefs -qa /dev/ibnbd/by-name/m-b\n"
         "ibnbd unmap --forget m-a m-b; systemctl daemon-reload", 120)
    return f"down {down:.0f} s, up {up:.0f} s, mounted {late:.0f} s later"


@step
def server_alive_at_shutdown(t):
    """In the midst of writing: below 30 s, and the file system is clean."""
    t.server_up()
    t.client_up()
    t.mounted("/data")
    t.writer()
    down = t.stop()
    t.clean()
    return f"down {down:.0f} s"


# Two lines of one session, whose paths of their own are tried in turn, and one that takes the
# driver longer than systemd lets a unit start (90 s).
DEAD = ("two vda2 s2 path=10.0.0.2 ro\nthree vda3 s2 path=10.0.0.2 ro\n"
        "many vda4 s3 path=10.0.0.2 path=10.0.0.71 path=10.0.0.72 path=10.0.0.73 path=10.0.0.74 "
        "path=10.0.0.75 ro\n")


@step
def server_down_at_boot(t):
    """The system boots all the same, with many dead paths, too; the doctor says what is wrong;
    disks and mount are there when the server is."""
    t.server_up()
    t.client_up()
    t.sh(f"printf '{DEAD}' > /etc/ibnbd/maps.conf.d/90-dead.conf; ibnbd maps check; "
         "systemctl daemon-reload")
    t.stop()
    t.server.kill()
    up = t.client_up()
    t.sh("for u in data two three many; do systemctl is-active ibnbd-map@$u; done")
    t.doctor("mapped", "error", "data is in maps.conf and not mapped", "ibnbd map data")
    t.doctor("server", "error", "10.0.0.2 does not answer", "is it up")
    t.wait("systemctl show -P StatusText ibnbd-map@data | grep 'not mapped yet'", 60,
           "the status text of the unit")
    t.sh("if mountpoint -q /data; then exit 1; fi; systemctl is-active ibnbd-map@data")
    # each was ready after ten seconds, whatever its attempt was at
    t.sh("for u in data two three many; do "
         "a=$(systemctl show -P ActiveEnterTimestampMonotonic ibnbd-map@$u)\n"
         "s=$(systemctl show -P ExecMainStartTimestampMonotonic ibnbd-map@$u); echo $u $a $s; "
         "[ $(((a - s) / 1000000)) -lt $((20 * SLOW)) ]; done")
    t.server_boot()
    t.greet()
    # of several lines that are tried at the same time the last one's error counts
    t.wait("{ ibnbd doctor --json || true; } | tr -d '\\n' "
           "| grep -q 'does not listen.*systemctl status ibnbd-server'", 120,
           "an answer of a machine that does not listen")
    t0 = time.monotonic()
    t.server_up()
    t.mounted("/data", timeout=90, what="after the server began to listen")
    seconds = time.monotonic() - t0
    # the attempt that is under way, for each of six paths, and the pause after it
    t.wait("for d in two three many; do ibnbd list $d || exit 1; done", 240, "the other disks")
    t.jobs_done()
    t.sh("for u in data two three many; do systemctl is-active ibnbd-map@$u; done\n"
         "systemctl stop ibnbd-map@two ibnbd-map@three ibnbd-map@many; "
         "rm /etc/ibnbd/maps.conf.d/90-dead.conf; systemctl daemon-reload\n"
         "[ \"$(ibnbd list -H -r -o name)\" = data ]", 120)
    return f"up {up:.0f} s, mounted {seconds:.0f} s after the server came"


@step
def server_down_at_boot_and_only_netdev(t):
    """No nofail in fstab: systemd waits for the disk as long as it waits for any (90 s), then the
    system is up without it."""
    if t.client.alive:
        t.stop()
    t.server_up()
    t.client_up()
    t.mounted("/data")
    t.sh(f"sed -i 's/{FSTAB}/_netdev/' /etc/fstab; systemctl daemon-reload")
    t.stop()
    t.server.kill()
    up = t.client_up(BOOT + 90)
    t.sh("if mountpoint -q /data; then exit 1; fi; systemctl is-active ibnbd-map@data")
    t.server_up()
    t.wait(f"[ -b /dev/disk/by-uuid/{UUID} ]", 90, "the disk, after the server began to listen")
    t.sh("mountpoint -q /data || systemctl start data.mount; mountpoint /data; "
         f"sed -i '/ \\/data /s/_netdev/{FSTAB}/' /etc/fstab; systemctl daemon-reload", 90)
    return f"up {up:.0f} s"


@step
def shutdown_while_it_is_mapped(t):
    """The server is gone since the boot, and the driver waits for it:
    that does not hold up the shutdown."""
    if t.client.alive:
        t.stop()
    t.server.kill()
    t.client_up()
    t.sh("systemctl show -P SubState ibnbd-map@data | grep -x running; "
         "[ -n \"$(systemctl list-jobs --no-legend)\" ]")
    return f"down {t.stop(at_once=True):.0f} s"


@step
def rdma_link_comes_late(t):
    t.server_up()
    t.client_up()
    t.sh("systemctl -q disable rxe")
    down, up = t.reboot()
    t.doctor("rdma", "error", "there is no RDMA device", "rdma link add")
    # its own retries stand still: what comes now comes by the event
    t.sh("if mountpoint -q /data; then exit 1; fi; systemctl -q enable rxe; "
         "systemctl kill -s STOP ibnbd-map@data; systemctl start rxe")
    late = t.mounted("/data", timeout=30, what="after rdma link add")
    t.sh("journalctl -b -u ibnbd-retry -o cat --no-pager | grep -x 'data: /dev/ibnbd[0-9]*'; "
         "systemctl kill -s CONT ibnbd-map@data")
    t.wait("[ \"$(systemctl show -P StatusText ibnbd-map@data)\" = mapped ]", 90,
           "the unit sees that it is mapped")
    return f"down {down:.0f} s, up {up:.0f} s, mounted {late:.0f} s after the link came"


@step
def server_gone_at_shutdown(t):
    """I/O would be held for 600 s: the unit that stops before the mounts ends that."""
    t.server_up()
    t.client_up()
    t.mounted("/data")
    t.writer()
    t.sh("echo two > /data/two; sync -f /data")
    t.server.kill()
    time.sleep(5)
    down = t.stop()
    t.server_up()
    t.client_up()
    t.mounted("/data")
    if t.sh("cat /data/file /data/two") != "one\ntwo":
        raise Failed("what was written before is not there")
    return f"down {down:.0f} s"


@step
def server_gone_at_suspend(t):
    """I/O would be held for 600 s, and the suspend with it: the unit before sleep.target ends that.
    The kernel comes back at the freezer."""
    t.server_up()
    t.client_up()
    t.mounted("/data")
    suspend, unit = ("systemctl start systemd-suspend.service",
                     "/run/systemd/system/systemd-suspend.service.d")
    hold = "ibnbd list -H -r -o hold nap"
    t.sh("umount /data; ibnbd map vda2 s1 --name nap --hold 600; "
         "echo freezer > /sys/power/pm_test; echo 1 > /sys/module/suspend/parameters/pm_test_delay")
    # a suspend that fails
    t.sh(f"mkdir -p {unit}; printf '[Service]\\nExecStart=\\n"
         f"ExecStart=/bin/sh -c \"{hold} > /run/nap; exit 1\"\\n' > {unit}/fails.conf; "
         "systemctl daemon-reload\n"
         f"if {suspend}; then exit 1; fi; cat /run/nap; [ \"$(cat /run/nap)\" = 10 ]; "
         f"rm -r {unit}; systemctl daemon-reload; systemctl reset-failed systemd-suspend")
    t.wait(f"[ \"$({hold})\" = 600 ]", 10, "hold= after the suspend that failed")
    # one with a dirty page, and without the server
    t.server.kill()
    t.wait("[ \"$(ibnbd list -H -r -o detail nap)\" = held ]", 60, "the disk is held")
    t.sh("systemd-run -q --unit dirty bash -c 'exec 5<> /dev/ibnbd/by-name/nap; "
         "head -c 4096 /dev/zero >&5; echo > /run/dirty; exec sleep 600'\n"
         "wait_for 20 test -e /run/dirty")
    t0 = time.monotonic()
    t.sh(suspend, 60)
    seconds = t.below("suspend", time.monotonic() - t0, 20)
    t.wait(f"[ \"$({hold})\" = 600 ]", 10, "hold= after the suspend")
    t.sh("journalctl -b -u ibnbd-suspend -o cat --no-pager; [ ! -e /run/ibnbd/released ]; "
         "[ \"$(systemctl is-active ibnbd-suspend)\" = inactive ]\n"
         "dmesg | grep 'PM: suspend exit'; echo none > /sys/power/pm_test; systemctl stop dirty; "
         "ibnbd unmap --force nap")
    t.server_up()
    t.wait("[ \"$(ibnbd list -H -r -o detail data)\" = open ]", 60, "the disk is open again")
    t.sh("mountpoint -q /data || mount /data")
    return f"suspended within {seconds:.0f} s"


@step
def front_unit(t):
    """ibnbd.service, what people try first:
    stop, start, and a reload that maps what is new and unmaps nothing."""
    t.server_up()
    t.client_up()
    t.mounted("/data")
    t.jobs_done()
    # (it is stopped before the disks are: nobody waits for those)
    t.sh("systemctl is-active ibnbd; umount /data; systemctl stop ibnbd; "
         "wait_for 60 sh -c '[ -z \"$(ibnbd list)\" ]'\n"
         "if systemctl is-active ibnbd ibnbd-maps.target ibnbd-map@data; then exit 1; fi; "
         "udevadm settle; [ ! -e /dev/ibnbd/by-name/data ]", 120)
    t.sh("systemctl start ibnbd; systemctl is-active ibnbd; wait_for 60 ibnbd list data", 120)
    t.wait("systemctl start data.mount", 60, "the mount after the start")
    extra = "/etc/ibnbd/maps.conf.d/60-front.conf"
    t.sh(f"if ibnbd list extra; then exit 1; fi; echo 'extra vda2 s1 ro' > {extra}; "
         "systemctl reload ibnbd; ibnbd list extra\n"
         f"rm {extra}; systemctl reload ibnbd; ibnbd list extra; mountpoint /data\n"
         "journalctl --sync; journalctl -b -u ibnbd -o cat --no-pager "
         "| grep 'extra (/dev/ibnbd.*) is mapped and not in maps.conf'\n"
         "udevadm settle; ibnbd unmap extra; systemctl daemon-reload; "
         "[ \"$(ibnbd list -H -r -o name)\" = data ]; [ \"$(cat /data/file)\" = one ]", 120)


@step
def lvm_luks_md_and_partitions_come_back(t):
    t.server_up()
    t.client_up()
    t.sh("for i in 2:pv 3:crypt 4:parts 5:raid; do ibnbd map vda${i%:*} s1 --name ${i#*:} "
         "--hold 600 --save; done; mkdir -p /lvm /luks /part /md")
    # udev re-reads a table as well when the one who wrote it closes the disk:
    # partitions go and come again
    t.sh("d=/dev/ibnbd/by-name/parts\n"
         "printf 'label: gpt\\nsize=16M,name=one\\nsize=16M,name=two\\nname=three\\n' "
         "| sfdisk -q --lock $d\n"
         "wait_for 30 sh -c '[ -b '$d'-part3 ] && [ '$d'-part2 -ef /dev/disk/by-partlabel/two ]'\n"
         "printf 'label: gpt\\nsize=24M,name=alpha\\nname=member\\n' | sfdisk -q --lock $d\n"
         "wait_for 30 sh -c '[ '$d'-part1 -ef /dev/disk/by-partlabel/alpha ] "
         "&& [ '$d'-part2 -ef /dev/disk/by-partlabel/member ] && [ ! -e '$d'-part3 ] "
         "&& [ ! -L /dev/disk/by-partlabel/one ] && [ ! -L /dev/disk/by-partlabel/three ]'", 120)
    t.sh("pvcreate -q /dev/ibnbd/by-name/pv; vgcreate -q vg0 /dev/ibnbd/by-name/pv; "
         "lvcreate -q -y -L 40M -n lv0 vg0\n"
         "(umask 077; head -c 64 /dev/urandom > /etc/crypt.key)\n"
         "cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "
         "/dev/ibnbd/by-name/crypt /etc/crypt.key\n"
         'echo "secret UUID=$(cryptsetup luksUUID /dev/ibnbd/by-name/crypt) '
         f'/etc/crypt.key luks,{FSTAB}" >> /etc/crypttab\n'
         "systemctl daemon-reload; systemctl start systemd-cryptsetup@secret\n"
         "mdadm -q --create /dev/md/m0 --run --assume-clean --level=1 --raid-devices=2 "
         "/dev/ibnbd/by-name/raid /dev/disk/by-partlabel/member\n"
         "for i in lvm:/dev/vg0/lv0 luks:/dev/mapper/secret "
         "part:/dev/disk/by-partlabel/alpha md:/dev/md/m0; do\n"
         "    mkfs.ext4 -q -L ${i%%:*} ${i#*:}\n"
         f"    echo \"LABEL=${{i%%:*}} /${{i%%:*}} ext4 {FSTAB} 0 2\" >> /etc/fstab\n"
         f"done; sed -i '/^LABEL=part/s/{FSTAB}/_netdev/' /etc/fstab; udevadm settle; "
         "systemctl daemon-reload\n"
         "for i in lvm luks part md; do mount /$i; echo $i > /$i/file; done; ibnbd maps check\n"
         "cp /etc/fstab /tmp; sed -i 's/_netdev/x-none/' /etc/fstab; "
         "[ $(ibnbd maps check 2>&1 | grep -c 'has no _netdev') = 5 ]; cp /tmp/fstab /etc", 240)
    before = t.links()
    down, up = t.reboot()
    late = layers_mounted(t)
    if t.links() != before:
        raise Failed(f"after the reboot: {t.links()}, before: {before}")
    t.sh("journalctl -b -u 'ibnbd*' -o short-monotonic --no-pager; "
         "[ \"$(ibnbd list -H -r -o kname | wc -l)\" = 5 ]; "
         "[ -z \"$(systemctl --failed -q --no-legend)\" ] || { systemctl --failed; exit 1; }")
    down2 = t.stop()
    t.clean()
    for below in ("/dev/vda2", "/dev/vda4"):        # the logical volume, and the first partition
        t.clean(below, 1 << 20)
    # The server goes away under all that: udev does not wait for the disks, nor does the shutdown.
    t.server_up()
    t.client_up()
    layers_mounted(t)
    t.server.kill()
    t.wait("[ \"$(ibnbd list -H -r -o detail | sort -u)\" = held ]", 60, "the disks are held")
    t.sh(f"udevadm settle --timeout=20; [ -b /dev/disk/by-uuid/{UUID} ]; "
         "udevadm info -q property /dev/ibnbd/by-name/raid "
         "| grep ID_FS_TYPE_HELD=linux_raid_member")
    down3 = t.stop()
    t.server_up()
    t.client_up()
    layers_mounted(t)
    # boots that come without an RDMA device need not wait for it
    t.sh(f"sed -i '/^LABEL=part/s/_netdev/{FSTAB}/' /etc/fstab; systemctl daemon-reload")
    return (f"down {down:.0f}, {down2:.0f} and without the server {down3:.0f} s, up {up:.0f} s, "
            f"mounted {late:.0f} s later")


def layers_mounted(t):
    late = t.mounted("/data", "/lvm", "/luks", "/part", "/md")
    if t.sh("cat /{lvm,luks,part,md}/file").split() != ["lvm", "luks", "part", "md"]:
        raise Failed("what was written before is not there")
    return late


LAYERS_DOWN = ("for m in /md /part /luks /lvm; do if mountpoint -q $m; then umount $m; fi; done; "
               "systemctl stop systemd-cryptsetup@secret 2> /dev/null || true; "
               "vgchange -q -an || true; mdadm -q --stop --scan\n")


@step
def loopback_autopkgtest(t):
    """debian/tests/loopback, which wants a machine of its own."""
    t.client_up()
    t.jobs_done()
    t.sh(LAYERS_DOWN + "if mountpoint -q /data; then umount /data; fi; "
         "systemctl stop ibnbd-maps.target; wait_for 60 sh -c '[ -z \"$(ibnbd list)\" ]'; "
         "systemctl -q disable --now ibnbd-server; rm /etc/ibnbd/server.conf; "
         "rdma link delete rxe0; ip route add default via 10.0.0.2")
    t.sh("sh -x /tests/loopback", 180)
    t.sh("ibnbd maps remove vol1; [ -z \"$(ibnbd list)\" ]; rdma link delete rxe_ibnbd; "
         "ip route del default; systemctl restart rxe")
    t.server_up()
    t.sh("systemctl start ibnbd-maps.target", 120)
    t.wait("systemctl start data.mount", 60, "the disk of maps.conf")


@step
def server_unit_over_a_reboot(t):
    """ibnbd-server.service, enabled: it listens after a boot, on an RDMA link that comes later too,
    and to those whom server.conf allows."""
    t.client_up()
    t.jobs_done()
    t.sh("mkdir -p /etc/ibnbd/exports; truncate -s 64M /var/tmp/exported.img; "
         "ln -sf /var/tmp/exported.img /etc/ibnbd/exports/own\n"
         "printf 'dev_search_path = /etc/ibnbd/exports\\nallow = 10.0.0.1\\n' "
         "> /etc/ibnbd/server.conf; ibnbd server check\n"
         "systemctl -q enable ibnbd-server; systemctl -q disable rxe")
    t.reboot()
    t.sh("systemctl is-active ibnbd-server; systemctl -q enable rxe; systemctl start rxe\n"
         "ibnbd map own loop 10.0.0.1 --name own; udevadm settle; "
         "dd if=/dev/urandom of=/dev/ibnbd/by-name/own bs=64k count=4 oflag=direct status=none\n"
         "cmp -n 262144 /dev/ibnbd/by-name/own /var/tmp/exported.img; ibnbd unmap own", 120)
    t.sh("sed -i 's/^allow.*/allow = 10.0.0.9/' /etc/ibnbd/server.conf; "
         "systemctl reload ibnbd-server\n"
         "rc=0; ibnbd map own loop 10.0.0.1 --name own || rc=$?; [ $rc = 6 ]; ibnbd list", 120)
    # Another port is taken up by a restart; a reload with a client says that it is not, and leaves
    # that alone.
    t.sh("port=/sys/module/ibnbd_server/parameters/port_nr\n"
         "sed -i 's/^allow.*/allow = 10.0.0.1/' /etc/ibnbd/server.conf; "
         "echo 'port_nr = 1500' >> /etc/ibnbd/server.conf\n"
         "systemctl restart ibnbd-server; grep -x 1500 $port; "
         "ibnbd map own loop 10.0.0.1 dest_port=1500 --name own\n"
         "sed -i 's/^port_nr.*/port_nr = 1501/' /etc/ibnbd/server.conf; "
         "if systemctl reload ibnbd-server; then exit 1; fi\n"
         "systemctl is-active ibnbd-server; grep -x 1500 $port; journalctl --sync\n"
         "journalctl -b -u ibnbd-server -o cat --no-pager "
         "| grep 'port_nr stays 1500: clients are connected'\n"
         "udevadm settle; cmp -n 262144 /dev/ibnbd/by-name/own /var/tmp/exported.img; "
         "ibnbd unmap own; systemctl restart ibnbd-server; grep -x 1501 $port\n"
         "ibnbd map own loop 10.0.0.1 dest_port=1501 --name own; udevadm settle; ibnbd unmap own; "
         "sed -i '/^port_nr/d' /etc/ibnbd/server.conf", 180)
    t.sh("systemctl -q disable ibnbd-server; systemctl stop ibnbd-server; "
         "rm /etc/ibnbd/exports/own /var/tmp/exported.img")


@step
def secure_boot(t):
    """DKMS has signed the modules with a key of the machine: a kernel that asks for signatures
    refuses them until the firmware has that key, and doctor says so."""
    if t.client.alive:
        t.stop()
    firmware = secure.Firmware(t.logs / "firmware", t.disk)
    plain = t.client.boot_, t.client.append
    t.client.boot_, t.client.more = firmware.boot(t.second), firmware.qemu()
    # (what the other steps have saved is not for these boots)
    t.client.append += " systemd.unit=sysinit.target module.sig_enforce=1"
    try:
        t.client.start().ready(2 * BOOT)
        t.sh("if modprobe ibnbd-client; then exit 1; fi")
        t.doctor("signature", "error", "module.sig_enforce", "is rejected",
                 "mokutil --import /var/lib/dkms/mok.pub")
        t.sh(firmware.enrol(t.client.put))
        t.stop(at_once=True)
        t.client.start().ready(2 * BOOT)
        t.sh("[ \"$(od -An -tu1 -j4 /sys/firmware/efi/efivars/SecureBoot-*)\" -eq 1 ]; "
             "grep -x Y /sys/module/module/parameters/sig_enforce\n"
             "ko=$(modinfo -n ibtrs-core)\n"
             "case $ko in *.xz) xz -dc $ko ;; *) cat $ko ;; esac > /run/unsigned.ko\n"
             "echo >> /run/unsigned.ko; if insmod /run/unsigned.ko; then exit 1; fi")
        t.doctor("secure-boot", "error", "Secure Boot is on", "is rejected",
                 "the firmware has the key of DKMS")
        t.sh("modprobe ibnbd-client; modprobe ibnbd-server; modinfo -F signer ibnbd-client; "
             "said=$(ibnbd doctor || [ $? -le 2 ]); grep 'ibnbd-client .* is loaded' <<< \"$said\"")
        t.stop(at_once=True)
    finally:
        t.client.kill()
        (t.client.boot_, t.client.append), t.client.more = plain, ()


@step
def packages_come_and_go(t):
    """The same version, a later one, the first again, remove, purge, install: the disk stays
    mapped, and writing goes on."""
    t.server_up()
    t.client_up()
    t.mounted("/data")
    t.jobs_done()
    t.sh(LAYERS_DOWN, 120)
    t.writer()
    # the administrator's own, which only he takes away, as the key of the first step
    t.sh("mkdir -p /etc/ibnbd/exports; ln -sf /var/tmp/ibnbd-test.img /etc/ibnbd/exports/disk1")
    kname = t.sh("basename $(readlink -f /dev/ibnbd/by-name/data)")
    disk = f"cat /sys/block/{kname}/diskseq"
    before = t.sh(disk)
    apt = ("export DEBIAN_FRONTEND=noninteractive; apt-get -qq "
           "-o DPkg::Options::=--force-unsafe-io -o APT::Sandbox::User=root --allow-downgrades "
           "--no-install-recommends -y ")
    these, later = ("/packages/ibnbd-dkms_*.deb /packages/ibnbd-tools_*.deb",
                    "/packages/up-dkms.deb /packages/up-tools.deb")
    for what, verb in (("the same version", f"--reinstall install {these}"),
                       ("a later one", f"install {later}"),
                       ("the first again", f"install {these}"),
                       ("remove", "remove ibnbd-dkms ibnbd-tools"),
                       ("purge", "purge ibnbd-dkms ibnbd-tools"),
                       ("install", f"install {these}")):
        t.log(f"-- {what}")
        t.sh(apt + verb, 600)
        n = int(t.sh("systemctl is-active writer > /dev/null; mountpoint -q /data; "
                     "[ -e /sys/module/ibnbd_client ]; cat /run/writes"))
        t.wait(f"[ $(cat /run/writes) -gt {n + 3} ]", 20, f"writing goes on after: {what}")
        if t.sh(disk) != before:
            raise Failed(f"{what}: it is another disk")
        # and something triggers udev, which has no rules for it now but those that the package left
        if what == "remove":
            t.sh("if command -v ibnbd; then exit 1; fi; "
                 f"udevadm trigger -w --action=change /dev/{kname}; "
                 f"udevadm trigger -w --action=change /dev/{kname}; sleep 5\n"
                 "for l in disk/by-label/data ibnbd/by-name/data ibnbd/by-session/s1/vda1; "
                 "do [ -b /dev/$l ]; done; mountpoint /data\n"
                 "grep -q '^data vda1 s1 ' /etc/ibnbd/maps.conf.d/data.conf", 60)
        elif what == "purge":
            t.sh("find /etc/ibnbd ! -type d | sort | tee /dev/stderr | tr '\\n' ' ' "
                 "| grep -x '/etc/ibnbd/exports/disk1 /etc/ibnbd/keys/db-1 '; rm -r /etc/ibnbd")
        else:
            t.sh(f"[ ! -e /run/udev/rules.d/60-ibnbd.rules ]; ibnbd list {kname}; "
                 "systemctl is-enabled ibnbd-maps.target; "
                 f"udevadm trigger -w --action=change /dev/{kname}; "
                 "[ -b /dev/disk/by-label/data ]")
    t.sh("systemctl stop writer; umount /data; " + LAYERS_DOWN
         + "ibnbd unmap --all; [ -z \"$(ibnbd list)\" ]")
    t.clean()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--suite", default="bookworm")
    p.add_argument("word", nargs="*")
    o = p.parse_args()
    steps = [f for i, f in enumerate(STEPS) if i == 0 or not o.word
             or any(w in f.__name__ for w in o.word)]
    pristine, kver = prepare(o.suite)
    turn = launch.alone()
    t, passed, failed = None, 0, 0
    try:
        t = Test(o.suite, pristine, kver)
        for f in steps:
            t0 = time.monotonic()
            t.log(f"== {f.__name__}")
            try:
                note = f(t)
                t.no_trouble()
                passed += 1
                print(f"ok    {o.suite}: {f.__name__} ({time.monotonic() - t0:.0f} s"
                      + (f"; {note})" if note else ")"), flush=True)
            except (Failed, vm.VMError) as e:
                failed += 1
                t.log(f"FAIL {e}\n{t.console()}")
                print(f"FAIL  {o.suite}: {f.__name__} ({time.monotonic() - t0:.0f} s, {t.logs})\n"
                      f"{e}", flush=True)
                break
    finally:
        if t:
            t.close()
        turn.close()
    print(f"{passed} passed, {failed} failed, {len(steps) - passed - failed} skipped")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
