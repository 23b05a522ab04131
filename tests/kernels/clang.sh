#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# clang.sh FLAG..: clang for a kernel that gcc built. Its configuration has flags in it that clang
# does not know; at the end are the warnings that the kernel turns off for clang, since its own
# headers have them.
words=()
for w; do
	case $w in
	-mrecord-mcount|-mindirect-branch*|-mfunction-return=*|-mharden-sls=*|-fconserve-stack) ;;
	-mpreferred-stack-boundary=*|-fno-allow-store-data-races|-ftrivial-auto-var-init*) ;;
	-Wimplicit-fallthrough=*) words+=(-Wimplicit-fallthrough) ;;
	*) words+=("$w") ;;
	esac
done
exec clang "${words[@]}" -Wno-unknown-warning-option -Wno-gnu -Wno-initializer-overrides \
	-Wno-sign-compare -Wno-pointer-to-enum-cast \
	-Wno-tautological-constant-out-of-range-compare -Wno-unaligned-access
