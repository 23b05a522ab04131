#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# setup.sh [PACKAGE..]: those, what make check needs on a Debian machine, and what the virtual
# machines need. Quick when nothing is missing; without root it only says what is.
set -eu -o pipefail
cd "$(dirname "$0")/.."

packages=(
	"$@"
	build-essential bc git perl python3 kmod ca-certificates debian-archive-keyring	# to build
	linux-headers-amd64
	clang libclang-rt-dev llvm sparse abigail-tools				# fuzz, lint
	debootstrap dkms							# other kernels
	libfaketime								# bench-lines
	libnbd-bin python3-libnbd qemu-utils syslinux syslinux-common mtools	# check-nbdkit
	# packages
	debhelper dh-dkms lintian scdoc man-db rpm rpmlint python3-jsonschema zsh fish systemd udev
	resource-agents libxml2-utils
)
[ "$(dpkg --print-architecture)" = amd64 ] ||
	packages=("${packages[@]/linux-headers-amd64/linux-headers-$(dpkg --print-architecture)}")

missing=()
for p in "${packages[@]}"; do
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] ||
		missing+=("$p")
done
if [ ${#missing[@]} -gt 0 ]; then
	if [ "$(id -u)" != 0 ]; then
		echo "setup.sh: as root: apt-get install ${missing[*]}" >&2
		exit 1
	fi
	echo "setup.sh: installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	apt-get -o DPkg::Lock::Timeout=300 -qq update
	apt-get -o DPkg::Lock::Timeout=300 -qq install -y --no-install-recommends "${missing[@]}" \
		> /dev/null
fi
exec tests/vm/setup.sh
