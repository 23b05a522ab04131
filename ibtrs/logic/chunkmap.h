/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Slot -> (address, key) of the server's chunk, from the descriptors of INFO_RSP (protocol 2.4,
 * E-36).
 */
#ifndef IBTRS_LOGIC_CHUNKMAP_H
#define IBTRS_LOGIC_CHUNKMAP_H

#include "ibtrs/proto/msg.h"

struct ibtrs_chunk {
	u64 addr;
	u32 rkey;
};

int ibtrs_chunkmap_build(const struct ibtrs_wire_desc *desc, u32 sg_cnt,
			 const struct ibtrs_limits *l, struct ibtrs_chunk *map, const char **why);
u32 ibtrs_chunkmap_mr_count(u32 queue_depth, u32 chunks_per_mr_max);

/**
 * ibtrs_grant_check() - can a client work with what a server grants (E-34)?
 * @l: what it grants; proto/msg.c has checked the numbers against each other
 * @nr_conns: connections of the path
 * @page_size: of the client's memory: the block layer does not take requests below a page
 * @why: reason of a refusal
 *
 * Return: 0 or -EPROTO.
 */
int ibtrs_grant_check(const struct ibtrs_limits *l, u32 nr_conns, u32 page_size, const char **why);

#endif
