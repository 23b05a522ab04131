#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# dist.sh FILE.tar.gz [--no-debian]: the source as one archive. The same source gives the same
# bytes: names are sorted, owners, modes and times do not come from this machine (the time is that
# of debian/changelog). In a checkout it has what git knows, as it stands in the working tree; where
# git does not answer, there is no archive, since it would have whatever lies around. In what was
# unpacked from an archive it has all but build/ and what a build leaves behind.
set -eu -o pipefail
unset TAR_OPTIONS GZIP CDPATH	# they leave files out, change bytes, lead to another tree
umask 022	# it shows in what is packed
out=$(realpath -m "$1")
cd -P "$(dirname "$0")/../.."
version=$(sed -n 's/^.define IBNBD_VERSION "\(.*\)"/\1/p' ibtrs/include/ibtrs/version.h)
date=$(sed -n 's/^ -- .*>  //p' debian/changelog | head -n 1)

die() { echo "dist.sh: $*" >&2; exit 1; }

# Does git know these files? Also as a part of a larger checkout. "No" is said by git alone, or by
# directories without .git all the way up.
known_to_git() {
	local said dir=$PWD
	if ! command -v git > /dev/null; then
		for (( ; ; )); do
			[ ! -e "$dir/.git" ] ||
				die "$PWD is in the checkout ${dir:-/}, and git, which knows what" \
					"belongs to it, is missing: install git, or build elsewhere"
			[ -n "$dir" ] || return 1
			dir=${dir%/*}
		done
	fi
	# of a hook, for example: they name another checkout
	# shellcheck disable=SC2046 # words
	unset $(git rev-parse --local-env-vars)
	if said=$(LC_ALL=C git ls-files --error-unmatch dkms.conf 2>&1); then
		return 0
	fi
	case $said in
	*"not a git repository"*|*"did not match any file"*) [ -e .git ] || return 1 ;;
	esac
	die "git does not say what belongs to $PWD: $said"
}

files() {
	if [ -n "$known" ]; then
		git ls-files -z | while IFS= read -r -d '' f; do
			[ ! -e "$f" ] || printf '%s\0' "$f"
		done
	else
		find . \( -path ./build -o -name __pycache__ \) -prune -o \
			\( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
			-o -name '*.a' -o -name '.*.cmd' -o -name '.*.d' \
			-o -name '*.order' -o -name Module.symvers -o -path './compat/config.h*' \
			-o -name '*.swp' -o -name '*~' \) -o \( -type f -o -type l \) -printf '%P\0'
	fi | LC_ALL=C sort -zu | {
		if [ "${2:-}" = --no-debian ]; then grep -zv '^debian/'; else cat; fi
	}
}

known=
! known_to_git || known=yes
mkdir -p "$(dirname "$out")"
trap 'rm -f "$out.tmp"' EXIT
files "$@" | tar --no-recursion -cf - --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX \
	--mtime="$date" \
	--format=gnu --transform="flags=r;s|^|ibnbd-$version/|" --null -T - | gzip -n9 > "$out.tmp"
mv "$out.tmp" "$out"
