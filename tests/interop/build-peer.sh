#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# build-peer.sh [KVER [SUITE]]: build the kernel's own rtrs and rnbd modules for KVER, as peers to
# test against. Debian ships them in its source package only. Result: $CACHE/peer/KVER/*.ko. Exit
# 77: there is no such source, or the kernel is one of our own.
#
# The two source directories are unpacked into the cache, compiled and removed; nothing of them is
# read, patched or kept, but for the Makefile's include path, which the headers package cannot
# satisfy.
set -eu -o pipefail
. "$(dirname "$0")/../vm/env.sh"

KVER=${1:-$KVER}
suite=${2:-$(suite_of "$KVER")}
# no package has the headers of those that the rig builds, and what their checks say of a peer is
# none of our business
[[ $KVER != *-ibnbd-* ]] || { say "no in-kernel peers for $KVER"; exit 77; }
[ -n "$KVER" ] || die "which kernel? give KVER, or install linux-headers-amd64"
out=$CACHE/peer/$KVER
modules=(rtrs-core rtrs-client rtrs-server rnbd-client rnbd-server)
lock_cache
[ -e "$out/rnbd-server.ko" ] && exit 0

series=$(echo "$KVER" | grep -oE '^[0-9]+\.[0-9]+')
work=$CACHE/src/peer-$KVER
rm -rf "$work"
mkdir -p "$work"
cd "$work"
say "building the in-kernel peers for $KVER"
apt_private "$suite"
apt_knows "linux-source-$series" || { say "no linux-source-$series in $suite"; exit 77; }
apt-get "${APT[@]}" download "linux-source-$series" ||
	die "cannot fetch linux-source-$series of $suite"
dpkg -x "linux-source-$series"_*.deb .
rm -f ./*.deb
tar -xf usr/src/linux-source-*.tar.xz --strip-components=1 --wildcards \
	'*/drivers/infiniband/ulp/rtrs/*' '*/drivers/block/rnbd/*'
rm -rf usr
mkdir build
mv drivers/infiniband/ulp/rtrs drivers/block/rnbd build/
sed -i 's#^ccflags-y := .*#ccflags-y := -I$(src)/../rtrs#' build/rnbd/Makefile
printf 'obj-y += rtrs/\nobj-y += rnbd/\n' > build/Makefile
config=(CONFIG_INFINIBAND_RTRS=m CONFIG_INFINIBAND_RTRS_CLIENT=m CONFIG_INFINIBAND_RTRS_SERVER=m
	CONFIG_BLK_DEV_RNBD=y CONFIG_BLK_DEV_RNBD_CLIENT=m CONFIG_BLK_DEV_RNBD_SERVER=m)
"$REPO/tests/vm/kmake.sh" -s "$suite" "$KVER" "$work/build" "${config[@]}" > make.log 2>&1 ||
	{ cp make.log "$CACHE/peer-$KVER.log"; die "the build failed, see $CACHE/peer-$KVER.log"; }
mkdir -p "$out"
for m in "${modules[@]}"; do
	find build -name "$m.ko" -exec cp {} "$out/" \;
	[ -e "$out/$m.ko" ] || die "the build made no $m.ko"
done
cd "$CACHE"
rm -rf "$work"
