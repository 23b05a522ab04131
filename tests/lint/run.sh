#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# run.sh: shape, style, W=1 and sparse. Last line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")" || exit 1
passed=0 failed=0 skipped=0

out=$(./shape.py)
sed '$d' <<< "$out"
read -r passed failed < <(sed -nE '$s/^([0-9]+) passed, ([0-9]+) failed.*/\1 \2/p' <<< "$out")
[ -n "$passed" ] || { passed=0 failed=1; echo "FAIL  shape.py said no total"; }

step() {	# NAME COMMAND..
	local name=$1
	shift
	"$@"
	case $? in
	0)  echo "ok    $name"; passed=$((passed + 1)) ;;
	77) echo "skip  $name"; skipped=$((skipped + 1)) ;;
	*)  echo "FAIL  $name"; failed=$((failed + 1)) ;;
	esac
}
# a make that begins without headers must not tell its sub-makes that there are none
no_kdir() { [ -z "$(env -u KDIR make -s -C ../.. --eval='said:;@printf %s "$$KDIR"' said)" ]; }
step "make hands on no kernel directory of its own" no_kdir
step "each patch that breaks a law applies" ./laws.sh
step "calls go down the tables of rooms of docs/design.md, without other circles" ./circles.py
step "each function of drivers and command is called" ./unused.py
step "documents and source say the same" ./claims.py
step "libibtrs exports what its header says, and its examples run" ./library.sh
step "checkpatch finds nothing" ./checkpatch.sh
step "W=1 and sparse find nothing" ./sparse.sh

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
