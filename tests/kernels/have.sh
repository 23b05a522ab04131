# SPDX-License-Identifier: GPL-2.0-only
# Sourced: have_kernel SUITE GLOB LOG: the newest kernel of that suite whose headers match, ready to
# be booted and built for. Returns 0: it is there; 77: the mirror does not have it; else something
# is broken. Sets $release and $why; the details are in LOG.
have_kernel() {
	local suite=$1 glob=$2 log=$3 tests rc=0
	tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
	why='' release=''
	: > "$log"
	"$tests/kernels/chroot.sh" make "$suite" >> "$log" 2>&1 || {
		rc=$?
		why="no chroot of $suite: $(tail -n 1 "$log")"
		return $rc
	}
	release=$("$tests/kernels/chroot.sh" headers "$suite" "$glob" 2>> "$log") || rc=$?
	case $rc in
	0) ;;
	77) why="the mirror has no $glob"; return 77 ;;
	*) why="no headers: $(tail -n 1 "$log")"; return 1 ;;
	esac
	"$tests/vm/kernel.sh" "$release" "$suite" >> "$log" 2>&1 || {
		rc=$?
		why="no image: $(tail -n 1 "$log")"
		return $rc
	}
}
