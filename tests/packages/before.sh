#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# before.sh: modules and command of the release before this one, built for the rig's kernel and kept
# in build/cache/before; prints their directory. That release is the last tag v* behind HEAD, or the
# last commit that release.sh has made, for a checkout without tags. BEFORE= names another.
set -eu -o pipefail
. "$(dirname "$0")/../vm/env.sh"
cd "$REPO"
before=${BEFORE:-$(git describe --tags --abbrev=0 --match 'v*' HEAD^ 2> /dev/null ||
	git log -1 --format=%H --grep='^release: [0-9]' HEAD^)}
commit=$(git rev-parse --verify --quiet "$before^{commit}") ||
	die "this checkout has no release ${before:-before it}: git fetch --unshallow --tags"
out=$CACHE/before/$commit-$KVER
if [ ! -e "$out/ibnbd" ]; then
	rm -rf "$out.tmp"
	mkdir -p "$out.tmp/src" "$out"
	git archive "$commit" | tar -C "$out.tmp/src" -xf -
	make -C "$out.tmp/src" KVER="$KVER" KCFLAGS=-g0 modules tools > "$out.tmp/log" 2>&1 || {
		tail -n 15 "$out.tmp/log" >&2
		die "$before does not build"
	}
	cp "$out.tmp/src"/ib*/*.ko "$out"
	cp "$out.tmp/src/build/tools/ibnbd" "$out"
	rm -rf "$out.tmp"
fi
echo "$out"
