# SPDX-License-Identifier: GPL-2.0-only
"""The legs of a mirror, A and B.  B is dropped, what is written then is on A alone, and the client
loses its power.  When it boots, only B's server is there.  udev runs md's rules, and where systemd
is to start mdadm-last-resort@.timer this case does what its service does half a minute later.  Then
A's server is back; and at last a boot with A alone."""
description = ("a client boots, and of its mirror only the leg is there that was dropped before: "
               "it is not started, and is copied whole when the other one is there")
long = True
vms = 3
links = 2
deadline = 200
import mirrors as M, re, time
programs = M.PROGRAMS
ETC = [f"/etc/ibnbd/{f}.conf" for f in ("mirrors.d/data", "maps.conf.d/data-a",
                                        "maps.conf.d/data-b")]


def reboot(t):
    """/etc of a machine does not outlive a boot; its /var/lib/ibnbd does."""
    c = t.client
    kept = [c.sh(f"cat {f}") for f in ETC]
    c.kill()
    c.boot()
    M.rules(c)
    c.sh("modprobe raid1; mkdir -p /etc/ibnbd/mirrors.d /etc/ibnbd/maps.conf.d")
    for f, text in zip(ETC, kept):
        c.put("kept", text + "\n")
        c.sh(f"cp /h/kept {f}; sed -i 's/^wait = .*/wait = 8s/' {ETC[0]}")


def there(t, leg):
    t.client.sh(f"wait_for 20 eval 'ibnbd map {leg.name} 2> /dev/null'; "
                "udevadm settle --timeout=20", timeout=60)
    leg.find()


def run(t):
    c, (s1, s2) = t.client, M.machines(t)
    m = M.Mirror(t, (s1, s2)).watch()
    m.put("o", 4, flush=True)
    t.log("--- B goes, and what is written then is on A alone")
    c.link(1, False)
    m.put("n", 4, flush=True)
    m.dropped(m.b)
    t.eq(m.record(), ["data-a"], "the record")

    t.log("--- the client loses its power; when it is back only B's server is there")
    m.watcher = None

    reboot(t)
    c.link(0, False)
    c.link(1, True)
    udev = c.spawn("exec udevadm monitor --udev --property")
    time.sleep(1)
    there(t, m.b)
    m.watch()
    time.sleep(12)
    said = "\n".join(re.findall(r"^(?:ACTION|DEVNAME|MD_.*|SYSTEMD_WANTS)=.*", udev.out(), re.M))
    udev.kill()
    udev.wait(20)
    t.log(f"udev: {said}\n{c.rc('cat /proc/mdstat')[1]}")
    t.match(said, "MD_STARTED=.*unsafe")
    t.ok("mdadm-last-resort@" not in said, "nobody starts B alone")
    m.said("not started, no leg that is there has everything; it waits for data-a")
    t.ok(c.rc("grep '^md.* active' /proc/mdstat")[0], "B alone is not started")
    t.match(c.sh(f"mdadm --examine {m.b.dev}"), r"Array State : AA")

    def running():
        c.rc("cat /proc/mdstat")
        rc, name = c.rc(f"cd /sys/block/{m.a.kname}/holders && echo md*")
        if rc or "*" in name:
            return False
        m.md0, m.dev = name.strip(), f"/dev/{name.strip()}"
        return m.md("array_state") in ("clean", "active", "read-auto", "active-idle")
    t.log("--- A's server is back, too")
    c.link(0, True)
    there(t, m.a)
    t.wait(running, 20, "A starts it")
    t.eq(c.sh(f"dd if={m.dev} bs=4k skip=1024 count=16 iflag=direct status=none | tr -s a-z"), "n",
         "what was flushed before the boot")
    m.said("data-b is copied whole: it is not in the array")
    t.ok(m.healed(), "B is whole")
    t.eq((m.on_disk(m.a, 4), m.on_disk(m.b, 4)), ("n", "n"), "in the end")
    t.eq(m.compare("both legs are back"), "", "the halves")
    t.wait(lambda: m.record() == ["data-a", "data-b"], 20, "both are recorded")

    t.log("--- the client loses its power once more; A is there, which has everything")
    m.watcher = None
    reboot(t)
    c.link(1, False)
    there(t, m.a)
    m.watch()
    t.wait(running, 30, "A is started after wait=")
    m.put("p", 4, flush=True)
    t.wait(lambda: m.record() == ["data-a"], 20, "the record")
    c.link(1, True)
    there(t, m.b)
    m.said("data-b is copied whole: it is not in the array")
    t.ok(m.healed(), "B is whole")
    t.eq(m.compare("a boot with one leg"), "", "the halves")
    m.end()
    M.leave(t)
