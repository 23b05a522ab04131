#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# matrix.sh [--accept] [--short] [--keep] [NAME..]   build for the kernels of kernels.conf, all or
#                                                    those named
# --short leaves out sparse, those that say long, and those that say short: boot.sh --short builds
# them. --keep: with TESTS=1, without sparse and unknown.sh, and what was built stays in
# build/modules/RELEASE, where run.py --kver RELEASE finds it.
# matrix.sh --list WORD           names of those whose last column has that word, or of all, with
#                                 suite and package
#
# The five modules and a sixth that uses every wrapper of compat.h (tests/kernels/wrappers), W=1
# WERROR=1, on a copy of the tree, with sparse where the list says so; then the probes' answers are
# compared with compat/expected/NAME.h. A build that fails or warns, a module that is missing and an
# answer that differs are failures; a kernel that the mirror does not have is skipped. --accept
# takes the answers as the new expectation. Logs: build/kernels/NAME.log, and NAME.setup.log for
# chroot and headers.
set -u

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
cache=${IBNBD_CACHE:-$top/build/cache}
logs=$top/build/kernels
modules=(ibtrs/ibtrs-core ibtrs/ibtrs-client ibtrs/ibtrs-server ibnbd/ibnbd-client
	ibnbd/ibnbd-server tests/kernels/wrappers/cx-wrappers)
. "$top/tests/modules.sh"
copied=("${modules_source[@]}" tests/kernels/wrappers tests/kernels/strict)
jobs=${JOBS:-$(nproc)}
conf=${IBNBD_KERNELS:-$here/kernels.conf}	# another list: selftest.sh
accept=
short=
keep=
[ "${1:-}" != --accept ] || { accept=yes; shift; }
[ "${1:-}" != --short ] || { short=yes; shift; }
[ "${1:-}" != --keep ] || { keep=yes; shift; }
if [ "${1:-}" = --list ]; then
	exec awk -v w="${2:?which word?}" '!/^#/ {
		for (i = 4; i <= NF; i++)
			if ($i == w || w == "all") { print $1, $2, $3; next }
	}' "$conf"
fi

mkdir -p "$cache" "$logs"
exec 9> "$cache/.matrix.lock"
flock 9

chroot() { IBNBD_CHROOT=${alone:-} "$here/chroot.sh" "$@" 9>&-; }

# The same once more with sparse; only what is said about our own files counts. Not by C=2: newer
# kernels look then for a script of theirs, which Debian's headers lack, and go without. With
# $suite, $root, $dir, $words, $log, $why of build().
sparse() {
	if ! chroot run "$suite" sh -c 'command -v sparse' > /dev/null; then
		chroot run "$suite" apt-get -qq install -y --no-install-recommends sparse \
			>> "$setup" 2>&1 || {
			why="$suite has no sparse"
			return
		}
	fi
	chroot run "$suite" make -C "/usr/src/linux-headers-$release" M="$dir" "${words[@]}" \
		-j"$jobs" W=1 WERROR=1 KBUILD_CHECKSRC=2 CHECK=sparse \
		CF="-D__CHECK_ENDIAN__ -Wno-context" \
		modules > "$log.sparse" 2>&1 || why="make with sparse failed"
	[ "$(grep -c 'CHECK  ' "$log.sparse")" -gt 50 ] || why="sparse looked at nothing"
	why=${why:-$(grep -E ': (warning|error): ' "$log.sparse" | sed "s|^$dir/||; s|^\./||" |
		grep -E '^(compat|ibtrs|ibnbd)/' | head -n 1)}
}

# It was strict, and what is planted does not pass. With $suite, $root, $dir, $release, $log, $why
# of build().
strict() {
	why=$("$here/strict.sh" "$root$dir" 2>> "$log" | head -n 1)
	[ -n "$why" ] || "$here/planted.sh" "$suite" "$release" >> "$log" 2>&1 9>&- ||
		why=$(grep -m 1 ^planted.sh: "$log" || echo "planted.sh failed")
}

build() {	# NAME SUITE GLOB WORD..: 0 good, 77 skipped, else failed; $why, $release
	local name=$1 suite=$2 glob=$3 log=$logs/$1.log setup=$logs/$1.setup.log \
		root=$cache/chroot-$2 dir m rc
	# nobody debugs these
	local answers=$1 expected arch= newest= alone= sparse= strict= probes= flags=-g0 \
		words=(CONFIG_DEBUG_INFO_BTF_MODULES=)
	release= why=
	shift 3
	for m; do
		case $m in
		arm64)	arch=arm64; words+=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-) ;;
		# it looks for what only gcc was asked for
		clang)	words+=("CC=$here/clang.sh" objtool=/bin/true) ;;
		newest)	newest=yes ;;
		chroot)	alone=yes ;;
		sparse)	[ -n "$short$keep" ] || sparse=yes ;;
		strict)	strict=yes
			words+=(TESTS=1 CONFIG_SECTION_MISMATCH_WARN_ONLY=
				CONFIG_DEBUG_SECTION_MISMATCH=y) ;;
		probes)	probes=yes ;;
		as:*)	answers=${m#as:} ;;
		KCFLAGS=*) flags+=" ${m#KCFLAGS=}" ;;
		boot|short|long) ;;
		*)	why="kernels.conf: what is '$m'?"; return 1 ;;
		esac
	done
	expected=$top/compat/expected/$answers.h
	[ -z "$keep" ] || words+=(TESTS=1)
	words+=("KCFLAGS=$flags")
	: > "$log" > "$setup"
	[ -n "$alone" ] || [ "$suite" != "$(. /etc/os-release && echo "$VERSION_CODENAME")" ] ||
		root=
	chroot make "$suite" >> "$setup" 2>&1 || {
		rc=$?
		why="no chroot of $suite: $(tail -n 1 "$setup")"
		return $rc
	}
	release=$(chroot headers "$suite" "$glob" $arch 2>> "$setup")
	case $? in
	0) ;;
	77) why="the mirror has no $glob"; return 77 ;;
	*) why="no headers: $(tail -n 1 "$setup")"; return 1 ;;
	esac

	dir=/tmp/ibnbd-$name
	rm -rf "$root$dir"
	mkdir -p "$root$dir"
	tar -C "$top" -cf - --exclude='*.o' --exclude='*.ko' --exclude='*.mod*' --exclude='.*.cmd' \
		--exclude='config.h*' "${copied[@]}" | tar -C "$root$dir" -xf - || return 1
	if [ -n "$probes" ]; then
		sed -i 's/^obj-m += ibtrs.*/obj-m :=/' "$root$dir/Kbuild"
	else
		# it links compat/blk.o too, so it comes after ibnbd/
		printf '\n%s\n%s\n' 'obj-m += tests/kernels/wrappers/' \
			'$(obj)/tests/kernels/wrappers: $(obj)/ibnbd' >> "$root$dir/Kbuild"
	fi
	[ -z "$strict" ] ||
		printf 'include $(src)/tests/kernels/strict/strict.mk\n' >> "$root$dir/Kbuild"
	chroot run "$suite" make -C "/usr/src/linux-headers-$release" M="$dir" "${words[@]}" \
		W=1 WERROR=1 -j"$jobs" modules >> "$log" 2>&1
	[ $? -eq 0 ] || why=$(grep -m 1 -E 'error:|ERROR|\*\*\*' "$log" || echo "make failed")
	for m in "${modules[@]}"; do
		[ -n "$why$probes" ] || [ -e "$root$dir/$m.ko" ] || why="$m.ko was not built"
	done
	# fault injection is for tests
	[ -n "$why$probes" ] || [[ " ${words[*]} " == *" TESTS=1 "* ]] ||
		! grep -q ibtrs_fault_look "$root$dir/ibtrs/ibtrs-core.ko" ||
		why="modules without TESTS=1 have fault points"
	[ -n "$why" ] ||
		why=$(grep -iE 'warning' "$log" | grep -v 'compiler differs from' | head -n 1)
	[ -n "$why" ] || [ -z "$sparse" ] || sparse
	[ -n "$why" ] || [ -z "$strict" ] || strict
	if [ -e "$root$dir/compat/config.h" ]; then
		{
			echo '/* SPDX-License-Identifier: GPL-2.0-only */'
			cat "$root$dir/compat/config.h"
		} > "$logs/$name.h"
		[ -z "$accept" ] || cp "$logs/$name.h" "$top/compat/expected/$answers.h"
		# as old as the probes
		[ -n "$accept" ] || expected=$root$dir/compat/expected/$answers.h
		if ! diff -u "$expected" "$logs/$name.h" > "$logs/$name.diff" 2>&1; then
			sed -n '/^[-+]#/p' "$logs/$name.diff" >> "$log"
			why="${why:+$why; }probes answer differently: $(
				sed -n 's/^+#define HAVE_//p' "$logs/$name.diff" | tr '\n' ' ')"
		fi
	else
		why=${why:-the probes left no compat/config.h}
	fi
	if [ -z "$why" ] && [ -n "$keep" ]; then
		mkdir -p "$top/build/modules"
		rm -rf "$top/build/modules/$release"
		mv "$root$dir" "$top/build/modules/$release"
	fi
	rm -rf "$root$dir"
	if [ -z "$why$keep" ] && [ -n "$newest" ]; then
		"$here/unknown.sh" "$suite" "$release" >> "$log" 2>&1 9>&- ||
			why=$(grep -m 1 ^unknown.sh: "$log" || echo "unknown.sh failed")
	fi
	[ -z "$why" ]
}

passed=0 failed=0 skipped=0
row() { printf '%-4s  %-27s %-26s %5s  %s\n' "$@"; }

while read -r name suite glob words; do
	case $name in ''|'#'*) continue ;; esac
	[ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
	[ -z "$short" ] || [[ " $words " != *" long "* && " $words " != *" short "* ]] || continue
	begin=$SECONDS
	# shellcheck disable=SC2086 # words
	build "$name" "$suite" "$glob" $words < /dev/null
	case $? in
	0)  row ok "$name" "$release" $((SECONDS - begin))s ""; passed=$((passed + 1)) ;;
	77) row skip "$name" "$release" $((SECONDS - begin))s "$why"; skipped=$((skipped + 1)) ;;
	*)  row FAIL "$name" "$release" $((SECONDS - begin))s "$why (build/kernels/$name.log)"
	    failed=$((failed + 1)) ;;
	esac
done < "$conf"

built=$passed
if [ $# -eq 0 ]; then
	if python3 "$here/fixtures.py"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $built -gt 0 ]
