#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# repo.sh [OUT]: a signed apt archive and a signed dnf repository in OUT (build/repo), made of the
# packages of build/deb and build/rpm, which are built first. What is in OUT can be served as it
# stands, by a web server or from a directory:
#
#   OUT/deb         dists/stable, pool; OUT/ibnbd.sources is for /etc/apt/sources.list.d
#   OUT/rpm         packages, repodata; OUT/ibnbd.repo is for /etc/yum.repos.d
#   OUT/ibnbd.asc   the public key
#
#   URL=     the address that ibnbd.sources and ibnbd.repo name (default: OUT itself, as file:)
#   KEY=     fingerprint or address of the signing key in gpg's keyring. Without it a key for tests
#            is made in build/repo-key, and used again by the next run.
#   ARCHES=  of the tools (default: "amd64 arm64"). Another one than this machine's is built in a
#            clean Debian (root.sh), which needs root.
set -eu -o pipefail
unset TAR_OPTIONS GZIP CDPATH
cd "$(dirname "$0")/../.."
out=$(realpath -m "${1:-build/repo}")
here=$(dpkg --print-architecture)
read -ra arches <<< "${ARCHES:-amd64 arm64}"
url=${URL:-file://$out}
die() { echo "repo.sh: $*" >&2; exit 1; }

missing=()
for t in apt-ftparchive:apt-utils createrepo_c:createrepo-c rpmsign:rpm gpg:gnupg; do
	command -v "${t%:*}" > /dev/null || missing+=("${t#*:}")
done
[ ${#missing[@]} -eq 0 ] || die "apt-get install ${missing[*]}"
[ "$(id -u)" = 0 ] || [ "${arches[*]}" = "$here" ] ||
	die "packages for other architectures are built in a chroot: run it as root, or set" \
		"ARCHES=$here"

# ---- the key ----
if [ -z "${KEY:-}" ]; then
	GNUPGHOME=$(realpath -m build/repo-key)
	export GNUPGHOME
	mkdir -p "$GNUPGHOME"
	chmod 700 "$GNUPGHOME"
	gpg -q --list-secret-keys ibnbd-test > /dev/null 2>&1 ||
		gpg -q --batch --passphrase '' --quick-generate-key \
			'ibnbd-test (signs test repositories)' rsa3072 sign never 2> /dev/null
	KEY=$(gpg --list-secret-keys --with-colons ibnbd-test 2> /dev/null |
		sed -n 's/^fpr:*\([^:]*\):$/\1/p' |
		head -n 1)
	echo "repo.sh: signing with a key for tests; KEY= names the key of a real repository" >&2
fi
gpg -q --list-secret-keys "$KEY" > /dev/null 2>&1 || die "gpg has no secret key for KEY=$KEY"
signs=(gpg -q --batch --yes --local-user "$KEY" --armor)

# ---- the packages ----
rm -rf "$out.new"
mkdir -p "$out.new"/{deb/pool,rpm}
tests/packages/deb.sh > /dev/null
tests/packages/rpm.sh > /dev/null
cp build/deb/*.{deb,dsc,tar.*} "$out.new/deb/pool"
cp build/rpm/*.rpm "$out.new/rpm"
for a in "${arches[@]}"; do
	[ "$a" != "$here" ] || continue
	rm -rf "build/cross-$a"
	mkdir -p "build/cross-$a"
	OUT=build/cross-$a ARGS=$a tests/packages/root.sh run bookworm tests/packages/cross.sh \
		> "build/cross-$a/build.log" 2>&1 || {
		tail -n 15 "build/cross-$a/build.log" >&2
		die "the build for $a failed, see build/cross-$a/build.log"
	}
	cp "build/cross-$a"/*.deb "$out.new/deb/pool"
	cp "build/cross-$a"/*.rpm "$out.new/rpm"
done

# ---- apt ----
# the time of the release, so that the same packages give the same archive
date=$(sed -n 's/^ -- .*>  //p' debian/changelog | head -n 1)
(
	cd "$out.new/deb"
	for a in source "${arches[@]}"; do
		[ "$a" = source ] && dir=source || dir=binary-$a
		mkdir -p "dists/stable/main/$dir"
	done
	# without a directory for them, what it knows of files would stay in / for the next run
	mkdir cache
	cat > apt.conf <<- CONF
	Dir::ArchiveDir ".";
	Dir::CacheDir "cache";
	APT::FTPArchive::DoByHash "true";
	TreeDefault::Directory "pool";
	TreeDefault::SrcDirectory "pool";
	Default::Packages::Compress ". gzip xz";
	Default::Sources::Compress ". gzip xz";
	Tree "dists/stable" { Sections "main"; Architectures "${arches[*]} source"; };
	APT::FTPArchive::Release {
		Origin "ibnbd"; Label "ibnbd"; Suite "stable"; Codename "stable";
		Architectures "${arches[*]}"; Components "main"; Acquire-By-Hash "yes";
		Description "RDMA network block device";
	};
	CONF
	apt-ftparchive -qq generate apt.conf
	# (the date is that of the last change, not of this run)
	apt-ftparchive -qq -c apt.conf release dists/stable |
		sed "s/^Date: .*/Date: $(LC_ALL=C date -u -d "$date" '+%a, %d %b %Y %T UTC')/" \
		> Release.new
	mv Release.new dists/stable/Release
	rm -rf apt.conf cache
	"${signs[@]}" --clearsign -o dists/stable/InRelease dists/stable/Release
	"${signs[@]}" --detach-sign -o dists/stable/Release.gpg dists/stable/Release
)

# ---- dnf ----
rpmsign --define "_gpg_name $KEY" --define "__gpg $(command -v gpg)" \
	--addsign "$out.new"/rpm/*.rpm > /dev/null 2>&1 || die "rpmsign failed"
createrepo_c -q --revision "$(date -d "$date" +%s)" --set-timestamp-to-revision "$out.new/rpm"
"${signs[@]}" --detach-sign -o "$out.new/rpm/repodata/repomd.xml.asc" \
	"$out.new/rpm/repodata/repomd.xml"

# ---- for those who use it ----
gpg -q --armor --export-options export-minimal --export "$KEY" > "$out.new/ibnbd.asc"
{
	printf '%s\n' "Types: deb deb-src" "URIs: $url/deb" "Suites: stable" "Components: main" \
		"Architectures: ${arches[*]}" "Signed-By:"
	sed 's/^$/./; s/^/ /' "$out.new/ibnbd.asc"
} > "$out.new/ibnbd.sources"
cat > "$out.new/ibnbd.repo" <<- REPO
[ibnbd]
name=ibnbd, RDMA network block device
baseurl=$url/rpm
enabled=1
gpgcheck=1
repo_gpgcheck=1
gpgkey=$url/ibnbd.asc
REPO
rm -rf "$out"
mv "$out.new" "$out"
echo "$out"
