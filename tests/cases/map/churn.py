# SPDX-License-Identifier: GPL-2.0-only
"""Everything an administrator can do, in random order and by several at once, under I/O;
the server's modules are unloaded now and then.  A single command may well be refused; none
may hang, and in the end everything must go away.  Sessions are small (queue depth 4, chunks
of 8 KiB).  IBNBD_CHURN_CYCLES=2000 for a long run (make churn); IBNBD_SEED repeats the
choices of one, though not its timing."""
description = ("map, unmap, paths, sysfs and unloading at random under I/O: "
               "nothing hangs, nothing stays behind")
long = True
crowd = True
links = 2
disk = 64
import os, random, re

LONG = int(os.environ.get("IBNBD_CHURN_CYCLES") or 0)
CYCLES, SECONDS = (LONG, 4 * LONG) if LONG else (60, 25)    # whatever ends first
deadline = 90 + SECONDS
NOISE_KIB = 6144    # what the kernel may keep for itself; a page for each of 2000 cycles is more

SCRIPT = r"""
RANDOM=@SEED@
set +e
S=/sys/class/ibtrs-client
try() {
	timeout -s KILL $((25 * SLOW)) sh -c "$1" > /dev/null 2>&1
	rc=$?
	[ $rc -ne 137 ] || echo "HANGS: $1"
	return 0
}
unload_client() {
	local rc said
	said=$(timeout -s KILL $((25 * SLOW)) modprobe -r ibnbd-client 2>&1)
	rc=$?
	if [ $rc = 137 ]; then
		echo "HANGS: modprobe -r ibnbd-client"
	elif [ $rc != 0 ] &&
			! grep -qiE 'in use|busy|unavailable|not currently loaded' <<< "$said"; then
		echo "REFUSED: status $rc $said"
	fi
	try "modprobe ibnbd-client"
}
act() {
	local e=testdisk$((RANDOM % 3)) s=c$((RANDOM % 2)) p=ip:10.0.$((RANDOM % 2)) d
	p=$p.1@$p.2
	d=$(readlink /sys/class/ibnbd-client/ctl/devices/$e@$s)
	d=${d##*/}
	case $((RANDOM % 13)) in
	0|1|2|3)
		line="sessname=$s device_path=$e path=$p access_mode=migration"
		try "echo '$line hold=$((RANDOM % 4))' > /sys/class/ibnbd-client/ctl/map_device" ;;
	4) [ -z "$d" ] || try "echo normal > /sys/block/$d/ibnbd/unmap_device" ;;
	5) [ -z "$d" ] || try "echo force > /sys/block/$d/ibnbd/unmap_device" ;;
	6|7) try "echo $p > $S/$s/add_path" ;;
	8) try "echo 1 > $S/$s/paths/$p/remove_path" ;;
	9) try "echo 1 > $S/$s/paths/$p/disconnect" ;;
	10) try "echo 1 > $S/$s/paths/$p/reconnect" ;;
	11) [ -z "$d" ] || try "echo 1 > /sys/block/$d/ibnbd/remap_device" ;;
	12) unload_client ;;
	esac
}
io() {
	while :; do
		for d in /dev/ibnbd*; do
			[ -b $d ] && dd if=/dev/zero of=$d bs=8k count=16 oflag=direct 2> /dev/null
		done
		usleep 100000
	done
}
look() {
	while :; do
		grep -rs . $S /sys/class/ibnbd-client/ctl /sys/block/ibnbd*/ibnbd > /dev/null
		usleep 300000
	done
}
io & a=$!; look & b=$!
n=0 end=$((SECONDS + @SECONDS@))
while [ $n -lt @CYCLES@ ] && [ $SECONDS -lt $end ]; do
	act & x=$!
	act
	wait $x
	n=$((n + 1))
done
kill $a $b
for d in /sys/block/ibnbd*; do [ ! -e $d ] || try "echo force > $d/ibnbd/unmap_device"; done
wait $a $b 2> /dev/null
echo "cycles $n"
"""

# paths are taken away, and every fourth time the server's modules
KICK = r"""
set +e
n=0 went=0
while [ ! -e /tmp/enough ]; do
	for p in /sys/class/ibtrs-server/*/paths/*/disconnect; do
		usleep $((RANDOM * 30))
		echo 1 > $p
	done 2> /dev/null
	usleep 700000
	[ $((n++ % 4)) = 0 ] || continue
	timeout -s KILL $((60 * SLOW)) modprobe -r ibnbd-server 2> /tmp/said
	rc=$?	# not 0 either if what it is built on cannot go
	if [ $rc = 137 ]; then
		echo HANGS: modprobe -r ibnbd-server
	elif [ ! -e /sys/module/ibnbd_server ]; then
		went=$((went + 1))
	elif ! grep -qiE 'in use|busy|unavailable' /tmp/said; then
		echo "REFUSED: status $rc $(cat /tmp/said)"
	fi
	@SERVE@ || echo REFUSED: serve
done
echo "unloaded $went"
"""


def run(t):
    c, s = t.client, t.server
    serve = "serve sess_queue_depth=4 max_chunk_size=8192"

    def used(g):
        """what of RDMA is in use, by device: 0: rxe0: pd 1 cq 2 qp 1 cm_id 3 .."""
        return re.findall(r"(rxe\d+): (.*\S)", g.sh("rdma resource"))
    seed = int(os.environ.get("IBNBD_SEED") or random.randrange(32768))
    t.log(f"seed {seed} (IBNBD_SEED), {CYCLES} cycles, {SECONDS} s")
    memory = lambda g: int(g.sh("sleep 1; memory_kib"))
    before, kib = [used(g) for g in (c, s)], [memory(g) for g in (c, s)]
    s.sh(f"rm -f /tmp/enough; {serve}; modprobe ibnbd-testdisk nr_disks=3 cache=0")
    dev = c.sh("map testdisk0")
    for g, was in zip((c, s), before):
        t.ok(len(was) == links and used(g) != was,
             f"a session of ours shows in the RDMA resources of {g.name}: {was}")
    c.sh(f"unmap {dev}")
    script = (SCRIPT.replace("@SEED@", str(seed)).replace("@SECONDS@", str(SECONDS))
              .replace("@CYCLES@", str(CYCLES)))
    job = c.spawn(script)
    kick = s.spawn(KICK.replace("@SERVE@", serve))
    rc = job.wait(SECONDS + 50)
    out = job.out()
    s.sh("touch /tmp/enough")
    t.eq(kick.wait(70), 0, "the server's side: " + kick.out())
    t.log(kick.out())
    t.eq(rc, 0, f"seed {seed}: {out[-1000:]}")
    for said in out, kick.out():
        t.ok("HANGS" not in said and "REFUSED" not in said, f"seed {seed}: {said[-1000:]}")
    t.ok(int(kick.out().split("unloaded ")[1]) > 0, f"the server was never unloaded: {kick.out()}")
    cycles = int(out.split("cycles ")[1])
    t.log(f"{cycles} cycles")
    t.ok(cycles >= (LONG or 12), f"only {cycles} cycles in {SECONDS} s")
    c.sh("for d in /sys/block/ibnbd*; do [ ! -e $d ] || unmap ${d##*/} force; done", timeout=60)
    c.sh("wait_for 10 test ! -e /sys/class/ibtrs-client/c0; "
         "wait_for 10 test ! -e /sys/class/ibtrs-client/c1; unload ibnbd_client ibtrs_client",
         timeout=60)
    s.sh("wait_for 10 eval '! ls -d /sys/class/ibtrs-server/*/paths > /dev/null 2>&1'; "
         "unload ibnbd_server ibtrs_server", timeout=60)
    s.sh("unload ibnbd_testdisk")
    for g, was, had in zip((c, s), before, kib):
        t.eq(used(g), was, f"RDMA resources of {g.name}")
        g.sh("unload $OUR_MODULES; rm -f /tmp/said")
        t.below(had - memory(g), NOISE_KIB,
                f"KiB that did not come back to {g.name}, after {cycles} cycles")
