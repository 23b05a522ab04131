# SPDX-License-Identifier: GPL-2.0-only
"""The legs of a mirror, A and B.  B is dropped, what is written then is on A alone, and the client
loses its power.  When it boots, only B's server is there; then A's is back, too.  A boot with A
alone follows.  At last both are there, equal to md, and by the record B lacks something: at a
boot, and in an array that the watch finds started."""
description = ("a client boots, and of its mirror only the leg is there that was dropped before, "
               "or both, and md believes both: only the record counts, and who is not in it is "
               "copied whole")
long = True
vms = 3
links = 2
deadline = 280
import mirrors as M, re
programs = M.PROGRAMS
# md copies 1 MB a second where it does not know that a disk is idle
FAST = "echo 100000 > /proc/sys/dev/raid/speed_limit_min"
ETC = [f"/etc/ibnbd/{f}.conf" for f in ("mirrors.d/data", "maps.conf.d/data-a",
                                        "maps.conf.d/data-b")]


def reboot(t):
    """/etc of a machine does not outlive a boot; its /var/lib/ibnbd does."""
    c = t.client
    kept = [c.sh(f"cat {f}") for f in ETC]
    c.sh("sync -f /var/lib/ibnbd")
    c.kill()
    c.boot()
    M.rules(c)
    c.sh(f"modprobe raid1; {FAST}; mkdir -p /etc/ibnbd/mirrors.d /etc/ibnbd/maps.conf.d")
    for f, text in zip(ETC, kept):
        c.put("kept", text + "\n")
        c.sh(f"cp /h/kept {f}; sed -i 's/^wait = .*/wait = 8s/' {ETC[0]}")


def there(t, leg):
    t.client.sh(f"wait_for 20 eval 'ibnbd map {leg.name} 2> /dev/null'; "
                "udevadm settle --timeout=20", timeout=60)
    leg.find()


def left_alone(t, leg):
    """md's rules have been run for it, and have not seen what it is."""
    said = t.client.sh(f"udevadm info -q property {leg.dev}")
    t.match(said, "ID_FS_TYPE_HELD=linux_raid_member")
    t.ok(not re.search("^MD_", said, re.M), f"{leg.name} is none of the business of md's rules")


def run(t):
    c, (s1, s2) = t.client, M.machines(t)
    c.sh(FAST)
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
    there(t, m.b)
    left_alone(t, m.b)
    m.watch()
    m.said("not started, no leg that is there has everything; it waits for data-a")
    t.ok(c.rc("grep '^md' /proc/mdstat")[0], "nobody has taken B")
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

    t.log("--- both are equal to md, and B is not: by the record only A has everything")
    t.wait(lambda: m.record() == ["data-a", "data-b"], 20, "both are recorded")
    m.unwatch()
    c.sh("ibnbd mirror stop data")
    m.spoil(m.b, "x", 4)
    c.sh(f"echo data-a > {M.RECORD}")
    reboot(t)
    there(t, m.a)
    there(t, m.b)
    t.eq(*[re.findall("(Events|Array State) : (.*)", c.sh(f"mdadm --examine {leg.dev}"))
           for leg in m.legs], "what md goes by")
    left_alone(t, m.a)
    left_alone(t, m.b)
    t.ok(c.rc("grep '^md' /proc/mdstat")[0], "nobody has started it")
    m.watch()
    t.wait(running, 20, "A starts it")
    m.said("data-b is copied whole: it is not in the array")
    t.ok(m.healed(), "B is whole")
    t.eq((m.on_disk(m.a, 4), m.on_disk(m.b, 4)), ("p", "p"), "in the end")
    t.eq(m.compare("a boot with both legs"), "", "the halves")
    t.wait(lambda: m.record() == ["data-a", "data-b"], 20, "both are recorded")

    t.log("--- the same in an array that the watch finds started, by what did not ask the record")
    m.unwatch()
    m.spoil(m.b, "x", 4)
    c.sh(f"echo data-a > {M.RECORD}")
    m.watch()
    m.said("data-b is copied whole: it is not in the record, and md took it for in sync")
    t.ok(m.healed(), "B is whole")
    t.eq(m.compare("an array that runs"), "", "the halves")
    t.wait(lambda: m.record() == ["data-a", "data-b"], 20, "both are recorded")
    m.end()
    M.leave(t)
