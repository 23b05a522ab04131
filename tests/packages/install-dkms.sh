#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# In a clean Debian, run by `root.sh run SUITE`: make dkms-install and dkms-remove from the source
# tree, once with a vendor's stack, then the autopkgtests that need no machine of their own
# (debian/tests/loopback is a step of boot.py). Says "ok NAME" for each.
set -eu -o pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin
die() { echo "FAIL $*"; tail -n 30 /log; exit 1; }
kernel=$(ls /lib/modules)
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' /source/dkms.conf)
left() {
	find /lib/modules -name 'ib[nt]*-*.ko*' -path '*updates*'
	find /usr/src -maxdepth 1 -name 'ibnbd*'
	dkms status -m ibnbd
}

make -C /source dkms-install KVER="$kernel" > /log 2>&1 || die "make dkms-install"
dkms status -m ibnbd -v "$version" -k "$kernel" | grep -qw installed ||
	die "not installed: $(dkms status)"
for m in ibtrs-core ibtrs-client ibtrs-server ibnbd-client ibnbd-server; do
	[ "$(modinfo -k "$kernel" -F version "$m")" = "$version" ] || die "no $m"
done
echo "ok make dkms-install"
touch /marker
make -C /source dkms-install KVER="$kernel" > /log 2>&1 || die "make dkms-install, the second time"
[ "$(find /lib/modules -name 'ibnbd-client.ko*' -newer /marker | wc -l)" = 1 ] ||
	die "the same version was not built anew"
echo "ok make dkms-install once more"
make -C /source dkms-remove > /log 2>&1 || die "make dkms-remove"
[ -z "$(left)" ] || die "make dkms-remove left $(left)"
echo "ok make dkms-remove"

# a vendor's stack where it usually lies: the kernel's own headers behind ours, and symbol versions
# that no kernel has
ofa=/usr/src/ofa_kernel/$kernel
mkdir -p "$ofa/include/rdma"
echo '#include_next <rdma/ib_verbs.h>' > "$ofa/include/rdma/ib_verbs.h"
awk -F'\t' -v OFS='\t' \
	'$2 ~ /^(ib|rdma)_/ && $3 ~ /infiniband/ { $1 = "0x0badcafe"; $3 = "/vendor/" $3; print }' \
	"/lib/modules/$kernel/build/Module.symvers" > "$ofa/Module.symvers"
[ -s "$ofa/Module.symvers" ] || die "the headers have no symbols of RDMA"
make -C /source dkms-install KVER="$kernel" > /log 2>&1 || {
	cat /var/lib/dkms/ibnbd/*/build/make.log >> /log 2>/dev/null || :
	die "make dkms-install with a vendor's stack"
}
grep -F "IBNBD: RDMA stack: vendor's in $ofa" \
	/var/lib/dkms/ibnbd/"$version"/"$kernel"/*/log/make.log > /log ||
	die "DKMS did not take the vendor's stack"
modprobe --dump-modversions "$(modinfo -k "$kernel" -F filename ibtrs-core)" > /log ||
	die "no symbol versions"
grep -qi 0x0badcafe /log || die "ibtrs-core has not the vendor's symbol versions"
make -C /source dkms-remove > /log 2>&1 || die "make dkms-remove after a vendor's stack"
rm -rf /usr/src/ofa_kernel
[ -z "$(left)" ] || die "make dkms-remove left $(left)"
echo "ok DKMS builds against a vendor's stack"

apt-get -qq -o DPkg::Options::=--force-unsafe-io -o APT::Sandbox::User=root \
	--no-install-recommends -y install \
	/packages/ibnbd-dkms_*.deb /packages/ibnbd-tools_*_*.deb > /log 2>&1 ||
	die "apt install"
for t in modules command; do
	AUTOPKGTEST_TMP=$(mktemp -d)
	export AUTOPKGTEST_TMP
	sh "/tests/$t" > /log 2>&1 || die "autopkgtest $t"
	echo "ok autopkgtest $t"
done
