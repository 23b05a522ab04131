#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Whole Debian systems in virtual machines: systemd, udev, fstab, LVM, LUKS and apt with disks of ours, over boots and shutdowns.

    tests/packages/boot.py [--suite bookworm|trixie] [WORD]..   the first step, and those whose names contain a WORD

The client is a Debian made by debootstrap (root.sh image) with the packages of `make deb` in it, whose modules DKMS has built; it boots its
distribution's stock kernel from a disk.  The server is a machine of the rig.  Every step takes the two machines as it finds them and says what it
needs: client_up(), server_up(), and what the first step saved.  Last line: N passed, N failed, N skipped.  Logs: build/systems/SUITE.
"""
import argparse, sys, time
from system import Failed, Test, launch, prepare, vm

UUID = "01234567-89ab-cdef-0123-456789abcdef"
STEPS = []


def step(f):
    """Decorator: a step is a function of one Test; what it returns is told beside its name."""
    STEPS.append(f)
    return f


FSTAB = "_netdev,nofail,x-systemd.device-timeout=infinity"


@step
def saved_mapping_comes_back(t):
    """apt install, ibnbd map --save, a line in fstab by UUID: after a reboot it is mounted again, and the links are the same."""
    t.server_up()
    t.client_up()
    if t.sh("ibnbd map vda1 s1 10.0.0.2 --name data --hold 600 --save", 60) != "/dev/ibnbd0":
        raise Failed("map")
    t.sh(f"mkfs.ext4 -q -U {UUID} -L data /dev/ibnbd/by-name/data; mkdir -p /data /lvm /luks; "
         f"echo 'UUID={UUID} /data ext4 {FSTAB} 0 2' >> /etc/fstab; systemctl daemon-reload; udevadm settle; mount /data; "
         "echo one > /data/file; sync")
    before = t.links()
    t.log(f"links: {before}")
    for want in (f"/dev/disk/by-uuid/{UUID}", "/dev/disk/by-label/data", "/dev/ibnbd/by-name/data", "/dev/ibnbd/by-session/s1/vda1"):
        if want not in before:
            raise Failed(f"{want} is not in {before}")
    if not any(l.startswith("/dev/disk/by-id/ibnbd-") for l in before) or not any(l.startswith("/dev/disk/by-path/ibnbd-") for l in before):
        raise Failed(f"by-id and by-path: {before}")
    down, up = t.reboot()
    t.mounted("/data")
    if t.sh("cat /data/file") != "one" or t.links() != before:
        raise Failed(f"after the reboot: {t.links()}, before: {before}")
    t.sh("systemctl is-active ibnbd-map@data ibnbd-shutdown ibnbd-maps.target; [ -z \"$(systemctl --failed -q --no-legend 'ibnbd*')\" ]; "
         "[ \"$(cat /sys/block/ibnbd0/queue/scheduler)\" = '[none]' ] || grep -F '[none]' /sys/block/ibnbd0/queue/scheduler; "
         "ibnbd doctor || [ $? = 1 ]")
    return f"down {down:.0f} s, up {up:.0f} s"


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


@step
def server_down_at_boot(t):
    """The system boots all the same; the doctor says what is wrong; disk and mount are there when the server is."""
    if t.client.alive:
        t.stop()
    t.server.kill()
    up = t.client_up()
    t.doctor("mapped", "error", "data is in maps.conf and not mapped", "ibnbd map data")
    t.doctor("server", "error", "10.0.0.2 does not answer", "is it up")
    t.wait("systemctl show -P StatusText ibnbd-map@data | grep 'not mapped yet'", 60, "the status text of the unit")
    t.sh("! mountpoint -q /data; systemctl is-active ibnbd-map@data")
    t.server_boot()
    t.greet()
    t.wait("{ ibnbd doctor --json || true; } | grep -q '\"port\"'", 120, "an answer of a machine that does not listen")
    t.doctor("port", "error", "does not listen", "systemctl status ibnbd-server")
    t0 = time.monotonic()
    t.server_up()
    t.mounted("/data", timeout=90, what="after the server began to listen")
    return f"up {up:.0f} s, mounted {time.monotonic() - t0:.0f} s after the server came"


@step
def rdma_link_comes_late(t):
    t.server_up()
    t.client_up()
    t.sh("systemctl -q disable rxe")
    down, up = t.reboot()
    t.doctor("rdma", "error", "there is no RDMA device", "rdma link add")
    t.sh("! mountpoint -q /data; systemctl -q enable rxe")
    time.sleep(20)      # its pauses are long by now: what comes at once comes by the event
    t.sh("systemctl start rxe")
    t.greet()
    late = t.mounted("/data", timeout=30, what="after rdma link add")
    t.sh("journalctl -b -u ibnbd-retry --no-pager | grep -q 'Finished\\|Deactivated\\|mapped'")
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
def lvm_luks_md_and_partitions_come_back(t):
    t.server_up()
    t.client_up()
    t.sh("printf 'label: gpt\\nsize=24M,name=alpha\\nname=member\\n' | sfdisk -q /dev/vda4; sync", machine=t.server)
    t.sh("for i in 2:pv 3:crypt 4:parts; do ibnbd map vda${i%:*} s1 --name ${i#*:} --save; done\n"
         "mkdir -p /lvm /luks /part /md\n"
         "pvcreate -q /dev/ibnbd/by-name/pv; vgcreate -q vg0 /dev/ibnbd/by-name/pv; lvcreate -q -y -L 40M -n lv0 vg0\n"
         "(umask 077; head -c 64 /dev/urandom > /etc/crypt.key)\n"
         "cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 /dev/ibnbd/by-name/crypt /etc/crypt.key\n"
         f'echo "secret UUID=$(cryptsetup luksUUID /dev/ibnbd/by-name/crypt) /etc/crypt.key luks,{FSTAB}" >> /etc/crypttab\n'
         "systemctl daemon-reload; systemctl start systemd-cryptsetup@secret\n"
         "udevadm settle; [ /dev/ibnbd/by-name/parts-part1 -ef /dev/disk/by-partlabel/alpha ]\n"
         "mdadm -q --create /dev/md/m0 --run --level=1 --force --raid-devices=1 /dev/disk/by-partlabel/member\n"
         "for i in lvm:/dev/vg0/lv0 luks:/dev/mapper/secret part:/dev/disk/by-partlabel/alpha md:/dev/md/m0; do\n"
         "    mkfs.ext4 -q -L ${i%%:*} ${i#*:}\n"
         f"    echo \"LABEL=${{i%%:*}} /${{i%%:*}} ext4 {FSTAB} 0 2\" >> /etc/fstab\n"
         "done; udevadm settle; systemctl daemon-reload\n"
         "for i in lvm luks part md; do mount /$i; echo $i > /$i/file; done; ibnbd maps check", 240)
    before = t.links()
    down, up = t.reboot()
    late = t.mounted("/data", "/lvm", "/luks", "/part", "/md")
    if t.sh("cat /{lvm,luks,part,md}/file").split() != ["lvm", "luks", "part", "md"]:
        raise Failed("what was written before is not there")
    if t.links() != before:
        raise Failed(f"after the reboot: {t.links()}, before: {before}")
    t.sh("[ \"$(ibnbd list -H -r -o kname | wc -l)\" = 4 ]; [ -z \"$(systemctl --failed -q --no-legend)\" ] || { systemctl --failed; exit 1; }")
    down2 = t.stop()
    t.clean()
    return f"down {down:.0f} and {down2:.0f} s, up {up:.0f} s, mounted {late:.0f} s later"


@step
def loopback_autopkgtest(t):
    """debian/tests/loopback, which wants a machine of its own."""
    t.client_up()
    t.sh("for m in /md /part /luks /lvm /data; do mountpoint -q $m && umount $m; done; systemctl stop systemd-cryptsetup@secret 2> /dev/null || true; "
         "vgchange -q -an || true; mdadm -q --stop --scan; systemctl stop ibnbd-maps.target; "
         "wait_for 60 sh -c '[ -z \"$(ibnbd list)\" ]'; rdma link delete rxe0; ip route add default via 10.0.0.2")
    t.sh("sh -x /tests/loopback", 180)
    t.sh("ibnbd maps remove vol1; [ -z \"$(ibnbd list)\" ]; rdma link delete rxe_ibnbd; ip route del default; systemctl restart rxe")
    t.server_up()
    t.sh("systemctl start ibnbd-maps.target", 120)
    t.wait("systemctl start data.mount", 60, "the disk of maps.conf")


@step
def packages_come_and_go(t):
    """The same version, a later one, the first again, remove, purge, install: the disk stays mapped, and writing goes on."""
    t.server_up()
    t.client_up()
    t.mounted("/data")
    t.writer()
    disk = "cat /sys/block/ibnbd0/diskseq"
    before = t.sh(disk)
    apt = ("export DEBIAN_FRONTEND=noninteractive; apt-get -qq -o DPkg::Options::=--force-unsafe-io -o APT::Sandbox::User=root --allow-downgrades "
           "--no-install-recommends -y ")
    these, later = "/packages/ibnbd-dkms_*.deb /packages/ibnbd-tools_*.deb", "/packages/up-dkms.deb /packages/up-tools.deb"
    for what, verb in (("the same version", f"--reinstall install {these}"), ("a later one", f"install {later}"), ("the first again", f"install {these}"),
                       ("remove", "remove ibnbd-dkms ibnbd-tools"), ("purge", "purge ibnbd-dkms ibnbd-tools"), ("install", f"install {these}")):
        t.log(f"-- {what}")
        t.sh(apt + verb, 600)
        n = int(t.sh("systemctl is-active writer > /dev/null; mountpoint -q /data; [ -e /sys/module/ibnbd_client ]; cat /run/writes"))
        t.wait(f"[ $(cat /run/writes) -gt {n + 3} ]", 20, f"writing goes on after: {what}")
        if t.sh(disk) != before:
            raise Failed(f"{what}: it is another disk")
        if what == "remove":        # and something triggers udev, which has no rules for it now
            t.sh("udevadm trigger -w --action=change /dev/ibnbd0; mountpoint /data; ! command -v ibnbd; grep -q '^data vda1 s1 ' /etc/ibnbd/maps.conf.d/50-saved.conf")
        elif what == "purge":
            t.sh("[ ! -e /etc/ibnbd ]")
        else:
            t.sh("ibnbd list ibnbd0; systemctl is-enabled ibnbd-maps.target; udevadm trigger -w --action=change /dev/ibnbd0; [ -b /dev/disk/by-label/data ]")
    t.sh("systemctl stop writer; umount /data; ibnbd unmap ibnbd0; ! ls /sys/block/ibnbd0 2> /dev/null")
    t.clean()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--suite", default="bookworm")
    p.add_argument("word", nargs="*")
    o = p.parse_args()
    steps = [f for i, f in enumerate(STEPS) if i == 0 or not o.word or any(w in f.__name__ for w in o.word)]
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
                print(f"ok    {o.suite}: {f.__name__} ({time.monotonic() - t0:.0f} s" + (f"; {note})" if note else ")"), flush=True)
            except (Failed, vm.VMError) as e:
                failed += 1
                t.log(f"FAIL {e}\n{t.console()}")
                print(f"FAIL  {o.suite}: {f.__name__} ({time.monotonic() - t0:.0f} s, {t.logs})\n{e}", flush=True)
                break
    finally:
        if t:
            t.close()
        turn.close()
    print(f"{passed} passed, {failed} failed, {len(steps) - passed - failed} skipped")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
