#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# root.sh SUITE OUT: a Debian of that suite with systemd, its stock kernel and headers, DKMS and what the tests need, made once by
# debootstrap in ${IBNBD_CACHE:-build/cache}/root-SUITE; then a copy of it in OUT with the packages of build/deb installed by apt, so that DKMS
# really builds. Prints the kernel's release. OUT is a directory; systems.py makes disks of it.
set -eu -o pipefail
suite=$1 out=$2
top=$(cd "$(dirname "$0")/../.." && pwd)
cache=${IBNBD_CACHE:-$top/build/cache}
base=$cache/root-$suite
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
packages=systemd,systemd-sysv,udev,dbus,kmod,iproute2,iputils-ping,rdma-core,e2fsprogs,lvm2,cryptsetup-bin,cryptsetup
packages+=,linux-image-amd64,linux-headers-amd64,dkms,gcc,make,ca-certificates,libsmartcols1,libmount1,libblkid1,initramfs-tools,procps,psmisc

die() { echo "root.sh: $*" >&2; exit 1; }
mirror() {
	apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' | awk -v l="$1" '$1 == l { print $2; exit }'
}
inside() {	# ROOT COMMAND..
	local root=$1
	shift
	unshare --mount sh -c 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"' "$root" "$@"
}

mkdir -p "$cache"
exec 9> "$cache/.lock.root-$suite"
flock 9
if [ ! -e "$base/.complete" ]; then
	command -v debootstrap > /dev/null || die "debootstrap is missing: apt-get install debootstrap"
	debian=$(mirror Debian) security=$(mirror Debian-Security)
	[ -n "$debian" ] || die "apt on this machine knows no Debian mirror"
	rm -rf --one-file-system "$base"
	# initramfs-tools in a chroot would build an image for each kernel, twice: the machines boot without
	debootstrap --variant=minbase --include="${packages%%,linux-image*}" "$suite" "$base" "$debian" > "$cache/root-$suite.log" 2>&1 ||
		die "debootstrap $suite failed: $(tail -n 3 "$cache/root-$suite.log")"
	{
		echo "deb $debian $suite main"
		[ -z "$security" ] || echo "deb $security $suite-security main"
	} > "$base/etc/apt/sources.list"
	printf '#!/bin/sh\nexit 101\n' > "$base/usr/sbin/policy-rc.d"
	chmod +x "$base/usr/sbin/policy-rc.d"
	{
		inside "$base" apt-get -qq update
		inside "$base" apt-get -qq -o DPkg::Options::=--force-unsafe-io install -y --no-install-recommends $(tr , ' ' <<< "${packages#*cryptsetup,}")
		inside "$base" apt-get clean
	} >> "$cache/root-$suite.log" 2>&1 || die "packages of $suite: $(tail -n 3 "$cache/root-$suite.log")"
	touch "$base/.complete"
fi

rm -rf --one-file-system "$out"
mkdir -p "$out"
cp -a "$base/." "$out/"
cp "$top"/build/deb/ibnbd-dkms_*.deb "$top"/build/deb/ibnbd-tools_*.deb "$out/root/"
inside "$out" sh -c 'apt-get -qq -o DPkg::Options::=--force-unsafe-io install -y --no-install-recommends /root/ibnbd-*.deb' > "$out/../install.log" 2>&1 ||
	die "apt install of our packages failed: $(tail -n 5 "$out/../install.log")"
inside "$out" dkms status -m ibnbd >&2
ls "$out/lib/modules" | head -n 1
