#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# library.sh: libibtrs builds without a warning, exports what its header declares and nothing else,
# and an installed copy is enough to compile and run the examples.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
to=$PWD/build/lint/lib
rm -rf "$to/root"
make --no-print-directory -s lib-install WERROR=1 O="$to/obj" DESTDIR="$to/root" PREFIX=/usr \
	> /dev/null
lib=$to/root/usr/lib
said=$(sed -n 's/^IBTRS_API.*\b\(ibtrs_[a-z_]*\)(.*/\1/p' ibtrs/user/libibtrs.h | sort)
has=$(nm -D --defined-only --without-symbol-versions "$lib/libibtrs.so.0" |
	sed -n 's/.* T //p' | sort)
diff <(echo "$said") <(echo "$has") || { echo "libibtrs.so.0 exports something else" >&2; exit 1; }
export PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$to/root
example() {	# NAME WHAT-IT-SAYS
	local said
	# shellcheck disable=SC2046 # words
	gcc -Wall -Wextra -Werror -o "$to/$1" "docs/examples/$1.c" \
		$(pkg-config --cflags --libs libibtrs) -pthread
	said=$(LD_LIBRARY_PATH=$lib timeout 20 "$to/$1")
	[ "$said" = "$2" ] || { echo "docs/examples/$1.c says: $said" >&2; exit 1; }
}
example libibtrs $'session example says: hello, server\nthe server says: hello, client'
example libibtrs-group 'entry 0: 0 (0 0 0)
entry 1: 0 (0 0 -5)
read: second
entry 1: 0 (-61 -61 0)'
