#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# check.sh STAGE...: run stages of make check or check-all, one after another, all of them even if
# one fails. Each stage is a make target whose last "N passed, N failed[, N skipped]" is added to
# the total. At the end: what each stage cost, the ten slowest cases and builds, and the cases that
# passed only when run again (FLAKY); two of these in all stages together are a failure.
# LIMIT=MINUTES: a warning if it took longer. A stage that ends badly, says no total, or passed
# nothing counts as one failure. Logs: build/check.
set -u
cd "$(dirname "$0")/.." || exit 1
logs=build/check
mkdir -p $logs
passed=0 failed=0 skipped=0 table=""

for stage in "$@"; do
	target=$stage
	case $stage in
	kernels|boot|packages|interop|faults|suites|laws|memory|debug|kcsan|long)
		target=check-$stage ;;
	esac
	log=$logs/$stage.log
	echo "== $stage"
	begin=$SECONDS
	make --no-print-directory "$target" </dev/null 2>&1 | tee $log
	rc=${PIPESTATUS[0]}
	total=$(grep -E '^[0-9]+ passed, [0-9]+ failed' $log | tail -n 1)
	read -r p f s \
		< <(sed -E 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?.*/\1 \2 \4/' \
		<<< "${total:-0 passed, 0 failed}")
	s=${s:-0}
	note=
	if [ "$f" -eq 0 ] && { [ "$rc" -ne 0 ] || [ -z "$total" ] || [ "$p" -eq 0 ]; }; then
		f=1
		note="exit status $rc, ${total:-no total}: see $log"
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	table+=$(printf '%-10s %5d passed %5d failed %5d skipped %6d s  %s' \
		"$stage" "$p" "$f" "$s" $((SECONDS - begin)) "$note")$'\n'
done

costs() {	# seconds and name of each case and build, the slowest first
	awk '/^(ok|FAIL|FLAKY) / {
		for (i = 3; i <= NF; i++)
			if ($i ~ /^[0-9.]+s$/) { printf "%7.0f s  %s\n", $i, $2; next }
	}' "${stages[@]/#/$logs/}" | sort -rn
}
stages=("${@/%/.log}")
flaky=$(cat "${stages[@]/#/$logs/}" | grep '^FLAKY ')
if [ "$(grep -c . <<< "$flaky")" -gt 1 ]; then
	failed=$((failed + 1))
	echo "more than one flaky case:"
fi
[ -z "$flaky" ] || echo "$flaky"
echo "the slowest:"
costs | head -n 10

printf '\n%s%-10s %49d s\n' "$table" together $SECONDS
[ -z "${LIMIT:-}" ] || [ $SECONDS -le $((LIMIT * 60)) ] ||
	echo "warning: this should take less than $LIMIT minutes"
printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed -eq 0 ] && [ $passed -gt 0 ]
