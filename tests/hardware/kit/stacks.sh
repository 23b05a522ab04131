# SPDX-License-Identifier: GPL-2.0-only
# On a host under test, after host.sh: modules, null_blk, and the stacks that are compared. Whatever
# is set up has its line in the journal first.
#
#	serve_STACK ADDRESS..		on the server: exports $DIR/exports/*, to CLIENTS=ADDRESS,..
#	map_STACK EXPORT SRC@DST..	on the client: prints /dev/NAME

CFS=/sys/kernel/config
NQN=nqn.2014-08.org.nvmexpress:ibnbd-hardware
HOST_ID=1b4bd000-0000-4000-8000-000000000001
HOST_NQN=nqn.2014-08.org.nvmexpress:uuid:$HOST_ID
PORT=47115	# of this test, for all stacks; a server that is in use has another one

# ---- modules -------------------------------------------------------------------------------------

# load MODULE [PARAM..]: it, and nothing that was there before, goes when all is undone
load() {
	local new
	[ ! -e "/sys/module/${1//-/_}" ] || return 0
	new=$(modprobe --show-depends "$1" | awk '/^insmod/ { print $2 }' | while read -r m; do
		m=${m##*/} m=${m%%.ko*} m=${m//-/_}
		[ -e "/sys/module/$m" ] || echo "$m"
	done | tac | paste -sd' ')
	# shellcheck disable=SC2086	# words
	undo unload $new
	modprobe "$@"
}

# unload MODULE..: the first one must go; of what it needed, what somebody else uses by now stays
unload() {
	local m left end=$((SECONDS + 20))
	while :; do
		left=
		for m; do
			[ ! -e "/sys/module/$m/refcnt" ] || quietly rmmod "$m" || left+=" $m"
		done
		[ -n "$left" ] && [ $SECONDS -lt $end ] || break
		sleep 0.2
	done
	[ ! -e "/sys/module/$1/refcnt" ] || { rmmod "$1"; return 1; }
}

quietly() { "$@" > /dev/null 2>&1; }

configfs() {
	[ ! -d "$CFS" ] || ! grep -q " $CFS " /proc/mounts || return 0
	load configfs
	undo umount $CFS
	mount -t configfs none $CFS
}

# ---- disks of the server -------------------------------------------------------------------------

# null_disk NAME MIB MEMORY: a null_blk as /dev/NAME, or /dev/nullbN; prints it
null_disk() {
	local d=$CFS/nullb/$1 w
	configfs
	load null_blk nr_devices=0
	undo null_drop "$1"
	mkdir "$d"
	for w in "size $2" "memory_backed $3" "blocksize 512" "irqmode 0" "queue_mode 2" \
		"submit_queues $(nproc)" "hw_queue_depth 1024"; do
		echo "${w#* }" > "$d/${w% *}"
	done
	echo 1 > "$d/power"
	[ -b "/dev/$1" ] && echo "/dev/$1" || echo "/dev/nullb$(cat "$d/index")"
}

null_drop() {
	local d=$CFS/nullb/$1
	[ -d "$d" ] || return 0
	echo 0 > "$d/power"
	rmdir "$d"
}

# export_disk NAME DISK: for whatever serves
export_disk() {
	mkdir -p "$DIR/exports"
	ln -sfn "$(readlink -f "$2")" "$DIR/exports/$1"
}

# ---- ibnbd, and in-kernel rnbd -------------------------------------------------------------------

serve_nbd() {	# FAMILY [PARAM..]; INVALIDATE=Y or N, else the default
	local family=$1
	shift
	load "${family/nbd/trs}-server" ${INVALIDATE:+always_invalidate=$INVALIDATE}
	load "$family-server" "dev_search_path=$DIR/exports" "port_nr=$PORT" "$@"
}
serve_ibnbd() { serve_nbd ibnbd "allow=$CLIENTS"; }
serve_rnbd() { serve_nbd rnbd; }	# it lets everybody in

nbd_dev() {	# FAMILY EXPORT: the disk's name, when it is there
	local link=/sys/class/$1-client/ctl/devices/$2
	[ ! -e "$link@ibnbd-hardware" ] || link+=@ibnbd-hardware
	[ -e "$link" ] && basename "$(readlink -f "$link")"
}

nbd_there() { quietly nbd_dev "$@" && [ -b "/dev/$(nbd_dev "$@")" ]; }

map_nbd() {	# FAMILY EXPORT SRC@DST..
	local family=$1 export=$2 p words
	words="sessname=ibnbd-hardware dest_port=$PORT device_path=$2"
	shift 2
	for p; do
		words+=" path=ip:${p/@/@ip:}"
	done
	load "$family-client"
	undo unmap_nbd "$family" "$export"
	echo "$words" > "/sys/class/$family-client/ctl/map_device" ||
		fail "$family refuses: $(cat "/sys/class/$family-client/ctl/last_error" \
			2> /dev/null || dmesg | tail -n 3)"
	wait_for 20 nbd_there "$family" "$export" || fail "$family: no disk for $export"
	echo "/dev/$(nbd_dev "$family" "$export")"
}
map_ibnbd() { map_nbd ibnbd "$@"; }
map_rnbd() { map_nbd rnbd "$@"; }

unmap_nbd() {
	local d how
	d=$(nbd_dev "$1" "$2") || return 0
	for how in normal force; do
		[ ! -e "/sys/block/$d" ] ||
			timeout 20 bash -c "echo $how > /sys/block/$d/$1/unmap_device" || true
		! wait_for 5 test ! -e "/sys/block/$d" || return 0
	done
	echo "/dev/$d does not go away" >&2
	return 1
}

# ---- nvme-rdma -----------------------------------------------------------------------------------

uuid_of() { echo "1b4bd000-0000-4000-8000-$(printf '%s' "$1" | md5sum | cut -c 1-12)"; }

serve_nvme() {
	local s=$CFS/nvmet/subsystems/$NQN p a i=0 e
	configfs
	load nvmet-rdma
	undo nvmet_drop
	mkdir "$s" $CFS/nvmet/hosts/$HOST_NQN
	ln -s $CFS/nvmet/hosts/$HOST_NQN "$s/allowed_hosts/"
	for e in "$DIR"/exports/*; do
		i=$((i + 1))
		mkdir "$s/namespaces/$i"
		readlink -f "$e" > "$s/namespaces/$i/device_path"
		uuid_of "${e##*/}" > "$s/namespaces/$i/device_uuid"
		echo 1 > "$s/namespaces/$i/enable"
	done
	i=$PORT
	for a; do
		p=$CFS/nvmet/ports/$i
		i=$((i + 1))
		mkdir "$p"
		echo rdma > "$p/addr_trtype"
		echo ipv4 > "$p/addr_adrfam"
		echo "$a" > "$p/addr_traddr"
		echo $PORT > "$p/addr_trsvcid"
		ln -s "$s" "$p/subsystems/$NQN"
	done
}

nvmet_drop() {
	local s=$CFS/nvmet/subsystems/$NQN d
	for d in $CFS/nvmet/ports/*; do
		[ -e "$d/subsystems/$NQN" ] || [ "${d##*/}" -ge $PORT ] 2> /dev/null || continue
		rm -f "$d/subsystems/$NQN"
		rmdir "$d"
	done
	[ -d "$s" ] || return 0
	for d in "$s"/namespaces/*; do
		[ -e "$d" ] || continue
		echo 0 > "$d/enable"
		rmdir "$d"
	done
	rm -f "$s"/allowed_hosts/*
	rmdir "$s"
	[ ! -d $CFS/nvmet/hosts/$HOST_NQN ] || rmdir $CFS/nvmet/hosts/$HOST_NQN
}

nvme_dev() {
	local d
	for d in /sys/block/nvme*; do
		[ "$(cat "$d/uuid" 2> /dev/null)" = "$(uuid_of "$1")" ] || continue
		[ ! -b "/dev/${d##*/}" ] || { echo "/dev/${d##*/}"; return 0; }
	done
	return 1
}

nvme_connected() { grep -lsx "$NQN" /sys/class/nvme/nvme*/subsysnqn; }

map_nvme() {	# all namespaces come with the first one
	local export=$1 p
	shift
	if ! quietly nvme_connected; then
		load nvme-rdma
		undo nvme_drop
		for p; do
			printf '%s,' transport=rdma "traddr=${p#*@}" "host_traddr=${p%@*}" \
				trsvcid=$PORT nqn=$NQN hostnqn=$HOST_NQN |
				sed "s/\$/hostid=$HOST_ID/" > /dev/nvme-fabrics
		done
	fi
	wait_for 20 quietly nvme_dev "$export" || fail "nvme-rdma: no disk for $export"
	nvme_dev "$export"
}

# it waits for commands that time out after a minute or two when a link was lost
nvme_drop() {
	local f
	for f in $(nvme_connected); do
		timeout 200 bash -c "echo 1 > ${f%/*}/delete_controller" || return
	done
}
