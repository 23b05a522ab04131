# SPDX-License-Identifier: GPL-2.0-only
# Sourced in the guest, after lib.sh: the things that are compared. A machine alone, 10.0.0.1 talks
# to itself; tests/vm/peers.py has two.
#
#	setup_TARGET N	serves /dev/ram0 .. and maps N of them; prints the device names, one a line

ME=10.0.0.1
CFS=/sys/kernel/config

disk() {
	wait_for 10 test -b "$1" || fail "no $1"
	echo none > "/sys/block/${1#/dev/}/queue/scheduler"
	echo "$1"
}

configfs() { grep -q " $CFS " /proc/mounts || { modprobe configfs; mount -t configfs none $CFS; }; }

setup_local() { local i; for ((i = 0; i < $1; i++)); do echo "/dev/ram$i"; done; }

# rtrs and ours alike: FAMILY, always_invalidate, and more words of the mapping
setup_nbd() {
	local i n=$1
	FAMILY=$2
	serve "always_invalidate=$3" ${AUTH:+auth=required}
	shift 3
	for ((i = 0; i < n; i++)); do disk "$(map "ram$i" "$@")"; done
}
# a proof of a key costs nothing later on: the reference is older than keys
setup_ibnbdN() {
	modprobe ibtrs-core
	ibnbd key generate bench > /dev/null
	ibnbd key load > /dev/null
	AUTH=1 setup_nbd "$1" ibnbd N auth=bench
}
setup_ibnbdY() { setup_nbd "$1" ibnbd Y; }
# what becomes of writes that no flush has covered; a RAM disk has no cache to lose, so we say that
# it has
setup_ibnbd-ignore() { setup_nbd "$1" ibnbd N write_cache=on unflushed=ignore; }
setup_ibnbd-fence() { setup_nbd "$1" ibnbd N write_cache=on unflushed=fence; }
setup_ibnbd-replay() { setup_nbd "$1" ibnbd N write_cache=on unflushed=replay; }
setup_rnbdN() { setup_nbd "$1" rnbd N; }
setup_rnbdY() { setup_nbd "$1" rnbd Y; }

# the kernel's client, and ibnbd-serverd
setup_serverd() {
	local i
	serve_user
	for ((i = 0; i < $1; i++)); do disk "$(map "ram$i")"; done
}
# the kernel's server; nbd, nbdkit and libibnbd are the client
setup_nbdkit() {
	local i
	serve always_invalidate=N
	for ((i = 0; i < $1; i++)); do
		nbd_disk "$i" "device=ram$i" path=ip:$ME
		disk "/dev/nbd$i"
	done
}

# the kernel's server; a program that calls libibnbd is the client
setup_lib() {
	serve always_invalidate=N
	modprobe rdma_ucm
}
setup_lib-poll() { setup_lib; }
setup_lib-in-place() { setup_lib; }
setup_ucx() { modprobe rdma_ucm; }

# mirror_legs N: two disks for each mirror, a session for each half, as on two servers
mirror_legs() {
	local i
	FAMILY=ibnbd
	serve always_invalidate=N
	for ((i = 0; i < 2 * $1; i++)); do
		disk "$(map "ram$i" "sessname=half$((i % 2))" hold=-1 "group=m$((i / 2))")"
	done
}
setup_two() { mirror_legs "$1"; }
# what `ibnbd mirror create` says to mdadm
setup_mirror() {
	local i legs
	modprobe raid1
	mapfile -t legs < <(mirror_legs "$1")
	for ((i = 0; i < $1; i++)); do
		mdadm --create "/dev/md$i" --run --level=1 --metadata=1.2 --raid-devices=2 \
			--bitmap=internal --bitmap-chunk=4M --failfast --assume-clean \
			"${legs[@]:2 * i:2}" >&2
		wait_for 10 test -b "/dev/md$i"
		echo "/dev/md$i"
	done
}

# nvmet_serve DISK..: the kernel's NVMe target, one subsystem; disks are known again after a boot,
# unless NS_UUID says another one
nvmet_serve() {
	local s=$CFS/nvmet/subsystems/sub0 i=0 n d
	configfs
	modprobe nvmet-rdma
	mkdir $s
	echo 1 > $s/attr_allow_any_host
	echo rig > $s/attr_serial
	for d; do
		i=$((i + 1))
		n=$s/namespaces/$i
		mkdir "$n"
		echo "$d" > "$n/device_path"
		echo "${NS_UUID:-11111111-2222-3333-4444-66666666666}$i" > "$n/device_uuid"
		echo 1 > "$n/enable"
	done
}

# nvmet_port NUMBER ADDRESS
nvmet_port() {
	local p=$CFS/nvmet/ports/$1
	mkdir "$p"
	echo rdma > "$p/addr_trtype"
	echo ipv4 > "$p/addr_adrfam"
	echo "$2" > "$p/addr_traddr"
	echo 4420 > "$p/addr_trsvcid"
	ln -s $CFS/nvmet/subsystems/sub0 "$p/subsystems/sub0"
}

# nvmet_unserve: what both of them made, and the modules
nvmet_unserve() {
	local d
	for d in $CFS/nvmet/ports/*; do
		rm "$d"/subsystems/*
		rmdir "$d"
	done
	for d in $CFS/nvmet/subsystems/sub0/namespaces/*; do
		echo 0 > "$d/enable"
		rmdir "$d"
	done
	rmdir $CFS/nvmet/subsystems/sub0
	modprobe -r nvmet-rdma
}

# nvme_connect ADDRESS: as the host whose identity ends in HOST_DIGIT; NVME_WORDS: more options
nvme_connect() {
	local id=11111111-2222-3333-4444-55555555555${HOST_DIGIT:-5}
	modprobe nvme-rdma
	local host=hostnqn=nqn.2014-08.org.nvmexpress:uuid:$id,hostid=$id
	echo "transport=rdma,traddr=$1,trsvcid=4420,nqn=sub0,$host${NVME_WORDS:+,$NVME_WORDS}" \
		> /dev/nvme-fabrics
}

setup_nvme() {
	local i
	# shellcheck disable=SC2046	# words
	nvmet_serve $(setup_local "$1")
	nvmet_port 1 $ME
	nvme_connect $ME
	for ((i = 1; i <= $1; i++)); do disk "/dev/nvme0n$i"; done
}

# target_disks N: backstores b0 .. of the kernel's SCSI target
target_disks() {
	local i d
	configfs
	modprobe -a target_core_mod target_core_iblock sd_mod
	for ((i = 0; i < $1; i++)); do
		d=$CFS/target/core/iblock_0/b$i
		mkdir -p "$d"
		echo "udev_path=/dev/ram$i" > "$d/control"
		echo 1 > "$d/enable"
	done
}

# target_luns N TPG
target_luns() {
	local i
	for ((i = 0; i < $1; i++)); do
		mkdir "$2/lun/lun_$i"
		ln -s "$CFS/target/core/iblock_0/b$i" "$2/lun/lun_$i/b$i"
	done
}

scsi_disks() {
	local i letters=abcdefgh
	for ((i = 0; i < $1; i++)); do disk "/dev/sd${letters:i:1}"; done
}

setup_iser() {
	local iqn=iqn.2026-01.test:t0 t=$CFS/target/iscsi/iqn.2026-01.test:t0/tpgt_1 a
	target_disks "$1"
	modprobe -a iscsi_target_mod ib_isert ib_iser
	mkdir -p $CFS/target/iscsi
	mkdir -p $t
	target_luns "$1" $t
	for a in authentication=0 generate_node_acls=1 demo_mode_write_protect=0 \
		cache_dynamic_acls=1; do
		echo "${a#*=}" > "$t/attrib/${a%=*}"
	done
	mkdir "$t/np/$ME:3260"
	echo 1 > "$t/np/$ME:3260/iser"
	echo 1 > $t/enable
	mkdir -p /etc/iscsi /run/lock/iscsi /var/lock
	echo InitiatorName=iqn.2026-01.test:init > /etc/iscsi/initiatorname.iscsi
	: > /etc/iscsi/iscsid.conf
	iscsid -c /etc/iscsi/iscsid.conf >&2
	wait_for 10 iscsiadm -m node -T $iqn -p $ME:3260,1 -I iser -o new >&2
	iscsiadm -m node -T $iqn -p $ME:3260 -l >&2
	scsi_disks "$1"
}

setup_srp() {
	local gid wwn t guid i
	target_disks "$1"
	modprobe -a ib_srpt ib_srp
	mkdir -p $CFS/target/srpt
	echo 5555 > $CFS/target/srpt/discovery_auth/rdma_cm_port
	wait_for 10 test -s /sys/class/infiniband/rxe0/ports/1/gids/0
	gid=$(cat /sys/class/infiniband/rxe0/ports/1/gids/0)
	wwn=${gid#*:*:*:*:}
	t=$CFS/target/srpt/$wwn/$wwn
	mkdir -p "$t"
	target_luns "$1" "$t"
	mkdir "$t/acls/$ME"
	for ((i = 0; i < $1; i++)); do
		mkdir "$t/acls/$ME/lun_$i"
		ln -s "$t/lun/lun_$i" "$t/acls/$ME/lun_$i/l"
	done
	echo 1 > "$t/enable"
	guid=$(cat /sys/module/ib_srpt/parameters/srpt_service_guid)
	guid=${guid#0x}
	echo "id_ext=$guid,ioc_guid=$guid,dest=$ME:5555,max_cmd_per_lun=62" \
		> /sys/class/infiniband_srp/srp-rxe0-1/add_target
	scsi_disks "$1"
}

setup_floor() { modprobe ibnbd-floor addr=$ME; }

# floor_run REQUEST REPLY SLOTS COUNT: nanoseconds
floor_run() {
	local f=/sys/module/ibnbd_floor/parameters/run
	echo "$*" > $f
	cat $f
}
