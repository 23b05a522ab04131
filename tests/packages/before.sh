#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# before.sh: modules and command of the release before this one, built for the rig's kernel and kept
# in build/cache/before; prints their directory. That release is the last tag v* behind HEAD; while
# there is none a commit stands for it. BEFORE= names another.
set -eu -o pipefail
. "$(dirname "$0")/../vm/env.sh"
cd "$REPO"
before=${BEFORE:-$(git describe --tags --abbrev=0 --match 'v*' HEAD^ 2> /dev/null || echo 1db158f)}
commit=$(git rev-parse --verify --quiet "$before^{commit}") ||
	die "this checkout has no commit $before: git fetch --unshallow --tags"
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
