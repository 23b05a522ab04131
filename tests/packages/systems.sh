#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# systems.sh [WORD]: make check-packages, or the parts of it whose name contains WORD: debian12,
# debian13, rpm, repo12, repo13, dkms12, dkms13, boot12, boot13, cluster12. Install, upgrade and
# remove the packages in clean systems, with real DKMS builds: .deb in Debian 12 and 13, .rpm in a
# scratch root; from a repository of repo.sh; DKMS without packages. Then boot such systems
# (boot.py), and, if it is named, a pair under Pacemaker (cluster.py). As root; the systems are kept
# in build/cache, copies of them are thrown away. Last line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/../.." || exit 1
only=${1:-}
logs=build/systems
passed=0 failed=0 skipped=0
mkdir -p $logs
[ "$(id -u)" = 0 ] || { echo "systems.sh: must be root, for chroots" >&2; exit 1; }

system() {	# NAME SUITE SCRIPT
	[[ $1 == *"$only"* ]] || return 0
	local log=$logs/$1.log n rc begin=$SECONDS
	OUT=build/repo timeout 3600 tests/packages/root.sh run "$2" "tests/packages/$3" \
		< /dev/null > "$log" 2>&1
	rc=$?
	sed -n "s/^ok /ok    $1: /p" "$log"
	n=$(grep -c '^ok ' "$log")
	passed=$((passed + n))
	if [ $rc -ne 0 ] || [ "$n" -eq 0 ]; then
		echo "FAIL  $1 after $((SECONDS - begin)) s ($log)"
		grep -v '^ok ' "$log" | tail -n 20
		failed=$((failed + 1))
	fi
}

boots() {	# NAME SUITE PROGRAM
	[[ $1 == *"$only"* ]] || return 0
	local log=$logs/$1.log p f s
	timeout 7200 "tests/packages/$3" --suite "$2" < /dev/null 2>&1 | tee "$log" |
		grep -v ' passed, '
	if read -r p f s \
		< <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' \
		"$log"); then
		passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	else
		echo "FAIL  $1 ($log)"
		failed=$((failed + 1))
	fi
}

made() {	# LOG COMMAND..
	local log=$logs/$1
	shift
	"$@" > "$log" 2>&1 || { tail -n 20 "$log"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
}
made repo.log env URL=file:///out tests/packages/repo.sh
made rpm2.log tests/packages/rpm.sh build/rpm2 2
system debian12 bookworm install-deb.sh
system debian13 trixie install-deb.sh
system rpm bookworm install-rpm.sh
system repo12 bookworm install-repo.sh
system repo13 trixie install-repo.sh
system dkms12 bookworm install-dkms.sh
system dkms13 trixie install-dkms.sh
boots boot12 bookworm boot.py
boots boot13 trixie boot.py
# (an hour, so on demand: make check-pair)
[[ $only != *cluster* ]] || boots cluster12 bookworm cluster.py
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
