#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# strict.sh DIR   each file of the drivers in this copy of the tree, those that only tests switch on
#                 among them, was compiled as strictly as strict/strict.mk says; else exit 1, and a
#                 line for each that was not
set -u
cd "${1:?which directory?}" || exit 1
n=0 bad=0
while read -r f; do
	n=$((n + 1))
	for m in strict.h include/linux/minmax.h; do
		grep -qF "tests/kernels/strict/$m" "${f%/*}/.$(basename "$f" .c).o.cmd" || {
			echo "$f was compiled without $m"
			bad=1
		}
	done
done < <(find compat ibtrs ibnbd -name '*.c' ! -name '*.mod.c' ! -path compat/probes.c \
	! -path 'ibtrs/user/*' ! -path 'ibnbd/user/*' ! -path ibtrs/logic/keytext.c)
# (libraries have Makefiles of their own; no module has keytext.c)
[ $n -gt 50 ] || { echo "no more than $n files are strict"; bad=1; }
exit $bad
