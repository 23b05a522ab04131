# SPDX-License-Identifier: GPL-2.0-only
# Helpers for jobs in a guest. The agent (init) has sourced this file, so every job has it, and
# starts with set -eu -o pipefail.
#
# Addresses: machine h on link i is 10.0.i.h and fd00:i::h; client 1, server 2, client2 3.
# FAMILY says whose modules the block helpers speak to: ibnbd (ours, the default) or rnbd (the
# kernel's).

read -r HOST < /h/host
read -r SLOW < /h/slow		# how many times longer things may take on this host, rounded up
FAMILY=${FAMILY:-ibnbd}

fail() { echo "FAIL: $*" >&2; exit 1; }

# A tenth of a second, without a process: that is dear under emulation.
[ -p /run/never ] || mkfifo /run/never
nap() { read -rt 0.1 <> /run/never || :; }

# wait_for SECONDS COMMAND..: until the command succeeds; fails when the time is up
wait_for() {
	local end=$((SECONDS + $1 * SLOW + 1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || { echo "gave up waiting for: $*" >&2; return 1; }
		nap
	done
}

uptime_s() { cut -d' ' -f1 /proc/uptime; }
# since TIME: seconds from what uptime_s said then
since() { echo "$(uptime_s) $1" | awk '{ print $1 - $2 }'; }

# ---- network -------------------------------------------------------------------------------------

# net_fifo DEV: a plain queue; the default one (fq_codel) drops packets when a slow host makes them
# wait
net_fifo() { tc qdisc replace dev "$1" root pfifo limit 10000; }

# net_dev DEV LINK: addresses and a soft-RoCE device rxeLINK on DEV
net_dev() {
	ip link set "$1" mtu "${MTU:-9000}" up
	net_fifo "$1"
	ip addr add "10.0.$2.$HOST/24" dev "$1"
	ip -6 addr add "fd00:$2::$HOST/64" dev "$1" nodad
	rdma link add "rxe$2" type rxe netdev "$1"
}

net_gids() {
	grep -q "ffff:0a00:0${1}0${HOST}" /sys/class/infiniband/rxe$1/ports/1/gids/* 2>/dev/null
}

# net_door: the way in from the host (case.py, door) is none of the links
net_door() {
	local d
	for d in /sys/class/net/eth*; do
		[[ -e $d && $(< "$d/address") = 52:54:00:ff:* ]] || continue
		ip link set "${d##*/}" name door
		ip addr add 10.99.0.15/24 dev door
		ip link set door up
	done
}

# net_up: every ethN; a machine alone gets dummyN instead (soft-RoCE cannot use lo), as many as $1
# says
net_up() {
	local d i

	modprobe -a rdma_rxe rdma_ucm ib_uverbs
	echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad
	net_door
	if [ -e /sys/class/net/eth0 ]; then
		for d in /sys/class/net/eth*; do
			d=${d##*/}
			net_dev "$d" "${d#eth}"
		done
	else
		modprobe dummy numdummies=0
		for ((i = 0; i < ${1:-1}; i++)); do
			ip link add "dummy$i" type dummy
			net_dev "dummy$i" "$i"
		done
	fi
	for d in /sys/class/infiniband/rxe*; do
		wait_for 5 net_gids "${d##*rxe}" || fail "no address in the GID table of ${d##*/}"
	done
}

# net_ping HOST: fills the neighbour caches. ib_core can miss an ARP reply, and then sleeps its
# whole timeout (30 s): a trait of the kernel that tests which do not mean it must not meet.
# soft-RoCE of 5.10 frees a queue pair whose last reference goes in an interrupt while a work still
# needs it. Packets that wait for an address over a link that is dark hold references, and go when
# the question times out: there is no question there.
net_ping() {
	local d i kernel=$(uname -r)

	for d in /sys/class/net/eth*; do
		i=${d##*eth}
		wait_for 10 ping -q -c 1 -W 1 "10.0.$i.$1" > /dev/null ||
			fail "no answer from 10.0.$i.$1"
		wait_for 10 ping -q -c 1 -W 1 "fd00:$i::$1" > /dev/null ||
			fail "no answer from fd00:$i::$1"
		[[ $kernel != 5.10.* ]] ||
			ip neigh replace "10.0.$i.$1" dev "eth$i" \
				lladdr "$(printf '52:54:00:00:%02x:%02x' "$1" "$i")" nud permanent
	done
}

# net_loss LINK PERCENT: drops that share of what we send; 100 is a silent hole, 0 heals
net_loss() {
	if [ "$2" = 0 ]; then
		net_fifo "eth$1"
	else
		tc qdisc replace dev "eth$1" root netem limit 10000 loss "$2%"
	fi
}

# net_small LINK [BYTES]: of what comes in, packets of more bytes are lost; without BYTES it heals.
# A queue of the sender that drops them is another thing: soft-RoCE then repeats them without end.
net_small() {
	tc qdisc del dev "eth$1" ingress 2> /dev/null || true
	[ $# = 1 ] || {
		tc qdisc add dev "eth$1" ingress
		tc filter add dev "eth$1" parent ffff: matchall \
			action police rate 100gbit burst 100m mtu "$2" drop
	}
}

# hw_counter LINK NAME: a counter of the soft-RoCE device (sent_pkts, rcvd_pkts, duplicate_request,
# ..)
hw_counter() { cat "/sys/class/infiniband/rxe$1/ports/1/hw_counters/$2"; }

# ---- memory --------------------------------------------------------------------------------------

# fail_nth N MODULE.. [PARAM=VALUE..]: the N-th allocation of those that are loaded fails
# (tests/failnth); fail_nth 0 ends it
fail_nth() {
	local n=$1 p=/sys/module/ibnbd_failnth/parameters m b r=
	shift
	[ -e $p ] || modprobe ibnbd-failnth
	for m; do
		case $m in
		*=*)	echo "${m#*=}" > "$p/${m%=*}" ;;
		*)	[ -e "/sys/module/$m/sections/.text" ] || continue
			b=$(cat "/sys/module/$m/sections/.text")
			r+=,$b,$(printf 0x%x $((b + $(cat "/sys/module/$m/coresize")))) ;;
		esac
	done
	[ -z "$r" ] || echo "${r#,}" > $p/range
	echo "$n" > $p/nth
}

# ---- server --------------------------------------------------------------------------------------

# serve [PARAM=VALUE..]: load the server with everything under /dev exported; /run/devices and
# /run/sessions are what it says of its exports and sessions, whichever server it is
serve() {
	local trs=() blk=(dev_search_path=/dev) p

	[ ! -x /bin/serve-user ] || { serve_user "$@"; return; }
	for p; do
		case $p in
		always_invalidate=*|max_chunk_size=*|sess_queue_depth=*|handshake_timeout_s=*| \
		hb_*=*|max_memory_mb=*|max_conns=*|max_paths*=*|max_sessions*=*|name_keep_s=*)
			trs+=("$p") ;;
		*) blk+=("$p") ;;
		esac
	done
	modprobe "${FAMILY/nbd/trs}-server" "${trs[@]}"
	modprobe "$FAMILY-server" "${blk[@]}"
	ln -sfn "/sys/class/$FAMILY-server/ctl/devices" /run/devices
	ln -sfn "/sys/class/${FAMILY/nbd/trs}-server" /run/sessions
	if dmesg | grep "${FAMILY/nbd/}[a-z]*_server: unknown parameter"; then
		fail "a parameter that no module knows"
	fi
}

# serve_user [PARAM=VALUE..]: the same by ibnbd-serverd; /run/serverd.log has what it says
serve_user() {
	local options

	mkdir -p /etc/ibnbd /var/lib/ibnbd /run/ibnbd-serverd
	printf '%s\n' "$@" > /run/serverd.params
	options=$(serverd_conf "$@")
	rm -f /run/serverd.log
	ln -sfn /run/ibnbd-serverd/devices /run/devices
	ln -sfn /run/ibnbd-serverd/sessions /run/sessions
	RUNTIME_DIRECTORY=/run/ibnbd-serverd setsid bash -c \
		'ibnbd-serverd "$@"; echo "ended with status $?"' - $options \
		> /run/serverd.log 2>&1 < /dev/null &
	wait_for 10 grep -q "listens at" /run/serverd.log || fail "$(cat /run/serverd.log)"
}

# serverd_conf [PARAM=VALUE..]: writes server.conf; prints what is an option of ibnbd-serverd
serverd_conf() {
	local search=/dev conf=("policy = optional") p n

	for p; do
		case $p in
		"") ;;
		sess_queue_depth=*) echo "--queue-depth ${p#*=}" ;;
		hb_interval_ms=*) echo "--hb-interval ${p#*=}" ;;
		hb_misses=*) echo "--hb-misses ${p#*=}" ;;
		name_keep_s=*) echo "--name-keep ${p#*=}" ;;
		dev_search_path=*) search=${p#*=} ;;
		writer_file=*|claim=*|file_block=*|copy=*|allow=*|auth=*|max_maps=*)
			conf+=("${p%%=*} = ${p#*=}") ;;
		max_memory*=*|max_sessions*=*|max_paths_half_open*=*)
			n=${p%%=*}
			n=${n%_mb}
			[ "${p#*=}" = 0 ] || echo "--${n//_/-} ${p#*=}" ;;
		*) fail "ibnbd-serverd has no $p" ;;
		esac
	done
	printf '%s\n' "dev_search_path = $search" "${conf[@]}" > /etc/ibnbd/server.conf
}

# serverd_reload: returns when ibnbd-serverd has read its files again; fails if they have a mistake.
# It takes a second SIGHUP when it has done with the first.
serverd_reload() {
	local pid

	pid=$(pgrep -x ibnbd-serverd)
	for _ in 1 2; do
		kill -HUP "$pid"
		wait_for 10 grep -q '^ShdPnd:.*[02468ace]$' "/proc/$pid/status"
	done
	ibnbd-serverd --check
}

# server_set PARAM=VALUE..: from now on. Of ibnbd-serverd some count after a restart only: clients
# come back then.
server_set() {
	local p params

	if [ ! -x /bin/serve-user ]; then
		for p; do
			echo "${p#*=}" > "$(echo /sys/module/*_server/parameters/"${p%%=*}")"
		done
		return
	fi
	for p; do
		sed -i "/^${p%%=*}=/d" /run/serverd.params
		echo "$p" >> /run/serverd.params
	done
	mapfile -t params < /run/serverd.params
	case $1 in
	allow=*|dev_search_path=*)
		serverd_conf "${params[@]}" > /dev/null
		serverd_reload ;;
	*)	unload ibnbd_server
		serve_user "${params[@]}" ;;
	esac
}

# policy: the rules on stdin are in force when it returns
policy() {
	if [ ! -x /bin/serve-user ]; then
		{ cat; echo end; } > /sys/class/ibnbd-server/ctl/policy
	else
		{ cat; echo "# end"; } > /etc/ibnbd/policy.conf
		serverd_reload
	fi
}

# ram_disks [COUNT [MiB]]: /dev/ram0 .. with the first COUNT filled, so that no test measures page
# allocation
ram_disks() {
	local i n=${1:-1} mib=${2:-64}

	modprobe brd rd_nr="$n" rd_size=$((mib * 1024))
	for ((i = 0; i < n; i++)); do
		wait_for 5 test -b "/dev/ram$i"
		dd if=/dev/zero of="/dev/ram$i" bs=1M count="$mib" status=none
	done
}

# ---- client --------------------------------------------------------------------------------------

ctl() { echo "/sys/class/$FAMILY-client/ctl"; }

# paths [LINKS [SERVER]]: "path=.." words for the first LINKS links (all, by default) to machine
# SERVER
paths() {
	local i n=${1:-} server=${2:-2} words=

	[ -n "$n" ] || n=$(ls -d /sys/class/infiniband/rxe* | wc -l)
	[ -e /sys/class/net/eth0 ] || server=$HOST
	for ((i = 0; i < n; i++)); do
		words+=" path=ip:10.0.$i.$HOST@ip:10.0.$i.$server"
	done
	echo "${words# }"
}

# nbd_disk N WORD..: /dev/nbdN by nbdkit and libibnbd, session nbdN; WORDS go to the plugin.
# CONNECTIONS= of the kernel to nbdkit
nbd_disk() {
	local n=$1
	shift

	[ -d /sys/module/nbd ] || modprobe nbd nbds_max=8
	nbdkit --unix "/run/nbd$n" /bin/nbdkit-ibnbd-plugin.so "session=nbd$n" "$@" > /dev/null
	nbd-client -unix "/run/nbd$n" "/dev/nbd$n" -b 512 -C "${CONNECTIONS:-1}" >&2
}

# map_line "WORDS": write a map request as it is; on failure show what the driver says of it
map_line() {
	local rc=0

	{ echo "$1" > "$(ctl)/map_device"; } 2> /tmp/map.err || rc=$?
	[ $rc = 0 ] && return
	echo "map_device refused: $1" >&2
	sed 's/.*write error: //' /tmp/map.err >&2
	cat "$(ctl)/last_error" >&2 2> /dev/null || true
	return $rc
}

# dev_of EXPORT [SESSION]: the name (ibnbd0) of a mapped export
dev_of() {
	local link
	link="$(ctl)/devices/${1//\//!}@${2:-s1}"
	# the client of 5.10 does not name the session there
	[ -e "$link" ] || [ "$FAMILY" = ibnbd ] || link=${link%@*}
	[ -e "$link" ] || return 1
	basename "$(readlink -f "$link")"
}

# map EXPORT [WORD..]: map it in session s1 over all links (sessname= and path= words overrule),
# print /dev/NAME
map() {
	local export=$1 words="device_path=$1" session=s1 p
	shift
	modprobe "$FAMILY-client"
	for p; do
		case $p in sessname=*) session=${p#sessname=} ;; esac
	done
	case " $* " in *" sessname="*) ;; *) words="sessname=$session $words" ;; esac
	case " $* " in *" path="*) ;; *) words="$words $(paths)" ;; esac
	map_line "$words${*:+ $*}" || return
	wait_for 5 dev_of "$export" "$session" > /dev/null || return
	p=$(dev_of "$export" "$session")
	wait_for 5 test -b "/dev/$p" || return
	echo "/dev/$p"
}

# unmap DEV [normal|force]: returns when the disk is gone; says who has it open when it is refused
unmap() {
	local dev=${1#/dev/}

	echo "${2:-normal}" > "/sys/block/$dev/$FAMILY/unmap_device" || {
		ls -l /proc/[0-9]*/fd 2> /dev/null | grep -e '^/proc' -e "/dev/$dev" |
			grep -B1 "/dev/$dev" >&2
		return 1
	}
	wait_for 15 test ! -e "/sys/block/$dev" || fail "$dev is still there after unmap"
}

# the exports of this server; ls looks at each name, which may be gone by then
exports() (
	cd /run/devices 2> /dev/null || cd /sys/class/ibnbd-server/ctl/devices || exit
	shopt -s nullglob
	for e in *; do echo "$e"; done
)

dev_attr() { cat "/sys/block/${1#/dev/}/$FAMILY/$2"; }

# path_attr SESSION ATTR: "SRC@DST VALUE" for each path of a client session
path_attr() {
	local p
	for p in /sys/class/${FAMILY/nbd/trs}-client/"$1"/paths/*; do
		echo "${p##*/} $(cat "$p/$2")"
	done
}

paths_up() { [ "$(path_attr "$1" state | grep -c ' connected$')" = "$2" ]; }

# ---- I/O -----------------------------------------------------------------------------------------

# fio_verify DEV [SIZE [FIO OPTION..]]: random writes of mixed size, then each block read back and
# checked. Ranges that overlap wait for each other: two writes of one block in flight have no order,
# on any disk.
fio_verify() {
	local dev=$1 size=${2:-16m}
	shift; shift || true
	fio --name=verify --filename="$dev" --direct=1 --ioengine=libaio --iodepth=16 \
		--size="$size" --rw=randwrite \
		--bsrange=4k-64k --verify=crc32c --verify_fatal=1 --do_verify=1 \
		--serialize_overlap=1 --randrepeat=0 "$@"
}

# ---- for the runner ------------------------------------------------------------------------------

OUR_MODULES="ibnbd_speak ibnbd_lies ibnbd_stranger"
OUR_MODULES+=" ibnbd_client ibnbd_server ibtrs_client ibtrs_server ibtrs_core"
PEER_MODULES="rnbd_client rnbd_server rtrs_client rtrs_server rtrs_core"
TEST_MODULES="ibnbd_testdisk ibnbd_failnth ibnbd_slowfn brd null_blk scsi_debug loop nbd"
TEST_MODULES+=" dm_delay dm_flakey dm_dust dm_log_writes"

# tidy_io: end what uses disks. Clients run it first, for it takes the mapped ones away.
tidy_io() {
	local f d pid

	for f in /run/job.*; do		# empty when the job is gone
		read -r pid 2> /dev/null < "$f" || continue
		[ "$pid" = $BASHPID ] || kill -KILL "-$pid" 2> /dev/null || true
	done
	# or it opens what the next case maps, and unmaps at once
	! pkill -TERM -x systemd-udevd ||
		wait_for 10 eval "! pgrep -x systemd-udevd > /dev/null" || fail "udev does not end"
	rm -rf /run/udev
	while read -r _ d _; do
		case $d in /mnt*) echo "$d" ;; esac
	done < /proc/mounts | sort -r | xargs -r umount
	for d in /sys/block/md*/md/array_state; do
		[ ! -e "$d" ] || echo clear > "$d" 2> /dev/null || true
	done
	[ ! -d /sys/module/dm_mod ] || dmsetup remove_all 2> /dev/null || true
	[ ! -d /sys/module/loop ] || losetup -D 2> /dev/null || true
	for d in /sys/block/*/[ir]*nbd/unmap_device; do
		[ -e "$d" ] || continue
		echo force > "$d" 2> /dev/null || true
		d=${d#/sys/block/}
		wait_for 15 test ! -e "/sys/block/${d%%/*}" || fail "${d%%/*} does not go away"
	done
}

# The debug kernel releases objects up to 4 s late, one after the other, and looks for a disk's
# driver then: none may be unloaded sooner. Those of TEST_MODULES delete their disks as they go, so
# they stay there.
late_release() { [ -e /sys/kernel/debug/kmemleak ]; }

# unload MODULE..: those that are loaded; a user of it may still be on its way out
unload() {
	local m rc=0
	for m; do
		[ $m != ibnbd_server ] || ! pkill -TERM -x ibnbd-serverd ||
			wait_for 30 eval "! pgrep -x ibnbd-serverd > /dev/null" || rc=1
		[ "$m" != ibnbd_client ] || [ ! -e /sys/module/$m ] || ! late_release || sleep 9
		[ ! -e "/sys/module/$m/refcnt" ] || wait_for 10 modprobe -r "$m" || rc=1
	done
	return $rc
}

# tidy: modules, then what the server had exported, keys, then the network
tidy() {
	local d

	unload $OUR_MODULES || fail "our modules cannot be unloaded"
	unload $PEER_MODULES || true
	tidy_io
	late_release || unload $TEST_MODULES || true
	if [ -b /dev/vda ]; then	# of peers.DISK: empty for the next, and unseen
		blkdiscard -z /dev/vda
		late_release || unload virtio_blk || true
	fi
	rm -rf /etc/ibnbd/keys /etc/ibnbd/policy.conf /var/lib/ibnbd/*
	for d in /sys/class/net/eth*; do
		[ -e "$d" ] || continue
		ip link set "${d##*/}" up
		net_fifo "${d##*/}"
		net_small "${d##*/eth}"
	done
}

# leaks: what unloaded modules left allocated, where the kernel can tell. A frame that has no name
# any more was theirs. kmemleak ignores what is younger than 5 s and reports only what did not
# change between two scans.
leaks() {
	local k=/sys/kernel/debug/kmemleak

	late_release || return 0
	sleep 6
	echo scan > $k
	echo scan > $k
	awk '/^unreferenced object/ { flush(); record = ""; ours = 0 }
		/\[(ibtrs|ibnbd)_|\] 0xffffffff[a-f]/ { ours = 1 }
		{ record = record $0 "\n" }
		function flush() { if (ours) { printf "%s", record; n++ } }
		END { flush(); exit n > 0 }' $k
}

# state: what must be as it was before the next case may have this machine
state() {
	(cd /sys/module && ls -d $OUR_MODULES $PEER_MODULES $TEST_MODULES 2> /dev/null) || true
	ls /sys/block
	ip -brief addr | sed 's/fe80[^ ]*//' | tr -s ' '
	rdma link | cut -d' ' -f1-4
	cut -d' ' -f2 /proc/mounts
	grep ' D ' /proc/[0-9]*/stat | cut -d' ' -f2 | sort -u || true
}

# memory_kib: what could be had now. The kernel counts pages that lie in the lists of a CPU as in
# use, and they are up to 15 MiB, come and go as they like.
memory_kib() {
	sync
	echo 3 > /proc/sys/vm/drop_caches
	awk '/^MemAvailable/ { kib += $2 } $1 == "count:" { kib += 4 * $2 } END { print kib }' \
		/proc/meminfo /proc/zoneinfo
}

udev_start() {
	ln -sf udevadm /bin/systemd-udevd
	systemd-udevd --daemon
	udevadm trigger --action=add
	udevadm settle --timeout=20
}
