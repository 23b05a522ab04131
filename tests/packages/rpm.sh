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

# rpm packs the spec with all macros replaced, this directory among them: for the same bytes it is
# the same one wherever the tree lies
work=/tmp/ibnbd-rpmbuild
for ((i = 0; ; i++)); do
	! mkdir -m 700 "$work" 2> /dev/null || break
	[ $i -lt 300 ] || {
		echo "rpm.sh: $work is there: another build runs, or one was killed; remove it" >&2
		exit 1
	}
	sleep 1
done
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/SOURCES" "$out"
tests/packages/dist.sh "$work/SOURCES/ibnbd-$version.tar.gz"
# the last packages stay until there is something to make new ones of
find "$out" -maxdepth 1 -type f -regex '.*/\(ibnbd\|ibtrs\|libib\|nbdkit\)[^/]*' -delete
spec=$work/ibnbd.spec
sed -e "${release:+s/^Release:.*/Release:\t$release%{?dist\}/}" rpm/ibnbd.spec > "$spec"
SOURCE_DATE_EPOCH=$(date -d "$(sed -n 's/^ -- .*>  //p' debian/changelog | head -n 1)" +%s)
export SOURCE_DATE_EPOCH
debian=$([ ! -e /etc/debian_version ] || echo 1)
rpmbuild --define "_topdir $work" ${debian:+--define "on_debian 1"} \
	--define "_buildhost ibnbd.example" --define "clamp_mtime_to_source_date_epoch 1" \
	--define "use_source_date_epoch_as_buildtime 1" \
	--define "_prefix /usr" -ba "$spec" > "$out/build.log" 2>&1 || {
	grep -vE '^(gcc|cc|\+) ' "$out/build.log" | tail -n 15 >&2
	echo "rpm.sh: rpmbuild failed, see $out/build.log" >&2
	exit 1
}
find "$work/RPMS" "$work/SRPMS" -name '*.rpm' -exec mv -t "$out" {} +
ls "$out"/*.rpm
