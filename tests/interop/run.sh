#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# run.sh [SERIES|all [CASE..]]: talk to the kernel's own rnbd, on the newest kernel of that series
# in Debian, its modules and ours built in a chroot of the suite it comes from. The series are those
# of which rnbd speaks another dialect. One that the mirror does not have (no headers, image or
# source) is skipped; one whose peers do not build fails.
set -eu -o pipefail
. "$(dirname "$0")/../vm/env.sh"

all=(5.10 6.1 6.12 7.2)
which=${1:-all}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] ||
	set -- peers/server peers/client peers/restart peers/side-by-side peers/hazards peers/late \
		peers/paths
[ "$which" = all ] || all=("$which")
logs=$REPO/build/interop
mkdir -p "$logs"

. "$REPO/tests/kernels/have.sh"
prepare() {	# SERIES: 0 good, 77 cannot be had, else failed; $why, $release
	local suite log=$logs/$1.log rc=0
	suite=$(awk -v s="linux-headers-$1." 'index($3, s) == 1 { print $2; exit }' \
		"$REPO/tests/kernels/kernels.conf")
	[ -n "$suite" ] || { why="tests/kernels/kernels.conf knows no $1"; return 1; }
	have_kernel "$suite" "linux-headers-$1.*-$(dpkg --print-architecture)" "$log" || return $?
	"$REPO/tests/interop/build-peer.sh" "$release" "$suite" >> "$log" 2>&1 || rc=$?
	[ $rc -eq 0 ] || { why="no peers: $(tail -n 1 "$log")"; return $rc; }
	"$REPO/tests/interop/build-ours.sh" "$release" "$suite" >> "$log" 2>&1 || {
		why=$(tail -n 1 "$log")
		return 1
	}
}

passed=0 failed=0 skipped=0
for series in "${all[@]}"; do
	rc=0
	prepare "$series" || rc=$?
	case $rc in
	0)  ;;
	77) echo "skip $series ($why)"; skipped=$((skipped + 1)); continue ;;
	*)  echo "FAIL $series ($why; build/interop/$series.log)"
	    failed=$((failed + 1))
	    continue ;;
	esac
	say "the kernel's rnbd of $release"
	# what was just built, before what may lie in the tree for the same kernel
	"$REPO/tests/vm/run.py" --kver "$release" --ko "$REPO/build/modules/$release" \
		--logs "$logs/$series" "$@" | tee -a "$logs/$series.log" || rc=$?
	# none: run.py died
	total=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$logs/$series.log" | tail -n 1) || true
	read -r p f s \
		< <(sed -E 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped.*/\1 \2 \3/' \
		<<< "${total:-0 passed, 1 failed, 0 skipped}")
	[ $rc -eq 0 ] || [ "$f" -gt 0 ] || f=1
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
