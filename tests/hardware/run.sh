#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# run.sh SERVER CLIENT: what ibnbd does on two hosts with RDMA adapters, beside what one would use
# instead; --help and docs/hardware.md say more. This host needs ssh to both, and python3.
set -eu -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
for p in ssh python3; do
	command -v $p > /dev/null || { echo "run.sh: $p is not installed here" >&2; exit 1; }
done
exec env PYTHONDONTWRITEBYTECODE=1 python3 "$here/kit/cli.py" "$@"
