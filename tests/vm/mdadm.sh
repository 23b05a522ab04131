#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# mdadm.sh: put Debian's mdadm and its udev rules, unpacked but not installed, under $CACHE/mdadm.
# An installed package would change the host: its rules assemble arrays, its hooks rebuild the
# initramfs.
set -eu -o pipefail
. "$(dirname "$0")/env.sh"

out=$CACHE/mdadm
lock_cache
[ -x "$out/mdadm" ] && exit 0

say "fetching mdadm"
tmp=$out.new
rm -rf "$tmp"
mkdir -p "$tmp/root"
apt_private "$(own_suite)"
cd "$tmp"
apt-get "${APT[@]}" download mdadm 2> fetch.log || die "cannot fetch mdadm: $(tail -n 3 fetch.log)"
dpkg -x mdadm_*.deb root
# /usr is merged or not, by the suite
cp "$(find root -path '*/sbin/mdadm' -type f)" mdadm
find root -path '*/udev/rules.d/*.rules' -exec cp {} . \;
./mdadm --version > /dev/null 2>&1 || die "mdadm does not run on this host"
rm -rf root ./*.deb fetch.log
rm -rf "$out"
mv "$tmp" "$out"
