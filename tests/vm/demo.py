#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The tour: two machines, a disk of one used by the other over RDMA,
and a cable that is pulled while it works.

Every command is shown before it runs, with what it says. The exit status is 0 only if all of it
went well.  --family rnbd shows the same with the kernel's own driver, for comparison; --modules no
a server in user space (ibnbd-serverd), for the same client.
"""
import argparse, json, signal, subprocess, sys, time
import image, kmsg, launch, vm

BEGIN = time.monotonic()


class Broken(Exception):
    """A step did not do what it should."""


def say(text):
    print(f"\n\033[1m[{time.monotonic() - BEGIN:5.1f} s] {text}\033[0m" if sys.stdout.isatty()
          else f"\n[{time.monotonic() - BEGIN:5.1f} s] {text}", flush=True)


class Tour:
    def __init__(self, family, client, server, modules=True):
        self.family, self.client, self.server, self.figures = family, client, server, []
        self.modules = modules
        self.trs = family.replace("nbd", "trs")
        self.dev = f"/dev/{family}0"
        self.ours = family == "ibnbd"
        self.show_paths = ("ibnbd path list tour" if self.ours
                           else f"grep . /sys/class/{self.trs}-client/tour/paths/*/state")

    def do(self, machine, command, timeout=60, quiet=False):
        """Show a command, run it, show what it said; it must succeed."""
        if not quiet:
            for line in command.strip().splitlines():
                print(f"  {machine.name} # {line.strip()}", flush=True)
        rc, out = machine.run(f"FAMILY={self.family}\n{command}", timeout)
        if not quiet or rc:
            for line in out.strip().splitlines():
                print(f"      {line}")
        if rc:
            raise Broken(f"{machine.name}: status {rc} of: {command.strip()}")
        return out.strip()

    def network(self):
        say("The network: two links between the machines, soft-RoCE on each")
        self.do(self.client, "rdma link")
        self.do(self.client, "ping -q -c 2 10.0.0.2 | tail -n 2")

    def serve(self):
        say("The server gives what is under /dev, nothing else")
        self.do(self.server, "modprobe brd rd_nr=1 rd_size=65536        # a disk in memory, 64 MiB")
        if self.modules:
            self.do(self.server, f"modprobe {self.family}-server dev_search_path=/dev")
            return
        self.do(self.server, "modprobe rdma_ucm\nmkdir -p /etc/ibnbd /var/lib/ibnbd\n"
                "echo 'dev_search_path = /dev' > /etc/ibnbd/server.conf\n"
                "echo '# no rules' > /etc/ibnbd/policy.conf        # each client may")
        print("  server # ibnbd-serverd &", flush=True)
        self.serverd = self.server.spawn("exec ibnbd-serverd")
        end = time.monotonic() + 20
        while "listens at" not in self.serverd.out():
            if time.monotonic() > end:
                raise Broken(f"ibnbd-serverd does not listen: {self.serverd.out()}")
            time.sleep(0.2)
        print(f"      {self.serverd.out().strip()}", flush=True)

    def map(self):
        say("The client maps it, over both links")
        t0 = time.monotonic()
        if self.ours:
            self.do(self.client,
                    "ibnbd map ram0 tour ip:10.0.0.1,ip:10.0.0.2 ip:10.0.1.1,ip:10.0.1.2")
        else:
            self.do(self.client, f"modprobe {self.family}-client\n"
                    "echo 'sessname=tour device_path=ram0 path=ip:10.0.0.1@ip:10.0.0.2 "
                    "path=ip:10.0.1.1@ip:10.0.1.2' "
                    f"> /sys/class/{self.family}-client/ctl/map_device")
        self.figures.append(("map request to disk", f"{time.monotonic() - t0:.1f} s"))
        self.do(self.client, f"wait_for 5 test -b {self.dev}", quiet=True)
        self.do(self.client, f"lsblk -o NAME,SIZE,TYPE,RO {self.dev}")
        if self.ours:
            self.do(self.client, "ibnbd list")
        self.do(self.client, self.show_paths)

    def verify(self):
        say("Random writes, each block with a checksum (crc32c) that is read back and checked")
        self.fio("checked writes", "--rw=randwrite --bsrange=4k-8k --blockalign=4k "
                 "--iodepth=16 --size=8m --serialize_overlap=1 --verify=crc32c --verify_fatal=1 "
                 "--do_verify=1", "write", "read")

    def speed(self):
        say("As fast as emulated machines go (a figure for the rig, not for the driver: "
            "see make bench)")
        self.fio("random reads, 4 KiB, 16 at a time",
                 "--rw=randread --bs=4k --iodepth=16 --size=64m --time_based "
                 "--runtime=4", "read")
        self.fio("one 4 KiB write at a time", "--rw=randwrite --bs=4k --iodepth=1 --size=64m "
                 "--time_based --runtime=4", "write")

    def fio(self, what, words, *sides):
        self.do(self.client, f"fio --name=tour --filename={self.dev} --direct=1 "
                f"--ioengine=libaio {words} --output-format=json --output=/h/fio.json", 120)
        text = self.client.get("fio.json")
        job = json.loads(text[text.index("{"):])["jobs"][0]
        if job["error"]:
            raise Broken(f"fio: error {job['error']}")
        for side in sides:
            s = job[side]
            if not s["total_ios"]:
                raise Broken(f"fio did no {side}")
            text = (f"{s['total_ios']} {side}s, {s['iops']:.0f}/s, mean "
                    f"{s['lat_ns']['mean'] / 1e6:.2f} ms")
            print(f"      {text}")
            self.figures.append((f"{what}: {side}", text))

    def filesystem(self):
        say("A file system on it")
        self.do(self.client, f"mkfs.ext4 -q {self.dev}\nmkdir -p /mnt/tour\n"
                f"mount {self.dev} /mnt/tour\n"
                "cp /bin/bash /mnt/tour/ && sync")
        self.do(self.client, "umount /mnt/tour\n"
                f"mount {self.dev} /mnt/tour\ncmp /bin/bash /mnt/tour/bash && echo the same\n"
                "umount /mnt/tour", 60)

    def cable(self):
        say("Somebody pulls the cable of the first link while the disk is written to")
        job = self.client.spawn(f"iopulse {self.dev} 2 1000 rw 2000")
        print(f"  client # iopulse {self.dev} 2 1000 rw 2000 &      # 4 KiB reads and writes, "
              "all the time", flush=True)
        time.sleep(3)
        print("  -- cable out --", flush=True)
        self.client.link(0, False)
        t0 = time.monotonic()
        self.do(self.client, "wait_for 30 paths_up tour 1", quiet=True)
        self.figures.append(("cable out: noticed after", f"{time.monotonic() - t0:.1f} s"))
        self.do(self.client, self.show_paths)
        time.sleep(2)
        print("  -- cable in --", flush=True)
        self.client.link(0, True)
        t0 = time.monotonic()
        self.do(self.client, "wait_for 90 paths_up tour 2", 100, quiet=True)
        self.figures.append(("cable in: both paths again after", f"{time.monotonic() - t0:.1f} s"))
        self.do(self.client, self.show_paths)
        self.do(self.client, "pkill -TERM iopulse", quiet=True)
        rc = job.wait(20)
        end = job.out().strip().splitlines()[-1]
        print(f"      {end}")
        if rc:
            raise Broken("I/O failed while one link was out:\n" + job.out()[-2000:])
        self.figures.append(("I/O across it, errors, longest pause", end.split(" ", 1)[1]))

    def goodbye(self):
        say("The client gives it back, and everything can be unloaded")
        self.do(self.client, f"ibnbd unmap {self.dev[5:]}" if self.ours else
                f"echo normal > /sys/block/{self.dev[5:]}/{self.family}/unmap_device")
        self.do(self.client, f"wait_for 15 test ! -e /sys/block/{self.dev[5:]}", quiet=True)
        self.do(self.client, f"modprobe -r {self.family}-client")
        if self.modules:
            self.do(self.server, f"modprobe -r {self.family}-server")
        else:
            self.do(self.server, "lsmod | grep ibnbd || echo no module of ours is loaded\n"
                    "pkill -TERM -x ibnbd-serverd")
            if self.serverd.wait(20):
                raise Broken(f"ibnbd-serverd: {self.serverd.out()}")
        bad = [b for m in (self.client, self.server) for b in kmsg.trouble(m.kernel_log())[0]]
        if bad:
            raise Broken("the kernel complained:\n" + "\n".join(bad))


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--kver", default=image.default_kver())
    p.add_argument("--family", default="ibnbd", choices=("ibnbd", "rnbd"))
    p.add_argument("--modules", default="yes", choices=("yes", "no"))
    o = p.parse_args()
    modules, more = o.modules == "yes", [] if o.modules == "yes" else ["serverd"]
    signal.signal(signal.SIGTERM, lambda *a: sys.exit(143))
    machines, boot, tour, turn = [], None, None, launch.alone()
    try:
        if o.family == "ibnbd":
            say(f"Building the modules for {o.kver}")
            launch.make_modules(o.kver, *more)
        else:
            subprocess.run([image.REPO / "tests/interop/build-peer.sh", o.kver], check=True)
        boot = launch.boot_image(
            o.kver, more_programs=[image.REPO / f"build/{name}/ibnbd-{name}" for name in more])
        say(f"Booting two machines: Debian's kernel {boot.kver}, "
            f"{'KVM' if boot.accel == 'kvm' else 'emulated'}")
        machines = vm.machines(boot, 2, 2)
        seconds = launch.up(machines, 2)
        tour = Tour(o.family, *machines, modules)
        tour.figures.append(("both machines booted in", f"{seconds:.1f} s"))
        for step in (tour.network, tour.serve, tour.map, tour.verify, tour.speed, tour.filesystem,
                     tour.cable, tour.goodbye):
            step()
        good = True
    except (Broken, vm.VMError, RuntimeError, subprocess.CalledProcessError) as e:
        print(f"\nNOT GOOD: {e}", flush=True)
        for m in machines:
            lines = m.kernel_log(sync=False).splitlines()[-25:]
            print(f"--- the end of {m.name}'s kernel log ---\n" + "\n".join(lines), flush=True)
        good = False
    finally:
        for m in machines:
            m.kill()
        if boot:
            boot.close()
        turn.close()
    say("All of it worked" if good else "Something is broken, see above")
    for what, value in tour.figures if tour else []:
        print(f"  {what + ' ':.<46} {value}")
    print(f"  {'total time ':.<46} {time.monotonic() - BEGIN:.0f} s", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
