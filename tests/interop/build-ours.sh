#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# build-ours.sh KVER [SUITE]: our modules and the test disk for a kernel whose headers this machine
# may lack. Result: build/modules/KVER, a copy of the sources with the modules in it, where run.py
# --kver KVER finds them.
set -eu -o pipefail
. "$(dirname "$0")/../vm/env.sh"

KVER=${1:?which kernel?}
suite=${2:-$(suite_of "$KVER")}
out=$REPO/build/modules/$KVER
. "$REPO/tests/modules.sh"
ours=("${modules_source[@]}")
built=('*.o' '*.ko' '*.mod*' '.*.cmd' '.*.d' 'config.h*' 'modules.order' 'Module.symvers')

mkdir -p "$out"
exec 8> "$out/.lock"
flock 8
key=$(cd "$REPO" &&
	find "${ours[@]}" -type f \
	\( -name '*.[ch]' -o -name Kbuild -o -name '*.mk' -o -name '*.awk' \) \
	! -name 'config.h*' ! -name '*.mod.c' ! -path 'compat/expected/*' -print0 |
	sort -z | xargs -0 cat | sha1sum)
[ "$(cat "$out/.built" 2> /dev/null || true)" != "$key" ] || exit 0

say "building our modules for $KVER"
rm -rf "$out/.built" "${ours[@]/#/$out/}"
tar -C "$REPO" -cf - "${built[@]/#/--exclude=}" "${ours[@]}" | tar -C "$out" -xf -
"$REPO/tests/vm/kmake.sh" -s "$suite" "$KVER" "$out" TESTS=1 > "$out/make.log" 2>&1 8>&- ||
	die "our modules do not build: $(grep -m 3 -E 'error:|\*\*\*' \
		"$out/make.log") ($out/make.log)"
echo "$key" > "$out/.built"
