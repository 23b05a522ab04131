#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# dist.sh FILE.tar.gz [--no-debian]: the source as one archive. The same source gives the same bytes: names are sorted, owners, modes
# and times do not come from this machine (the time is that of debian/changelog). In a checkout it has what git knows, as it stands in
# the working tree; without git, all but build/.
set -eu -o pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")/../.."
version=$(sed -n 's/^.define IBNBD_VERSION "\(.*\)"/\1/p' ibtrs/include/ibtrs/version.h)
date=$(sed -n 's/^ -- .*>  //p' debian/changelog | head -n 1)
files() {
	if git rev-parse --show-toplevel 2>/dev/null | grep -qxF "$PWD"; then
		git ls-files -z | while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done
	else
		find . -path ./build -prune -o -type f -printf '%P\0' -o -type l -printf '%P\0'
	fi | LC_ALL=C sort -z | { if [ "${2:-}" = --no-debian ]; then grep -zv '^debian/'; else cat; fi; }
}
mkdir -p "$(dirname "$out")"
files "$@" | tar --no-recursion -cf - --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX --mtime="$date" \
	--format=gnu --transform="flags=r;s|^|ibnbd-$version/|" --null -T - | gzip -n9 > "$out.tmp"
mv "$out.tmp" "$out"
