#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# In a clean Debian, run by `root.sh run SUITE`: apt installs our packages, DKMS builds for every
# kernel that has headers, a program is built with the library, an upgrade and a downgrade build
# anew, remove and purge leave nothing but what the administrator wrote. Says "ok NAME" for each.
set -eu -o pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin
apt=(apt-get -qq -o DPkg::Options::=--force-unsafe-io -o APT::Sandbox::User=root --allow-downgrades
	--no-install-recommends -y)
modules="ibtrs-core ibtrs-client ibtrs-server ibnbd-client ibnbd-server"
die() { echo "FAIL $*"; cat /var/lib/dkms/ibnbd/*/build/make.log 2>/dev/null | tail -n 20; exit 1; }
first=$(ls /lib/modules)
[ "$(wc -w <<< "$first")" = 1 ] || die "one kernel expected: $first"

# one that we must leave alone, although it has headers
mkdir -p /usr/src/old /lib/modules/4.19.0-1-old
cp -a "$(realpath "/lib/modules/$first/build")/." /usr/src/old
ln -s /usr/src/old /lib/modules/4.19.0-1-old/build
kernels=$first

built() {	# VERSION
	local k m f
	for k in $kernels; do
		dkms status -m ibnbd -v "$1" -k "$k" | grep -qw installed ||
			die "$1 is not installed for $k: $(dkms status)"
		for m in $modules; do
			f=$(modinfo -k "$k" -F filename "$m") || die "no $m for $k"
			[[ $(modinfo -k "$k" -F vermagic "$m") == "$k "* ]] ||
				die "$f is for $(modinfo -k "$k" -F vermagic "$m")"
		done
	done
	dkms status -m ibnbd -k 4.19.0-1-old | grep -qwE 'built|installed' &&
		die "built for 4.19" || :
}

"${apt[@]}" install /packages/ibnbd-dkms_*.deb /packages/ibnbd-tools_*_*.deb > /log 2>&1 ||
	die "apt install: $(tail -n 30 /log)"
version=$(dpkg-query -W -f '${source:Upstream-Version}' ibnbd-dkms)
built "$version"
echo "ok install"
grep -q "RDMA stack: the kernel's own" /var/lib/dkms/ibnbd/"$version"/"$first"/*/log/make.log ||
	die "the log does not name the RDMA stack"
echo "ok the log names the RDMA stack"
[ "$(systemctl is-enabled ibnbd-maps.target)" = enabled ] || die "ibnbd-maps.target is not enabled"
[ "$(systemctl is-enabled ibnbd-server.service)" = disabled ] ||
	die "ibnbd-server.service is enabled"
ibnbd maps check > /dev/null && ibnbd list --json > /dev/null || die "the command"
[ "$(stat -c '%a %U %G' /etc/ibnbd/keys)" = "700 root root" ] || die "/etc/ibnbd/keys"
said=$(systemd-analyze verify --man=no /lib/systemd/system/ibnbd*.service \
	/lib/systemd/system/ibnbd-maps.target 2>&1 | grep ibnbd) && die "units: $said" || :
echo "ok units and the command"
if [ "$(systemctl --version | sed -n '1s/^systemd \([0-9]*\).*/\1/p')" -ge 254 ]; then
	udevadm verify /lib/udev/rules.d/60-ibnbd.rules > /log 2>&1 || die "rules: $(cat /log)"
	echo "ok udevadm verify"
fi

# programs with the libraries, in a system that has none of what they need
packages=(libib{trs,nbd}{0,-dev} ibtrs-peer nbdkit-plugin-ibnbd ibnbd-serverd ibnbd-ping)
# shellcheck disable=SC2046	# each word is a pattern of one file
"${apt[@]}" update > /log 2>&1 &&
	"${apt[@]}" install $(printf '/packages/%s_*.deb ' "${packages[@]}") \
		libnbd-bin libc6-dev pkg-config man-db > /log 2>&1 ||
	die "apt install libibnbd-dev: $(tail -n 30 /log)"
/tests/library > /log 2>&1 || die "a program with libibtrs: $(cat /log)"
echo "ok a program with libibtrs"
/tests/disk > /log 2>&1 || die "a disk in user space: $(cat /log)"
echo "ok a disk in user space"
[ "$(systemctl is-enabled ibnbd-serverd.service)" = disabled ] ||
	die "ibnbd-serverd.service is enabled"
"${apt[@]}" purge "${packages[@]}" > /log 2>&1 || die "purge: $(cat /log)"
[ -z "$(find /usr /lib/systemd -name '*libib[tn]*' -o -name 'ib*-peer' -o -name '*ibnbd-serverd*' \
	-o -name '*ibnbd-ping*' -o -name 'nbdkit-ibnbd*')" ] || die "purge left the library"
echo "ok purge of the libraries"

"${apt[@]}" install /later/*.deb > /log 2>&1 || die "a second kernel: $(tail -n 30 /log)"
kernels="$first $(cd /lib/modules && echo *-cloud-*)"
[ "${kernels##*\*}" = "$kernels" ] || die "no second kernel: $(ls /lib/modules)"
built "$version"
echo "ok a kernel that comes later"

# the administrator's own, which no upgrade may touch
echo 'vol1 ram0 s1 path=10.0.0.2' >> /etc/ibnbd/maps.conf
said=$(ibnbd maps check 2>&1) || die "maps check: $said"

# another revision of the same source
"${apt[@]}" install /packages/up-dkms.deb /packages/up-tools.deb > /log 2>&1 ||
	die "upgrade: $(tail -n 30 /log)"
[[ $(dpkg-query -W -f '${Version}' ibnbd-dkms) == *+up1 ]] || die "no upgrade"
built "$version"
grep -q ^vol1 /etc/ibnbd/maps.conf || die "maps.conf lost its line"
echo "ok upgrade builds for every kernel"

# a later version of the source, and back: two versions that DKMS knows
"${apt[@]}" install /packages/new-dkms.deb /packages/new-tools.deb > /log 2>&1 ||
	die "new version: $(tail -n 30 /log)"
new=$(dpkg-query -W -f '${source:Upstream-Version}' ibnbd-dkms)
[ "$new" != "$version" ] || die "no new version"
built "$new"
[ -z "$(dkms status -m ibnbd -v "$version")" ] && [ ! -e /usr/src/ibnbd-"$version" ] ||
	die "the old version stays: $(dkms status)"
grep -q ^vol1 /etc/ibnbd/maps.conf || die "maps.conf lost its line"
echo "ok a new version takes the place of the old one"
"${apt[@]}" install /packages/ibnbd-dkms_*.deb /packages/ibnbd-tools_*_*.deb > /log 2>&1 ||
	die "downgrade: $(tail -n 30 /log)"
[ "$(dpkg-query -W -f '${source:Upstream-Version}' ibnbd-dkms)" = "$version" ] &&
	grep -q ^vol1 /etc/ibnbd/maps.conf || die "downgrade"
built "$version"
[ -z "$(dkms status -m ibnbd -v "$new")" ] || die "the new version stays: $(dkms status)"
echo "ok downgrade builds for every kernel"

saved=/etc/ibnbd/maps.conf.d
echo 'vol2 ram1 s1 path=10.0.0.2' > $saved/50-saved.conf
ibnbd maps tidy && [ -e $saved/vol2.conf ] && [ -e $saved/50-saved.conf.old ] || die "maps tidy"
"${apt[@]}" remove ibnbd-dkms ibnbd-tools > /log 2>&1 || die "remove: $(tail -n 30 /log)"
[ -z "$(dkms status -m ibnbd)" ] &&
	[ -z "$(find /lib/modules -name 'ib[nt]*.ko*' -path '*updates*')" ] ||
	die "remove left modules: $(dkms status)"
grep -q ^vol1 /etc/ibnbd/maps.conf && [ -e $saved/vol2.conf ] ||
	die "remove took the configuration"
echo "ok remove keeps the configuration"
mkdir -p /var/lib/ibnbd; echo > /var/lib/ibnbd/writers	# of a server
"${apt[@]}" purge ibnbd-dkms ibnbd-tools > /log 2>&1 || die "purge: $(tail -n 30 /log)"
[ ! -e /etc/ibnbd ] && [ ! -e /var/lib/ibnbd ] && [ ! -e /usr/src/ibnbd-"$version" ] ||
	die "purge left: $(find /etc/ibnbd /var/lib/ibnbd /usr/src/ibnbd-* 2>&1)"
echo "ok purge leaves nothing"
