#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# debug-kernel.sh [image|modules [debug|kcsan]]: a kernel of Debian's linux-source with checkers on,
# and our modules for it. The last line of output is its version, which run.py --kver takes.
#
#   image     build it if the cache has none: sources and build tree in $CACHE/debug-kernel/linux,
#             which is the KDIR for modules; vmlinuz and modules, as the rig boots them, in
#             $CACHE/kernels/VERSION
#   modules   (default) that, and our modules: a copy of the tree is built in build/modules/VERSION
#   debug     (default) with every checker that goes together: machine.config and debug.config
#   kcsan     with the one that looks for data races: machine.config and kcsan.config; in
#             $CACHE/kcsan-kernel
#
# The sources of the in-kernel rtrs and rnbd are left in the archive; only their Kconfig and
# Makefile come out, since Kconfig wants to see them, and both stay switched off.
set -eu -o pipefail
. "$(dirname "$0")/env.sh"
PATH=$PATH:/sbin:/usr/sbin

SERIES=6.1
SUITE=bookworm
what=${1:-modules} variant=${2:-debug}
parts=("$REPO/tests/vm/machine.config" "$REPO/tests/vm/$variant.config")
[ -e "${parts[1]}" ] || die "no such kernel: $variant"
top=$CACHE/$variant-kernel
tree=$top/linux
jobs=${JOBS:-2}
stamp=$top/built
. "$REPO/tests/modules.sh"
ours=("${modules_source[@]}" tests/planted)

packages() {
	local p missing=()
	for p in flex bison bc libelf-dev libssl-dev gcc make; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] ||
			missing+=("$p")
	done
	[ ${#missing[@]} -eq 0 ] && return
	DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq install -y \
		--no-install-recommends \
		"${missing[@]}" > "$CACHE/apt.log" 2>&1 ||
		die "apt-get install ${missing[*]} failed: $(tail -n 5 "$CACHE/apt.log")"
}

unpack() {
	[ ! -e "$tree/.unpacked" ] || return 0
	rm -rf "$tree" "$top/deb"
	mkdir -p "$tree" "$top/deb"
	cd "$top/deb"
	say "fetching linux-source-$SERIES"
	lock_cache
	apt_private "$SUITE"
	apt-get "${APT[@]}" download "linux-source-$SERIES" ||
		die "no linux-source-$SERIES in $SUITE"
	exec 9>&-
	dpkg -x "linux-source-$SERIES"_*.deb .
	tar -xf usr/src/linux-source-*.tar.xz -C "$tree" --strip-components=1 --wildcards \
		--exclude='*/drivers/infiniband/ulp/rtrs/[!KM]*' \
		--exclude='*/drivers/block/rnbd/[!KM]*' --exclude='*/drivers/gpu/drm/amd/*.[ch]'
	cd "$top"
	rm -rf deb
	# a restriction that later kernels lifted: frame pointers make stack traces that the filter
	# can trust
	sed -i '/^config FAULT_INJECTION_STACKTRACE_FILTER/,/^config/{/depends on !X86_64/d}' \
		"$tree/lib/Kconfig.debug"
	touch "$tree/.unpacked"
}

configure() {
	local line lost=()

	cat "${parts[@]}" > "$top/fragment"
	make -s -C "$tree" ARCH=x86_64 KCONFIG_ALLCONFIG="$top/fragment" allnoconfig \
		> "$top/config.log" 2>&1 ||
		die "allnoconfig failed, see $top/config.log"
	while read -r line; do
		grep -qxF -- "$line" "$tree/.config" || lost+=("$line")
	done < <(grep ^CONFIG_ "$top/fragment")
	[ ${#lost[@]} -eq 0 ] || die "no effect on $SERIES: ${lost[*]}"
	if grep -E '^CONFIG_(INFINIBAND_RTRS|BLK_DEV_RNBD)' "$tree/.config"; then
		die "the in-kernel rtrs or rnbd is on"
	fi
}

build_image() {
	local key release out

	key=$(cat "${parts[@]}" | sha1sum)
	if [ -e "$stamp" ] && [ "$(sed -n 2p "$stamp")" = "$key" ] &&
	   [ -e "$CACHE/kernels/$(sed -n 1p "$stamp")/boot/vmlinuz-$(sed -n 1p "$stamp")" ]; then
		return
	fi
	packages
	unpack
	configure
	say "building the $variant kernel, a quarter of an hour to an hour: $top/make.log"
	nice -n 10 make -C "$tree" ARCH=x86_64 -j"$jobs" bzImage modules > "$top/make.log" 2>&1 ||
		die "the build failed: $(grep -m 3 -E 'error:|\*\*\*' "$top/make.log")"
	release=$(make -s -C "$tree" ARCH=x86_64 kernelrelease)
	out=$CACHE/kernels/$release
	rm -rf "$out.new"
	mkdir -p "$out.new/boot"
	make -s -C "$tree" ARCH=x86_64 INSTALL_MOD_PATH="$out.new" modules_install \
		> "$top/install.log" 2>&1 ||
		die "modules_install failed, see $top/install.log"
	rm -f "$out.new/lib/modules/$release"/{build,source}
	cp "$tree/.config" "$out.new/boot/config-$release"
	cp "$tree/System.map" "$out.new/boot/System.map-$release"
	cp "$tree/arch/x86/boot/bzImage" "$out.new/boot/vmlinuz-$release"
	rm -rf "$out"
	mv "$out.new" "$out"
	printf '%s\n%s\n' "$release" "$key" > "$stamp"
}

build_modules() {
	local dir=$REPO/build/modules/$RELEASE

	mkdir -p "$dir"
	tar -C "$REPO" -cf - --exclude='*.o' --exclude='*.ko' --exclude='*.mod*' \
		--exclude='.*.cmd' --exclude='config.h*' --exclude=modules.order \
		--exclude=Module.symvers "${ours[@]}" | tar -C "$dir" -xf -
	# the kernel itself has UBSAN's handlers only: what it would say of the stock code is not
	# ours to fix
	nice -n 10 make -C "$dir" KDIR="$tree" ARCH=x86_64 TESTS=debug UBSAN_SANITIZE=y \
		JOBS="$jobs" modules > "$dir/make.log" 2>&1 ||
		die "our modules do not build: $(grep -m 3 -E 'error:|\*\*\*' \
			"$dir/make.log") ($dir/make.log)"
}

# a lock of its own: others may fill the cache during the long build
mkdir -p "$top"
exec 8> "$top/.lock"
flock 8
build_image
RELEASE=$(sed -n 1p "$stamp")
[ "$what" != modules ] || build_modules
echo "$RELEASE"
