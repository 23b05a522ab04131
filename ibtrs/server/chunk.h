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
 * @peer: only this address gets them from the shelf, with the two uuids and @key (or none)
 * @nr: number of entries in @mem
 * @size: bytes of each
 * @borrowers: number of other paths that use them, only in a test (debug.h); under shelf_lock
 * @trimmed: how many of @mem were freed before the others, and are NULL
 * @queues: bytes of the queues of the path that had them, still charged: it finds them again when
 *	it comes back; under shelf_lock while in the shelf
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
	u64 queues;
	void *mem[];
};

/**
 * struct ibtrs_srv_mrs - how a device sees the chunks of a path
 * @mr: the MRs
 * @dma: address of each chunk
 * @nr: number of MRs; each has the same number of chunks
 * @mapped: number of chunks that have a DMA address
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
 * Charge the queues of @path, which is let in, against max_memory_mb. If the client is known,
 * chunks in the shelf may be freed to make room. What lies in the shelf with the chunks of @path is
 * charged already: a client that comes back must not be refused for what it had. False: there is no
 * room; the caller must refuse.
 */
bool ibtrs_srv_chunk_charge_queues(const struct ibtrs_srv_path *path);
/* The queues of @path are gone: they stay charged with its chunks, if it has any. */
void ibtrs_srv_chunk_reserve_queues(const struct ibtrs_srv_path *path);

/* Chunks for a path, from the shelf or new and zeroed. -ENOMEM and a reason. */
int ibtrs_srv_chunk_get(struct ibtrs_srv_path *path, const char **why);
/*
 * Nothing uses the chunks of @path any more. @keep: into the shelf, the client may come back soon;
 * else free them. Idempotent.
 */
void ibtrs_srv_chunk_put(struct ibtrs_srv_path *path, bool keep);
/* DMA addresses and MRs on the path's device. */
int ibtrs_srv_chunk_map(struct ibtrs_srv_path *path, const char **why);
/* idempotent; also cleans up after a failed map */
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

/*
 * A session has ended properly: frees its chunks in the shelf, because no path comes back for them.
 */
void ibtrs_srv_chunk_forget(const struct ibtrs_srv_session *s);
/*
 * Close work of a lingering path, after its device is released: frees the chunks that no op uses.
 * The others are freed when the last op has ended.
 */
void ibtrs_srv_chunk_trim(struct ibtrs_srv_path *path);
/* No path is left: frees all chunks in the shelf. */
void ibtrs_srv_chunk_stop(void);

#endif
