#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# run.sh [L1..]: does a test notice when a law of docs/design.md is broken? Each patch here breaks
# one; its first line says which case, or "unit", must fail then, its second one, after "says:",
# what that must say (a regular expression, for the line FAIL and the 8 after it; before it, too,
# for "unit"). The tree is copied, and unbroken passes them all; then it is broken, built and
# tested; a case that passes or fails with other words, a patch that does not tell them, or does not
# apply any more, or a tree that does not build is a failure of ours. Logs: build/laws.
set -u -o pipefail
. "$(dirname "$0")/../vm/env.sh"

here=$REPO/tests/laws
work=$REPO/build/laws
tree=$work/tree
export IBNBD_CACHE=$CACHE
passed=0 failed=0

notices() {	# LAW CASE SAYS: 0 the test failed, as it should
	local log=$work/$1.log near=(-A 8)
	[ -n "$3" ] || { why="its second line does not tell what the test must say"; return 1; }
	patch -d "$tree" -F0 -p1 < "$here/$1.patch" > "$log" 2>&1 || {
		why="the patch does not apply any more"
		return 1
	}
	if [ "$2" = unit ]; then
		near+=(-B 8)
		make -C "$tree/tests/unit" check >> "$log" 2>&1
	else
		make -C "$tree" "KVER=$KVER" TESTS=1 modules tools lib >> "$log" 2>&1 || {
			why="it does not build"
			return 1
		}
		"$tree/tests/vm/run.py" "$2" >> "$log" 2>&1
	fi && { why="nobody noticed"; return 1; }
	why=$(grep -iE -A 1 -m 1 "^ *(FAIL|not ok)" "$log" | tail -n 1 | sed 's/^ *//')
	[ -n "$why" ] || { why="no case has failed: $(tail -n 1 "$log")"; return 1; }
	grep -iE "${near[@]}" "^ *(FAIL|not ok)" "$log" | grep -qE "$3" || {
		why="it failed for another reason: $why"
		return 1
	}
}
sound() {	# CASE..: they pass when nothing is broken
	make -C "$tree" "KVER=$KVER" TESTS=1 modules tools lib &&
		make -C "$tree/tests/unit" check &&
		{ [ $# -eq 0 ] || "$tree/tests/vm/run.py" "$@"; }
}

rm -rf "$work"
mkdir -p "$tree"
(cd "$REPO" && git ls-files -z --cached --others --exclude-standard | tar -c --null -T - -f - ) |
	tar -x -C "$tree" -f - || exit 1

[ $# -gt 0 ] || set -- $(cd "$here" && ls -v L*.patch | sed 's/\.patch//')
cases=$(for law; do sed -n '1s/:.*//p' "$here/$law.patch"; done | grep -v unit | sort -u)
sound $cases > "$work/sound.log" 2>&1 || {
	grep -A 2 ^FAIL "$work/sound.log"
	echo "they must pass when no law is broken (build/laws/sound.log)"
	echo "0 passed, 1 failed"
	exit 1
}
for law; do
	begin=$SECONDS why=''
	IFS=': ' read -r case what < "$here/$law.patch"
	says=$(sed -n '2s/^says: //p' "$here/$law.patch")
	if notices "$law" "$case" "$says"; then
		printf 'ok    %-4s %s: %s\n' "$law" "$case" "$what"
		printf '           %s\n' "$why"
		passed=$((passed + 1))
	else
		printf 'FAIL  %-4s %s: %s: %s (%s)\n' "$law" "$case" "$what" "$why" \
			"${work#"$REPO"/}/$law.log"
		failed=$((failed + 1))
	fi
	echo "           $((SECONDS - begin)) s"
	patch -s -R -d "$tree" -p1 < "$here/$law.patch" > /dev/null
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
