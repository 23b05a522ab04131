#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# setup.sh: what `make bench` and `make bench-lines` need beside the rig: iSCSI's programs for the
# iSER peer, gnuplot for the plots, faketime's library for a slow clock.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
tests/vm/setup.sh
missing=()
for p in open-iscsi gnuplot-nox libfaketime; do
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] ||
		missing+=("$p")
done
[ ${#missing[@]} = 0 ] ||
	apt-get -o DPkg::Lock::Timeout=300 -qq install -y --no-install-recommends "${missing[@]}" \
		> /dev/null
