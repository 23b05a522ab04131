#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# mdadm.sh: put Debian's mdadm and its udev rules, and lvm2, unpacked but not installed, under
# $CACHE/mdadm and $CACHE/lvm2. An installed package would change the host: its rules assemble
# arrays and start volume groups, its hooks rebuild the initramfs.
set -eu -o pipefail
. "$(dirname "$0")/env.sh"

# unpack DIR PROGRAM PACKAGE..: the program, the rules and what libraries the packages have
unpack() {
	local out=$CACHE/$1 program=$2 tmp=$CACHE/$1.new
	shift 2
	[ ! -x "$out/$program" ] || return 0
	say "fetching $program"
	rm -rf "$tmp"
	mkdir -p "$tmp/root"
	apt_private "$(own_suite)"
	cd "$tmp"
	apt-get "${APT[@]}" download "$@" 2> fetch.log ||
		die "cannot fetch $*: $(tail -n 3 fetch.log)"
	for deb in ./*.deb; do dpkg -x "$deb" root; done
	# /usr is merged or not, by the suite
	cp "$(find root -path "*/sbin/$program" -type f)" "$program"
	find root \( -path '*/udev/rules.d/*.rules' -o -path '*/lib/*-linux-gnu/*.so.*' \) \
		-exec cp {} . \;
	LD_LIBRARY_PATH=. "./$program" --version > /dev/null 2>&1 || [ $? != 127 ] ||
		die "$program does not run on this host"
	rm -rf root ./*.deb fetch.log
	rm -rf "$out"
	mv "$tmp" "$out"
}

lock_cache
unpack mdadm mdadm mdadm
unpack lvm2 lvm lvm2 libdevmapper-event1.02.1
