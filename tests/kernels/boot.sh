#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# boot.sh [--short] [NAME..]   boot the kernels of kernels.conf that say "boot", or those named,
#                              with our modules
#
# Debian's stock image of each in two machines of the rig: tests/cases/rig/boot loads the modules,
# maps a disk, writes and verifies, loses a path while it does, unmaps and unloads, and the kernel's
# log must stay clean. Those that say "newest" run io/block-layer, too, for what it asks of newer
# kernels only. --short: those that say "short". A kernel that the mirror does not have is skipped,
# and one must pass. Logs: build/boot/NAME.log and build/boot/NAME/.
set -u

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
logs=$top/build/boot
word=boot
LIMIT=25	# minutes, on two emulated processors
[ "${1:-}" != --short ] || { word=short; shift; }
[ $# -eq 0 ] || word=all
mkdir -p "$logs"

. "$here/have.sh"
newest=" $("$here/matrix.sh" --list newest | cut -d' ' -f1 | tr '\n' ' ')"

boot() {	# NAME SUITE GLOB: 0 good, 77 skipped, else failed; $why, $release
	local name=$1 suite=$2 glob=$3 log=$logs/$1.log rc more=()
	[[ $newest != *" $name "* ]] || more+=(io/block-layer)
	have_kernel "$suite" "$glob" "$log" || return $?
	"$here/matrix.sh" --keep "$name" >> "$log" 2>&1 || {
		why=$(grep -m 1 ^FAIL "$log")
		return 1
	}
	# what was just built, before what may lie in the tree for the same kernel
	"$top/tests/vm/run.py" --kver "$release" --ko "$top/build/modules/$release" \
		--logs "$logs/$name" rig/boot "${more[@]}" >> "$log" 2>&1
	rc=$?
	[ $rc -eq 0 ] || why=$(grep -m 1 -A 2 ^FAIL "$log" | tail -n +2 | tr -s ' \n' ' ')
	return $rc
}

passed=0 failed=0 skipped=0
row() { printf '%-4s  %-27s %-26s %5s  %s\n' "$@"; }

while read -r name suite glob; do
	[ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
	begin=$SECONDS
	boot "$name" "$suite" "$glob" < /dev/null
	case $? in
	0)  row ok "$name" "$release" $((SECONDS - begin))s ""; passed=$((passed + 1)) ;;
	77) row skip "$name" "$release" $((SECONDS - begin))s "$why"; skipped=$((skipped + 1)) ;;
	*)  row FAIL "$name" "$release" $((SECONDS - begin))s "$why (build/boot/$name.log)"
	    failed=$((failed + 1)) ;;
	esac
done < <("$here/matrix.sh" --list $word)

echo "$((SECONDS / 60)) min $((SECONDS % 60)) s"
[ $SECONDS -le $((LIMIT * 60)) ] ||
	echo "warning: the boot matrix should take less than $LIMIT minutes"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
