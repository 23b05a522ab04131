/* SPDX-License-Identifier: GPL-2.0-only */
/* ibtrs-peer: what its verbs have in common. */
#ifndef IBTRS_PEER_H
#define IBTRS_PEER_H

#include "ibtrs/user/libibtrs.h"

#define PEER_MAGIC	0x52454550u	/* "PEER" */
#define PEER_CALL_MS	10000
#define PEER_DEPTH	256u		/* requests at a time, at most */

struct peer_hdr {
	uint32_t magic;
	uint32_t reserved;
	uint64_t offset;
};

struct peer {
	struct ibtrs_ctx *ctx;
	struct ibtrs_clt *clt;
	struct ibtrs_q *q;
	struct ibtrs_clt_info info;
	bool json;
	bool in_place;
};

/* Says that @what has failed. Return: the exit status. */
int fail(const char *what, int err);
/* With --in-place the adapter uses @data itself. Return: 0 or the exit status. */
int in_place(struct peer *p, void *data, size_t len, enum ibtrs_io_dir dir);
/* Sends @nr messages, and says how long the answers took. Return: the exit status. */
int ping(struct peer *p, uint64_t nr);
/**
 * load() - move the same blocks for a while
 * @word: read or write
 * @seconds: how long
 * @depth: how many requests at a time
 * @size: bytes of each
 *
 * Says how many requests there were, and how long they took. Return: the exit status.
 */
int load(struct peer *p, const char *word, uint64_t seconds, uint64_t depth, uint64_t size);

#endif
