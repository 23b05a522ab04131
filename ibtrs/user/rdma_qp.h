/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* A connection of an adapter: what rdma.c, rdma_send.c, rdma_mem.c and rdma_cm.c share. */
#ifndef IBTRS_USER_RDMA_QP_H
#define IBTRS_USER_RDMA_QP_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include "ibtrs/logic/beat.h"
#include "ibtrs/user/rdma.h"

#define IBTRS_RDMA_WR_SEND	(1ull << 32)	/* in wr_id, with the number of operations */
#define IBTRS_RDMA_SGES		2		/* data, and the headers behind it */

enum ibtrs_rdma_state {
	IBTRS_RDMA_RESOLVING,		/* a client: address, then route */
	IBTRS_RDMA_CONNECTING,		/* CONN_REQ is sent */
	IBTRS_RDMA_ASKED,		/* a server: CONN_REQ has arrived */
	IBTRS_RDMA_UP,
};

enum ibtrs_rdma_fd {			/* in the connection's own epoll set */
	IBTRS_RDMA_FD_CM,
	IBTRS_RDMA_FD_CQ,
	IBTRS_RDMA_FD_PORT,
};

/* Memory that the adapter knows. */
struct ibtrs_rdma_area {
	u8 *base;
	size_t len;
	struct ibv_mr *mr;
};

/* One for each path, so that no peer reaches the memory of another path, whose key it guesses. */
struct ibtrs_rdma_pd {
	struct ibv_pd *pd;
	u32 refs;			/* connections of the path */
};

/**
 * struct ibtrs_rdma - a connection
 * @port: the device once more, for the events of its port; NULL: not watched
 * @ep: epoll set of the event channel, the completion channel and the device's events
 * @set: the epoll set that has @ep; -1: none
 * @pd: NULL: it has no QP yet
 * @depth: requests at a time; 0: a client's service connection
 * @nr_recv, @recv_len: receives, and the bytes of each
 * @sq_free: work requests that fit the send queue
 * @unsignalled: operations since the last one that will complete
 * @watch: of the send queue
 * @fresh: something was posted behind the last probe
 * @sent: something has completed since the last look at the send queue
 * @probing: a probe is posted, and has not completed
 * @msgs: a message to be sent, a first one to be received, then nr_recv small receives
 * @info: for INFO_RSP
 * @slots: headers and data of requests of a client
 * @due: receives that were taken in this turn, and are posted when it ends: that bounds a turn
 * @armed: the completion channel will report the next completion
 * @dirty: completions were taken since it was armed
 * @looked: the descriptors were looked at in this turn
 * @again: the owner comes again before it sleeps, if this turn had something
 * @cm_ready: an event of the CM waits
 * @asked: the CONN_REQ in @priv has not been polled yet
 */
struct ibtrs_rdma {
	struct ibtrs_qp qp;
	enum ibtrs_rdma_state state;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	struct ibtrs_rdma_pd *pd;
	struct ibv_context *port;
	int ep;
	int set;
	u32 depth;
	u32 nr_recv;
	u32 recv_len;
	u32 sq_free;
	u32 unsignalled;
	struct ibtrs_sqwatch watch;
	bool fresh;
	bool sent;
	bool probing;
	struct ibtrs_rdma_area msgs;
	struct ibtrs_rdma_area info;
	struct ibtrs_rdma_area slots;
	u32 nr_slots;
	u32 slot_size;
	u32 *due;
	u32 nr_due;
	bool armed;
	bool dirty;
	bool looked;
	bool again;
	bool cm_ready;
	bool asked;
	u32 priv_len;
	u8 priv[256];
};

static inline struct ibtrs_rdma *ibtrs_rdma_of(struct ibtrs_qp *qp)
{
	return (struct ibtrs_rdma *)qp;
}

/* ---- rdma.c ------------------------------------------------------------- */
extern const struct ibtrs_verbs ibtrs_rdma_verbs;

/* The QP, its completion queue and its receives. @server: the first one may be a message. */
int ibtrs_rdma_qp_create(struct ibtrs_rdma *r, bool server);

/* ---- rdma_send.c -------------------------------------------------------- */
/* That many operations have been sent. */
void ibtrs_rdma_sent(struct ibtrs_rdma *r, u64 wr_id);
/* Of ibtrs_rdma_verbs. */
int ibtrs_rdma_flush(struct ibtrs_qp *qp);
int ibtrs_rdma_check(struct ibtrs_qp *qp, u32 misses, u32 size);

/* ---- rdma_mem.c --------------------------------------------------------- */
const char *ibtrs_rdma_words(int err);
/* Breaks @r with the words for @err. Return: why it is broken. */
int ibtrs_rdma_break(struct ibtrs_rdma *r, int err);
int ibtrs_rdma_area_new(struct ibtrs_rdma *r, struct ibtrs_rdma_area *a, size_t len);
void ibtrs_rdma_area_free(struct ibtrs_rdma_area *a);
struct ibv_sge ibtrs_rdma_area_sge(const struct ibtrs_rdma_area *a, size_t at, u32 len);
/* Where @data is for the adapter, if it lies in the regions of @r. NULL: it does not. */
const struct ibtrs_region *ibtrs_rdma_in_place(const struct ibtrs_rdma *r, const void *data,
					       size_t len, u64 *addr);
/* Of ibtrs_rdma_verbs. */
int ibtrs_rdma_slots(struct ibtrs_qp *qp, u32 nr, u32 size);
void ibtrs_rdma_expose(struct ibtrs_qp *qp, u32 i, void *data, struct ibtrs_desc *desc);
void ibtrs_rdma_conceal(struct ibtrs_qp *qp, u32 i, void *data, u32 len);
int ibtrs_rdma_own(struct ibtrs_qp *qp, struct ibtrs_region *g, bool remote, const char **why);
int ibtrs_rdma_reg(struct ibtrs_qp *qp, struct ibtrs_regions *regions, u32 i, void *base, u32 len);
void ibtrs_rdma_dereg(struct ibtrs_region *g);

/* ---- rdma_cm.c ---------------------------------------------------------- */

/* Takes one event. Return: 1: @wc is filled; 0; or why the connection is broken. */
int ibtrs_rdma_cm_event(struct ibtrs_rdma *r, struct ibtrs_wc *wc);
bool ibtrs_rdma_ends(struct ibtrs_qp *qp, u8 own[IBTRS_GID_LEN], u8 peer[IBTRS_GID_LEN]);
/* Posts @wr, which is the answer to a connection request. */
int ibtrs_rdma_cm_answer(struct ibtrs_rdma *r, const struct ibtrs_wr *wr);

#endif
