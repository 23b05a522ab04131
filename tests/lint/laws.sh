#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# laws.sh: each patch of tests/laws applies where its context says, and nowhere else.
cd "$(dirname "$0")/../.." || exit 1
bad=0
for p in tests/laws/L*.patch; do
	if ! out=$(patch --dry-run -F0 -s -f -p1 < "$p" 2>&1); then
		echo "$p: ${out##*$'\n'}"
		bad=1
	fi
done
exit $bad
