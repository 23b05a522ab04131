#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# cross.sh ARCH, run by `root.sh run SUITE`: tools and library for another architecture, as .deb and
# .rpm, into /out. The texts that the command itself prints (manual, completions) come from the
# command that was just built, which qemu runs.
set -eu -o pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin
arch=$1
case $arch in
amd64) rpm=x86_64 ;;
arm64) rpm=aarch64 ;;
*)     echo "cross.sh: no RPM name for $arch" >&2; exit 1 ;;
esac
apt=(apt-get -qq -o DPkg::Options::=--force-unsafe-io -o APT::Sandbox::User=root
	-o Dir::Cache::archives=/var/cache/apt/archives --no-install-recommends -y)
dpkg --add-architecture "$arch"
"${apt[@]}" update
"${apt[@]}" install "crossbuild-essential-$arch" debhelper dh-dkms pkg-config:"$arch" scdoc \
	qemu-user-static rpm {nettle,nbdkit-plugin}-dev:"$arch" \
	lib{blkid,gnutls28,ibverbs,keyutils,mount,nbd,rdmacm,smartcols,uring}-dev:"$arch"
cross=$(dpkg-architecture -a"$arch" -qDEB_HOST_GNU_TYPE)
export RUN="qemu-$rpm-static"

cp -a /source /work-deb
cd /work-deb
dpkg-buildpackage -us -uc -B -d -a"$arch"
cp /*_"$arch".deb /out

export CC=$cross-gcc PKG_CONFIG=$cross-pkg-config
mkdir -p /work-rpm/SOURCES
(cd /source && tests/packages/dist.sh "/work-rpm/SOURCES/$(basename /out/ibnbd-tools_*_"$arch".deb |
	sed 's/ibnbd-tools_\(.*\)-[^-]*_.*/ibnbd-\1/').tar.gz")
SOURCE_DATE_EPOCH=$(date -d "$(sed -n 's/^ -- .*>  //p' /source/debian/changelog |
	head -n 1)" +%s)
export SOURCE_DATE_EPOCH
rpmbuild --target "$rpm-linux" --define "_topdir /work-rpm" --define "on_debian 1" \
	--define "_buildhost ibnbd.example" --define "clamp_mtime_to_source_date_epoch 1" \
	--define "use_source_date_epoch_as_buildtime 1" --define "_prefix /usr" \
	--define "__strip $cross-strip" --define "__objdump $cross-objdump" \
	-bb /source/rpm/ibnbd.spec
cp /work-rpm/RPMS/"$rpm"/*.rpm /out
