# SPDX-License-Identifier: GPL-2.0-only
"""While the client does not reach one leg's server, somebody else writes to that leg's disk, where
md's bitmap has nothing to copy.  In the first scene md has dropped the leg, in the second an
administrator has also removed it, so nobody has the disk open and it is not fenced, and in the
third nothing was written to the mirror meanwhile, so md knows of nothing."""
description = ("a leg of a mirror that somebody else has written to meanwhile is copied whole, and "
               "nothing is typed: the halves are the same")
long = True
vms = 3
links = 2
deadline = 180
import mirrors as M
programs = M.PROGRAMS
PATH = "$(echo /sys/class/ibtrs-client/b/paths/*)"


def away(m, meanwhile, char):
    """Another machine maps the leg's disk, writes, flushes, and goes."""
    m.t.log(f"--- {meanwhile.__doc__}")
    m.c.sh(f"echo 1 > {PATH}/disconnect")
    m.t.wait(lambda: not m.b.server.sh("exports"), 30, "the server has let it go")
    meanwhile()
    other = m.t.server
    dev = M.map_of(other, m.b.server, "other")
    other.sh(f"head -c 262144 /dev/zero | tr '\\0' {char} | dd of={dev} bs=64k iflag=fullblock "
             f"seek={(m.offset >> 16) + 20 * 16} oflag=direct conv=notrunc,fsync status=none; "
             f"unmap {dev}")
    m.watch(told=False)     # failfast= of a leg that is held may be over, on a slow machine
    m.c.sh(f"echo 1 > {PATH}/reconnect || true")
    m.copied(meanwhile.__doc__)
    m.t.eq(m.compare(meanwhile.__doc__), "", "the halves")
    m.unwatch()


def run(t):
    m = M.Mirror(t, M.machines(t)).watch()
    m.put("m", 0, 28, flush=True)
    t.eq(m.compare("to begin with"), "", "the halves")

    def meanwhile():
        "md has dropped the leg"
        m.put("n", 4, flush=True)
        m.dropped(m.b)
        m.unwatch()
    away(m, meanwhile, "S")
    m.watch()

    def meanwhile():
        "and an administrator has removed it"
        m.put("p", 4, flush=True)
        m.dropped(m.b)
        m.c.sh(f"wait_for 5 mdadm {m.dev} --remove {m.b.dev}")
        m.unwatch()
    away(m, meanwhile, "T")
    m.watch()

    def meanwhile():
        "md has not noticed: nothing was written"
        t.match(m.state(m.b), "in_sync")
        m.unwatch()
    away(m, meanwhile, "U")
    m.end()
    M.leave(t)
