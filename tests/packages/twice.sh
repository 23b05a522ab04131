#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# twice.sh: archive, .deb and .rpm once more, from what was unpacked of the archive, in another
# folder, at another date, in another time zone, with another umask and user's name: the bytes are
# those of build/deb and build/rpm, which deb.sh and rpm.sh have made of this tree. If not,
# diffoscope says where they differ, if it is there.
set -eu -o pipefail
unset TAR_OPTIONS GZIP CDPATH
cd "$(dirname "$0")/../.."
top=$PWD
w=$top/build/packages/twice/in-another-folder
fake=$(ls /usr/lib/*/faketime/libfaketimeMT.so.1 2> /dev/null | head -n 1)
[ -n "$fake" ] || { echo "apt-get install libfaketime"; exit 77; }

rm -rf "${w%/*}"
mkdir -p "$w"
tests/packages/dist.sh "$w/first.tar.gz"
tar -C "$w" -xzf "$w/first.tar.gz"
src=$(echo "$w"/ibnbd-*)
(
	umask 027
	export LD_PRELOAD=$fake FAKETIME='+700d' TZ=Pacific/Auckland HOME="${w%/*}/nobody" \
		LOGNAME=other USER=other LC_ALL=C.UTF-8
	[ "$(date +%Y)" -gt 2027 ]
	cd "$src"
	"$src/tests/packages/dist.sh" "$w/second.tar.gz"
	"$src/tests/packages/deb.sh"
	"$src/tests/packages/rpm.sh"
)
differ=0
same() {	# FIRST SECOND
	! cmp "$1" "$2" || return 0
	differ=1
	! command -v diffoscope > /dev/null || diffoscope --max-report-size 20000 "$1" "$2" || :
}
same "$w/first.tar.gz" "$w/second.tar.gz"
for f in build/deb/*.{deb,dsc,tar.*} build/rpm/*.rpm; do
	same "$f" "$src/$f"
done
[ $differ = 1 ] || rm -rf "${w%/*}"
exit $differ
