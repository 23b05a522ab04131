#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# planted.sh SUITE RELEASE: the row of the matrix that is as strict as any release finds what it is
# for.
#
# Each file of strict/planted has one fault. Built with the flags of strict.mk, the compiler must
# say of it what the file's second line says, and modpost of section/. Such words fail a row
# (WERROR=1).
set -eu -o pipefail

here=$(cd "$(dirname "$0")" && pwd)
suite=$1 release=$2
root=${IBNBD_CACHE:-$here/../../build/cache}/chroot-$suite
[ "$suite" != "$(. /etc/os-release && echo "$VERSION_CODENAME")" ] || root=
work=/tmp/ibnbd-planted.$$	# another run may be in the same chroot
bad=0 n=0

build() {	# DIRECTORY: output of a build there
	"$here/chroot.sh" run "$suite" env LC_ALL=C make \
		-C "/usr/src/linux-headers-$release" M="$work/planted$1" -k -j"$(nproc)" W=1 \
		CONFIG_SECTION_MISMATCH_WARN_ONLY= CONFIG_DEBUG_SECTION_MISMATCH=y \
		KCFLAGS=-ftrack-macro-expansion=0 modules 2>&1 || true
}

trap 'rm -rf "$root$work"' EXIT
mkdir -p "$root$work"
cp -r "$here/strict/." "$root$work"
build '' > "$root$work/log"
build /section >> "$root$work/log"
for file in "$root$work"/planted/*.c "$root$work"/planted/section/section.c; do
	name=$(basename "$file" .c)
	want=$(sed -n '2s|^/\* says: \(.*\) \*/$|\1|p' "$file")
	n=$((n + 1))
	if [ -z "$want" ]; then
		echo "planted.sh: $name.c does not say what is to be said of it"
	elif ! grep -qE -- "/$name\.[co]:.*($want)" "$root$work/log"; then
		echo "planted.sh: $name.c has a fault, and nothing said: $want"
	else
		continue
	fi
	bad=1
done
[ "$n" -ge 10 ] || { echo "planted.sh: no more than $n faults"; bad=1; }
[ $bad -eq 0 ] || grep -E '/planted/.*(error|warning):|WARNING|\*\*\*' "$root$work/log" ||
	tail -n 5 "$root$work/log"
exit $bad
