#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# root.sh: an ext4 image with a Debian in it that has what blktests and xfstests ask for,
# $CACHE/suites-root.img; prints its path. Made once, by debootstrap, as root. The machines of the
# rig boot without it and enter it by chroot.
set -eu -o pipefail
. "$(dirname "$0")/../vm/env.sh"
unset TMPDIR		# a chroot does not have that directory
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

packages=(
	acl attr bc blktrace bsdextrautils btrfs-progs dbench dmsetup dump e2fsprogs ethtool
	exfatprogs fdisk file fio gawk gcc iproute2 kmod keyutils libaio1 libcap2-bin libgdbm6
	libssl3 liburing2 lvm2 make mdadm nbd-client nvme-cli perl procps psmisc python3 quota
	rdma-core sg3-utils thin-provisioning-tools udev util-linux uuid-runtime xfsdump xfsprogs
	xz-utils
)
suite=$(own_suite)
out=$CACHE/suites-root-$suite.img
have=() n=0
key=$(cksum <<< "${packages[*]}")
exec 9> "$CACHE/.lock.suites-root"		# not the lock that every run of machines takes
flock 9
[ "$(cat "$out.key" 2> /dev/null)" != "$key" ] || [ ! -e "$out" ] || { echo "$out"; exit 0; }
command -v debootstrap > /dev/null || die "debootstrap is missing: apt-get install debootstrap"
[ "$(id -u)" = 0 ] || die "must be root, for a chroot"

say "making a Debian $suite for the suites" >&2
mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' |
	awk '$1 == "Debian" { print $2; exit }')
[ -n "$mirror" ] || die "apt knows no Debian mirror; run apt-get update first"
root=$CACHE/suites-root.new log=$CACHE/suites-root.log
trap 'rm -rf --one-file-system "$root"' EXIT
rm -rf --one-file-system "$root" "$out.key"
debootstrap --variant=minbase "$suite" "$root" "$mirror" > "$log" 2>&1 9>&- ||
	die "debootstrap: $(tail -n 3 "$log")"
# nothing is started in a chroot
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"
for p in "${packages[@]}"; do		# some are called otherwise in other suites
	[ -z "$(chroot "$root" apt-cache show "$p" 2> /dev/null)" ] || have+=("$p")
done
unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" \
	apt-get -qq -o DPkg::Options::=--force-unsafe-io -o APT::Sandbox::User=root install -y \
	--no-install-recommends "${have[@]}" \
	>> "$log" 2>&1 9>&- || die "packages: $(tail -n 3 "$log")"
for u in fsgqa fsgqa2 123456-fsgqa; do		# the users that xfstests asks for
	echo "$u:x:$((1000 + ++n)):$((1000 + n))::/home/$u:/bin/bash" >> "$root/etc/passwd"
	echo "$u:x:$((1000 + n)):" >> "$root/etc/group"
	mkdir -p "$root/home/$u"
done
rm -rf "$root"/{usr/share/{doc,man,locale},var/lib/apt/lists,var/cache/apt,usr/sbin/policy-rc.d}
mkdir -p "$root/suite" "$root/mnt/test" "$root/mnt/scratch" "$root/h"
mkfs.ext4 -q -d "$root" -L suites "$out" 3g
echo "$key" > "$out.key"
echo "$out"
