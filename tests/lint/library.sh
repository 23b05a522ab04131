#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# library.sh: libibtrs and libibnbd build without a warning, with rdma-core and without, export what
# their headers and version scripts declare and nothing else, and have a manual of each function and
# of each verb of ibtrs-peer. An installed copy is enough to compile and run the examples.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
to=$PWD/build/lint/lib
rm -rf "$to/root"
make --no-print-directory -s lib-install WERROR=1 O="$to/obj" DESTDIR="$to/root" PREFIX=/usr \
	> /dev/null
lib=$to/root/usr/lib
make --no-print-directory -s -C ibtrs/user WERROR=1 RDMA= O="$to/streams" \
	"$to/streams/libibtrs.so.0"
said=$(sed -n 's/^IBTRS_API.*\b\(ibtrs_[a-z_0-9]*\)(.*/\1/p' ibtrs/user/libibtrs.h | sort)
same() {	# WHAT, which names the functions of stdin
	diff <(echo "$said") <(sort) || {
		echo "$1 and its header name different functions" >&2
		exit 1
	}
}
links() {	# LIBRARY
	find "$to/root/usr/share/man/man3" -lname "$1.3" -printf '%P\n' | sed 's/\.3$//' |
		same "the links to $1(3)"
}
for so in "$lib/libibtrs.so.0" "$to/streams/libibtrs.so.0"; do
	nm -D --defined-only --without-symbol-versions "$so" | sed -n 's/.* T //p' | same "$so"
done
sed -n 's/^\t\(ibtrs_[a-z_0-9]*\);$/\1/p' ibtrs/user/libibtrs.map | same libibtrs.map
! readelf -d "$to/streams/libibtrs.so.0" | grep -E 'NEEDED.*(verbs|rdmacm)' || {
	echo "without rdma-core it needs rdma-core" >&2
	exit 1
}
if command -v scdoc > /dev/null; then
	links libibtrs
	page=$(MANWIDTH=500 man -E UTF-8 -l "$to/root/usr/share/man/man3/libibtrs.3")
	grep -oE '[ *](ibtrs_[a-z_0-9]*)\(([a-z_]+ |void)' <<< "$page" |
		sed 's/^.\(.*\)(.*/\1/' | same "libibtrs(3)"
	# what the header says of options is on the page, too
	grep -q '^ *q_depth$' <<< "$page" && grep -qF 'enum ibtrs_srv_auth {' <<< "$page"
fi
verbs=$({ LD_LIBRARY_PATH=$lib "$to/root/usr/bin/ibtrs-peer" 2>&1 || :; } |
	sed -n 's/^.* ibtrs-peer \([a-z]*\) .*/\1/p' | sort)
[ -n "$verbs" ]
diff <(echo "$verbs") <(sed -n 's/^\*\([a-z]*\)\*$/\1/p' docs/man/ibtrs-peer.1.scd | sort) || {
	echo "ibtrs-peer(1) and the command's own words name different verbs" >&2
	exit 1
}
export PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$to/root
said=$(sed -n 's/^IBNBD_API.*\b\(ibnbd_[a-z_]*\)(.*/\1/p' ibnbd/user/libibnbd.h | sort)
nm -D --defined-only --without-symbol-versions "$lib/libibnbd.so.0" | sed -n 's/.* T //p' |
	same libibnbd.so.0
if command -v scdoc > /dev/null; then
	links libibnbd
fi
example() {	# LIBRARY NAME WHAT-IT-SAYS [ARG..]
	local said
	# shellcheck disable=SC2046 # words
	gcc -Wall -Wextra -Werror -o "$to/$2" "docs/examples/$2.c" \
		$(pkg-config --cflags --libs "$1") -pthread
	said=$(LD_LIBRARY_PATH=$lib timeout 20 "$to/$2" "${@:4}" || :)
	[ "$said" = "$3" ] || { echo "docs/examples/$2.c says: $said" >&2; exit 1; }
}
example libibtrs libibtrs $'session example says: hello, server\nthe server says: hello, client'
example libibtrs libibtrs-group 'entry 0: 0 (0 0 0)
entry 1: 0 (0 0 -5)
read: second
entry 1: 0 (-61 -61 0)'
example libibnbd libibnbd 'unix:/nowhere: nothing listens there' db1 unix:/nowhere
