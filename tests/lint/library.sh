#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# library.sh: libibtrs and libibnbd build without a warning, export what their headers declare and
# nothing else, and an installed copy is enough to compile and run the examples.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
to=$PWD/build/lint/lib
rm -rf "$to/root"
make --no-print-directory -s lib-install WERROR=1 O="$to/obj" DESTDIR="$to/root" PREFIX=/usr \
	> /dev/null
lib=$to/root/usr/lib
for l in ibtrs ibnbd; do
	said=$(sed -n "s/^${l^^}_API.*\\b\\(${l}_[a-z_]*\\)(.*/\\1/p" $l/user/lib$l.h | sort)
	has=$(nm -D --defined-only --without-symbol-versions "$lib/lib$l.so.0" |
		sed -n 's/.* T //p' | sort)
	diff <(echo "$said") <(echo "$has") || {
		echo "lib$l.so.0 exports something else" >&2
		exit 1
	}
done
export PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$to/root
# shellcheck disable=SC2046 # words
gcc -Wall -Wextra -Werror -o "$to/example" docs/examples/libibtrs.c \
	$(pkg-config --cflags --libs libibtrs) -pthread
said=$(LD_LIBRARY_PATH=$lib timeout 20 "$to/example")
[ "$said" = $'session example says: hello, server\nthe server says: hello, client' ] || {
	echo "the example says: $said" >&2
	exit 1
}
# shellcheck disable=SC2046 # words
gcc -Wall -Wextra -Werror -o "$to/example" docs/examples/libibnbd.c \
	$(pkg-config --cflags --libs libibnbd)
said=$(LD_LIBRARY_PATH=$lib timeout 20 "$to/example" db1 unix:/nowhere) && exit 1
[ "$said" = "unix:/nowhere: No such file or directory" ] || {
	echo "the example says: $said" >&2
	exit 1
}
