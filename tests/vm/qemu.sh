#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# qemu.sh: where the host's QEMU is older than 8.1, put that of Debian's backports, unpacked but not
# installed, under $CACHE/qemu, for vm.py to prefer.
#
# An older one lets a CPU translate code while another one patches it, and may keep the breakpoint
# that stands there for a moment: the kernel finds no reason for the trap, goes back, and meets it
# again, for ever. A stock kernel on two CPUs that switches sysctl kernel.sched_schedstats back and
# forth hangs within minutes, and once in some hundred cases so did a tracepoint or the unloading of
# a module.
set -eu -o pipefail
. "$(dirname "$0")/env.sh"

SINCE=8.1
has() {
	dpkg --compare-versions \
		"$(dpkg-query -W -f '${Version}' qemu-system-x86 | sed 's/^[0-9]*://')" ge $SINCE
}
! has || exit 0
lock_cache
[ ! -x "$CACHE/qemu/usr/bin/qemu-system-x86_64" ] || exit 0

suite=$(own_suite)-backports tmp=$CACHE/qemu.new
say "fetching QEMU from $suite"
rm -rf "$tmp"
mkdir -p "$tmp"
cd "$tmp"
if ! { apt_private "$suite" && apt-get "${APT[@]}" download \
	{qemu-system-x86,qemu-system-common,qemu-system-data,seabios}/"$suite"; }; then
	say "no QEMU from $SINCE on in $suite: with the host's a machine may hang once in a while"
	exit 0
fi
for deb in *.deb; do
	dpkg -x "$deb" .
done
rm -f ./*.deb
rm -rf "$CACHE/qemu"
mv "$tmp" "$CACHE/qemu"
