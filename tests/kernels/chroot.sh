#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# chroot.sh make SUITE            a Debian of that suite in the cache, with make, gcc and perl. Exit
#                                 77: the mirror has no such suite.
# chroot.sh headers SUITE GLOB [ARCH]   install the newest header package whose name matches GLOB;
#                                 prints the kernel release. Exit 77: the mirror has none.
#                                 With an ARCH that is not the machine's, a cross compiler too.
# chroot.sh run SUITE COMMAND..   run a command in it (private mounts, /proc, no network set-up)
#
# Headers of a newer suite need that suite's compiler and C library, so every suite
# but the machine's own lives in ${IBNBD_CACHE:-build/cache}/chroot-SUITE. The mirror is the
# one this machine uses. A suite that is the machine's own needs no chroot: its commands run
# right here, unless IBNBD_CHROOT is set.
set -eu -o pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
cache=${IBNBD_CACHE:-$top/build/cache}
own=$(. /etc/os-release && echo "${VERSION_CODENAME:-none}")
native=$own		# needs no chroot
unsure=			# why the mirror's answer may be an old one
[ -z "${IBNBD_CHROOT:-}" ] || native=none
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
apt=(apt-get -qq -o DPkg::Lock::Timeout=300 -o DPkg::Options::=--force-unsafe-io)

die() { echo "chroot.sh: $*" >&2; exit 1; }

mirror() {	# LABEL: where this machine gets packages with that label from
	apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' |
		awk -v l="$1" '$1 == l { print $2; exit }'
}

released() {	# MIRROR SUITE: does it have that?
	local answer rc=0
	answer=$(mktemp)
	/usr/lib/apt/apt-helper download-file "${1%/}/dists/$2/InRelease" "$answer" \
		> /dev/null 2>&1 || rc=1
	rm -f "$answer"
	return $rc
}

run() {
	local suite=$1 root=$cache/chroot-$1
	shift
	if [ "$suite" = "$native" ]; then
		"$@"
	else
		unshare --mount sh \
			-c 'mount -t proc proc "$0/proc" && exec env -u TMPDIR chroot "$0" "$@"' \
			"$root" "$@"
	fi
}

make_chroot() {
	local suite=$1 root=$cache/chroot-$1 base=$1 debian security
	[ "$suite" != "$native" ] || return 0
	[ ! -e "$root/.complete" ] || return 0
	debian=$(mirror Debian)
	security=$(mirror Debian-Security)
	[ -n "$debian" ] || die "apt on this machine knows no Debian mirror"
	command -v debootstrap > /dev/null ||
		die "debootstrap is missing: apt-get install debootstrap"
	mkdir -p "$cache"
	rm -rf --one-file-system "$root"
	[ "$suite" != experimental ] || base=sid	# a handful of packages that go on top of it
	if ! debootstrap --variant=minbase --include=make,gcc,perl,ca-certificates "$base" "$root" \
		"$debian" > "$cache/chroot-$suite.log" 2>&1; then
		if released "$debian" "$own" && ! released "$debian" "$base"; then
			echo "chroot.sh: the mirror has no $base" >&2
			exit 77
		fi
		die "debootstrap $suite failed: $(tail -n 3 "$cache/chroot-$suite.log")"
	fi
	{
		case $suite in
		sid|experimental)	# their lists expire within a week; a mirror may be older
			printf 'deb [check-valid-until=no] %s %s main\n' \
				$(printf "$debian %s\n" $base $suite | sort -u) ;;
		*)	echo "deb $debian $suite main"
			[ "$suite" = bullseye ] || echo "deb $debian $suite-backports main"
			[ -z "$security" ] || echo "deb $security $suite-security main" ;;
		esac
	} > "$root/etc/apt/sources.list"
	touch "$root/.complete"
}

refresh() {	# at most once a day; without a network what is there must do
	local suite=$1 stamp=$cache/chroot-$1/.updated
	[ "$suite" != "$native" ] || return 0
	[ -z "$(find "$stamp" -mtime -1 2>/dev/null)" ] || return 0
	if run "$suite" "${apt[@]}" -o APT::Update::Error-Mode=any update >&2; then
		touch "$stamp"
	else
		unsure="$suite: apt-get update failed"
	fi
}

# The mirror does not have it, or could not be asked, which is no answer.
not_there() {
	[ -z "$unsure" ] || die "$unsure, and what is known from before has no $1"
	exit 77
}

newest() {	# SUITE GLOB: the newest package of that name; -rt- only where the glob asks for it
	local regex except='-(cloud|common)'
	[[ $2 == *-rt-* ]] || except='-(rt|cloud|common)'
	regex="^$(sed 's/[.+]/\\&/g; s/\*/[^ ]*/g' <<< "$2")\$"
	run "$1" apt-cache pkgnames linux-headers- | grep -E "$regex" | grep -Ev -- "$except" |
		sort -V | tail -n 1
}

headers() {
	local suite=$1 glob=$2 package release
	if [ -n "${3:-}" ] && [ "$3" != "$(dpkg --print-architecture)" ]; then
		cross_headers "$@"
		return
	fi
	refresh "$suite"
	package=$(newest "$suite" "$glob") || true
	[ -n "$package" ] || not_there "$glob"
	release=${package#linux-headers-}
	if ! run "$suite" test -e "/lib/modules/$release/build/Makefile"; then
		# what an earlier run began that was cut off
		[ -z "$(run "$suite" dpkg --audit)" ] || run "$suite" dpkg --configure -a >&2
		run "$suite" "${apt[@]}" install -y --no-install-recommends "$package" >&2 ||
			die "$suite: cannot install $package"
	fi
	echo "$release"
}

# Of another architecture: its header package is unpacked beside the tools of ours, which know how
# to use it.
cross_headers() {
	local suite=$1 glob=$2 arch=$3 root=$cache/chroot-$1 package release version common kbuild
	[ "$suite" != "$native" ] ||
		die "$arch: nothing is installed on this machine itself: set IBNBD_CHROOT"
	[ "$arch" = arm64 ] || die "which cross compiler makes $arch?"
	if ! run "$suite" dpkg --print-foreign-architectures | grep -qx "$arch"; then
		run "$suite" dpkg --add-architecture "$arch"
		rm -f "$root/.updated"
	fi
	refresh "$suite"
	package=$(newest "$suite" "$glob") || true
	[ -n "$package" ] || not_there "$glob"
	release=${package#linux-headers-}
	if ! run "$suite" test -e "/usr/src/$package/Makefile"; then
		version=${release%-"$arch"}
		common=linux-headers-$version-common
		kbuild=linux-kbuild-$version
		# up to 6.1 there is one for the whole series
		run "$suite" apt-cache show "$kbuild" > /dev/null 2>&1 ||
			kbuild=linux-kbuild-$(grep -oE '^[0-9]+\.[0-9]+' <<< "$version")
		run "$suite" "${apt[@]}" install -y --no-install-recommends "$common" "$kbuild" \
			gcc-aarch64-linux-gnu >&2 ||
			die "$suite: cannot install a cross compiler and $common"
		rm -rf "$root/root/$package"
		mkdir -p "$root/root/$package"
		if ! run "$suite" sh -c "cd /root/$package &&
			apt-get -qq download $package:$arch && dpkg -x *.deb ." \
			2> "$root/root/$package.err" >&2; then
			cat "$root/root/$package.err" >&2
			# listed, and not there
			! grep -q ' 404 ' "$root/root/$package.err" || exit 77
			die "$suite: cannot fetch $package:$arch"
		fi
		mv "$root/root/$package/usr/src/$package" "$root/usr/src/"
		rm -rf "$root/root/$package"
	fi
	echo "$release"
}

verb=$1
shift
case $verb in
make)	 make_chroot "$@" ;;
headers) headers "$@" ;;
run)	 run "$@" ;;
*)	 die "no such verb: $verb" ;;
esac
