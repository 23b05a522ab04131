#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# library.sh: libibtrs builds without a warning, exports what its header declares and nothing else,
# and an installed copy is enough to compile and run the example.
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
# shellcheck disable=SC2046 # words
gcc -Wall -Wextra -Werror -o "$to/example" docs/examples/libibtrs.c \
	$(pkg-config --cflags --libs libibtrs) -pthread
said=$(LD_LIBRARY_PATH=$lib timeout 20 "$to/example")
[ "$said" = $'session example says: hello, server\nthe server says: hello, client' ] || {
	echo "the example says: $said" >&2
	exit 1
}
