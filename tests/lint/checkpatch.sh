#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# checkpatch.sh [FILE..]   the kernel's own style checker over the drivers
#
# Headers packages ship no checkpatch.pl, so it is taken once out of the distribution's kernel
# source package into the cache. Exit 77 when it cannot be had.
#
# Types left out, and why: EXPORT_SYMBOL (pure code is exported by ibtrs/core/main.c, not by
# itself), COMPLEX_MACRO (tables of X()), PREFER_DEFINED_ATTRIBUTE_MACRO (pure code has no
# kernel macros), CONSTANT_COMPARISON (static_assert of wire layouts reads better so),
# FILE_PATH_CHANGES (no MAINTAINERS file), MULTISTATEMENT_MACRO_USE_DO_WHILE (a macro that
# declares, as module_param() does, is no statement).
set -eu -o pipefail
self=$(realpath "$0")
top=$(dirname "$(dirname "$(dirname "$self")")")
cache=${IBNBD_CACHE:-$top/build/cache}
dir=$cache/checkpatch

if [ ! -e "$dir/scripts/checkpatch.pl" ]; then
	mkdir -p "$dir"
	package=$(apt-cache depends linux-source 2>/dev/null |
		sed -n 's/.*Depends: \(linux-source-[0-9.]*\)$/\1/p' | head -n 1)
	[ -n "$package" ] || {
		echo "checkpatch.sh: no linux-source package known to apt" >&2
		exit 77
	}
	(cd "$dir" && apt-get -qq -o APT::Sandbox::User="$(id -un)" download "$package" >&2) ||
		exit 77
	dpkg-deb --fsys-tarfile "$dir/$package"_*.deb |
		tar -C "$dir" -xf - "./usr/src/$package.tar.xz"
	tar -C "$dir" --strip-components=1 -xJf "$dir/usr/src/$package.tar.xz" \
		"$package"/scripts/{checkpatch.pl,spelling.txt,const_structs.checkpatch}
	rm -rf "$dir/usr" "$dir/$package"_*.deb
fi

cd "$top"
[ $# -gt 0 ] ||
	mapfile -t files < <(git ls-files -co --exclude-standard 'ibtrs/*.[ch]' 'ibnbd/*.[ch]')
[ $# -eq 0 ] || files=("$@")
[ ${#files[@]} -gt 0 ] || { echo "checkpatch.sh: git names no file to look at" >&2; exit 1; }

# The checker takes half a minute for all files. A file that passed once, passes: its sum is kept
# with that of the checker and of this script, which has the options.
clean=$dir/clean
touch "$clean"
with=$(cat "$dir/scripts/checkpatch.pl" "$self" | sha256sum | cut -c1-16)
declare -A sum
due=()
while read -r hash file; do
	sum[$file]=$with.$hash
	grep -qxF "$with.$hash" "$clean" || due+=("$file")
done < <(sha256sum "${files[@]}")
[ ${#due[@]} -gt 0 ] || exit 0

found=$(perl "$dir/scripts/checkpatch.pl" --no-tree --no-summary --terse --show-types \
	--max-line-length=100 --ignore EXPORT_SYMBOL,COMPLEX_MACRO \
	--ignore PREFER_DEFINED_ATTRIBUTE_MACRO,CONSTANT_COMPARISON,FILE_PATH_CHANGES \
	--ignore MULTISTATEMENT_MACRO_USE_DO_WHILE \
	-f "${due[@]}" 2>&1 | grep -vE '^$|^total:|^NOTE:') || true
[ -z "$found" ] || echo "$found"
for file in "${due[@]}"; do
	[[ "$found" == *"$file:"* ]] || echo "${sum[$file]}" >> "$clean"
done
[ -z "$found" ]
