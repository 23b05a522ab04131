#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# release.sh VERSION: a release of HEAD. Refuses a tree with changes, and one that `make check` has
# not passed as it stands. The version goes into version.h, dkms.conf, the specs and
# debian/changelog, and "Unreleased" of CHANGELOG.md becomes a section with version and date: all of
# that is one commit, and vVERSION its tag. build/release/VERSION has the archive, SHA256SUMS, and a
# signature of it.
#
#   KEY=    fingerprint or address of the key that signs tag and sums; without it neither is signed
#   DATE=   of the release (default: now)
#
# release.sh --tree prints what `make check` notes of the tree that it tests.
set -eu -o pipefail
unset TAR_OPTIONS GZIP CDPATH
cd "$(dirname "$0")/../.."
die() { echo "release.sh: $*" >&2; exit 1; }
tree() {
	if [ -z "$(git status --porcelain)" ]; then
		git rev-parse 'HEAD^{tree}'
	else
		echo changed
	fi
}
case ${1:-} in
--tree)	tree; exit ;;
'')	die "which version? make release VERSION=1.0.0" ;;
esac
version=$1
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || die "VERSION=$version: want three numbers, as 1.0.0"
old=$(sed -n 's/^.define IBNBD_VERSION "\(.*\)"/\1/p' ibtrs/include/ibtrs/version.h)
if [ "$old" = "$version" ] ||
   [ "$(printf '%s\n' "$old" "$version" | sort -V | tail -n 1)" != "$version" ]; then
	die "version $version is not later than $old, the version of this tree"
fi
! git rev-parse -q --verify "refs/tags/v$version" > /dev/null || die "tag v$version exists"
now=$(tree)
[ "$now" != changed ] || die "the tree has changes: commit them first"
[ "$(cat build/checked 2> /dev/null)" = "$now" ] ||
	die "this tree has not passed make check: run it first"
[ "$(sed -n 's/^## //p' CHANGELOG.md | head -n 1)" = Unreleased ] ||
	die "CHANGELOG.md: the first section is not 'Unreleased'"

date=$(LC_ALL=C date -R ${DATE:+-d "$DATE"})
day=$(date -d "$date" +%F)
maintainer=$(sed -n 's/^ -- \(.*>\)  .*/\1/p' debian/changelog | head -n 1)
sed -i "s/^\(.define IBNBD_VERSION \).*/\1\"$version\"/" ibtrs/include/ibtrs/version.h
sed -i "s/^PACKAGE_VERSION=.*/PACKAGE_VERSION=\"$version\"/" dkms.conf
sed -i "0,/^## Unreleased\$/s//## $version ($day)/" CHANGELOG.md
{
	printf 'ibnbd (%s-1) unstable; urgency=medium\n\n' "$version"
	printf '  * New upstream release, see CHANGELOG.md.\n\n -- %s  %s\n\n' "$maintainer" "$date"
	cat debian/changelog
} > debian/changelog.new
mv debian/changelog.new debian/changelog
sed -i -e "s/^Version:.*/Version:	$version/" -e "s/^Release:.*/Release:	1%{?dist}/" \
	-e "/^%changelog\$/a* $(LC_ALL=C date -d "$date" '+%a %b %d %Y') $maintainer - $version-1\\
- New upstream release, see CHANGELOG.md.\\
" rpm/*.spec
tests/packages/dist.sh "build/release/$version/ibnbd-$version.tar.gz"

git commit -qam "release: $version"
if [ -n "${KEY:-}" ]; then
	git tag -s -u "$KEY" -m "ibnbd $version" "v$version"
else
	git tag -a -m "ibnbd $version" "v$version"
fi
cd "build/release/$version"
sha256sum "ibnbd-$version.tar.gz" > SHA256SUMS
[ -z "${KEY:-}" ] || gpg -q --batch --yes --local-user "$KEY" --armor --detach-sign SHA256SUMS
echo "ibnbd $version: commit and tag v$version are made here and pushed nowhere; in $PWD:"
ls
