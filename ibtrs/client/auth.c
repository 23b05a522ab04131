// SPDX-License-Identifier: GPL-2.0-only
/*
 * Authentication of the client (protocol.md 8.6): the exchange on the first connection of an
 * attempt. That connection is destroyed when both sides have proved that they have the key. cm.c
 * creates and destroys it in the place of cid 0, like the path's own connections; handshake.c runs
 * the steps.
 *
 * The server proves first. A server that cannot prove that it has the key receives nothing that was
 * made with our key.
 *
 * The keys are looked up anew for each attempt: a key that is loaded is used from the next attempt
 * on, and removing a key breaks no path that is up. No allocation here may wait for I/O: handlers
 * and works run NOIO (law L22).
 *
 * Failure: the attempt fails, with a reason that names the key; it is repeated like any other
 * attempt.
 */
#include <linux/random.h>
#include "ibtrs/client/auth.h"
#include "ibtrs/client/path.h"
#include "ibtrs/client/session.h"
#include "ibtrs/core/key.h"

bool ibtrs_clt_auth_wanted(const struct ibtrs_clt_path *path)
{
	return path->clt->opts.auth[0];
}

bool ibtrs_clt_auth_due(const struct ibtrs_clt_path *path)
{
	return ibtrs_clt_auth_wanted(path) && path->auth.a.state != IBTRS_AUTH_IN;
}

static void auth_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_iu *iu = container_of(wc->wr_cqe, struct ibtrs_iu, cqe);
	struct ibtrs_clt_path *path = container_of(cq->cq_context, struct ibtrs_clt_conn, c)->path;

	if (wc->status == IB_WC_WR_FLUSH_ERR)
		return;
	if (wc->status != IB_WC_SUCCESS || wc->opcode != IB_WC_RECV ||
	    wc->wc_flags & IB_WC_WITH_IMM) {
		ibtrs_clt_path_fail(path, -EPROTO, "no message of authentication where one is due");
		return;
	}
	path->auth.len[iu - path->auth.in] = wc->byte_len;
	ibtrs_clt_path_answered(path, IBTRS_CLT_HS_AUTH_STEP);
}

static int auth_buffers(struct ibtrs_clt_path *path, const char **why)
{
	struct ibtrs_clt_auth *auth = &path->auth;
	int i, err;

	*why = "no memory for the connection";
	for (i = 0; i < IBTRS_AUTH_MSGS; i++) {
		err = ibtrs_iu_init(&auth->in[i], path->dev->ib, IBTRS_AUTH_MSG_MAX,
				    DMA_FROM_DEVICE, auth_received);
		err = err ?: ibtrs_iu_init(&auth->out[i], path->dev->ib, IBTRS_AUTH_MSG_MAX,
					   DMA_TO_DEVICE, ibtrs_clt_handshake_sent);
		err = err ?: ibtrs_iu_post_recv(&auth->in[i], &path->conns[0].c, path->dev);
		if (err)
			return err;
	}
	return 0;
}

int ibtrs_clt_auth_prepare(struct ibtrs_clt_path *path, struct ibtrs_wire_auth_req *wire,
			   const char **why)
{
	static const struct ibtrs_conn_caps caps = {
		.send_wr	= IBTRS_AUTH_MSGS,
		.recv_wr	= IBTRS_AUTH_MSGS,
		.send_sge	= 1,
		/*
		 * softirqs do not poll this CQ, so it is freed with its QP, without a grace period
		 * (L20)
		 */
		.poll		= IB_POLL_WORKQUEUE,
	};
	const char *name = path->clt->opts.auth;
	struct ibtrs_auth_req req = { .recon_cnt = path->recon_cnt, .ext = IBTRS_EXT_WORDS };
	struct ibtrs_clt_auth *auth = &path->auth;
	struct ibtrs_keys keys;
	int err;

	*why = "the RDMA device has no GIDs, to which a proof would be bound: map without auth=, or over another device";
	if (!ibtrs_conn_has_gids(path->conns[0].c.id))
		return -EOPNOTSUPP;
	*why = "connection cannot be set up";
	err = ibtrs_conn_create(&path->conns[0].c, path->dev->pd, &caps);
	if (err)
		return err;
	err = ibtrs_key_get(name, &keys);
	if (err) {
		scnprintf(auth->why, sizeof(auth->why),
			  "the key %s is not loaded here: `ibnbd key load %s`", name, name);
		*why = auth->why;
		return err;
	}
	memcpy(req.path_uuid, path->uuid, sizeof(req.path_uuid));
	memcpy(req.session_uuid, path->clt->uuid, sizeof(req.session_uuid));
	ibtrs_auth_req_encode(wire, &req);
	ibtrs_auth_clt_init(&auth->a, wire, name, &keys);
	ibtrs_conn_gids(path->conns[0].c.id, auth->a.t.client, auth->a.t.server);
	memzero_explicit(&keys, sizeof(keys));
	return auth_buffers(path, why);
}

int ibtrs_clt_auth_established(struct ibtrs_clt_path *path, const struct rdma_conn_param *param,
			       const char **why)
{
	*why = "the server's answer is too short for authentication";
	if (param->private_data_len < sizeof(path->auth.rsp))
		return -EKEYREJECTED;
	memcpy(path->auth.rsp, param->private_data, sizeof(path->auth.rsp));
	ibtrs_clt_path_answered(path, IBTRS_CLT_HS_AUTH_STEP);
	return 0;
}

static int auth_say(struct ibtrs_clt_path *path, struct ibtrs_iu *iu, u32 len)
{
	/* The same work handles the answer, so it runs only after this function has returned. */
	ibtrs_clt_path_await(path, IBTRS_RETRY_AUTH);
	return ibtrs_iu_send(iu, &path->conns[0].c, path->dev, len);
}

static int auth_hello(struct ibtrs_clt_path *path, const char **why)
{
	struct ibtrs_clt_auth *auth = &path->auth;
	u8 nonce[IBTRS_NONCE_LEN];
	int err;

	get_random_bytes(nonce, sizeof(nonce));
	err = ibtrs_auth_clt_hello(&auth->a, auth->rsp, sizeof(auth->rsp), nonce, auth->out[0].buf,
				   why);
	return err ?: auth_say(path, &auth->out[0], sizeof(struct ibtrs_wire_auth_hello));
}

/* Return: 1: the server accepted the proof; 0: it refused, and the path was failed. */
static int auth_verdict(struct ibtrs_clt_path *path, int i)
{
	struct ibtrs_clt_auth *auth = &path->auth;
	char text[IBTRS_WORDS_LEN];
	int err;

	err = ibtrs_auth_clt_verdict(&auth->a, auth->in[i].buf, auth->len[i], text);
	if (!err)
		return 1;
	ibtrs_clt_path_refused(path, err, text);
	return 0;
}

static int auth_challenge(struct ibtrs_clt_path *path, const char **why)
{
	struct ibtrs_clt_auth *auth = &path->auth;
	int err;

	/* A server that refuses the first message answers with a verdict at once. */
	if (ibtrs_auth_verdict_is(auth->in[0].buf, auth->len[0]))
		return auth_verdict(path, 0);
	err = ibtrs_auth_clt_challenge(&auth->a, &ibtrs_auth_kernel, auth->in[0].buf, auth->len[0],
				       auth->out[1].buf, why);
	if (err)
		return err;
	return auth_say(path, &auth->out[1], sizeof(struct ibtrs_wire_auth_proof));
}

int ibtrs_clt_auth_step(struct ibtrs_clt_path *path, const char **why)
{
	*why = "the message of authentication cannot be posted";
	switch (path->auth.a.state) {
	case IBTRS_AUTH_NEW:
		return auth_hello(path, why);
	case IBTRS_AUTH_ASKED:
		ibtrs_iu_sync_cpu(&path->auth.in[0]);
		return auth_challenge(path, why);
	case IBTRS_AUTH_PROVED:
		ibtrs_iu_sync_cpu(&path->auth.in[1]);
		return auth_verdict(path, 1);
	default:
		return 0;	/* it has failed already */
	}
}

void ibtrs_clt_auth_free(struct ibtrs_clt_path *path)
{
	int i;

	for (i = 0; i < IBTRS_AUTH_MSGS; i++) {
		ibtrs_iu_free(&path->auth.in[i]);
		ibtrs_iu_free(&path->auth.out[i]);
	}
}

void ibtrs_clt_auth_forget(struct ibtrs_clt_path *path)
{
	ibtrs_auth_end(&path->auth.a, &ibtrs_auth_kernel);
}
