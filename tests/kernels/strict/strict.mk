# SPDX-License-Identifier: GPL-2.0-only
#
# As strict as any release from 5.10 on, on a kernel at hand: appended to the Kbuild of the copy
# that matrix.sh builds. What is asked for here was on in some release, or in W=1 of one; flags that
# a compiler does not know are left out.

strict ?= $(src)/tests/kernels/strict

# our minmax.h before the kernel's
NOSTDINC_FLAGS += -I$(strict)/include

strict-flags := -Wextra -Wformat=2 -Wformat-security -Wformat-overflow=2 -Wformat-truncation=2 \
	-Wstringop-truncation -Wstringop-overflow=4 -Wrestrict -Warray-bounds \
	-Wunused -Wunused-but-set-variable -Wunused-const-variable -Wdangling-pointer \
	-Wcast-function-type -Wenum-conversion -Wenum-compare -Wenum-int-mismatch \
	-Wmissing-prototypes -Wmissing-declarations -Wmissing-format-attribute \
	-Wold-style-definition -Wold-style-declaration -Wempty-body -Wpacked-not-aligned \
	-Wvla -Wimplicit-fallthrough=5 -Wflex-array-member-not-at-end -fstrict-flex-arrays=3 \
	-Wunterminated-string-initialization
# distributions say 1024 (Ubuntu) to 2048
strict-flags += -Wframe-larger-than=1024
# part of -Wextra, and on in no release
strict-flags += -Wno-unused-parameter -Wno-missing-field-initializers -Wno-sign-compare \
	-Wno-type-limits

subdir-ccflags-y += $(foreach f,$(strict-flags),$(call cc-option,$(f))) -include $(strict)/strict.h
