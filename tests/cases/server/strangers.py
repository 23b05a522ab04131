# SPDX-License-Identifier: GPL-2.0-only
description = ("an idle session costs its chunks and little more; "
               "who has not said its name costs no chunks, is capped, and is forgotten")
crowd = True
deadline = 300

# Slots and bytes of a chunk, and connections of a path with 2 CPUs
DEPTH, CHUNK, CONNS = 512, 135168, 3
# What the kernel may have put aside for itself between two looks at its memory
NOISE_KIB = 3072


def memory(g):
    return int(g.sh("sleep 1; memory_kib"))


def knock(t, words, want):
    """What the server answers to a connection request, and to each of many."""
    t.eq(t.client.sh(f"knock 10.0.0.2 {words}").splitlines(), [want], words)


def check_idle(t):
    """Spec: at most QD x CHUNK per path, and 1 MiB per connection."""
    c, s = t.client, t.server
    c.sh("unmap $(map ram0)")
    s.sh("unload ibnbd_server ibtrs_server; serve")
    before = memory(s)
    dev = c.sh("map ram0")
    most = DEPTH * CHUNK // 1024 + 1024 * CONNS
    t.below(before - memory(s), most, "KiB that an idle session takes")
    c.sh(f"unmap {dev}")
    s.sh("unload ibnbd_server ibtrs_server; serve handshake_timeout_s=5")
    t.below(before - memory(s), NOISE_KIB, "KiB that did not come back")


def check_half_open(t):
    c, s = t.client, t.server
    before = memory(s)
    waiting = c.spawn("knock 10.0.0.2 count=16 hold=100")
    t.wait(lambda: len(waiting.out().splitlines()) == 16, 10, "16 knocks")
    took = before - memory(s)
    t.below(took, 16 * 1024 + NOISE_KIB,
            "KiB for 16 connections without a name; chunks would be 1 GiB")
    t.eq(s.sh("ls /sys/class/ibtrs-server 2> /dev/null | grep -v ctl || true"), "",
         "sessions on display")
    t.eq(waiting.out().splitlines(), ["accepted depth 512 flags 0"] * 16, "answers")
    # forgotten after handshake_timeout_s, although the client still holds on
    t.wait(lambda: len(kernel_lines(s, "did not complete the handshake in time")) > 0, 15,
           "the server gives up waiting")
    s.sh("sleep 3")
    t.below(before - memory(s), NOISE_KIB, "KiB still held for strangers who never went on")
    waiting.kill()


def kernel_lines(g, words):
    return [l for l in g.kernel_news().splitlines() if words in l]


def check_caps(t):
    c, s = t.client, t.server
    params = "/sys/module/ibtrs_server/parameters"
    full = "refused 28"     # ENOSPC
    ok = "accepted depth 512 flags 0"

    s.sh(f"echo 20 > {params}/handshake_timeout_s; echo 3 > {params}/max_paths_half_open_per_peer; "
         f"echo 5 > {params}/max_paths_half_open")
    one = c.spawn("knock 10.0.0.2 count=4 hold=100")
    t.wait(lambda: len(one.out().splitlines()) == 4, 10, "four knocks")
    t.eq(one.out().splitlines(), [ok] * 3 + [full], "a peer's half-open paths")
    two = c.spawn("knock fd00::2 count=3 hold=100")
    t.wait(lambda: len(two.out().splitlines()) == 3, 10, "three knocks from another address")
    t.eq(two.out().splitlines(), [ok] * 2 + [full], "half-open paths of all")
    t.match(s.kernel_news(), "max_paths_half_open_per_peer allows", "the log names the parameter")
    # those who came in earnest wait for their turn, and get it
    c.fails("map_line 'sessname=s1 device_path=ram0 path=ip:10.0.0.1@ip:10.0.0.2'", "No space left")
    one.kill(); two.kill()
    s.sh(f"echo 64 > {params}/max_paths_half_open_per_peer; "
         f"echo 256 > {params}/max_paths_half_open")
    dev = c.sh("map ram0")
    s.sh(f"echo 1 > {params}/max_sessions_per_peer")
    knock(t, "", full)
    t.match(s.kernel_news(), "max_sessions_per_peer allows", "the log names the parameter")
    s.sh(f"echo 64 > {params}/max_sessions_per_peer; echo 1 > {params}/max_sessions")
    t.eq(c.sh("knock fd00::2"), full, "sessions of all")
    s.sh(f"echo 256 > {params}/max_sessions; echo 2 > {params}/max_conns")
    knock(t, "nr=3", "refused 104")
    s.sh(f"echo 513 > {params}/max_conns")
    c.sh(f"dd if={dev} of=/dev/null bs=64k count=4 iflag=direct status=none; unmap {dev}")


def check_memory_cap(t):
    """One session fits, two do not: the second one is refused, the server says why,
    the first one notices nothing."""
    c, s = t.client, t.server
    s.sh("unload ibnbd_server ibtrs_server; serve max_memory_mb=100")
    dev = c.sh("map ram0")
    pulse = c.spawn(f"iopulse {dev} 2 1000 rw 5000")
    second = "map ram0 sessname=s2 access_mode=ro"
    c.fails(second, "", timeout=60)
    t.match(s.kernel_news(), "path refused: as much memory in use as max_memory_mb allows",
            "the log says why")
    c.sh("wait_for 20 test ! -e /sys/class/ibtrs-client/s2; paths_up s1 1; "
         "sleep 1; pkill -TERM iopulse")
    t.eq(pulse.wait(20), 0, "the first one goes on: " + pulse.out())
    # with room for both it comes in
    s.sh("echo 200 > /sys/module/ibtrs_server/parameters/max_memory_mb")
    c.sh(f"unmap $({second}); unmap {dev}", timeout=60)


def check_refusals(t):
    """The table of section 2 of docs/protocol.md."""
    c = t.client
    for words in ("patch=2:0000", "patch=4:0001", "patch=4:0003", "nr=0", "nr=4097 cid=1",
                  "cid=2 nr=2", "len=0", "cid=1"):
        knock(t, words, "refused 104")
    knock(t, "first=0", "refused 6")
    first = c.spawn("knock 10.0.0.2 session=7 path=7 hold=100")
    t.wait(lambda: first.out(), 10, "the first connection")
    t.eq(first.out().strip(), "accepted depth 512 flags 0", "the first connection")
    knock(t, "session=7 path=7", "refused 104")             # cid 0 again, no newer incarnation
    knock(t, "session=7 path=7 cid=1 nr=3", "refused 104")  # another number of connections
    knock(t, "session=7 path=8", "refused 17")              # the same pair of addresses
    t.eq(c.sh("knock fd00::2 session=7 path=7 cid=1"), "refused 104",
         "another client address on the same path")
    # a newer incarnation: first the old one goes
    knock(t, "session=7 path=7 recon=2", "refused 16")
    t.wait(lambda: c.sh("knock 10.0.0.2 session=7 path=7 recon=3").startswith("accepted"), 15,
           "and then the new one comes in")
    # what was never said in the protocol is no reason to refuse
    t.match(c.sh("knock 10.0.0.2 patch=45:fb4958ff"), "accepted", "unknown extensions")
    t.eq(c.sh("knock 10.0.0.2 patch=45:044958ff"), "refused 129", "AUTH, and no proof")
    first.kill()


def run(t):
    c, s = t.client, t.server
    s.sh("serve; ram_disks 1 16")
    check_idle(t)
    check_half_open(t)
    check_caps(t)
    check_memory_cap(t)
    check_refusals(t)
    c.sh("unmap $(map ram0)")
