# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#
# What libibtrs is built from: with rdma-core's headers (libibverbs-dev, librdmacm-dev) it has RDMA,
# without them, or with RDMA=, streams alone. Keys take nettle (nettle-dev), TLS of
# streams takes gnutls (libgnutls28-dev).
RDMA ?= $(shell $(CC) -E -include rdma/rdma_cma.h -x c /dev/null >/dev/null 2>&1 && echo 1)
USER_RDMA := rdma.c rdma_send.c rdma_mem.c rdma_cm.c
USER_SRC := $(filter-out $(addprefix %/,$(if $(RDMA),rdma_none.c,$(USER_RDMA))), \
	    $(wildcard $(TOP)/ibtrs/user/*.c))
USER_LIBS := $(if $(RDMA),-lrdmacm -libverbs) -lgnutls -lnettle -pthread
