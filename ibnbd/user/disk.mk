# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#
# What libibnbd is built from, beside libibtrs.
DISK_SRC := $(wildcard $(TOP)/ibnbd/user/*.c) \
	    $(addprefix $(TOP)/ibnbd/logic/,access.c dev_sm.c errword.c kept.c limits.c)
