#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# sparse.sh   build the drivers with W=1 and sparse (-D__CHECK_ENDIAN__), on a copy of the tree; for
#             6.1 as strictly as tests/kernels/strict is, whose rules newer headers do not keep
#
# Only what is said about our own files counts: sparse may be older than the kernel's headers. It
# does not count locks: it does not see that a guard lets go at the end of its scope.
# C=1 looks at what is compiled, which on a warm tree is what changed: so nothing is kept of a run
# that did not end well. Exit 1 if anything is found, the build fails, or a mistake that is
# planted then is not found: one for sparse, and for 6.1 those of strict/planted.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
kdir=${KDIR:-$(ls -d /lib/modules/*/build | sort -V | tail -n 1)}
copy=$top/build/lint/src
log=$top/build/lint/sparse.log
well=$top/build/lint/sparse.well

command -v sparse > /dev/null || { echo "sparse.sh: apt-get install sparse" >&2; exit 1; }
mkdir -p "$copy"
# times are kept, so the next run compiles only what changed
find "$copy" -name '*.[ch]' ! -name 'config.h' -delete
tar -C "$top" -cf - --exclude='*.o' --exclude='*.ko' --exclude='*.mod*' --exclude='.*.cmd' \
	--exclude='config.h*' Kbuild compat ibtrs ibnbd tests/kernels/strict |
	tar -C "$copy" -xf - || exit 1
sed -i '/^tests-m := /d' "$copy/Kbuild"	# TESTS=1, for the drivers alone
release=$(sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' "$kdir/include/generated/utsrelease.h")
strict=
if [[ $release == 6.1.* && -d /usr/src/linux-headers-$release ]]; then
	strict=yes
	printf 'include $(src)/tests/kernels/strict/strict.mk\n' >> "$copy/Kbuild"
fi
[ -e "$well" ] || find "$copy" -name '*.o' -delete
rm -f "$well"

words=(W=1 WERROR=1 KCFLAGS=-g0 TESTS=1 CHECK=sparse CF="-D__CHECK_ENDIAN__ -Wno-context"
	CONFIG_SECTION_MISMATCH_WARN_ONLY= CONFIG_DEBUG_SECTION_MISMATCH=y)
make -C "$kdir" M="$copy" -k -j"$(nproc)" "${words[@]}" C=1 modules > "$log" 2>&1
rc=$?
found=$(grep -E ': (warning|error|fatal error): |: \*\*\* No rule to make' "$log" |
	grep -E "^$copy/|\*\*\*" | sed "s|$copy/||g" | sort -u)
[ -z "$found" ] || echo "$found"
[ $rc -eq 0 ] || [ -n "$found" ] || tail -n 5 "$log"
[ $rc -eq 0 ] && [ -z "$found" ] || exit 1

# and finds what is planted: a little-endian number taken for one of ours
plant=ibnbd/logic/access
printf 'u32 planted(__le32 x);\nu32 planted(__le32 x)\n{\n\treturn x;\n}\n' >> "$copy/$plant.c"
make -C "$kdir" M="$copy" C=2 "${words[@]}" "$plant.o" > "$log.planted" 2>&1
grep -q "$plant.c:.*incorrect type in return expression" "$log.planted" || {
	echo "a planted mistake was not found: build/lint/sparse.log.planted"
	exit 1
}

# and the compiler was as strict with each file
if [ -n "$strict" ]; then
	here=$top/tests/kernels
	"$here/strict.sh" "$copy" || exit 1
	"$here/planted.sh" "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$release" || exit 1
fi
touch "$well"
