#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# abi.sh [--update]: what programs see of libibtrs (functions, structs, enums) is as it is stored in
# ibtrs/user/libibtrs.abi. A change fails here, with abidiff's report, until it is meant: --update
# stores it. What a released libibtrs.so.0 has may only gain: functions, and members at the end of
# structs that begin with their size; anything else needs a new soname.
#
# Read is the header, compiled as a program would: the library itself would show what the header
# hides. library.sh compares its symbols with the header.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
command -v abidiff > /dev/null || { echo "abi.sh: apt-get install abigail-tools"; exit 77; }
[ "$(uname -m)" = x86_64 ] || { echo "abi.sh: the stored one is of x86_64"; exit 77; }
stored=ibtrs/user/libibtrs.abi
to=build/lint/abi
mkdir -p $to
{
	echo '#include "libibtrs.h"'
	sed -n 's/^IBTRS_API.*[ *]\(ibtrs_[a-z_0-9]*\)(.*/IBTRS_API __typeof__(\&\1) the_\1;/p' \
		ibtrs/user/libibtrs.h
	sed -n 's/^enum \(ibtrs_[a-z_]*\) {/IBTRS_API enum \1 the_enum_\1;/p' ibtrs/user/libibtrs.h
} > $to/seen.c
(cd $to && gcc -g -O0 -fPIC -shared -I ../../../ibtrs/user -o seen.so seen.c)
abidw --no-corpus-path --no-comp-dir-path --no-show-locs --no-architecture --no-elf-needed \
	--type-id-style hash $to/seen.so > $to/seen.abi
# (each type has a line that says which file has declared it)
sed -i "s| path='[^']*'||" $to/seen.abi
[ "$(grep -c "<var-decl name='the_ibtrs_" $to/seen.abi)" -ge 20 ] || {
	echo "abi.sh: abidw has not seen the functions of libibtrs.h" >&2
	exit 1
}
if [ "${1:-}" = --update ]; then
	cp $to/seen.abi $stored
	exit
fi
abidiff --no-show-locs $stored $to/seen.abi || {
	echo "abi.sh: libibtrs.h is not what $stored says; if it is meant:" \
		"tests/lint/abi.sh --update" >&2
	exit 1
}
