# SPDX-License-Identifier: GPL-2.0-only
# On a host under test, after agent.sh: what it is, which disk may be written to, its links and
# modules.

# ---- what it is ----------------------------------------------------------------------------------

say() { [ -z "${2:-}" ] || echo "$1: $2"; }
# each line once, with how often it came
first() {
	cat "$@" 2> /dev/null | sort | uniq -c |
		sed 's/^ *1 //; s/^ *\([0-9]*\) \(.*\)/\2 (\1)/' | paste -sd, | sed 's/,/, /g'
}

# facts: what the report's table of hosts has, a line each
facts() {
	local d n

	say host "$(hostname)"
	say kernel "$(uname -r) $(uname -v)"
	say system "$(. /etc/os-release 2> /dev/null && echo "$PRETTY_NAME")"
	say machine "$(first /sys/class/dmi/id/{sys_vendor,product_name})"
	say BIOS "$(first /sys/class/dmi/id/{bios_version,bios_date})"
	say CPU "$(nproc) x $(awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo)"
	say "NUMA nodes" "$(cat /sys/devices/system/node/online 2> /dev/null)"
	for d in /sys/devices/system/node/node*/cpulist; do
		[ ! -e "$d" ] || say "CPUs of $(basename "$(dirname "$d")")" "$(cat "$d")"
	done
	say memory "$(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)"
	n=$(first /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor)
	say "CPU governor" "${n:-none}"
	say "idle states" "$(cat /sys/devices/system/cpu/cpuidle/current_driver 2> /dev/null)"
	say "simultaneous threads" "$(cat /sys/devices/system/cpu/smt/control 2> /dev/null)"
	n=$(cd /sys/class/iommu 2> /dev/null && echo *)
	say IOMMU "${n:-none}"
	say "IOMMU domains" "$(first /sys/kernel/iommu_groups/*/type)"
	say "kernel command line" "$(cat /proc/cmdline)"
	say OFED "$(ofed_info -s 2> /dev/null)"
	say fio "$(fio --version 2> /dev/null)"
	say perftest "$(ib_write_bw --version 2> /dev/null | head -n 1)"
	for d in ibtrs-core ibtrs-client ibtrs-server ibnbd-client ibnbd-server rnbd-client \
		rnbd-server nvme-rdma nvmet-rdma; do
		n=$(modinfo -F version $d 2> /dev/null | head -n 1)
		say "module $d" "${n:+$n }$(modinfo -F srcversion $d 2> /dev/null | head -n 1)"
	done
	for d in /sys/class/infiniband/*; do
		[ -e "$d" ] || continue
		n=${d##*/}
		say "adapter $n" "$(first "$d"/{hca_type,board_id}) firmware $(first "$d/fw_ver")"
		say "$n node" "$(first "$d/device/numa_node")"
		say "$n PCI" "$(first "$d"/device/current_link_{speed,width})"
		say "$n driver" "$(basename "$(readlink -f "$d/device/driver")")"
		say "$n ports" "$(first "$d"/ports/*/{link_layer,rate,state})"
	done
}

# details: everything else that somebody may ask for
details() {
	local c

	for c in "lscpu" "rdma link" "ibv_devinfo -v" "ip -s -d link" "ip addr" "ip route" \
		"lsblk -o NAME,SIZE,TYPE,MODEL,ROTA,SCHED,PHY-SEC,LOG-SEC" "lspci -nn" \
		"cat /proc/interrupts" "cat /proc/modules" "numactl -H" "ulimit -a" \
		"grep . /sys/module/ibtrs_server/parameters/* /sys/module/ibnbd_server/parameters/*"
	do
		echo "== $c"
		timeout 20 bash -c "$c" 2>&1 || true
	done
	for c in /sys/class/infiniband/*/device/net/*; do
		[ -e "$c" ] || continue
		echo "== ethtool ${c##*/}"
		timeout 20 ethtool -i "${c##*/}" 2>&1 || true
		timeout 20 ethtool -a "${c##*/}" 2>&1 || true
	done
}

# addresses: device and IPv4 address of each network device that belongs to an RDMA one
addresses() {
	local d n=

	for d in /sys/class/infiniband/*/ports/*/gid_attrs/ndevs/0; do
		[ -e "$d" ] && n+=" $(cat "$d" 2> /dev/null)"
	done
	for d in $(tr ' ' '\n' <<< "$n" | sort -u); do
		ip -o -4 addr show dev "$d" | awk -v d="$d" '{ print d, $4 }'
	done
}

# verbs_of ADDRESS: the words by which perftest finds its adapter, port and GID
verbs_of() {
	local p g n gid ndev
	# shellcheck disable=SC2046,SC2086	# words
	gid=$(printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' ${1//./ })
	ndev=$(ip -o -4 addr | awk -v a="$1" '{ sub("/.*", "", $4) } $4 == a { print $2; exit }')
	for p in /sys/class/infiniband/*/ports/*; do
		g=$(basename "$(dirname "$(dirname "$p")")")
		if [ "$(cat "$p/link_layer")" = InfiniBand ]; then
			! grep -qsx "$ndev" "$p"/gid_attrs/ndevs/* ||
				{ echo "-d $g -i ${p##*/}"; return; }
			continue
		fi
		for n in "$p"/gids/*; do
			[ "$(cat "$n" 2> /dev/null)" = "$gid" ] || continue
			n=${n##*/}
			! grep -qs v2 "$p/gid_attrs/types/$n" ||
				{ echo "-d $g -i ${p##*/} -x $n"; return; }
		done
	done
	fail "no adapter has the address $1"
}

# lacks PROGRAM..: those that are not there
lacks() {
	local p
	for p; do
		command -v "$p" > /dev/null || echo "$p"
	done
}

# has MODULE..: those that can be loaded, or are
has() {
	local m
	for m; do
		[ -e "/sys/module/${m//-/_}" ] || modprobe -n "$m" 2> /dev/null || continue
		echo "$m"
	done
}

# loaded MODULE..: those that are
loaded() {
	local m
	for m; do
		[ ! -e "/sys/module/${m//-/_}/refcnt" ] || echo "$m"
	done
}

# ---- the scratch disk ----------------------------------------------------------------------------

ZEROES=b6d81b360a5672d80c27430f39153e2c		# md5 of a MiB of them

# blank DISK: are its first and its last MiB zero?
blank() {
	local at
	for at in 0 $((($(blockdev --getsize64 "$1") >> 20) - 1)); do
		dd if="$1" bs=1M skip=$at count=1 2> /dev/null | md5sum | grep -q "^$ZEROES " ||
			return 1
	done
}

# disk_name DISK: what --destroy must say, its serial number, or its model, or its size
disk_name() {
	local name what
	name=$(basename "$(readlink -f "$1")")
	for what in "/sys/block/$name/serial" "/sys/block/$name/device/serial" \
		"/sys/block/$name/device/vpd_pg80" "/sys/block/$name/device/model"; do
		what=$(tr -d '\0' < "$what" 2> /dev/null | tr -cd '!-~')
		[ -z "$what" ] || { echo "$what"; return; }
	done
	blockdev --getsize64 "$1"
}

# check_disk DISK: fails, and says why, unless nobody uses it and nothing is on it
check_disk() {
	local disk name what pid

	[ -b "$1" ] || fail "$1 is no block device"
	disk=$(readlink -f "$1") name=$(basename "$(readlink -f "$1")")
	[ "$(blockdev --getro "$disk")" = 0 ] || fail "$1 is read-only"
	[ "$(blockdev --getsize64 "$disk")" -ge $((64 << 20)) ] ||
		fail "$1 is smaller than 64 MiB"
	what=$(lsblk -nro NAME "$disk" | tail -n +2 | paste -sd' ')
	[ -z "$what" ] || fail "$1 has partitions, or something is built on it: $what"
	what=$(ls "/sys/class/block/$name/holders")
	[ -z "$what" ] || fail "$1 is in use by $what"
	what=$(lsblk -dnro MAJ:MIN "$disk")
	what=$(awk -v d="${what// /}" '$3 == d { print $5; exit }' /proc/self/mountinfo)
	[ -z "$what" ] || fail "$1 is mounted on $what"
	! grep -q "^$disk " /proc/swaps || fail "$1 is swapped to"
	pid=$({ ls -l /proc/[0-9]*/fd/ 2> /dev/null || true; } | awk -F/ -v d="-> $disk" '
		/^\/proc/ { pid = $3 }
		substr($0, length($0) - length(d) + 1) == d { found = pid }
		END { print found }')
	[ -z "$pid" ] || fail "$1 is open in process $pid, $(cat "/proc/$pid/comm")"
	what=$(wipefs -n "$disk" | awk 'NR > 1 { print $(NF > 3 ? 3 : NF) }' | paste -sd' ')
	# 2: it finds nothing
	[ -n "$what" ] || what=$(blkid -p -o value -s TYPE -s PTTYPE "$disk" || [ $? = 2 ])
	[ -z "$what" ] || fail "$1 has a signature: $what. If it is a scratch disk: wipefs -a $1"
	blank "$disk" || fail "$1 has data in its first or last MiB, maybe of a program that uses" \
		"it without a file system. If it is a scratch disk, zero both"
}

# scratch_clean DISK: nobody shall find a signature where random data looked like one
scratch_clean() {
	local at
	for at in 0 $((($(blockdev --getsize64 "$1") >> 20) - 1)); do
		dd if=/dev/zero of="$1" bs=1M seek=$at count=1 conv=fsync 2> /dev/null || return
	done
}

# ---- links ---------------------------------------------------------------------------------------

dev_of_address() { ip -o addr | awk -v a="$1" '{ sub("/.*", "", $4) } $4 == a { print $2; exit }'; }

# link_check ADDRESS: may its link be taken down?
link_check() {
	local dev ours ssh=${SSH_CONNECTION:-}

	dev=$(dev_of_address "$1")
	[ -n "$dev" ] || fail "no link has the address $1"
	[ "$(cat "/sys/class/net/$dev/type")" = 1 ] ||
		fail "$dev is no Ethernet: taking it down would not take the port down"
	ours=$(dev_of_address "$(awk '{ print $3 }' <<< "$ssh")")
	[ "$ours" != "$dev" ] || fail "$dev carries this ssh connection"
	! ip route get "${ssh%% *}" 2> /dev/null | grep -q " dev $dev " ||
		fail "$dev carries this ssh connection"
	echo "$dev"
}

# what the kernel forgets when a link goes down
link_save() {
	ip -6 -o addr show dev "$1" scope global | awk '{ print "-6 addr replace " $4 " nodad" }'
	ip -4 route show dev "$1" | sed '/proto kernel/d; s/^/-4 route replace /; s/linkdown//'
	ip -6 route show dev "$1" | sed '/proto \(kernel\|ra\)/d; s/^/-6 route replace /'
}

link_back() {	# DEV FILE
	local line rc=0
	ip link set "$1" up || return
	while read -r line; do
		# shellcheck disable=SC2086	# words
		ip $line dev "$1" || rc=1
	done < "$2"
	return $rc
}

# link_away DEV SECONDS
link_away() {
	link_save "$1" > "$DIR/link.$1"
	undo link_back "$1" "$DIR/link.$1"
	ip link set "$1" down
	sleep "$2"
	link_back "$1" "$DIR/link.$1"
}
