// SPDX-License-Identifier: GPL-2.0-only
/*
 * Authentication: the exchange (protocol.md 8.6), on a connection of its own, before the path of
 * the client has any.
 *
 * A stranger costs one small queue pair and a kilobyte, for KNOCK_LIFE at most. There are never
 * more than KNOCKS_MAX strangers: the next one replaces the oldest, or the oldest of its own
 * address if that address has KNOCKS_PER_PEER already. A client that has a key needs its place for
 * milliseconds only, so a flood of strangers does not keep it out. A refusal is sent only after
 * KNOCK_REFUSED: that limits how often a client that guesses keys can try on each of its places.
 * This file does not look at sessions, paths or names. Its result is a grant (auth.c).
 *
 * The client sends two messages and gets two. Each of the four has its own buffer, which is posted
 * or filled once. One work does the steps, in order. The client disconnects when it has read the
 * verdict; if it does not, the deadline ends the connection.
 *
 * Context: a CM event begins a knock; completions and later CM events only queue works.
 * ibtrs_srv_knock_end() ends it from any context; a work of its own takes it apart. Locking:
 * knocks_lock, for the list. A CM id is not destroyed before its handler has returned, so the
 * handler of the connection request may use the knock until it returns.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include "ibtrs/core/conn.h"
#include "ibtrs/core/dev.h"
#include "ibtrs/core/iu.h"
#include "ibtrs/core/key.h"
#include "ibtrs/server/auth.h"
#include "ibtrs/server/knock.h"

#define KNOCKS_MAX		64
#define KNOCKS_PER_PEER		16
#define KNOCK_LIFE		(5 * HZ)
#define KNOCK_REFUSED		HZ

enum knock_step {
	KNOCK_HELLO,
	KNOCK_PROOF,
	KNOCK_SAY,	/* the verdict is made */
	KNOCK_SAID,
};

/* One connection on which a client authenticates. */
struct ibtrs_srv_knock {
	struct list_head entry;		/* knocks: under knocks_lock */
	int ending;			/* it is being taken apart; changes once */

	/* set before it is accepted */
	struct ibtrs_conn c;
	struct ibtrs_dev *dev;
	struct ibtrs_addr peer;
	struct ibtrs_auth_req req;
	struct ibtrs_iu in[IBTRS_AUTH_MSGS];
	struct ibtrs_iu out[IBTRS_AUTH_MSGS];

	/* the work only */
	enum knock_step step;
	struct ibtrs_auth auth;
	bool known;			/* there is a key of that name */

	/* written in completion context, before the bit of @arrived is set */
	u32 len[IBTRS_AUTH_MSGS];
	unsigned long arrived;

	struct delayed_work work;
	struct delayed_work late;
	struct work_struct end;
};

static DEFINE_MUTEX(knocks_lock);
static LIST_HEAD(knocks);		/* the oldest first */
static unsigned int knocks_nr;		/* includes those that are being taken apart */
static DECLARE_WAIT_QUEUE_HEAD(knocks_gone);

void ibtrs_srv_knock_end(struct ibtrs_srv_knock *k)
{
	if (!xchg(&k->ending, 1))
		queue_work(ibtrs_srv.info_wq, &k->end);
}

/* ---- the steps ---------------------------------------------------------- */

static void knock_log(struct ibtrs_srv_knock *k, const char *why)
{
	char addr[IBTRS_ADDR_STR_MAX];

	ibtrs_srv_auth_failed();
	ibtrs_addr_format(&k->peer, addr, sizeof(addr));
	pr_warn_ratelimited("%s: key %s: authentication failed: %s\n", addr,
			    k->auth.t.name[0] ? (char *)k->auth.t.name : "(none)", why);
}

static void knock_say(struct ibtrs_srv_knock *k, struct ibtrs_iu *iu, u32 len)
{
	if (ibtrs_iu_send(iu, &k->c, k->dev, len))
		ibtrs_srv_knock_end(k);
}

static void knock_verdict(struct ibtrs_srv_knock *k)
{
	k->step = KNOCK_SAID;
	knock_say(k, &k->out[1], sizeof(struct ibtrs_wire_auth_verdict));
}

static void knock_refuse(struct ibtrs_srv_knock *k, int err, const char *why)
{
	knock_log(k, k->auth.state == IBTRS_AUTH_FAILED && !k->known && k->auth.t.name[0] ?
			     "there is no key of that name here: `ibnbd key load`" :
			     why);
	ibtrs_auth_verdict_encode(k->out[1].buf, err, why);
	k->step = KNOCK_SAY;
	/* A message that came in the meantime may have queued the work without a delay. */
	mod_delayed_work(ibtrs_srv.quick_wq, &k->work, KNOCK_REFUSED);
}

static void knock_hello(struct ibtrs_srv_knock *k)
{
	u8 nonce[IBTRS_NONCE_LEN];
	struct ibtrs_keys keys;
	const char *why = "";
	int err;

	ibtrs_iu_sync_cpu(&k->in[0]);
	err = ibtrs_auth_srv_hello(&k->auth, k->in[0].buf, k->len[0], &why);
	if (!err) {
		/*
		 * If there is no key of that name, @keys is random: the client gets a challenge
		 * that nobody can answer.
		 */
		k->known = !ibtrs_key_get((const char *)k->auth.t.name, &keys);
		get_random_bytes(nonce, sizeof(nonce));
		why = "the server can not compute hmac(sha256)";
		err = ibtrs_auth_srv_challenge(&k->auth, &ibtrs_auth_kernel, &keys, nonce,
					       k->out[0].buf);
		memzero_explicit(&keys, sizeof(keys));
	}
	if (err) {
		knock_refuse(k, err, why);
		return;
	}
	k->step = KNOCK_PROOF;
	knock_say(k, &k->out[0], sizeof(struct ibtrs_wire_auth_challenge));
}

static void knock_proof(struct ibtrs_srv_knock *k)
{
	struct ibtrs_srv_proof proof = {};
	const char *why = "";
	int err;

	ibtrs_iu_sync_cpu(&k->in[1]);
	err = ibtrs_auth_srv_proof(&k->auth, &ibtrs_auth_kernel, k->in[1].buf, k->len[1], &why);
	if (!err) {
		memcpy(proof.key, k->auth.t.name, sizeof(proof.key));
		memcpy(proof.ks, k->auth.ks, sizeof(proof.ks));
		memcpy(proof.mark, k->auth.mark, sizeof(proof.mark));
		why = "out of memory";
		err = ibtrs_srv_auth_grant(&k->req, &k->peer, &proof);
		memzero_explicit(&proof, sizeof(proof));
	}
	ibtrs_auth_end(&k->auth, &ibtrs_auth_kernel);
	if (err) {
		knock_refuse(k, err, why);
		return;
	}
	ibtrs_auth_verdict_encode(k->out[1].buf, 0, "");
	knock_verdict(k);
}

static void knock_work(struct work_struct *work)
{
	struct ibtrs_srv_knock *k =
		container_of(to_delayed_work(work), struct ibtrs_srv_knock, work);

	if (READ_ONCE(k->ending))
		return;
	if (k->step == KNOCK_SAY) {
		knock_verdict(k);
		return;
	}
	if (k->step == KNOCK_HELLO && test_bit(0, &k->arrived))
		knock_hello(k);
	if (k->step == KNOCK_PROOF && test_bit(1, &k->arrived))
		knock_proof(k);
}

static void knock_late(struct work_struct *work)
{
	ibtrs_srv_knock_end(container_of(to_delayed_work(work), struct ibtrs_srv_knock, late));
}

/* ---- completions and events: they post ---------------------------------- */

static void knock_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_iu *iu = container_of(wc->wr_cqe, struct ibtrs_iu, cqe);
	struct ibtrs_srv_knock *k = container_of(cq->cq_context, struct ibtrs_srv_knock, c);
	unsigned int i = iu - k->in;

	if (wc->status != IB_WC_SUCCESS || wc->opcode != IB_WC_RECV ||
	    wc->wc_flags & IB_WC_WITH_IMM) {
		ibtrs_srv_knock_end(k);
		return;
	}
	k->len[i] = wc->byte_len;
	/* the work reads the length when it sees the bit */
	smp_mb__before_atomic();
	set_bit(i, &k->arrived);
	if (!READ_ONCE(k->ending))
		queue_delayed_work(ibtrs_srv.quick_wq, &k->work, 0);
}

static void knock_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_srv_knock *k = container_of(cq->cq_context, struct ibtrs_srv_knock, c);

	if (wc->status == IB_WC_SUCCESS)
		ibtrs_conn_credit(&k->c, 1);
	else
		ibtrs_srv_knock_end(k);
}

static int knock_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	/* The client has left, never completed the connection, or its device is removed. */
	if (ev->event != RDMA_CM_EVENT_ESTABLISHED)
		ibtrs_srv_knock_end(id->context);
	return 0;
}

/* ---- the end ------------------------------------------------------------ */

static void knock_free(struct ibtrs_srv_knock *k)
{
	unsigned int i;

	for (i = 0; i < IBTRS_AUTH_MSGS; i++) {
		ibtrs_iu_free(&k->in[i]);
		ibtrs_iu_free(&k->out[i]);
	}
	ibtrs_dev_put(k->dev);
	if (k->c.id)
		rdma_destroy_id(k->c.id);
	kfree_sensitive(k);
}

static void knock_forget(struct ibtrs_srv_knock *k)
{
	guard(mutex)(&knocks_lock);
	list_del(&k->entry);
	knocks_nr--;
	wake_up_all(&knocks_gone);
}

static void knock_end_work(struct work_struct *work)
{
	struct ibtrs_srv_knock *k = container_of(work, struct ibtrs_srv_knock, end);

	cancel_delayed_work_sync(&k->late);
	cancel_delayed_work_sync(&k->work);
	if (k->c.qp) {
		rdma_disconnect(k->c.id);
		ibtrs_conn_drain(&k->c, ibtrs_srv.quick_wq, IBTRS_FAULT_SRV_DRAIN,
				 "(authentication)", "");
	}
	/* a completion may have queued it again before the drain */
	cancel_delayed_work_sync(&k->work);
	if (k->auth.state == IBTRS_AUTH_PROVED)
		knock_log(k, k->known ?
				     "the client left without a proof: it has another key of that name" :
				     "there is no key of that name here: `ibnbd key load`");
	ibtrs_conn_destroy(&k->c);
	ibtrs_auth_end(&k->auth, &ibtrs_auth_kernel);
	knock_forget(k);
	knock_free(k);
	/* ibtrs_srv_knock_end_all() flushes this queue: the module stays until here */
}

void ibtrs_srv_knock_end_all(void)
{
	struct ibtrs_srv_knock *k;

	mutex_lock(&knocks_lock);
	list_for_each_entry(k, &knocks, entry)
		ibtrs_srv_knock_end(k);
	mutex_unlock(&knocks_lock);
	wait_event(knocks_gone, !READ_ONCE(knocks_nr));
	flush_workqueue(ibtrs_srv.info_wq);
}

/* ---- the beginning ------------------------------------------------------ */

/*
 * Ends the oldest knock, of @peer or of all, if there are as many as may be. False: too many are
 * still being taken apart.
 */
static bool knock_make_room(const struct ibtrs_addr *peer)
{
	struct ibtrs_srv_knock *k, *oldest = NULL, *oldest_of_peer = NULL;
	unsigned int of_peer = 0, nr = 0;

	list_for_each_entry(k, &knocks, entry) {
		if (READ_ONCE(k->ending))
			continue;
		nr++;
		oldest = oldest ?: k;
		if (!ibtrs_addr_equal(&k->peer, peer))
			continue;
		of_peer++;
		oldest_of_peer = oldest_of_peer ?: k;
	}
	if (of_peer >= KNOCKS_PER_PEER)
		ibtrs_srv_knock_end(oldest_of_peer);
	else if (nr >= KNOCKS_MAX)
		ibtrs_srv_knock_end(oldest);
	return knocks_nr < 2 * KNOCKS_MAX;
}

static int knock_build(struct ibtrs_srv_knock *k, struct rdma_cm_id *id, const char **why)
{
	const struct ibtrs_conn_caps caps = {
		.send_wr = IBTRS_AUTH_MSGS, .recv_wr = IBTRS_AUTH_MSGS,
		.send_sge = 1, .recv_sge = 1,
		.poll = IB_POLL_WORKQUEUE,
	};
	unsigned int i;
	int err;

	*why = "the RDMA device cannot be used";
	k->dev = ibtrs_dev_get(&ibtrs_srv.devs, id->device);
	if (IS_ERR(k->dev)) {
		err = PTR_ERR(k->dev);
		k->dev = NULL;
		return err;
	}
	*why = "the RDMA device has no room for the connection";
	err = ibtrs_conn_create(&k->c, k->dev->pd, &caps);
	for (i = 0; i < IBTRS_AUTH_MSGS && !err; i++) {
		*why = "out of memory";
		err = ibtrs_iu_init(&k->in[i], id->device, IBTRS_AUTH_MSG_MAX, DMA_FROM_DEVICE,
				    knock_received);
		err = err ?: ibtrs_iu_init(&k->out[i], id->device, IBTRS_AUTH_MSG_MAX,
					   DMA_TO_DEVICE, knock_sent);
		err = err ?: ibtrs_iu_post_recv(&k->in[i], &k->c, k->dev);
	}
	return err;
}

static int knock_accept(struct ibtrs_srv_knock *k, const void *wire, const char **why)
{
	struct ibtrs_wire_auth_rsp rsp;
	struct rdma_conn_param param = {
		.private_data		= &rsp,
		.private_data_len	= sizeof(rsp),
		.rnr_retry_count	= 7,
	};

	ibtrs_auth_rsp_encode(&rsp);
	ibtrs_auth_srv_init(&k->auth, wire, &rsp);
	ibtrs_conn_gids(k->c.id, k->auth.t.server, k->auth.t.client);
	queue_delayed_work(ibtrs_srv.quick_wq, &k->late, KNOCK_LIFE);
	*why = "the connection manager cannot accept";
	return rdma_accept(k->c.id, &param);
}

int ibtrs_srv_knock(struct rdma_cm_id *id, const struct ibtrs_auth_req *req, const void *wire,
		    const struct ibtrs_addr *peer, struct ibtrs_srv_knock **out, const char **why)
{
	struct ibtrs_srv_knock *k;
	int err;

	*why = "nobody authenticates here (auth=off): map without auth=";
	if (ibtrs_srv_auth_mode() == IBTRS_SRV_AUTH_OFF)
		return -EKEYREJECTED;
	*why = "out of memory";
	k = kzalloc(sizeof(*k), GFP_KERNEL);
	if (!k)
		return -ENOMEM;
	k->req = *req;
	k->peer = *peer;
	INIT_DELAYED_WORK(&k->work, knock_work);
	INIT_DELAYED_WORK(&k->late, knock_late);
	INIT_WORK(&k->end, knock_end_work);
	*why = "too many who have not authenticated yet";
	/*
	 * Held until the connection is accepted: nobody may end a knock that is still being built.
	 */
	guard(mutex)(&knocks_lock);
	if (!knock_make_room(peer)) {
		kfree(k);
		return -ENOSPC;
	}
	k->c.id = id;
	id->context = k;
	id->event_handler = knock_event;
	list_add_tail(&k->entry, &knocks);
	knocks_nr++;
	*out = k;
	err = knock_build(k, id, why);
	return err ?: knock_accept(k, wire, why);
}
