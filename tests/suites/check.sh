#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# check.sh: make check-suites. SUITES=DIR[:DIR] names built copies of blktests and xfstests. First
# the runner proves by stand-ins of both (standin/), in which faults are planted, that it tells a
# fault from its absence: that is one test. Last line: N passed, N failed, N skipped.
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
here=tests/suites
mkdir -p build/suites
log=build/suites/selftest.log

$here/run.py --fs ext4,xfs --minutes 5 --expected $here/standin/expected $here/standin/blktests \
	$here/standin/xfstests > $log 2>&1
rc=$?
wants=(
	'^note  blktests block/001 passes, though it is listed as: planted: does not fail any more$'
	'^skip  blktests block/002: fails on the local disk, too$'
	'^FAIL  blktests block/003 fails, on the local disk it was: passed$'
	'^skip  blktests block/004: planted: expected to fail on ours$'
	'^FAIL  blktests: 3 passed, 1 failed, 3 skipped$'
	'^FAIL  xfstests ext4 generic/002 fails, on the local disk it was: passed$'
	'^FAIL  xfstests ext4: 1 passed, 1 failed, 1 skipped$'
	'^FAIL  xfstests xfs: 1 passed, 1 failed, 1 skipped$'
	'^5 passed, 3 failed, 5 skipped$'
)
for want in "${wants[@]}"; do
	grep -qE "$want" $log || {
		echo "FAIL  the runner does not say: $want ($log)"
		tail -n 30 $log
		rc=selftest
		break
	}
done
[ "$rc" = 1 ] || {
	[ "$rc" = selftest ] || echo "FAIL  the runner's status is $rc, with planted faults ($log)"
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
}
echo "ok    the runner tells planted faults from their absence"

if [ -z "${SUITES:-}" ]; then
	echo "skip  no suites: SUITES=DIR[:DIR] names built copies of blktests and xfstests" \
		"($here/README.md)"
	echo "1 passed, 0 failed, 1 skipped"
	exit 0
fi
IFS=: read -ra dirs <<< "$SUITES"
$here/run.py ${TESTS:+--tests "$TESTS"} ${FS:+--fs "$FS"} "${dirs[@]}" | tee build/suites/run.log
rc=$?
read -r p f s \
	< <(sed -nE '$s/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' \
	build/suites/run.log)
echo "$((${p:-0} + 1)) passed, ${f:-1} failed, ${s:-0} skipped"
exit $rc
