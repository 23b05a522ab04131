# SPDX-License-Identifier: GPL-2.0-only
# Sourced: $modules_source, what a build of the drivers and of the modules of the tests takes, by
# its path in the tree. The modules are those of the list in Kbuild.
modules_source=(Kbuild Makefile compat ibtrs ibnbd)
for modules_dir in $(sed -n 's/^tests-m := //p' "$(dirname "${BASH_SOURCE[0]}")/../Kbuild"); do
	modules_source+=("tests/$modules_dir")
done
[ ${#modules_source[@]} -gt 5 ] || { echo "modules.sh: Kbuild has no list tests-m" >&2; exit 1; }
