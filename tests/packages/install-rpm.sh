#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# In a scratch root, run by `root.sh run SUITE`: rpm installs our packages, with scriptlets that
# really run DKMS; the same version once more, and another release, leave the modules of the new
# one; erasing takes all. Programs are built with the libraries. Then the same modules as a kmod,
# built for the kernel of this root, since headers of an Enterprise Linux are not to be had here,
# with a stand-in for weak-modules. Says "ok NAME" for each.
set -eu -o pipefail
export LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin
die() { echo "FAIL $*"; tail -n 30 /log; exit 1; }
kernel=$(ls /lib/modules)
# nothing of this root is in rpm's database, so what is required is not asked for
rpm=(rpm --nodeps --ignorearch)
state() { dkms status -m ibnbd | sed 's/^ibnbd.//' | sort | tr '\n' ';'; }
whole() {	# VERSION
	[ "$(dkms status -m ibnbd | wc -l)" = 1 ] || die "DKMS has $(state)"
	dkms status -m ibnbd -v "$1" -k "$kernel" | grep -qw installed ||
		die "$1 is not installed: $(state)"
	for m in ibtrs-core ibtrs-client ibtrs-server ibnbd-client ibnbd-server; do
		modinfo -k "$kernel" -F vermagic "$m" | grep -q "^$kernel " || die "no $m"
	done
}
one=$(ls /packages/ibnbd-dkms-*-1.noarch.rpm) version=$(rpm -qp --qf '%{VERSION}' "$one")
"${rpm[@]}" -i "$one" /packages/ibnbd-tools-*-1.x86_64.rpm > /log 2>&1 || die "rpm -i"
whole "$version-1"
[ "$(systemctl is-enabled ibnbd-maps.target)" = enabled ] || die "ibnbd-maps.target is not enabled"
[ "$(systemctl is-enabled ibnbd-server.service)" = disabled ] ||
	die "ibnbd-server.service is enabled"
ibnbd maps check > /dev/null || die "the command"
[ "$(stat -c '%a %U %G' /etc/ibnbd/keys)" = "700 root root" ] || die "/etc/ibnbd/keys"
echo "ok install"
echo 'vol1 ram0 s1 path=10.0.0.2' >> /etc/ibnbd/maps.conf
touch /marker
"${rpm[@]}" -U --replacepkgs --replacefiles "$one" /packages/ibnbd-tools-*-1.x86_64.rpm \
	> /log 2>&1 || die "rpm -U, same version"
whole "$version-1"
[ "$(find /lib/modules -name 'ibnbd-client.ko*' -newer /marker | wc -l)" = 1 ] ||
	die "the same version was not built anew"
echo "ok the same version once more"
"${rpm[@]}" -U /packages/ibnbd-dkms-*-2.noarch.rpm /packages/ibnbd-tools-*-2.x86_64.rpm \
	> /log 2>&1 || die "rpm -U"
whole "$version-2"
[ ! -e "/usr/src/ibnbd-$version-1" ] || die "the old source is still there"
grep -q ^vol1 /etc/ibnbd/maps.conf || die "maps.conf lost its line"
echo "ok upgrade"
echo > /var/lib/ibnbd/writers	# of a server
rpm --nodeps -e ibnbd-dkms ibnbd-tools > /log 2>&1 || die "rpm -e"
[ -z "$(state)" ] && [ -z "$(find /lib/modules -name 'ib[nt]*.ko*' -path '*updates*')" ] ||
	die "erasing left $(state)"
[ ! -e "/usr/src/ibnbd-$version-2" ] && [ ! -e /var/lib/ibnbd ] ||
	die "erasing left the source, or what the server kept"
echo "ok erase"

# ---- library ----
# (Debian's linker looks into no lib64)
apt-get -qq -o APT::Sandbox::User=root update > /log 2>&1 &&
	DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Options::=--force-unsafe-io \
		-o APT::Sandbox::User=root install -y --no-install-recommends libc6-dev \
		pkg-config man-db librdmacm1 libibverbs1 libgnutls30 liburing2 libnbd0 libnbd-bin \
		nbdkit > /log 2>&1 || die "apt install"
packages=(libib{trs,nbd}{,-devel} ibtrs-peer ibnbd-serverd ibnbd-ping nbdkit-ibnbd-plugin)
cd /packages
"${rpm[@]}" -i "${packages[@]/%/-$version-1.x86_64.rpm}" > /log 2>&1 || die "rpm -i libibtrs"
(
	export LD_LIBRARY_PATH=/usr/lib64 PKG_CONFIG_PATH=/usr/lib64/pkgconfig
	/tests/library "$(rpm -ql libibtrs-devel | grep '/libibtrs\.c$')" > /log 2>&1 ||
		die "a program with libibtrs"
	/tests/disk "$(rpm -ql libibnbd-devel | grep '/libibnbd\.c$')" \
		/usr/lib64/nbdkit/plugins/nbdkit-ibnbd-plugin.so > /log 2>&1 ||
		die "a disk in user space"
)
[ "$(systemctl is-enabled ibnbd-serverd.service)" = disabled ] ||
	die "ibnbd-serverd.service is enabled"
rpm --nodeps -e "${packages[@]}" > /log 2>&1 || die "rpm -e libibtrs"
[ -z "$(find /usr -name 'libib[tn]*' -o -name 'ib*-peer' -o -name '*ibnbd-serverd*' \
	-o -name '*ibnbd-ping*')" ] ||
	die "erasing left the libraries"
echo "ok programs with the libraries"

# ---- kmod ----
mkdir -p /rpm/SOURCES
(cd /source && tests/packages/dist.sh "/rpm/SOURCES/ibnbd-$version.tar.gz")
openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=kmod-test -days 36500 -outform DER \
	-keyout /rpm/key -out /rpm/cert > /log 2>&1 || die "openssl"
rpmbuild -bb --define "_topdir /rpm" --define "on_debian 1" --define "_prefix /usr" \
	--define "_localstatedir /var" --define "kversion $kernel" \
	--define "kernel_dir /lib/modules/$kernel/build" --define "kmod_key /rpm/key" \
	--define "kmod_cert /rpm/cert" /source/rpm/kmod-ibnbd.spec > /log 2>&1 || die "rpmbuild"
printf '%s\n' '#!/bin/sh' 'echo "$1 $(wc -l)" >> /weak' "depmod $kernel" \
	> /usr/sbin/weak-modules
chmod +x /usr/sbin/weak-modules
"${rpm[@]}" -i /rpm/RPMS/*/kmod-ibnbd-*.rpm > /log 2>&1 || die "rpm -i kmod"
for m in ibtrs-core ibtrs-client ibtrs-server ibnbd-client ibnbd-server; do
	[ "$(modinfo -k "$kernel" -F vermagic "$m" | cut -d ' ' -f 1)" = "$kernel" ] &&
		[ "$(modinfo -k "$kernel" -F signer "$m")" = kmod-test ] ||
		die "no $m, or it is not signed"
done
rpm --nodeps -e kmod-ibnbd > /log 2>&1 || die "rpm -e kmod"
[ "$(tr '\n' ' ' < /weak)" = "--add-modules 5 --remove-modules 5 " ] || die "weak: $(cat /weak)"
[ -z "$(find /lib/modules /run -name '*ib[nt]*' -path '*ibnbd*')" ] ||
	die "erasing left a module"
echo "ok kmod"
