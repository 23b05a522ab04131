// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#include "ibtrs/logic/chunkmap.h"
#include "ibtrs/proto/imm.h"
#include "ibtrs/proto/msg.h"

static int refuse(const char **why, const char *text)
{
	if (why)
		*why = text;
	return -EPROTO;
}

/*
 * Address and key of every slot's chunk.
 * @desc: descriptors as received in INFO_RSP, @sg_cnt of them
 * @map: @l->queue_depth entries to fill; undefined after a refusal
 *
 * Return: 0 or -EPROTO.
 */
int ibtrs_chunkmap_build(const struct ibtrs_wire_desc *desc, u32 sg_cnt,
			 const struct ibtrs_limits *l, struct ibtrs_chunk *map, const char **why)
{
	u32 i, slot = 0;

	if (!l->queue_depth || !l->chunk_size)
		return refuse(why, "queue depth or chunk size is 0");
	/* a slot and an offset in its chunk: protocol 2.3 */
	if (ibtrs_bits(l->queue_depth) + ibtrs_bits(l->chunk_size) > IBTRS_IMM_PAYLOAD_BITS)
		return refuse(why, "queue depth and chunk size do not fit the immediate");
	if (!sg_cnt)
		return refuse(why, "no chunk descriptors");
	if (sg_cnt > l->queue_depth || l->queue_depth % sg_cnt)
		return refuse(why, "number of chunk descriptors does not divide the queue depth");

	for (i = 0; i < sg_cnt; i++) {
		struct ibtrs_desc d;
		u64 end;

		ibtrs_msg_desc_decode(&desc[i], &d);
		if (!d.len || d.len % l->chunk_size)
			return refuse(why, "chunk descriptor is not a whole number of chunks");
		if (check_add_overflow(d.addr, (u64)d.len, &end))
			return refuse(why, "chunk descriptor wraps around the address space");
		if (d.len / l->chunk_size > l->queue_depth - slot)
			return refuse(why, "descriptors hold more chunks than the queue depth");
		for (; d.len; d.len -= l->chunk_size, d.addr += l->chunk_size, slot++) {
			map[slot].addr = d.addr;
			map[slot].rkey = d.rkey;
		}
	}
	if (slot != l->queue_depth)
		return refuse(why, "descriptors hold fewer chunks than the queue depth");
	return 0;
}

/**
 * ibtrs_chunkmap_mr_count() - how many MRs cover the chunks of a path
 * @queue_depth: chunks
 * @chunks_per_mr_max: what one MR of the device can take
 *
 * All MRs have the same number of chunks, because clients refuse anything else.
 *
 * Return: the smallest such number of MRs, 0 when not even one chunk fits an MR.
 */
u32 ibtrs_chunkmap_mr_count(u32 queue_depth, u32 chunks_per_mr_max)
{
	u32 n;

	if (!queue_depth || !chunks_per_mr_max)
		return 0;
	n = (queue_depth - 1) / chunks_per_mr_max + 1;
	while (queue_depth % n)
		n++;
	return n;
}

/* each slot costs the client 10 KiB and more, in each session */
#define IBTRS_GRANT_DEPTH	8192u
/*
 * Each connection has room for all slots in its queues: on soft-RoCE some 2 KiB for each of them.
 * The default depth of 512 is within this for 512 connections.
 */
#define IBTRS_GRANT_QUEUED	(1u << 18)

int ibtrs_grant_check(const struct ibtrs_limits *l, u32 nr_conns, u32 page_size, const char **why)
{
	if (l->queue_depth < 2)
		return refuse(why, "the server grants a queue depth of 1: raise its sess_queue_depth");
	if (l->queue_depth > IBTRS_GRANT_DEPTH)
		return refuse(why, "the server grants more than 8192 slots, for each of which memory would be spent here: lower its sess_queue_depth");
	if ((u64)l->queue_depth * nr_conns > IBTRS_GRANT_QUEUED)
		return refuse(why, "the server grants more slots than are affordable on so many connections: lower its sess_queue_depth, or max_conns of ibtrs-client here");
	if (l->max_io_size < page_size)
		return refuse(why, "the server's chunks are smaller than a page of this machine: raise its max_chunk_size");
	return 0;
}
