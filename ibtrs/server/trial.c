// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trials (protocol.md 8.4): a client asks whether packets of full size come through, before it
 * sends requests over a path.
 *
 * The data of a trial lie in a chunk of the path and are sent back as they are. No other client has
 * written them: the chunks belong to this path alone, and were zeroed when they were allocated. A
 * trial does not become a request, so it waits for no disk, and for no other execution of its slot.
 *
 * If the send queue is full, the trial is not answered: the client asks on an idle path, and waits
 * for the answer only for a limited time.
 */
#include "ibtrs/proto/imm.h"
#include "ibtrs/proto/trial.h"
#include "ibtrs/server/path.h"
#include "ibtrs/server/trial.h"

static void trial_answer(struct ibtrs_srv_conn *conn, u32 slot, const struct ibtrs_desc *desc)
{
	struct ibtrs_srv_path *path = conn->path;
	struct ib_sge sge = {
		.addr	= path->mrs.dma[slot],
		.length	= desc->len,
		.lkey	= path->dev->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr.wr_cqe	= &conn->send_cqe,
		.wr.sg_list	= &sge,
		.wr.num_sge	= 1,
		.wr.opcode	= IB_WR_RDMA_WRITE_WITH_IMM,
		.wr.ex.imm_data	= cpu_to_be32(ibtrs_imm_trial(0, 0, path->off_bits)),
		.remote_addr	= desc->addr,
		.rkey		= desc->rkey,
	};
	int err;

	err = ibtrs_conn_send(&conn->c, &wr.wr, &wr.wr, 1, false);
	if (err && err != -EAGAIN)
		ibtrs_srv_path_close(path, "a trial cannot be answered");
}

/* NULL, or why the path is closed. */
static const char *trial_take(struct ibtrs_srv_path *path, u32 slot, u32 off,
			      struct ibtrs_desc *desc)
{
	struct ibtrs_wire_trial wire;
	const char *why;

	if (slot >= path->limits.queue_depth)
		return "a trial in a slot that does not exist";
	if (off + sizeof(wire) > path->limits.chunk_size)
		return "a trial with its message beyond the chunk";
	ib_dma_sync_single_for_cpu(path->dev->ib, path->mrs.dma[slot], off + sizeof(wire),
				   DMA_BIDIRECTIONAL);
	memcpy(&wire, path->chunks->mem[slot] + off, sizeof(wire));
	ib_dma_sync_single_for_device(path->dev->ib, path->mrs.dma[slot], off + sizeof(wire),
				      DMA_BIDIRECTIONAL);
	ibtrs_trial_decode(&wire, off, &path->limits, desc, &why);
	return why;
}

void ibtrs_srv_trial(struct ibtrs_srv_conn *conn, u32 imm)
{
	struct ibtrs_srv_path *path = conn->path;
	u32 slot = ibtrs_imm_req_slot(imm, path->off_bits),
	    off = ibtrs_imm_req_off(imm, path->off_bits);
	const char *why = "a trial that was not negotiated";
	struct ibtrs_desc desc;

	/* A trial that sees the path up inside this RCU section posts before the drain begins. */
	rcu_read_lock();
	if (ibtrs_srv_path_up(path)) {
		if (path->ext & IBTRS_EXT_TRIAL)
			why = trial_take(path, slot, off, &desc);
		if (!why)
			trial_answer(conn, slot, &desc);
	} else {
		why = "a trial came before INFO_RSP";
	}
	rcu_read_unlock();
	if (why)
		ibtrs_srv_path_close(path, why);
}
