/* SPDX-License-Identifier: GPL-2.0-only */
/* The memory that a client writes to, and its keys. */
#ifndef IBTRS_SERVER_CHUNK_H
#define IBTRS_SERVER_CHUNK_H

#include <linux/list.h>
#include <rdma/ib_verbs.h>
#include <ibtrs/addr.h>
#include "ibtrs/proto/wire.h"

struct ibtrs_srv_path;

/**
 * struct ibtrs_srv_chunks - the chunks of one path
 * @entry: in the shelf, while no path uses them
 * @expires: jiffies; end of the time in the shelf
 * @peer: the only one to get them from the shelf, with the two uuids and @key (or none)
 * @nr: how many of @mem are there
 * @size: bytes of each
 * @borrowers: further paths that use them, which only a test asks for (debug.h); under the shelf's
 *	lock
 * @trimmed: how many of @mem were freed before the others, and are NULL
 * @mem: each physically contiguous
 */
struct ibtrs_srv_chunks {
	struct list_head entry;
	unsigned long expires;
	struct ibtrs_addr peer;
	u8 session_uuid[IBTRS_UUID_LEN];
	u8 path_uuid[IBTRS_UUID_LEN];
	char key[IBTRS_KEY_NAME_LEN];
	u32 nr;
	u32 size;
	u32 borrowers;
	u32 trimmed;
	void *mem[];
};

/**
 * struct ibtrs_srv_mrs - how a device sees the chunks of a path
 * @mr: the MRs
 * @dma: address of each chunk
 * @nr: MRs; they have the same number of chunks each
 * @mapped: chunks that have a DMA address
 */
struct ibtrs_srv_mrs {
	struct ib_mr **mr;
	u64 *dma;
	u32 nr;
	u32 mapped;
};

/* Bytes of max_memory_mb. */
u64 ibtrs_srv_chunk_limit(void);
/*
 * Charge @bytes against max_memory_mb, for chunks and queues of clients that are let in. False:
 * there is no room; the caller must refuse.
 * @path: for whose chunks something may go that lies in the shelf: of its own client, if that is
 *	known, and of others, if it has little itself. May be NULL.
 */
bool ibtrs_srv_chunk_charge(u64 bytes, const struct ibtrs_srv_path *path);
/* The same, room or not. */
void ibtrs_srv_chunk_charge_known(u64 bytes);
void ibtrs_srv_chunk_uncharge(u64 bytes);

/* Chunks for a path, from the shelf or new and zeroed. -ENOMEM and a reason. */
int ibtrs_srv_chunk_get(struct ibtrs_srv_path *path, const char **why);
/* Nobody uses them any more. @keep: the client may come back soon. Idempotent. */
void ibtrs_srv_chunk_put(struct ibtrs_srv_path *path, bool keep);
/* DMA addresses and MRs on the path's device. */
int ibtrs_srv_chunk_map(struct ibtrs_srv_path *path, const char **why);
/* idempotent; also what a failed map left */
void ibtrs_srv_chunk_unmap(struct ibtrs_srv_path *path);
/* Registers all MRs on the service connection. Sleeps, bounded. */
int ibtrs_srv_chunk_register(struct ibtrs_srv_path *path, const char **why);
/* Fills @rsp, of ibtrs_msg_info_rsp_size(mrs.nr) bytes. 0 or -ENOMEM. */
int ibtrs_srv_chunk_describe(const struct ibtrs_srv_path *path, struct ibtrs_wire_info_rsp *rsp);

/* The WR that gives the client a new right to a chunk; @mr has a fresh key. */
static inline void ibtrs_srv_chunk_reg_wr(struct ib_reg_wr *wr, struct ib_mr *mr,
					  struct ib_cqe *cqe)
{
	*wr = (struct ib_reg_wr){
		.wr.wr_cqe	= cqe,
		.wr.opcode	= IB_WR_REG_MR,
		.mr		= mr,
		.key		= mr->rkey,
		.access		= IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};
}

/* A session has ended properly: nobody comes back for what is in the shelf of it. */
void ibtrs_srv_chunk_forget(const struct ibtrs_srv_session *s);
/*
 * Close work of a lingering path, whose device is released: chunks go that no op uses. The rest
 * goes with the last op.
 */
void ibtrs_srv_chunk_trim(struct ibtrs_srv_path *path);
/* Free what nobody uses. */
void ibtrs_srv_chunk_empty_shelf(void);
/* The same, for good: no path is left. */
void ibtrs_srv_chunk_stop(void);

#endif
