# SPDX-License-Identifier: GPL-2.0-only
#
# Which RDMA stack: the kernel's own, or a vendor's (OFED, DOCA) that replaces its modules. Modules
# built against the wrong one do not load ("disagrees about version of symbol ib_*"). A vendor's
# headers and symbol versions lie in /usr/src/ofa_kernel/ARCH/RELEASE, or in .../RELEASE, or in
# .../default, a link that counts only if it leads to this kernel's.
#
#   OFED=DIR   take this one    OFED=no   take the kernel's own
#
# Included by the top Kbuild. Its headers come before the kernel's for everything, the probes too.

ofed-root := $(or $(OFED_ROOT),/usr/src/ofa_kernel)
# Debian's headers say another KERNELRELEASE than the kernel does
ofed-release := $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' \
	$(objtree)/include/generated/utsrelease.h)
ofed-dirs := $(ofed-root)/$(UTS_MACHINE) $(ofed-root)
ofed-is-one = $(and $(wildcard $(1)/Module.symvers),$(wildcard $(1)/include/rdma/ib_verbs.h),$(1))

ifeq ($(OFED),no)
ofed :=
else ifneq ($(OFED),)
ofed := $(call ofed-is-one,$(OFED))
$(if $(ofed),,$(error OFED=$(OFED): no Module.symvers and include/rdma/ib_verbs.h there))
else
ofed := $(firstword $(foreach d,$(ofed-dirs),$(call ofed-is-one,$(d)/$(ofed-release))))
ifeq ($(ofed),)
ofed := $(if $(filter $(ofed-release),\
	$(notdir $(realpath $(ofed-root)/default))),$(call ofed-is-one,$(ofed-root)/default))
endif
endif

ofed-line := IBNBD: RDMA stack: \
	$(if $(ofed),vendor's in $(ofed),the kernel's own in $(abspath $(objtree)))
ifneq ($(filter %/Makefile.build,$(MAKEFILE_LIST)),)
$(info $(ofed-line))
endif

ifneq ($(ofed),)
NOSTDINC_FLAGS += -I$(ofed)/include -I$(ofed)/include/uapi \
	$(if $(wildcard $(ofed)/include/linux/compat-2.6.h),-include \
	  $(ofed)/include/linux/compat-2.6.h)
KBUILD_EXTRA_SYMBOLS += $(ofed)/Module.symvers
endif
