#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# unknown.sh SUITE RELEASE: a kernel newer than all that we know must stop the build with one line
# which names what changed.
#
# The kernel is RELEASE with a few things renamed or given another argument, one at a time: a
# directory with the changed header goes in front of the kernel's own, as a vendor's RDMA stack does
# (compat/ofed.mk).
set -eu -o pipefail

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
suite=$1 release=$2
root=${IBNBD_CACHE:-$top/build/cache}/chroot-$suite
[ "$suite" != "$(. /etc/os-release && echo "$VERSION_CODENAME")" ] || root=
work=/tmp/ibnbd-unknown
headers=$(sed -n 's/^include *\(\/.*\)\/Makefile$/\1/p' \
	"$root/usr/src/linux-headers-$release/Makefile")/include
bad=0

build() {	# output of a build with what is in $work/stack
	"$here/chroot.sh" run "$suite" make -C "/usr/src/linux-headers-$release" M="$work/src" \
		OFED="$work/stack" modules 2>&1
}

changed() {	# HEADER SED NAME: with that change the build must name NAME
	local out rc=0
	rm -rf "$root$work"
	mkdir -p "$root$work/src" "$root$work/stack/include/rdma" \
		"$root$work/stack/include/$(dirname "$1")"
	tar -C "$top" -cf - --exclude='*.o' --exclude='*.ko' --exclude='*.mod*' --exclude='.*.cmd' \
		--exclude='config.h*' Kbuild compat ibtrs ibnbd | tar -C "$root$work/src" -xf -
	touch "$root$work/stack/Module.symvers"
	cp "$root$headers/rdma/ib_verbs.h" "$root$work/stack/include/rdma/"
	sed "$2" "$root$headers/$1" > "$root$work/stack/include/$1"
	if cmp -s "$root$headers/$1" "$root$work/stack/include/$1"; then
		echo "unknown.sh: $1 has no such text: $2"
		bad=1
		return
	fi
	out=$(build) || rc=$?
	if [ $rc -eq 0 ]; then
		echo "unknown.sh: $3 has changed, and the build went through"
		bad=1
	elif [ "$(grep -c '^compat: ' <<< "$out")" != 1 ] || ! grep -qF "compat: $3 " <<< "$out" ||
		grep -q 'error:\|CC \[M\]' <<< "$out"; then
		echo "unknown.sh: $3 has changed, and the build does not say so in one line:"
		grep -E '^compat: |error:|CC \[M\]' <<< "$out" | head -n 5
		bad=1
	fi
}

changed linux/blk-mq.h \
	's/define blk_mq_alloc_disk(set, lim, queuedata)/define blk_mq_alloc_disk(set, lim, queuedata, more)/' \
	'blk_mq_alloc_disk()'
changed linux/blk-mq.h 's/(\*timeout)(struct request \*)/(*timeout)(struct request *, int)/' \
	blk_mq_ops.timeout
changed linux/fs.h \
	's/(\*ki_complete)(struct kiocb \*iocb, long ret)/(*ki_complete)(struct kiocb *iocb, int ret, int more)/' \
	kiocb.ki_complete
changed linux/blkdev.h \
	's/^void blk_mark_disk_dead(struct gendisk \*disk)/void blk_mark_disk_dead(struct gendisk *disk, bool surprise)/' \
	'blk_mark_disk_dead()'
changed rdma/rdma_cm.h '/^int rdma_connect_locked(/,/;/s/conn_param);/conn_param, int more);/' \
	'rdma_connect_locked()'
changed rdma/ib_verbs.h \
	's/int (\*add)(struct ib_device \*ibdev);/int (*add)(struct ib_device *ibdev, int more);/' \
	ib_client.add
rm -rf "$root$work"
exit $bad
