#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# run.sh [SERIES [CASE..]]: talk to the kernel's own rnbd on another kernel than the tests' usual one: the newest
# of that series (6.12) in Debian, its modules and ours built in a chroot of the suite it comes from.
# The machine that has no such headers says so and skips.
set -eu -o pipefail
. "$(dirname "$0")/../vm/env.sh"

series=${1:-6.12}
[ $# -eq 0 ] || shift
chroot=$REPO/tests/kernels/chroot.sh
suite=$(awk -v s="linux-headers-$series." 'index($3, s) == 1 { print $2; exit }' "$REPO/tests/kernels/kernels.conf")
[ -n "$suite" ] || die "tests/kernels/kernels.conf knows no $series"

"$chroot" make "$suite"
rc=0
release=$("$chroot" headers "$suite" "linux-headers-$series.*-$(dpkg --print-architecture)") || rc=$?
if [ $rc -eq 77 ]; then
	say "$suite has no headers of $series"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
[ $rc -eq 0 ] || exit $rc
"$REPO/tests/vm/kernel.sh" "$release"
"$REPO/tests/interop/build-ours.sh" "$release"
[ $# -gt 0 ] || set -- 030 031
exec "$REPO/tests/vm/run.py" --kver "$release" --logs "$REPO/build/test-logs-$series" "$@"
