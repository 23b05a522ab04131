#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# install-repo.sh, run by `root.sh run SUITE` with a repository of repo.sh as /out: what README.md
# tells a user to type, from a directory and from a web server. Checks that a spoilt or unsigned
# repository is refused. Says "ok NAME" for each.
set -eu -o pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin
die() { echo "FAIL $*"; tail -n 30 /log; exit 1; }
kernel=$(ls /lib/modules)

# dnf is Debian's own; with it a repository for RPM is used as RHEL would
if grep -q bookworm /etc/os-release; then
	apt-get -qq update > /log 2>&1
	apt-get -qq -o DPkg::Options::=--force-unsafe-io -o APT::Sandbox::User=root install -y \
		--no-install-recommends dnf > /log 2>&1 || die "no dnf"
fi
(cd /out && exec python3 -u -m http.server --bind 127.0.0.1 0 > /web.log 2>&1) &
trap 'kill $!' EXIT
for i in {1..100}; do
	! web=$(grep -om 1 'http://[0-9.:]*' /web.log) || break
	sleep 0.1
done

whole() {	# the drivers are built for the kernel, the command runs
	dkms status -m ibnbd -k "$kernel" | grep -qw installed || die "DKMS has: $(dkms status)"
	modinfo -k "$kernel" -F vermagic ibnbd-client | grep -q "^$kernel " || die "no ibnbd-client"
	ibnbd maps check > /dev/null || die "the command"
}

# ---- apt: no other source, so that nothing else can bring the packages ----
apt=(apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o APT::Sandbox::User=root
	-o DPkg::Options::=--force-unsafe-io --no-install-recommends -y)
sources=/etc/apt/sources.list.d/ibnbd.sources
from() {	# URL
	sed "s|^URIs: .*|URIs: $1/deb|" /out/ibnbd.sources > $sources
	rm -rf /var/lib/apt/lists/*
}
for url in "$web" file:///out; do
	from $url
	"${apt[@]}" update > /log 2>&1 || die "apt update from $url"
	! grep -E '^[WE]:' /log || die "apt update from $url warns"
	# from the web server they are only fetched: a build for DKMS takes a minute
	[ $url = file:///out ] && fetch= || fetch=--download-only
	"${apt[@]}" install $fetch ibnbd-dkms ibnbd-tools > /log 2>&1 || die "apt install from $url"
	[ -n "$fetch" ] || whole
	echo "ok apt install $fetch ibnbd-dkms ibnbd-tools, ${url%%:*}:"
done
ls /var/cache/apt/archives/ibnbd-{dkms,tools}_*.deb > /log 2>&1 || die "nothing came by http"
grep -q 'GET /deb/dists/stable/main/binary-amd64/by-hash/SHA' /web.log ||
	die "apt fetched nothing by hash: $(cat /web.log)"
echo "ok lists are fetched by hash"
"${apt[@]}" purge ibnbd-dkms ibnbd-tools > /log 2>&1 || die "apt purge"
(cd / && "${apt[@]}" -o APT::Get::Download-Only=true source ibnbd > /log 2>&1) || die "apt source"
[ -s /ibnbd_*.dsc ] || die "apt source brought no .dsc"
echo "ok apt source ibnbd"
dpkg --add-architecture arm64
from file:///out
"${apt[@]}" update > /log 2>&1 || die "apt update with arm64"
(cd / && "${apt[@]}" download ibnbd-tools:arm64 > /log 2>&1) || die "download for arm64"
dpkg-deb -x /ibnbd-tools_*_arm64.deb /arm64
head -c 20 /arm64/usr/sbin/ibnbd | od -An -tx1 -j18 | grep -q 'b7 00' || die "not for arm64"
[ -s /arm64/usr/share/man/man8/ibnbd.8.gz ] &&
	[ -s /arm64/usr/share/bash-completion/completions/ibnbd ] || die "no texts for arm64"
dpkg --remove-architecture arm64
echo "ok the tools for arm64"

cp -a /out /spoilt
sed -i 's/ibnbd/ibmbd/' /spoilt/deb/dists/stable/InRelease
rm /spoilt/deb/dists/stable/Release.gpg
from file:///spoilt
! "${apt[@]}" update > /log 2>&1 || die "apt takes a list that was changed"
rm /spoilt/deb/dists/stable/InRelease
! "${apt[@]}" update > /log 2>&1 || die "apt takes a list without a signature"
echo "ok apt refuses what is not signed"
rm $sources

# ---- dnf: what the packages need is not in this root's RPM database, a stub stands for it ----
[ -e /usr/bin/dnf ] || exit 0
mkdir -p /stub/rpm
{
	printf '%s\n' 'Name: stub' 'Version: 1' 'Release: 1' 'Summary: stub' 'License: none' \
		'BuildArch: noarch' 'AutoReqProv: no'
	for f in /out/rpm/ibnbd-{tools,dkms}-*.{x86_64,noarch}.rpm; do
		[ ! -e "$f" ] || rpm -qp --requires "$f"
	done 2> /dev/null | grep -v '^rpmlib' | sed 's/ [<>=].*//; s/^/Provides: /' | sort -u
	printf '%s\n' '%description' stub '%files'
} > /stub/stub.spec
rpmbuild -bb --define "_rpmdir /stub/rpm" --define "_topdir /stub" /stub/stub.spec > /log 2>&1 ||
	die "stub"
rpm --nodeps --justdb -i /stub/rpm/noarch/stub-1-1.noarch.rpm > /log 2>&1 || die "stub"
mkdir -p /etc/yum.repos.d
dnf=(dnf -y --setopt=reposdir=/etc/yum.repos.d --setopt=install_weak_deps=False --releasever=9)
for url in "$web" file:///out; do
	sed "s|^baseurl=.*|baseurl=$url/rpm|; s|^gpgkey=.*|gpgkey=$url/ibnbd.asc|" \
		/out/ibnbd.repo > /etc/yum.repos.d/ibnbd.repo
	[ $url = file:///out ] && fetch= || fetch=--downloadonly
	"${dnf[@]}" clean all > /log 2>&1
	"${dnf[@]}" install $fetch ibnbd-dkms ibnbd-tools > /log 2>&1 || die "dnf install from $url"
	[ -n "$fetch" ] || whole
	echo "ok dnf install $fetch ibnbd-dkms ibnbd-tools, ${url%%:*}:"
done
printf x >> /spoilt/rpm/repodata/repomd.xml
sed "s|^baseurl=.*|baseurl=file:///spoilt/rpm|; s|^gpgkey=.*|gpgkey=file:///out/ibnbd.asc|" \
	/out/ibnbd.repo > /etc/yum.repos.d/ibnbd.repo
"${dnf[@]}" clean all > /log 2>&1
"${dnf[@]}" makecache > /log 2>&1 || :
grep -q 'Bad GPG signature' /log || die "dnf takes a list that was changed"
echo "ok dnf refuses what is not signed"
