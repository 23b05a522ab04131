# SPDX-License-Identifier: GPL-2.0-only
# Sourced by the shell scripts of the rig: where things are, and a private apt.
#
#   REPO   top of this checkout
#   CACHE  what can be fetched or built again (IBNBD_CACHE, default build/cache)
#   KVER   the kernel under test (default: the one linux-headers-amd64 is for)

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CACHE=${IBNBD_CACHE:-$REPO/build/cache}
mkdir -p "$CACHE"

die() { echo "${0##*/}: $*" >&2; exit 1; }
say() { echo "rig: $*"; }

# one script at a time fills the cache; held until the script ends
lock_cache() {
	exec 9> "$CACHE/.lock"
	flock 9
}

default_kver() {
	local v
	v=$(dpkg-query -W -f '${Depends}' linux-headers-amd64 2>/dev/null |
		grep -oE 'linux-headers-[^ ,]+' | head -n 1)
	echo "${v#linux-headers-}"
}
KVER=${KVER:-$(default_kver)}

own_suite() { (. /etc/os-release && echo "$VERSION_CODENAME"); }

# suite_of KVER: the Debian suite (with its backports) that has that kernel
suite_of() {
	case $1 in
	5.10.*)		echo bullseye ;;
	6.1.0-*)	echo bookworm ;;
	*+deb13*)	echo trixie ;;
	*+deb14*)	echo sid ;;
	# no third number before it is released
	[0-9].[0-9]-*|[0-9].[0-9][0-9]-*) echo experimental ;;
	*)		own_suite ;;
	esac
}

# apt_private SUITE: an apt of our own, beside the system's, that also knows source packages and, if
# asked, another Debian suite, or the backports to this one and nothing else. It writes only under
# $CACHE/apt-SUITE and needs no root. The mirrors are those the system already uses.
apt_private() {
	local suite=$1 dir=$CACHE/apt-$1 keys=/usr/share/keyrings/debian-archive-keyring.gpg own
	own=$(own_suite)
	mkdir -p "$dir"/{lists,archives}/partial
	APT=(-o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=-
		-o Dir::State::lists="$dir/lists" -o Dir::Cache::archives="$dir/archives"
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
		-o APT::Sandbox::User="$(id -un)" -qq)
	apt-get indextargets --format 'deb $(SITE) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' 'Origin: Debian' | grep -v -- '-backports ' | sort -u |
		sed -e "s/ $own/ $suite/" -e "s|^deb |deb [signed-by=$keys] |" > "$dir/sources.deb"
	case $suite in
	"$own"|bullseye) ;;
	sid|experimental)
		sed -i '/-security\|-updates/d' "$dir/sources.deb" ;;
	"$own-backports")
		sed -i -n "s/ $suite main\$/&/p" "$dir/sources.deb" ;;
	*)	sed -n "s/ $suite main\$/ $suite-backports main/p" "$dir/sources.deb" \
			>> "$dir/sources.deb" ;;
	esac
	sed 'p;s/^deb /deb-src /' "$dir/sources.deb" > "$dir/sources.new"
	[ -s "$dir/sources.new" ] || die "apt knows no Debian mirror; run apt-get update first"
	if ! cmp -s "$dir/sources.new" "$dir/sources.list" ||
	   [ -z "$(find "$dir/lists" -name '*Sources*' -mmin -720 -print -quit)" ]; then
		mv "$dir/sources.new" "$dir/sources.list"
		apt-get "${APT[@]}" update
		find "$dir/lists" -name '*Sources*' -exec touch {} +
	fi
}

# apt_knows PACKAGE: is there one, after apt_private?
apt_knows() { [ -n "$(apt-cache "${APT[@]}" show "$1" 2> /dev/null)" ]; }
