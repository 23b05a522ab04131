# SPDX-License-Identifier: GPL-2.0-only
description = ("two paths between ours and the kernel's: "
               "both carry I/O, each is lost and comes back under verified writes")
long = True
deadline = 1200
links = 2
import faults as F
import interop
needs = interop.NEEDS
mem = interop.MEM
programs = interop.PROGRAMS


def sent(t):
    return [int(t.client.sh(f"hw_counter {i} sent_pkts")) for i in range(2)]


def lose(t, pair, link, sessions):
    """Verified writes while a link goes and returns; the kernel's client looks for it every
    half minute only, so it is told."""
    c = t.client
    io = c.spawn(f"fio_verify {pair.dev} 1m --bsrange=4k-4k --iodepth=4 --time_based "
                 "--runtime=12 --output=/dev/null")
    c.sh("sleep 2")
    c.link(link, False)
    c.sh(f"{pair.client} wait_for 60 paths_up s1 1", timeout=100)
    before = sent(t)
    # the kernel's client of 5.10 moves what was on the lost path half a minute
    # later: all of it may have been
    t.wait(lambda: sent(t)[1 - link] - before[1 - link] > 20, 4 if pair.ours else 60,
           "I/O on the other path")
    c.link(link, True)
    c.sh(f"net_ping 2")
    if not pair.ours:
        c.sh(f"wait_for 40 eval \"echo 1 > {sessions}/s1/paths/*10.0.{link}.2/reconnect\"",
             timeout=80)
    c.sh(f"{pair.client} wait_for 40 paths_up s1 2", timeout=80)
    t.eq(io.wait(120), 0, f"verified I/O over the loss of link {link}: {io.out()[-1000:]}")


def faults(t, pair):
    """Our client at the kernel's server, under the integrity checker: nothing fails,
    and it is as quick as at ours."""
    c, s = t.client, t.server
    both = lambda up: [c.link(i, up) for i in (0, 1)]
    # what fio left
    c.sh(f"dd if=/dev/zero of={pair.dev} bs=8k count=1024 oflag=direct status=none", timeout=60)
    w = F.Work(t, c, pair.dev)
    row = w.fault("F1", "one of two paths: carrier down", lambda: c.link(1, False),
                  lambda: c.link(1, True), down=[1], recover=60)
    w.limit(row, Tdet=1, Tstall=2, Nerr=0)
    row = w.fault("F2", "one of two paths: silence", lambda: s.link(1, False),
                  lambda: s.link(1, True), down=[1], recover=60)
    w.limit(row, Tdet=6, Tstall=7, Nerr=0)
    row = w.fault("F3", "one of two paths: answers are lost", lambda: s.sh("net_loss 0 100"),
                  lambda: s.sh("net_loss 0 0"), down=[0], recover=60)
    w.limit(row, Tdet=6, Tstall=7, Nerr=0)
    # The kernel's server takes a path back only when it has found the old one dead: a
    # heartbeat after 5 s, and its retries.
    row = w.fault("F5", "all paths: carrier down", lambda: both(False), lambda: both(True), hold=15,
                  down=[0, 1], recover=60)
    w.limit(row, Trec=3, Nerr=0)
    w.end("/dev/testdisk0", unmap=False)


def paths(t, client, server):
    pair = interop.Pair(t, client, server)
    c, s = t.client, t.server
    sessions = f"/sys/class/{client.replace('nbd', 'trs')}-client"

    t.log(f"--- {client} {server}")
    pair.serve()
    s.sh("modprobe ibnbd-testdisk size_mb=16")
    pair.dev = pair.map("testdisk0")
    c.sh(f"{pair.client} wait_for 10 paths_up s1 2; echo round-robin > {sessions}/s1/mpath_policy")
    before = sent(t)
    c.sh(f"fio_verify {pair.dev} 1m --bsrange=4k-4k --iodepth=4 --output=/dev/null", timeout=60)
    rates = [b - a for a, b in zip(before, sent(t))]
    t.ok(min(rates) > 100, f"both links carry I/O: {rates}")
    for link in 0, 1:
        lose(t, pair, link, sessions)
    if pair.ours:
        faults(t, pair)
    # one that the administrator takes out and puts back
    path = c.sh(f"ls {sessions}/s1/paths | grep '10.0.1.2$'")
    c.sh(f"echo 1 > {sessions}/s1/paths/{path}/remove_path; {pair.client} paths_up s1 1")
    c.sh(f"echo {path} > {sessions}/s1/add_path; {pair.client} wait_for 10 paths_up s1 2")
    c.sh(f"fio_verify {pair.dev} 256k --bsrange=4k-4k --iodepth=4 --output=/dev/null", timeout=60)
    pair.unmap(pair.dev)
    pair.stop()
    s.sh("unload ibnbd_testdisk")


def user_paths(t):
    """libibnbd at the kernel's server, under the integrity checker: a path falls silent, both links
    go dark, the server's modules go and return."""
    c, s, pair = t.client, t.server, interop.UserClient(t)
    pair.serve()
    s.sh("modprobe ibnbd-testdisk size_mb=16")
    dev = pair.map("testdisk0")
    up = lambda n, what: t.wait(
        lambda: s.sh("ls /sys/class/rtrs-server/nbd0/paths").count("@") == n, 60, what)
    w = F.Work(t, c, dev, stack="libibnbd", flush=20, states="/sys/block/nbd0/size")
    up(2, "both paths")
    for link in 0, 1:
        s.link(link, False)
        up(1, f"link {link} is silent, and the server has noticed")
        t.wait(w.flows, 20, "I/O on the other path")
        s.link(link, True)
        up(2, f"the path of link {link} is back")
    for i in range(2):
        c.link(i, False)
    c.sh("sleep 15")
    for i in range(2):
        c.link(i, True)
    t.wait(w.flows, 40, "both links were dark: I/O flows")
    pair.stop()
    s.sh("sleep 2")
    pair.serve()
    t.wait(w.flows, 60, "the server's modules were loaded again: I/O flows")
    w.stop()
    pair.unmap(dev)
    F.prove(t, s, "/dev/testdisk0", [w], w.blocks)
    pair.stop()
    s.sh("unload ibnbd_testdisk")


def run(t):
    interop.with_kernel_server(t, lambda: paths(t, interop.OURS, interop.KERNEL))
    for server in interop.our_servers(t):
        interop.with_kernel_client(t, lambda: paths(t, interop.KERNEL, server))
    if interop.has_user(t):
        interop.with_kernel_server(t, lambda: user_paths(t))
