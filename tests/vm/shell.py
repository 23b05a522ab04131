#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Two machines with the modules loaded and the network up, and a shell in them.

    tests/vm/shell.py                       boot them; the client's shell
    tests/vm/shell.py --attach server       from another terminal:
                                            the server of the machines that run
    tests/vm/shell.py --vms 3 --links 2     more of them
    tests/vm/shell.py --bare                no modules loaded

Ctrl-] is the way out of the guest: then n = next machine, c = carrier of link 0 off or on,
k = kill, b = boot it again, q = leave.  In a shell all of tests/vm/guest/lib.sh is there: map,
unmap, serve, fio_verify ..
"""
import argparse, json, os, select, shutil, signal, socket, sys, termios, time, tty
import case, image, launch, vm

STATE = image.CACHE / "shell.json"
ESCAPE = b"\x1d"


class Consoles:
    """The terminal of one machine at a time.  A console is held only while it is shown, so that
    another terminal can have the others."""
    def __init__(self, vms):
        self.vms, self.current, self.down = vms, 0, set()
        for m in vms:
            if m.alive:
                m.tell("SHELL")

    def vm(self):
        return self.vms[self.current]

    def say(self, text):
        os.write(1, f"\r\n[rig] {text}\r\n".encode())

    def interact(self):
        terminal = os.isatty(0)
        saved = termios.tcgetattr(0) if terminal else None
        try:
            if terminal:
                tty.setraw(0)
            while self.show(terminal):
                pass
        finally:
            if terminal:
                termios.tcsetattr(0, termios.TCSADRAIN, saved)
            print()

    def show(self, terminal):
        """Show the current machine until its user wants another (True) or out (False)."""
        self.say(f"this is {self.vm().name}; Ctrl-] for the menu")
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(f"{self.vm().dir}/tty")
            except OSError:
                self.say(f"{self.vm().name} is not running")
                return self.menu(os.read(0, 1))
            if terminal:
                size = shutil.get_terminal_size()
                s.sendall(b" stty rows %d cols %d; clear\n" % (size.lines, size.columns))
            escaped, quiet = False, None
            while True:
                ready, _, _ = select.select([s] + ([0] if quiet is None else []), [], [], 1)
                if s in ready:
                    data = s.recv(4096)
                    if not data:
                        self.say(f"{self.vm().name} is gone")
                        return self.menu(os.read(0, 1))
                    os.write(1, data)
                if 0 in ready:
                    keys = os.read(0, 1024)
                    if not keys:                        # a pipe that ended: hear the answer out
                        quiet = time.monotonic()
                    for key in (keys[i:i + 1] for i in range(len(keys))):
                        if escaped:
                            return self.menu(key)
                        escaped = key == ESCAPE
                        if not escaped:
                            s.sendall(key)
                    if escaped:
                        self.say("n next, c carrier, k kill, b boot, q leave")
                elif quiet and not ready and time.monotonic() - quiet > 2:
                    return False

    def menu(self, key):
        m = self.vm()
        try:
            if key in (b"q", b""):
                return False
            if key == b"n":
                self.current = (self.current + 1) % len(self.vms)
            elif key == b"c" and m.nics:
                up = m.name in self.down
                (self.down.discard if up else self.down.add)(m.name)
                m.link(0, up)
                self.say(f"{m.name}: carrier of link 0 is {'on' if up else 'off'}")
            elif key == b"k":
                m.kill()
            elif key == b"b":
                m.boot()
                case.bring_up(m, len(m.nics), self.vms)
                m.tell("SHELL")
        except vm.VMError as e:
            self.say(str(e))
        return True


class Remote:
    """A machine that another process of this program has booted."""
    def __init__(self, name, directory):
        self.name, self.dir, self.alive, self.nics = name, directory, True, []

    def tell(self, line):
        """The shell is there already: the owner asked for it."""

    def kill(self):
        raise vm.VMError("only the program that booted the machine kills or boots it")

    boot = kill


def attach(name):
    if not STATE.exists():
        sys.exit("shell.py: no machines are running; start tests/vm/shell.py in another terminal")
    dirs = json.loads(STATE.read_text())
    if name not in dirs:
        sys.exit(f"shell.py: no machine {name!r}; there are: {', '.join(dirs)}")
    Consoles([Remote(name, dirs[name])]).interact()


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--attach", metavar="NAME",
                   help="client, server or client2 of machines that run already")
    p.add_argument("--kver", default=image.default_kver())
    p.add_argument("--vms", type=int, default=2, choices=(1, 2, 3))
    p.add_argument("--links", type=int, default=2)
    p.add_argument("--append", default="", help="kernel command line")
    p.add_argument("--mem", type=int, default=1024)
    p.add_argument("--bare", action="store_true", help="build and load nothing")
    o = p.parse_args()
    if o.attach:
        return attach(o.attach)
    signal.signal(signal.SIGTERM, lambda *a: sys.exit(143))

    if not o.bare:
        try:
            print("building the modules", flush=True)
            launch.make_modules(o.kver)
        except RuntimeError as e:
            sys.exit(f"shell.py: {e}")
    boot = launch.boot_image(o.kver)
    machines = vm.machines(boot, o.vms, o.links, append=o.append, mem=o.mem)
    try:
        print(f"booting {o.vms} machines ({boot.kver}, {boot.accel})", flush=True)
        launch.up(machines, o.links)
        image.write_whole(STATE, json.dumps({m.name: str(m.dir) for m in machines}).encode())
        by_name = {m.name: m for m in machines}
        if not o.bare:
            for m, script in ((by_name.get("server", machines[0]), "serve; ram_disks 2 64"),
                              (by_name["client"], "modprobe ibnbd-client")):
                rc, out = m.run(script, 60)
                if rc:
                    print(f"{m.name}: {script}: {out}")
        print("in the client:   map ram0; fio_verify /dev/ibnbd0 4m; unmap ibnbd0")
        print("another terminal: tests/vm/shell.py --attach server", flush=True)
        Consoles(machines).interact()
    finally:
        STATE.unlink(missing_ok=True)
        for m in machines:
            m.kill()
        boot.close()


if __name__ == "__main__":
    main()
