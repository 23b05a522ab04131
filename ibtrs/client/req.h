/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A slot in flight: build, post, complete, move to another path, park.
 *
 * state says who owns the record, and changes by cmpxchg:
 *	IDLE	none; the user may submit
 *	BUSY	the one that set BUSY: submit, completion, the walk after a drain, replay, abort
 *	POSTING	the poster; with a plug, until the plug is pulled
 *	EARLY	the poster, which finds the answer in `early` after posting
 *	POSTED	the connection: a completion of this very connection, or the walk after its drain,
 *		may take it
 *	ANSWERED as POSTED; the answer is there, but the adapter may still use the pages: the write
 *		that sent them, or the local invalidation of the read key, is not complete
 *	PARKED	the session: replay or abort may take it
 */
#ifndef IBTRS_CLIENT_REQ_H
#define IBTRS_CLIENT_REQ_H

#include <linux/atomic.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <ibtrs/clt.h>

struct ibtrs_clt;
struct ibtrs_clt_conn;
struct ibtrs_clt_path;

enum ibtrs_clt_req_state {
	IBTRS_CLT_REQ_IDLE,
	IBTRS_CLT_REQ_BUSY,
	IBTRS_CLT_REQ_POSTING,
	IBTRS_CLT_REQ_EARLY,
	IBTRS_CLT_REQ_POSTED,
	IBTRS_CLT_REQ_ANSWERED,
	IBTRS_CLT_REQ_PARKED,
};

/*
 * The parts of one message of a request. For a plugged request they are in the record until the
 * plug is pulled.
 */
struct ibtrs_clt_wrs {
	struct ib_reg_wr reg;
	struct ib_rdma_wr rdma;
	struct ib_sge hdr;
};

/* Mostly used by one CPU (slot.c), so no two records share a cache line. */
struct ibtrs_clt_req {
	/* constant */
	u32 slot;
	/* only for the user's slots: this bit in *free is set while the slot is free */
	u32 bit;
	unsigned long *free;
	void *hdr;
	void *bounce;			/* IBTRS_CLT_BOUNCE_SIZE */
	struct ib_sge *sge;

	/* owner */
	atomic_t state;
	u32 cpu;			/* CPU that submitted the request */
	struct ibtrs_clt_io *io;
	struct ibtrs_clt_conn *conn;	/* posted on */
	u64 token;			/* of the last submission of this slot (protocol 8.2) */
	u32 life;			/* of the session in which the token counts */
	u32 gen;			/* session generation it was posted in */
	int err;			/* error of the answer, while ANSWERED */
	int nr_dma;			/* mapped entries of io->sgl, 0 = not mapped */
	bool mr;			/* the slot's MR is registered */
	bool bounced;
	u8 behind;			/* how often it was not executed because of its token */
	struct {
		int err;
		u32 byte_len;
		/* written by the answering connection while POSTING, then read by the poster */
	} early;
	/* what the end of the request waits for: the completion of cqe, and a write's answer */
	atomic_t awaits;
	struct ib_cqe cqe;		/* of the last work request with pages, or the LOCAL_INV */
	struct ibtrs_clt_wrs wrs;
} ____cacheline_aligned_in_smp;

/*
 * post.c: posts a mapped request with its token on @conn, or puts it in @plug (may be NULL).
 * Return: 0; 1: posted although there is a plug; -EAGAIN: no room, and nothing was posted; else
 * something may have been posted, and the caller must fail the path.
 */
int ibtrs_clt_post(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path,
		   struct ibtrs_clt_conn *conn, struct ibtrs_clt_plug *plug);
/* After the drain of @path: every request on it goes to another path, or is parked. Drain work. */
void ibtrs_clt_req_walk(struct ibtrs_clt_path *path);
/* Send again the requests in ibtrs' own slots that were not executed because of their tokens. */
void ibtrs_clt_req_again_work(struct work_struct *work);

#endif
