#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A slim static fio from Debian's source package, for the guests: the packaged one drags in 64
# shared libraries (84 MB). Plain x86-64, since an emulated CPU has fewer instructions than the
# host.
set -eu -o pipefail
. "$(dirname "$0")/env.sh"

out=$CACHE/fio
lock_cache
[ -x "$out" ] && exit 0

suite=$(own_suite)
apt_private "$suite"
work=$CACHE/src/fio
rm -rf "$work"
mkdir -p "$work"
cd "$work"
say "fetching and building fio"
apt-get "${APT[@]}" source fio > source.log 2>&1 ||
	die "apt-get source fio failed: $(tail -n 3 source.log)"
cd fio-*/
off=(http rbd rados gfapi numa rdma pmem libnfs xnvme native)
./configure "${off[@]/#/--disable-}" --extra-cflags=-march=x86-64 --build-static \
	> ../configure.log 2>&1 ||
	die "fio does not configure, see $work/configure.log"
make -j2 LDFLAGS=-static fio > ../make.log 2>&1 || die "fio does not build, see $work/make.log"
./fio --enghelp | grep -q libaio || die "fio was built without libaio"
./fio --enghelp | grep -q io_uring || say "fio was built without io_uring"
strip -o "$out.new" fio
mv "$out.new" "$out"
cd "$CACHE"
rm -rf "$work"
