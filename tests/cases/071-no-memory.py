# SPDX-License-Identifier: GPL-2.0-only
"""Each place in our modules is failed once, at the first allocation that it makes or has made on its behalf."""
description = "each allocation of ours fails once while disks, paths and sessions come and go: no crash, no leak, and then it works"
deadline = 900
links = 2
long = True
allow = ["vmalloc error", "page allocation failure", "kmem_cache_create"]     # how the kernel says that it has no memory

# What an operation may do when an allocation fails on its way: succeed (retried, or not needed) or refuse in words.
MODULES = {"client": "ibtrs_client ibnbd_client ibtrs_core", "server": "ibtrs_server ibnbd_server ibtrs_core"}
FAIL = "/sys/module/ibnbd_failnth/parameters"

ARM = f"""
modprobe ibnbd-failnth first=1 depth=DEPTH
r=
for m in MODULES; do
	[ -e /sys/module/$m/sections/.text ] || continue
	b=$(cat /sys/module/$m/sections/.text)
	r+=,$b,$(printf 0x%x $((b + $(cat /sys/module/$m/coresize))))
done
echo ${{r#,}} > {FAIL}/range
echo NTH > {FAIL}/nth
"""
DISARM = f"cat {FAIL}/hit; echo 0 > {FAIL}/nth"


def sweep(t, what, side, act, undo, depth=10, most=250):
    """Let the 1st, 2nd, .. allocation fail during act (a script of the client), until it needs no more of them."""
    where, modules, hits, refused = getattr(t, side), MODULES[side], 0, 0
    for n in range(1, most):
        where.sh(ARM.replace("DEPTH", str(depth)).replace("MODULES", modules).replace("NTH", str(n)))
        rc, out = t.client.rc(act, 60)
        hit = where.sh(DISARM)
        if rc:
            refused += 1
            t.ok(hit, f"{what}, allocation {n}: refused, though nothing had failed:\n{out}")
        t.client.sh(undo, 60)
        if not hit:
            break
        hits += 1
    else:
        t.fail(f"{what}: still not through after {most} allocations")
    t.eq(rc, 0, f"{what}, with all its memory")
    t.ok(hits > 0, f"{what}: nothing was allocated")
    t.log(f"{what}: {hits} allocations of the {side} failed, {refused} refusals")


def run(t):
    c, s = t.client, t.server
    words = "hold=3"

    s.sh("serve sess_queue_depth=16 max_chunk_size=8192; ram_disks 2 4")
    c.sh("modprobe ibnbd-client")
    all_gone = "for d in /sys/block/ibnbd*; do [ ! -e $d ] || unmap ${d##*/} force; done; wait_for 15 test ! -e /sys/class/ibtrs-client/s1"
    one = "path=ip:10.0.0.1@ip:10.0.0.2"

    for side in "client", "server":
        sweep(t, "map", side, f"map ram0 {one} {words} > /dev/null", all_gone)
        c.sh(f"map ram0 {one} {words}")
        sweep(t, "a second disk", side, f"map ram1 {words} > /dev/null", "d=$(dev_of ram1) && unmap $d || true")
        sweep(t, "another path", side, "echo ip:10.0.1.1@ip:10.0.1.2 > /sys/class/ibtrs-client/s1/add_path",
              "cd /sys/class/ibtrs-client/s1/paths; [ ! -e *@ip:10.0.1.2 ] || echo 1 > *@ip:10.0.1.2/remove_path")
        path = "/sys/class/ibtrs-client/s1/paths/*@ip:10.0.0.2"
        sweep(t, "reconnect", side, f"echo 1 > {path}/reconnect", f"wait_for 20 paths_up s1 1; wait_for 20 eval '[ $(dev_attr ibnbd0 state) = open ]'")
        sweep(t, "unmap", side, "unmap ibnbd0", f"wait_for 15 test ! -e /sys/class/ibtrs-client/s1; map ram0 {one} {words} > /dev/null")
        c.sh(f"dd if=/dev/ibnbd0 of=/dev/null bs=4k count=64 iflag=direct status=none; {all_gone}")
