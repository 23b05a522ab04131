#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# setup.sh: make this Debian machine able to run the rig. Idempotent and quick when nothing is
# missing. Packages come from apt; the kernel under test and a slim fio land in the cache directory.
set -eu -o pipefail
. "$(dirname "$0")/env.sh"

packages=(
	qemu-system-x86 busybox-static kmod zstd lz4 xz-utils			# to boot
	iproute2 iputils-ping rdma-core ibverbs-providers ibverbs-utils rdmacm-utils perftest
	# for the guests
	util-linux mount fdisk procps udev e2fsprogs xfsprogs btrfs-progs dmsetup strace stress-ng
	linux-headers-amd64 gcc make dpkg-dev libaio-dev liburing-dev zlib1g-dev	# to build
	pkg-config libsmartcols-dev libmount-dev libblkid-dev libkeyutils-dev
	libibverbs-dev librdmacm-dev nettle-dev libgnutls28-dev			# libibtrs
	libnbd-dev nbdkit nbdkit-plugin-dev nbd-client			# disks in user space
	openssh-client dropbear-bin						# ssh to the guests
	python3 ca-certificates debian-archive-keyring
)

missing=()
for p in "${packages[@]}"; do
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] ||
		missing+=("$p")
done
if [ ${#missing[@]} -gt 0 ]; then
	say "installing ${missing[*]}"
	sudo=()
	[ "$(id -u)" = 0 ] || sudo=(sudo)
	apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq)
	"${apt[@]}" update
	"${apt[@]}" install -y --no-install-recommends "${missing[@]}" > "$CACHE/apt.log" 2>&1 ||
		die "apt-get install failed: $(tail -n 5 "$CACHE/apt.log")"
fi

KVER=${KVER:-$(default_kver)}
"$REPO/tests/vm/qemu.sh"
"$REPO/tests/vm/kernel.sh" "$KVER"
"$REPO/tests/vm/fio.sh"
"$REPO/tests/vm/mdadm.sh"
say "ready for $KVER"
