# SPDX-License-Identifier: GPL-2.0-only
"""Each place in our modules is failed at the first allocations that it makes or has made
on its behalf: FIRST of them, so that what a loop has done before is undone, too; all of
them where an operation has few."""
description = ("each allocation of ours fails once while disks, paths and sessions come and go: "
               "no crash, no leak, and then it works")
deadline = 1800
links = 2
long = True
target = "check-memory"
# how the kernel says that it has no memory
allow = ["vmalloc error", "page allocation failure", "kmem_cache_create"]

# What an operation may do when an allocation fails on its way: succeed (retried, or
# not needed) or refuse in words.
MODULES = {"client": "ibtrs_client ibnbd_client ibtrs_core",
           "server": "ibtrs_server ibnbd_server ibtrs_core"}
FAIL = "/sys/module/ibnbd_failnth/parameters"
FIRST = 3
DEPTH = 10      # callers up the stack

# the other side may still be at work when the command has ended
DISARM = f"""
old= i=0
while [ -z "$(cat {FAIL}/hit)" ] && n=$(cat {FAIL}/seen) && [ "$n" != "$old" ] &&
        [ $((i++)) -lt 10 ]; do
	old=$n
	sleep 0.2
done
echo 0 > {FAIL}/nth
cat {FAIL}/seen {FAIL}/hit
"""


def sweep(t, what, side, act, undo, first=FIRST, before=None, on="client", some=True, most=1500):
    """Let the 1st, 2nd, .. allocation of a side fail during act, a script of a machine,
    until it needs no more of them."""
    where, who, refused = getattr(t, side), getattr(t, on), 0
    for n in range(1, most):
        if before:
            before()
        where.sh(f"fail_nth {n} {MODULES[side]} first={first} depth={DEPTH} again=0")
        rc, out = who.rc(act, 60)
        seen, _, hit = where.sh(DISARM).partition("\n")
        if rc:
            refused += 1
            t.ok(hit, f"{what}, allocation {n}: refused, though nothing had failed:\n{out}")
        undo()
        if not hit:
            break
    else:
        t.fail(f"{what}: still not through after {most} allocations")
    t.eq(rc, 0, f"{what}, with all its memory")
    t.ok(int(seen) < n, f"{what}: of {seen} allocations the {n}. should have failed")
    t.ok(n > 1 or not some, f"{what}: nothing was allocated")
    t.log(f"{what}: {n - 1} allocations of the {side} failed, {refused} refusals")


def run(t):
    c, s = t.client, t.server
    words = "hold=3"
    one = "path=ip:10.0.0.1@ip:10.0.0.2"
    session = "/sys/class/ibtrs-client/s1"
    path = f"{session}/paths/*@ip:10.0.0.2"

    def client(script):
        return lambda: c.sh(script, 60)

    def serve():
        s.sh("serve sess_queue_depth=4 max_chunk_size=8192 writer_file=/run/writers")

    serve()
    s.sh("ram_disks 2 4")
    c.sh("modprobe ibnbd-client")
    all_gone = ("for d in /sys/block/ibnbd*; do [ ! -e $d ] || unmap ${d##*/} force; done; "
                f"wait_for 15 test ! -e {session}")
    is_open = "wait_for 20 paths_up s1 1; wait_for 20 eval '[ $(dev_attr ibnbd0 state) = open ]'"

    for side in "client", "server":
        sweep(t, "map", side, f"map ram0 {one} {words} > /dev/null", client(all_gone))
        c.sh(f"map ram0 {one} {words}")
        sweep(t, "a second disk", side, f"map ram1 {words} > /dev/null",
              client("d=$(dev_of ram1) && unmap $d || true"))
        sweep(t, "another path", side, f"echo ip:10.0.1.1@ip:10.0.1.2 > {session}/add_path",
              client(f"cd {session}/paths; "
                     "[ ! -e *@ip:10.0.1.2 ] || echo 1 > *@ip:10.0.1.2/remove_path"))
        sweep(t, "reconnect", side, f"echo 1 > {path}/reconnect", client(is_open))
        sweep(t, "unmap", side, "unmap ibnbd0",
              client(f"wait_for 15 test ! -e {session}; map ram0 {one} {words} > /dev/null"),
              first=0)
        c.sh(f"dd if=/dev/ibnbd0 of=/dev/null bs=4k count=64 iflag=direct status=none")
        if side == "server":
            sweep(t, "unload", side, "unload ibnbd_server ibtrs_server ibtrs_core",
                  lambda: (serve(), c.sh(is_open, 60)), first=0, on=side)
        c.sh(all_gone)
    # as soon as the disk is gone, the rest of it still on its way
    sweep(t, "unload", "client", "unload ibnbd_client ibtrs_client ibtrs_core", lambda: None,
          first=0, some=False,
          before=client(f"d=$(map ram0 {one} {words}); "
                        "echo normal > /sys/block/${d#/dev/}/ibnbd/unmap_device; "
                        "while [ -e /sys/block/${d#/dev/} ]; do :; done"))
