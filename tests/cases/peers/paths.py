# SPDX-License-Identifier: GPL-2.0-only
description = ("two paths between ours and the kernel's: "
               "both carry I/O, each is lost and comes back under verified writes")
long = True
deadline = 2400
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


def paths(t, client, server):
    pair = interop.Pair(t, client, server)
    c, s = t.client, t.server
    sessions = f"/sys/class/{client.replace('nbd', 'trs')}-client"

    t.log(f"--- {client} {server}")
    pair.serve("" if pair.peer else interop.FEW)
    s.sh("modprobe ibnbd-testdisk size_mb=16")
    pair.dev = pair.map("testdisk0")
    c.sh(f"{pair.client} wait_for 10 paths_up s1 2; echo round-robin > {sessions}/s1/mpath_policy")
    before = sent(t)
    c.sh(f"fio_verify {pair.dev} 1m --bsrange=4k-4k --iodepth=4 --output=/dev/null", timeout=60)
    rates = [b - a for a, b in zip(before, sent(t))]
    t.ok(min(rates) > 100, f"both links carry I/O: {rates}")
    for link in 0, 1:
        lose(t, pair, link, sessions)
    pair.faults(pair.dev)
    if not pair.peer:
        pair.strangers(pair.dev)
        pair.thief(pair.dev)
    # one that the administrator takes out and puts back
    path = c.sh(f"ls {sessions}/s1/paths | grep '10.0.1.2$'")
    c.sh(f"echo 1 > {sessions}/s1/paths/{path}/remove_path; {pair.client} paths_up s1 1")
    c.sh(f"echo {path} > {sessions}/s1/add_path; {pair.client} wait_for 10 paths_up s1 2")
    c.sh(f"fio_verify {pair.dev} 256k --bsrange=4k-4k --iodepth=4 --output=/dev/null", timeout=60)
    pair.unmap(pair.dev)
    pair.stop()
    s.sh("unload ibnbd_testdisk")


def user_paths(t):
    """libibnbd at the kernel's server, whose modules go and return, too."""
    s, pair = t.server, interop.UserClient(t)
    pair.serve()
    s.sh("modprobe ibnbd-testdisk size_mb=16")
    dev = pair.map("testdisk0")
    pair.faults(dev)
    w = pair.work(dev)
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
