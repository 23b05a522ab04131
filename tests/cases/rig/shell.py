# SPDX-License-Identifier: GPL-2.0-only
import os, pty, re, select, subprocess, time

description = ("make vm-shell: a person at a terminal serves a disk in one machine, "
               "maps and checks it in the other")
long = True
vms = 0
deadline = 180


class Person:
    """Types at a terminal and reads what stands there."""
    def __init__(self, t, argv):
        self.t, self.text = t, ""
        self.fd, tty = pty.openpty()
        self.child = subprocess.Popen(argv, stdin=tty, stdout=tty, stderr=tty,
                                      start_new_session=True, env=dict(os.environ, TERM="xterm"))
        os.close(tty)

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def read(self, pattern, seconds):
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.text)):
            left = end - time.monotonic()
            self.t.ok(left > 0, f"{pattern!r} within {seconds} s; the screen: {self.text[-2000:]}")
            if select.select([self.fd], [], [], min(left, 1))[0]:
                try:
                    self.text += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:         # the other end is closed
                    self.t.fail(f"the shell ended before {pattern!r}; "
                                f"the screen: {self.text[-2000:]}")
        self.text = self.text[found.end():]
        return found

    def close(self):
        if self.child.poll() is None:
            self.child.terminate()
        self.child.wait(20)
        os.close(self.fd)


def run(t):
    shell = t.case.path.parents[2] / "vm/shell.py"
    p = Person(t, [str(shell), "--kver", t.image.kver])
    try:
        p.read("this is client", 100)
        p.read(r"\[client\] \S+ # ", 20)
        p.type("uname -r | sed s/^/running-/\n")
        t.eq(p.read(r"running-([\w.+-]+)", 20)[1], t.image.kver, "the kernel")
        p.type("\x1dn")
        p.read("this is server", 20)
        p.read(r"\[server\] \S+ # ", 20)
        p.type("echo kept > /tmp/mark; "
               "dd if=/tmp/mark of=/dev/ram0 conv=sync,notrunc && echo wrote-$?\n")
        p.read("wrote-0", 20)
        p.type("\x1dn")
        p.read("this is client", 20)
        p.read(r"\[client\] \S+ # ", 20)
        p.type("map ram0; head -c 4 /dev/ibnbd0 | sed s/^/read-/\n")
        p.read("read-kept", 30)
        p.type("fio_verify /dev/ibnbd0 1m --output=/dev/null; echo verified-$?; "
               "unmap ibnbd0; echo unmapped-$?\n")
        p.read("verified-0", 60)
        p.read("unmapped-0", 20)
        p.type("\x1dq")
        t.eq(p.child.wait(30), 0, "exit status")
    finally:
        p.close()
