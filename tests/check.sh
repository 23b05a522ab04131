#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# check.sh STAGE... ["LANE | LANE" ...]: run stages of make check or check-all, one after another,
# all of them even if one fails. A word that holds several stages in lanes, "a b | c d", runs the
# lanes side by side: what keeps one CPU busy leaves the other to somebody else. A lane that begins
# with ~ gets only the time that nobody else wants, so it may stand beside what asserts seconds;
# what has a deadline of its own does not belong into it. Each stage is a make target whose last
# "N passed, N failed[, N skipped]" is added to the total; what the first lane says is shown as it
# comes, what others say by stage, in between. At the end: what each stage cost, the ten slowest
# cases and builds, and the cases that passed only when run again (FLAKY); two of these in all
# stages together are a failure. LIMIT=MINUTES: a warning if it took longer. A stage that ends
# badly, says no total, or passed nothing counts as one failure. Logs: build/check.
set -u
cd "$(dirname "$0")/.." || exit 1
logs=build/check
TIMEFORMAT='%0U %0S'	# of user and system
rm -rf $logs
mkdir -p $logs

stage() {	# NAME: its row is NAME.row, its output NAME.log, and shown as it goes on
	local stage=$1 target=$1 log=$logs/$1.log begin=$SECONDS rc total p f s note=
	case $stage in
	kernels|boot|packages|pair|interop|faults|suites|laws|memory|debug|kcsan|long|nbdkit| \
	serverd)
		target=check-$stage ;;
	esac
	{
		time {
			make --no-print-directory "$target" < /dev/null 2>&1 | tee "$log" >&3
			rc=${PIPESTATUS[0]}
		}
	} 3>&1 2> "$logs/$stage.cpu"
	total=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
	read -r p f s \
		< <(sed -E 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?.*/\1 \2 \4/' \
		<<< "${total:-0 passed, 0 failed}")
	s=${s:-0}
	if [ "$f" -eq 0 ] && { [ "$rc" -ne 0 ] || [ -z "$total" ] || [ "$p" -eq 0 ]; }; then
		f=1
		note="exit status $rc, ${total:-no total}: see $log"
	fi
	echo "$stage $p $f $s $((SECONDS - begin)) $(cat "$logs/$stage.cpu") $note" \
		> "$logs/$stage.row"
}

lane() {	# SIGHT [~] STAGE..: with SIGHT shown as it goes on, else when a stage is over
	local sight=$1 name
	shift
	if [ "$1" = "~" ]; then
		shift
		chrt --idle --pid 0 $BASHPID || return
	fi
	for name; do
		[ "$sight" ] || stage "$name" > /dev/null
		(
			flock 9
			echo "== $name"
			if [ "$sight" ]; then
				stage "$name" 9>&-
			else
				cat "$logs/$name.log"
			fi
		) 9> $logs/lock &
		[ -z "$sight" ] || wait $!	# other lanes go on before it is shown
	done
	wait
}

lanes() {	# WORD: the first in sight; each in a group of its own, which an interrupt ends
	local group lanes pids=() sight=sight
	IFS='|' read -ra lanes <<< "$1"
	set -m
	for group in "${lanes[@]}"; do
		lane "$sight" $group &	# words
		pids+=($!)
		sight=
	done
	set +m
	trap 'kill -TERM "${pids[@]/#/-}" 2> /dev/null; exit 130' INT TERM HUP
	wait "${pids[@]}"
	trap - INT TERM HUP
}

names=()
for word; do
	names+=(${word//[|~]/ })
	lanes "$word"
done

passed=0 failed=0 skipped=0 table=
for name in "${names[@]}"; do
	read -r _ p f s cost user system note < "$logs/$name.row" || {
		p=0 f=1 s=0 cost=0 user=0 system=0
		note="ended without a result: see $logs/$name.log"
	}
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	table+=$(printf '%-10s %5d passed %4d failed %4d skipped %5d s %5d s of CPUs  %s' \
		"$name" "$p" "$f" "$s" "$cost" $((user + system)) "$note")$'\n'
done

costs() {	# seconds and name of each case and build, the slowest first
	awk '/^(ok|FAIL|FLAKY) / {
		for (i = 3; i <= NF; i++)
			if ($i ~ /^[0-9.]+s,?$/) { printf "%7.0f s  %s\n", $i, $2; next }
	}' $logs/*.log | sort -rn
}
flaky=$(cat $logs/*.log | grep '^FLAKY ')
if [ "$(grep -c . <<< "$flaky")" -gt 1 ]; then
	failed=$((failed + 1))
	echo "more than one flaky case:"
fi
[ -z "$flaky" ] || echo "$flaky"
echo "the slowest:"
costs | head -n 10

printf '\n%s%-10s %46d s\n' "$table" together $SECONDS
[ -z "${LIMIT:-}" ] || [ $SECONDS -le $((LIMIT * 60)) ] ||
	echo "warning: this should take less than $LIMIT minutes"
printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed -eq 0 ] && [ $passed -gt 0 ]
