# SPDX-License-Identifier: GPL-2.0-only
description = ("a policy that allows less closes what it does not allow, and says whose; one with "
               "a mistake, or in pieces, changes nothing; two writers do not mix")
crowd = True
vms = 3

POLICY = "/sys/class/ibnbd-server/ctl/policy"
OPENS = "/run/devices/ram0/sessions"


def check_mistakes(t, reader):
    """By the file of the kernel's server."""
    s = t.server
    now = lambda: s.sh(f"cat {POLICY}")
    put_line = lambda text: f"printf '{text}' > {POLICY}"
    s.kernel_news()
    before = now()
    # bash writes line by line: what comes first must not count alone
    for text, why in (("* deny\\n\\n ram0  wr\\nend\\n",
                       'line 3, column 8: "wr": neither a peer nor an access'),
                      ("end\\n", "there is nothing before"),
                      ("x addr:10.0.0.0/33 rw\\nend\\n",
                       'line 1, column 8: "10.0.0.0/33": the prefix length')):
        s.fails(put_line(text), "Invalid argument")
        t.match(s.kernel_news(), why, "the server says where")
        t.eq(now(), before, "the policy before stays")
    s.sh(put_line("* deny\\n"))
    t.match(s.kernel_news(), 'it counts when its last line, "end", has come', "one without an end")
    t.eq(now(), before, "it is not taken")
    s.fails(f"head -c 70000 /dev/zero | tr '\\0' '#' > /tmp/long; cat /tmp/long > {POLICY}",
            "too long|too big|Argument list")
    t.eq(now(), before, "the policy before stays")
    # cut where a line ends, it would be a policy of its own, without what stands behind
    s.fails("{ head -c 65528 /dev/zero | tr '\\0' '#'; printf '\\n* rw\\n\\n\\nram1 deny\\n'; } > "
            f"/tmp/cut; {{ cat /tmp/cut || true; echo end; }} > {POLICY}", "Invalid argument")
    t.match(s.kernel_news(), "a piece before this one was refused", "the server says why")
    t.eq(now(), before, "the policy before stays")
    t.ok("ERR" not in reader.out(), "nobody is closed for it")


def check_two_writers(t):
    s = t.server
    now = lambda: s.sh(f"cat {POLICY}")
    s.sh("echo '# q' > /tmp/q")
    s.fails(f"exec 3> {POLICY}; echo '* deny' >&3; {{ cat /tmp/q; echo end; }} > {POLICY}; "
            "echo end >&3", "Invalid argument")
    t.match(s.kernel_news(), "does not follow the one before it", "the one who began first")
    t.eq(now(), "# q", "the whole one counts")
    s.fails(f"exec 3> {POLICY}; echo '* rw' >&3; echo end >&3; echo '* deny' >&3",
            "Invalid argument")
    t.eq(now(), "* rw", "behind the end nothing counts")


def check_mistakes_user(t, reader):
    """By the file of ibnbd-serverd, and a signal."""
    for text, why in (("* deny\\n\\n ram0  wr\\n", 'policy.conf:3:8: .*"wr": neither a peer nor'),
                      ("x addr:10.0.0.0/33 rw\\n", 'policy.conf:1:8: .*the prefix length')):
        t.server.fails(f"printf '{text}' | policy", why)
    t.match(t.server.server_news(), "a mistake: the one before stays", "the server says so")
    t.ok("ERR" not in reader.out(), "nobody is closed for it")


def run(t):
    c, s, d = t.client, t.server, t.client2
    t.allow(r"I/O error, dev ibnbd|Buffer I/O error on dev ibnbd")
    put = lambda dev: f"dd if=/dev/zero of={dev} bs=4k count=1 oflag=direct status=none"
    take = lambda text: s.sh(f"policy <<'EOF'\n{text}\nEOF\n")
    user = s.serves_user()

    s.sh("serve; ram_disks 2 16")
    ro, rw = c.sh("map ram0 access_mode=ro"), d.sh("map ram0 sessname=s2")
    other = d.sh("map ram1 sessname=s2")
    reader = c.spawn(f"iopulse {ro} 2 500 r 5000")
    writer = d.spawn(f"iopulse {rw} 2 500 rw 5000")
    neighbour = d.spawn(f"iopulse {other} 2 500 rw 5000")
    t.wait(lambda: all("done=" in job.out() for job in (reader, writer, neighbour)), 20,
           "all three work")

    t.log("--- nothing changes for what is allowed")
    take("ram0 session:s2 rw\nram0 ro")
    t.eq(s.sh(f"ls {OPENS}").split(), ["s1", "s2"], "who has it open")
    t.ok("is closed" not in s.server_news(), "nobody is closed")

    t.log("--- the writer may only read from now on")
    take("ram0 session:s2 ro\nram0 ro")
    t.match(s.server_news(), "session s2: ram0 is closed: line 1 of the policy says ro",
            "the server says whose")
    t.wait(lambda: s.sh(f"ls {OPENS}").split() == ["s1"], 10, "the writer's mapping is gone")
    t.wait(lambda: "ERR" in writer.out(), 10, "the writer notices")
    t.wait(lambda: d.sh(f"dev_attr {rw} state_detail") == "fenced", 10, "its device is fenced")
    writer.kill()
    d.fails(f"echo 1 > /sys/block/{rw[5:]}/ibnbd/remap_device", "")
    t.match(d.sh("cat /sys/class/ibnbd-client/ctl/last_error"),
            "the server says: the server's policy lets this client only read", "remap")
    t.ok("ERR" not in reader.out(), "the reader goes on")
    t.ok("ERR" not in neighbour.out(), "and so does another disk of the writer's session")

    t.log("--- a second writer that only the word migration let in goes with it")
    take("ram1 session:s1 migration")
    second = c.sh("map ram1 access_mode=migration")
    c.sh(put(second))
    take("ram1 session:s1 migration\nram0 ro")
    c.sh(put(second))
    s.server_news()
    take("ram0 ro")
    t.match(s.server_news(), "session s1: ram1 is closed: the policy does not say migration any "
            "more", "the server says whose")
    t.wait(lambda: c.sh(f"dev_attr {second} state_detail") == "fenced", 10, "its device is fenced")
    c.fails("map ram1 access_mode=migration sessname=s3", "not permitted")
    c.sh(f"unmap {second}")
    t.ok("ERR" not in neighbour.out(), "the first writer goes on")
    t.ok("ERR" not in reader.out(), "and so does the reader")
    take("ram0 session:s2 ro\nram0 ro")

    t.log("--- a mistake changes nothing")
    (check_mistakes_user if user else check_mistakes)(t, reader)

    t.log("--- more than a page")
    s.sh("{ for i in $(seq 600); do echo \"disk$i session:client$i rw\"; done; echo 'ram0 deny'; } "
         "> /tmp/p; policy < /tmp/p")
    if not user:
        s.sh(f"cmp /tmp/p {POLICY}")
    t.match(s.server_news(), "session s1: ram0 is closed: line 601 of the policy says deny",
            "the last line counts")
    t.wait(lambda: "ERR" in reader.out(), 10, "the reader notices")
    reader.kill()
    if user:
        take("* rw")
    else:
        check_two_writers(t)    # and in the end the same

    t.log("--- as much as before")
    d.sh(f"echo 1 > /sys/block/{rw[5:]}/ibnbd/remap_device; {put(rw)}")
    take("")
    c.sh("unmap $(map ram1 access_mode=ro)")
    t.ok("ERR" not in neighbour.out(), "the other disk was never disturbed")
    neighbour.kill()
