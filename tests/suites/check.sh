#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# check.sh: make check-suites. SUITES=DIR[:DIR] names checkouts of blktests and xfstests. First the
# runner proves by stand-ins of both (standin/), in which faults are planted, that it tells a fault
# from its absence and ends one that hangs, and that nothing is left of a run that is stopped: two
# tests. Last line: N passed, N failed, N skipped.
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
here=tests/suites
own=build/suites/selftest
log=$own/log
rm -rf $own
mkdir -p $own
cp -r $here/standin $own/	# they are built

broken() {	# WORD..
	echo "FAIL  the runner $* ($log)"
	tail -n 30 $log
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
}

$here/run.py --fs ext4,xfs --limit 30 --hours 1 --logs $own/whole \
	--expected $here/standin/expected $own/standin/blktests $own/standin/xfstests > $log 2>&1
rc=$?
wants=(
	'^      \[1/8\] block/001 on ibnbd0: passed, [0-9]+ s$'
	'^      \[7/8\] block/007 on ibnbd0: hung, [0-9]+ s \(no end after [0-9]+ s\)$'
	'^note  blktests block/001 passes, though it is listed as: planted: does not fail any more$'
	'^skip  blktests block/002: failed on the local disk, too$'
	'^FAIL  blktests block/003: failed, on the local disk it was: passed$'
	'^skip  blktests block/004: planted: expected to fail on ours$'
	'^FAIL  blktests block/007: hung, on the local disk it was: passed$'
	'^FAIL  blktests: 4 passed, 2 failed, 3 skipped$'
	'^FAIL  xfstests ext4 generic/002: failed, on the local disk it was: passed$'
	'^FAIL  xfstests ext4: 2 passed, 1 failed, 1 skipped$'
	'^FAIL  xfstests xfs: 2 passed, 1 failed, 1 skipped$'
	'^8 passed, 4 failed, 5 skipped$'
)
for want in "${wants[@]}"; do
	grep -qE "$want" $log || broken "does not say: $want"
done
[ "$rc" = 1 ] || broken "ends with status $rc, with planted faults"
grep -qE '^blktests +block/007 +hung +[0-9]+ +passed +[0-9]+ # no end' $own/whole/RESULTS ||
	broken "keeps no record of what hung"
grep -qx planted $own/whole/xfstests-ext4-ibnbd0/results/generic/002.out.bad ||
	broken "keeps nothing of what failed"
echo "ok    the runner tells planted faults from their absence, and ends what hangs"

$here/run.py --tests 'block/001 block/007' --logs $own/stopped $own/standin/blktests > $log 2>&1 &
pid=$!
trap 'kill $pid' EXIT
until grep -q 'block/001 on ibnbd0: passed' $log || [ ! -e /proc/$pid ]; do sleep 1; done
kill $pid 2> /dev/null
wait $pid
rc=$?
trap - EXIT
[ "$rc" = 143 ] || broken "ends with status $rc when it is stopped"
left=$(ls -d "${TMPDIR:-/tmp}/ibnbd-rig-$pid."* 2> /dev/null
	pgrep -f "${TMPDIR:-/tmp}/ibnbd-rig-$pid\.")
[ -z "$left" ] || broken "leaves behind, when it is stopped: $left"
grep -qE '^blktests +block/001 +passed ' $own/stopped/RESULTS ||
	broken "has no results when it is stopped"
echo "ok    nothing but its results is left of a run that is stopped"

if [ -z "${SUITES:-}" ]; then
	echo "skip  no suites: SUITES=DIR[:DIR] names checkouts of blktests and xfstests" \
		"($here/README.md)"
	echo "2 passed, 0 failed, 1 skipped"
	exit 0
fi
IFS=: read -ra dirs <<< "$SUITES"
exec $here/run.py --passed 2 ${TESTS:+--tests "$TESTS"} ${FS:+--fs "$FS"} ${EACH:+--limit "$EACH"} \
	${HOURS:+--hours "$HOURS"} ${NBD:+--nbd} "${dirs[@]}"
