#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# rpm.sh [OUT [RELEASE]]: source and binary RPMs into OUT (build/rpm), with rpmbuild, also on
# Debian.
set -eu -o pipefail
unset TAR_OPTIONS GZIP CDPATH
umask 022	# it shows in what is packed
cd "$(dirname "$0")/../.."
out=$(realpath -m "${1:-build/rpm}")
release=${2:-}
version=$(sed -n 's/^.define IBNBD_VERSION "\(.*\)"/\1/p' ibtrs/include/ibtrs/version.h)
command -v rpmbuild > /dev/null || {
	echo "rpm.sh: rpmbuild is missing: apt-get install rpm" >&2
	exit 1
}

rm -rf "$out/work"
mkdir -p "$out/work/SOURCES"
tests/packages/dist.sh "$out/work/SOURCES/ibnbd-$version.tar.gz"
# the last packages stay until there is something to make new ones of
find "$out" -maxdepth 1 -type f -name 'ibnbd*' -delete
spec=$out/work/ibnbd.spec
sed -e "${release:+s/^Release:.*/Release:\t$release%{?dist\}/}" rpm/ibnbd.spec > "$spec"
SOURCE_DATE_EPOCH=$(date -d "$(sed -n 's/^ -- .*>  //p' debian/changelog | head -n 1)" +%s)
export SOURCE_DATE_EPOCH
debian=$([ ! -e /etc/debian_version ] || echo 1)
rpmbuild --define "_topdir $out/work" ${debian:+--define "on_debian 1"} \
	--define "_buildhost ibnbd.example" --define "clamp_mtime_to_source_date_epoch 1" \
	--define "use_source_date_epoch_as_buildtime 1" \
	--define "_prefix /usr" -ba "$spec" > "$out/build.log" 2>&1 || {
	grep -vE '^(gcc|cc|\+) ' "$out/build.log" | tail -n 15 >&2
	echo "rpm.sh: rpmbuild failed, see $out/build.log" >&2
	exit 1
}
find "$out/work/RPMS" "$out/work/SRPMS" -name '*.rpm' -exec mv -t "$out" {} +
rm -rf "$out/work"
ls "$out"/*.rpm
