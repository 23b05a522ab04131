#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# kmake.sh [-s SUITE] KVER DIR [WORD..]: build the kernel modules of DIR for KVER, in DIR (make
# modules, with further words). Without headers on this machine the build happens in a chroot of the
# Debian suite that has that kernel (SUITE, else by its version), made by tests/kernels/chroot.sh,
# in a copy of DIR whose modules are then brought back.
set -eu -o pipefail
. "$(dirname "$0")/env.sh"

suite=
[ "$1" != -s ] || { suite=$2; shift 2; }
KVER=$1
dir=$(cd "$2" && pwd)
shift 2
if [ -e "/lib/modules/$KVER/build" ]; then
	exec make -j2 -C "/lib/modules/$KVER/build" M="$dir" "$@" modules
fi
chroot=$REPO/tests/kernels/chroot.sh
suite=${suite:-$(suite_of "$KVER")}
[ "$suite" != "$(own_suite)" ] || die "no headers here: apt-get install linux-headers-$KVER"
"$chroot" make "$suite"
release=$("$chroot" headers "$suite" "linux-headers-$KVER") ||
	die "no linux-headers-$KVER in $suite"
copy=/root/kmake.$$
root=$CACHE/chroot-$suite
trap 'rm -rf "$root$copy"' EXIT
mkdir -p "$root$copy"
tar -C "$dir" -cf - --exclude=./build --exclude=.git --exclude='*.o' --exclude='*.ko' \
	--exclude='*.mod*' --exclude='.*.cmd' --exclude=./tests/fuzz --exclude='config.h*' . |
	tar -C "$root$copy" -xf -
"$chroot" run "$suite" make -j2 -C "/lib/modules/$release/build" M="$copy" "$@" modules
(cd "$root$copy" && find . -name '*.ko' -print0 | tar -cf - --null -T -) | tar -C "$dir" -xf -
