#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# root.sh base SUITE            a clean Debian of that suite with systemd, headers and DKMS, made
#                               once by debootstrap in ${IBNBD_CACHE:-build/cache}/root-SUITE, a
#                               second kernel's headers (not installed) in /later; prints its path
# root.sh run SUITE SCRIPT      run SCRIPT as root, with the words of ARGS=, in a copy of it that is
#                               thrown away (an overlay in memory). The packages of build/deb,
#                               build/rpm and build/rpm2 are in /packages there, the source of this
#                               tree in /source, the autopkgtests in /tests, and the directory
#                               OUT=, if there is one, is /out.
# root.sh image SUITE OUT.img   a disk with such a Debian, our packages installed (DKMS builds the
#                               modules), the modules of the stock kernel that it has headers of,
#                               and tests/packages/machine in it: what boot.py and cluster.py boot.
#                               MORE= names further packages, whose services are off. OUT.kernel has
#                               the kernel's version.
set -eu -o pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
cache=${IBNBD_CACHE:-$top/build/cache}
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
unset TMPDIR		# a chroot does not have that directory
first=systemd,systemd-sysv,udev,dbus,kmod,iproute2,ca-certificates,procps
second=(linux-headers-amd64 dkms gcc make ccache libsmartcols1 libmount1 libblkid1 libkeyutils1
	rdma-core e2fsprogs fdisk lvm2 mdadm cryptsetup-bin iputils-ping rpm python3-jsonschema)
declare -A more=([trixie]=systemd-cryptsetup)		# was in systemd until Debian 12

# Some thirty builds by DKMS compile the same files with the same compiler. Debian's headers run it
# behind ccache if this is set.
mkdir -p "$cache/ccache"
export DEBIAN_KERNEL_USE_CCACHE=1 CCACHE_DIR=/ccache CCACHE_BASEDIR=/var/lib/dkms CCACHE_NOHASHDIR=1

die() { echo "root.sh: $*" >&2; exit 1; }
mirror() {
	apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' |
		awk -v l="$1" '$1 == l { print $2; exit }'
}
# DIR: another revision of the packages there, up-NAME.deb, and a later version of the source,
# new-NAME.deb
later_packages() {
	local p d v new kind
	for p in dkms tools; do
		v=$(dpkg-deb -f "$1"/ibnbd-$p\_*.deb Version)
		v=${v%-*} new=${v%-*}.9
		for kind in up new; do
			d=$(mktemp -d)
			dpkg-deb -R "$1"/ibnbd-$p\_*.deb "$d/p"
			if [ $kind = up ]; then
				sed -i 's/^Version: .*/&+up1/' "$d/p/DEBIAN/control"
			else
				sed -i "s/^Version: .*/Version: $new-1/" "$d/p/DEBIAN/control"
				[ $p = tools ] || {
					mv "$d/p/usr/src/ibnbd-$v" "$d/p/usr/src/ibnbd-$new"
					sed -i "s/^PACKAGE_VERSION=.*/PACKAGE_VERSION=\"$new\"/" \
						"$d/p/usr/src/ibnbd-$new/dkms.conf"
					sed -i "s/${v//./\\.}/$new/g" \
						"$d/p/DEBIAN/"{md5sums,postinst,prerm}
				}
			fi
			dpkg-deb --root-owner-group -b "$d/p" "$1/$kind-$p.deb" > /dev/null
			rm -rf "$d"
		done
	done
}
inside() {	# ROOT COMMAND..
	unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$@"
}

base() {
	local suite=$1 root=$cache/root-$1 log=$cache/root-$1.log debian security
	mkdir -p "$cache"
	exec 9> "$cache/.lock.root-$suite"
	flock 9
	[ ! -e "$root/.complete5" ] || { echo "$root"; return; }
	command -v debootstrap > /dev/null ||
		die "debootstrap is missing: apt-get install debootstrap"
	debian=$(mirror Debian) security=$(mirror Debian-Security)
	[ -n "$debian" ] || die "apt on this machine knows no Debian mirror"
	rm -rf --one-file-system "$root"
	debootstrap --variant=minbase --include="$first" "$suite" "$root" "$debian" \
		> "$log" 2>&1 9>&- ||
		die "debootstrap $suite failed: $(tail -n 3 "$log")"
	{
		echo "deb $debian $suite main"
		[ -z "$security" ] || echo "deb $security $suite-security main"
	} > "$root/etc/apt/sources.list"
	# nothing is started in a chroot
	printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
	chmod +x "$root/usr/sbin/policy-rc.d"
	{
		inside "$root" apt-get -qq update
		inside "$root" apt-get -qq -o DPkg::Options::=--force-unsafe-io install -y \
			--no-install-recommends "${second[@]}" ${more[$suite]:-}
		inside "$root" apt-get clean
		# a kernel that comes later: the same version in another flavour; Debian 13's
		# headers ask for its image, too
		mkdir -p "$root/later/partial"
		inside "$root" sh -c 'apt-get -qq -o APT::Sandbox::User=root \
			-o Dir::Cache::archives=/later \
			install -y --no-install-recommends --download-only \
			"linux-headers-$(ls /lib/modules | sed s/-amd64/-cloud-amd64/)"'
	} >> "$log" 2>&1 9>&- || die "packages of $suite: $(tail -n 3 "$log")"
	touch "$root/.complete5"
	echo "$root"
}

case $1 in
base)	base "$2" ;;
run)
	lower=$(base "$2")
	script=$(realpath "$3")
	export -f later_packages
	out=${OUT:+$(realpath "$OUT")}
	top=$top lower=$lower script=$script out=$out cache=$cache exec unshare --mount bash -c '
		set -eu
		mount -t tmpfs -o size=4g tmpfs /mnt
		mkdir /mnt/{upper,work,root}
		mount -t overlay -o "lowerdir=$lower,upperdir=/mnt/upper,workdir=/mnt/work" \
			overlay /mnt/root
		mkdir /mnt/root/packages
		shopt -s nullglob
		cp "$top"/build/deb/*.deb "$top"/build/rpm/*.rpm "$top"/build/rpm2/*.rpm \
			/mnt/root/packages/
		[ ! -e /mnt/root/packages/ibnbd-dkms_*.deb ] ||
			later_packages /mnt/root/packages
		if [ -n "$out" ]; then
			mkdir /mnt/root/out
			mount --bind "$out" /mnt/root/out
		fi
		cp -a "$top/debian/tests" /mnt/root/tests
		mkdir /mnt/root/source
		"$top/tests/packages/dist.sh" /mnt/source.tar.gz
		tar -C /mnt/root/source -xf /mnt/source.tar.gz --strip-components=1 --no-same-owner
		cp "$script" /mnt/root/script
		mkdir /mnt/root/ccache
		mount --bind "$cache/ccache" /mnt/root/ccache
		mount -t proc proc /mnt/root/proc
		mount --rbind /dev /mnt/root/dev
		exec chroot /mnt/root bash /script ${ARGS:-}' 9>&- ;;
image)
	lower=$(base "$2")
	out=$(realpath -m "$3")
	kver=$(ls "$lower/lib/modules")
	"$top/tests/vm/kernel.sh" "$kver" "$2" 9>&- || die "no image of kernel $kver"
	export -f later_packages
	top=$top lower=$lower out=$out kver=$kver cache=$cache exec unshare --mount bash -c '
		set -eu
		mount -t tmpfs -o size=6g tmpfs /mnt
		mkdir /mnt/{upper,work,root}
		mount -t overlay -o "lowerdir=$lower,upperdir=/mnt/upper,workdir=/mnt/work" \
			overlay /mnt/root
		r=/mnt/root
		mkdir $r/packages
		cp "$top"/build/deb/*.deb $r/packages/
		later_packages $r/packages
		cp -a "$top/debian/tests" $r/tests
		cp -a "$cache/kernels/$kver/lib/modules/$kver/." $r/lib/modules/$kver/
		mount -t proc proc $r/proc
		mount --bind /dev $r/dev
		mkdir $r/ccache
		mount --bind "$cache/ccache" $r/ccache
		chroot $r sh -c "apt-get -qq -o DPkg::Options::=--force-unsafe-io \
			-o APT::Sandbox::User=root install -y --no-install-recommends \
			/packages/ibnbd-dkms_*.deb /packages/ibnbd-tools_*_*.deb ${MORE:-} &&
			dkms status -m ibnbd -k $kver | grep -w installed && depmod $kver" >&2
		for p in ${MORE:-}; do
			chroot $r systemctl -q disable $p ${p}d 2> /dev/null || :
		done
		umount $r/dev $r/proc $r/ccache
		rmdir $r/ccache
		cp -a "$top/tests/packages/machine/." $r/
		sed -n "/^PORT=/,\$p" "$top/tests/vm/guest/init" > $r/usr/local/lib/rig-agent.tail
		echo 0123456789abcdef0123456789abcdef > $r/etc/machine-id
		echo client > $r/etc/hostname
		chroot $r systemctl -q enable systemd-networkd systemd-networkd-wait-online \
			rig-agent rxe remote-cryptsetup.target
		chroot $r passwd -qd root
		rm -rf $r/usr/sbin/policy-rc.d $r/later $r/usr/src/linux-headers-* \
			$r/usr/lib/gcc $r/usr/libexec/gcc $r/usr/share/{doc,man,locale,perl} \
			$r/var/lib/apt/lists $r/var/cache/apt
		mkfs.ext4 -q -d $r -L root "$out" 3g
		echo "$kver" > "${out%.img}.kernel"' 9>&- ;;
*)	die "no such verb: $1" ;;
esac
