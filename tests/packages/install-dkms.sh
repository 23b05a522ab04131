#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# In a clean Debian, run by `root.sh run SUITE`: make dkms-install and dkms-remove from the source tree, then the autopkgtests that need no
# machine of their own (debian/tests/loopback is a step of boot.py). Says "ok NAME" for each.
set -eu -o pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin
die() { echo "FAIL $*"; tail -n 30 /log; exit 1; }
kernel=$(ls /lib/modules)
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' /source/dkms.conf)
left() { find /lib/modules -name 'ib[nt]*-*.ko*' -path '*updates*'; find /usr/src -maxdepth 1 -name 'ibnbd*'; dkms status -m ibnbd; }

make -C /source dkms-install KVER="$kernel" > /log 2>&1 || die "make dkms-install"
dkms status -m ibnbd -v "$version" -k "$kernel" | grep -qw installed || die "not installed: $(dkms status)"
for m in ibtrs-core ibtrs-client ibtrs-server ibnbd-client ibnbd-server; do
	[ "$(modinfo -k "$kernel" -F version "$m")" = "$version" ] || die "no $m"
done
echo "ok make dkms-install"
touch /marker
make -C /source dkms-install KVER="$kernel" > /log 2>&1 || die "make dkms-install, the second time"
[ "$(find /lib/modules -name 'ibnbd-client.ko*' -newer /marker | wc -l)" = 1 ] || die "the same version was not built anew"
echo "ok make dkms-install once more"
make -C /source dkms-remove > /log 2>&1 || die "make dkms-remove"
[ -z "$(left)" ] || die "make dkms-remove left $(left)"
echo "ok make dkms-remove"

apt-get -qq -o DPkg::Options::=--force-unsafe-io -o APT::Sandbox::User=root --no-install-recommends -y \
	install /packages/ibnbd-dkms_*.deb /packages/ibnbd-tools_*_*.deb > /log 2>&1 || die "apt install"
for t in modules command; do
	AUTOPKGTEST_TMP=$(mktemp -d)
	export AUTOPKGTEST_TMP
	sh "/tests/$t" > /log 2>&1 || die "autopkgtest $t"
	echo "ok autopkgtest $t"
done
