#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# kernel.sh [KVER [SUITE]]: put Debian's stock kernel KVER, unpacked but not installed, under
# $CACHE/kernels/KVER (boot/, lib/modules/). The boot loader of the host never hears of it.
# SUITE: the Debian suite to take it from, by default the one that such a version belongs to.
# Exit 77: there is none.
# A kernel that the host has installed itself is copied from there; debug-kernel.sh builds
# *-ibnbd-debug and *-ibnbd-kcsan.
set -eu -o pipefail
. "$(dirname "$0")/env.sh"
PATH=$PATH:/sbin:/usr/sbin

KVER=${1:-$KVER}
suite=${2:-$(suite_of "$KVER")}
[ -n "$KVER" ] || die "which kernel? give KVER, or install linux-headers-amd64"
out=$CACHE/kernels/$KVER
case $KVER in
*-ibnbd-debug|*-ibnbd-kcsan)
	exec "$(dirname "$0")/debug-kernel.sh" image "${KVER##*-}" > /dev/null ;;
esac
lock_cache
# the last is there to notice a cache that a kernel build's "clean" has swept through
[ -e "$out/boot/vmlinuz-$KVER" ] && [ -e "$out/lib/modules/$KVER/modules.dep" ] &&
	compgen -G "$out/lib/modules/$KVER/kernel/drivers/net/dummy.ko*" > /dev/null && exit 0

tmp=$out.new
rm -rf "$tmp"
mkdir -p "$tmp"
if [ -r "/boot/vmlinuz-$KVER" ] && [ -d "/lib/modules/$KVER/kernel" ]; then
	mkdir -p "$tmp/boot" "$tmp/lib/modules/$KVER"
	cp "/boot/vmlinuz-$KVER" "/boot/config-$KVER" "$tmp/boot/"
	cp -r "/lib/modules/$KVER"/{kernel,modules.builtin,modules.builtin.modinfo,modules.order} \
		"$tmp/lib/modules/$KVER/"
else
	say "fetching linux-image-$KVER"
	cd "$tmp"
	apt_private "$suite"
	apt_knows "linux-image-$KVER" || {
		echo "kernel.sh: no linux-image-$KVER in $suite; newer headers may be due:" \
			"apt-get install linux-headers-amd64" >&2
		exit 77
	}
	apt-get "${APT[@]}" download "linux-image-$KVER" ||
		die "cannot fetch linux-image-$KVER of $suite"
	# from 7.2 on the image, its modules and its configuration are packages of their own
	for p in base binary modules; do
		! apt_knows "linux-$p-$KVER" ||
			apt-get "${APT[@]}" download "linux-$p-$KVER" ||
			die "no linux-$p-$KVER in $suite"
	done
	for p in linux-*.deb; do dpkg -x "$p" .; done
	rm -f linux-*.deb
	if [ ! -d lib ]; then
		mkdir lib
		mv usr/lib/modules lib/
	fi
	for p in vmlinuz config; do		# 7.2 and newer keep them beside the modules
		[ ! -e "lib/modules/$KVER/$p" ] || {
			mkdir -p boot
			mv "lib/modules/$KVER/$p" "boot/$p-$KVER"
		}
	done
fi
depmod -b "$tmp" "$KVER"
rm -rf "$out"
mv "$tmp" "$out"
