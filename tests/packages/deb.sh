#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# deb.sh [OUT]: source and binary packages into OUT (build/deb), built in a copy of the tree below
# it. BUILD="-b" (default -F) as for dpkg-buildpackage.
set -eu -o pipefail
unset TAR_OPTIONS GZIP CDPATH
umask 022	# it shows in what is packed
cd "$(dirname "$0")/../.."
out=$(realpath -m "${1:-build/deb}")
version=$(sed -n 's/^.define IBNBD_VERSION "\(.*\)"/\1/p' ibtrs/include/ibtrs/version.h)
missing=$(dpkg-checkbuilddeps debian/control 2>&1 | sed 's/.*: //') || true
[ -z "$missing" ] || { echo "deb.sh: apt-get install $missing" >&2; exit 1; }

rm -rf "$out/work"
mkdir -p "$out/work"
tests/packages/dist.sh "$out/work/ibnbd_$version.orig.tar.gz" --no-debian
tar -C "$out/work" -xf "$out/work/ibnbd_$version.orig.tar.gz"
tests/packages/dist.sh "$out/work/whole.tar.gz"
tar -C "$out/work" -xf "$out/work/whole.tar.gz" "ibnbd-$version/debian"
rm "$out/work/whole.tar.gz"
# the last packages stay until there is something to make new ones of
find "$out" -maxdepth 1 -type f -regex '.*/\(ibnbd\|ibtrs\|libib\|nbdkit\)[^/]*' -delete
# the path of the copy stays out of the packages: debhelper maps it away
(cd "$out/work/ibnbd-$version" && umask 022 && dpkg-buildpackage -us -uc -ui ${BUILD:--F}) \
	> "$out/build.log" 2>&1 || {
	grep -v '^cc ' "$out/build.log" | tail -n 15 >&2
	echo "deb.sh: dpkg-buildpackage failed, see $out/build.log" >&2
	exit 1
}
find "$out/work" -maxdepth 1 -type f -exec mv -t "$out" {} +
rm -rf "$out/work"
find "$out" -maxdepth 1 -name "*.deb" | sort
