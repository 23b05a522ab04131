#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# selftest.sh: does the matrix tell a kernel that nobody has from one that fails, and a flag that
# somebody likes from an answer? A list with one of each: the first is skipped; the second fails,
# since nobody has said what its probes answer, and so does the whole; those with flags that hide
# warnings, or end at the first error, answer as they do without.
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
list=$(mktemp)
trap 'rm -f "$list"' EXIT

# a kernel of this machine's suite, if it is in the list
own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
read -r name suite glob \
	< <("$here/matrix.sh" --list boot | awk -v own="$own" 'NR == 1 || $2 == own' | tail -n 1)
{
	echo "absent $suite linux-headers-0.1.0-*-amd64"
	echo "planted $suite $glob probes"
	for flag in -w -Wfatal-errors -fmax-errors=1 -Werror=unused-variable; do
		echo "flag$flag $suite $glob probes as:$name KCFLAGS=$flag"
	done
} > "$list"
out=$(IBNBD_KERNELS=$list "$here/matrix.sh" absent planted \
	flag-{w,Wfatal-errors,fmax-errors=1,Werror=unused-variable} 2>&1)
rc=$?
[ $rc -ne 0 ] && grep -qE '^skip +absent .* the mirror has no linux-headers-0\.1\.0' <<< "$out" &&
	grep -qE '^FAIL +planted .* probes answer differently' <<< "$out" &&
	grep -qx '4 passed, 1 failed, 1 skipped' <<< "$out" || {
	printf '%s\n' "$out" >&2
	echo "selftest.sh: status $rc; one row was to be skipped, one to fail," \
		"and those with flags to pass" >&2
	exit 1
}
