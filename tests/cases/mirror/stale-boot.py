# SPDX-License-Identifier: GPL-2.0-only
"""The legs of a mirror, A and B.  B is dropped, what is written then is on A alone, and the client
is shut down.  When it boots, only B's server is there.  udev runs md's rules, and where systemd is
to start mdadm-last-resort@.timer this case does what its service does half a minute later."""
description = ("a client boots, and of its mirror only the leg is there that was dropped before: "
               "it is not started, and not taken back by the bitmap when the other one is there")
long = True
vms = 3
links = 2
deadline = 150
import mirrors as M, re, time
programs = M.PROGRAMS


def run(t):
    c, (s1, s2) = t.client, M.machines(t)
    m = M.Mirror(t, (s1, s2))
    c.sh("mkdir -p /etc/mdadm; mdadm --detail --brief /dev/md0 > /etc/mdadm/mdadm.conf; "
         "cat /etc/mdadm/mdadm.conf")
    m.put("o", 4, flush=True)
    t.log("--- B goes, and what is written then is on A alone")
    c.link(1, False)
    m.put("n", 4, flush=True)
    m.dropped(m.b)
    t.log("--- the client goes down; when it is back only B's server is there")
    c.sh("mdadm --stop /dev/md0; " + "".join(f"unmap {leg.dev} force; " for leg in m.legs),
         timeout=60)
    c.link(0, False)
    c.link(1, True)

    def boot(server, session):
        link = server.vm.host - 2
        return M.Leg(server, session, c.sh(
            f"wait_for 20 eval 'map testdisk0 sessname={session} hold=-1 path=ip:10.0.{link}.1@"
            f"ip:10.0.{link}.{server.vm.host} 2> /dev/null'; udevadm settle --timeout=20",
            timeout=60))
    watch = c.spawn("exec udevadm monitor --udev --property")
    time.sleep(1)
    b = boot(s2, "b")
    time.sleep(1)
    said = "\n".join(re.findall(r"^(?:ACTION|DEVNAME|MD_.*|SYSTEMD_WANTS)=.*", watch.out(), re.M))
    watch.kill()
    watch.wait(20)
    t.log(f"udev: {said}\n{c.rc('cat /proc/mdstat')[1]}")
    t.match(said, "MD_STARTED=.*unsafe")
    t.ok("mdadm-last-resort@" not in said, "nobody starts B alone")
    t.eq(m.md("array_state"), "inactive", "array_state with B alone")
    t.match(c.sh(f"mdadm --examine {b.dev}"), r"Array State : AA")

    t.log("--- A's server is back, too")
    c.link(0, True)
    m.legs = [boot(s1, "a"), b]
    m.a, m.b = m.legs
    t.wait(lambda: m.md("array_state") in ("clean", "active", "read-auto"), 20, "A starts it")
    t.match(c.sh(f"mdadm --examine {m.a.dev}"), r"Array State : A\.")
    t.eq(c.sh("dd if=/dev/md0 bs=4k skip=1024 count=16 iflag=direct status=none | tr -s a-z"), "n",
         "what was flushed before the boot")
    c.sh(f"/usr/share/ibnbd/md-readd {b.dev}; mdadm -I {b.dev} || true")
    time.sleep(2)
    t.eq(m.state(b), "", "B is not in the array")
    m.copy_whole(b, "B")
    t.eq((m.on_disk(m.a, 4), m.on_disk(b, 4)), ("n", "n"), "in the end")
    t.eq(m.compare("both legs are back"), "", "the halves")
    M.leave(t)
