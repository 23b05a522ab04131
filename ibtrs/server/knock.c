// SPDX-License-Identifier: GPL-2.0-only
/*
 * Authentication: the exchange (protocol.md 8.6), on a connection of its own, before the path of
 * the client has any.
 *
 * Each knock has a place, before anything is built for it (docs/design.md 7.2). A place is taken
 * for KNOCK_SECOND at least, even if its connection ends sooner, and while its connection is taken
 * apart; only a client that has proved its key gives it back at once.
 *
 * There are three kinds of places (enum ibtrs_caller). An AUTH_REQ that names a session of a key
 * draws on the places of that session: its uuid is root's to see, also on a host whose users flood
 * this server. Nobody takes more than KNOCKS_PER_PEER of a kind, nor more than are left free for
 * the others.
 *
 * A stranger costs one small queue pair and a kilobyte, for KNOCK_LIFE at most. A refusal is sent
 * only after KNOCK_SECOND: that limits how often a client that guesses keys can try on each of its
 * places. Of sessions this file knows only the kind of a caller. Its result is a grant (auth.c).
 *
 * The client sends two messages and gets two. Each of the four has its own buffer, which is posted
 * or filled once. One work does the steps, in order. The client disconnects when it has read the
 * verdict; if it does not, the deadline ends the connection.
 *
 * Context: a CM event begins a knock; completions and later CM events only queue works.
 * ibtrs_srv_knock_end() ends it from any context; a work of its own takes it apart. Locking:
 * knocks_lock, for the list; built, which the work waits for. A CM id is not destroyed before its
 * handler has returned, so the handler of the connection request may use the knock until then.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include "ibtrs/core/conn.h"
#include "ibtrs/core/dev.h"
#include "ibtrs/core/key.h"
#include "ibtrs/server/auth.h"
#include "ibtrs/server/handshake.h"
#include "ibtrs/server/quota.h"

#define KNOCKS_MAX		64	/* of each kind */
#define KNOCKS_PER_PEER		16
#define KNOCK_LIFE		(5 * HZ)
#define KNOCK_SECOND		HZ

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
	bool gone;			/* under knocks_lock: only its place is left */
	struct mutex built;		/* held while it is being built */

	/* set before it is accepted */
	unsigned long since;		/* jiffies */
	enum ibtrs_caller kind;
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
static unsigned int knocks_nr;		/* includes those of which only the place is left */
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
	if (k->known)
		ibtrs_srv_auth_count((const char *)k->auth.t.name, false);
	if (!ibtrs_srv_auth_may_log(IBTRS_SRV_LINE_AUTH, &k->peer))
		return;
	ibtrs_addr_format(&k->peer, addr, sizeof(addr));
	pr_warn("%s: key %s: authentication failed: %s\n", addr,
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
	knock_say(k, &k->out[1], sizeof(struct ibtrs_wire_verdict));
}

static void knock_refuse(struct ibtrs_srv_knock *k, int err, const char *why)
{
	knock_log(k, k->auth.state == IBTRS_AUTH_FAILED && !k->known && k->auth.t.name[0] ?
			     "there is no key of that name here: `ibnbd key load`" :
			     why);
	ibtrs_msg_verdict_encode(k->out[1].buf, IBTRS_MSG_AUTH_VERDICT, err, why);
	k->step = KNOCK_SAY;
	/* A message that came in the meantime may have queued the work without a delay. */
	mod_delayed_work(ibtrs_srv.quick_wq, &k->work, KNOCK_SECOND);
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
		why = "the server cannot compute hmac(sha256)";
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
	const char *why = "";
	int err;

	ibtrs_iu_sync_cpu(&k->in[1]);
	err = ibtrs_auth_srv_proof(&k->auth, &ibtrs_auth_kernel, k->in[1].buf, k->len[1], &why);
	if (!err) {
		why = "out of memory";
		err = ibtrs_srv_auth_grant(&k->req, &k->peer, &k->auth);
	}
	ibtrs_auth_end(&k->auth, &ibtrs_auth_kernel);
	if (err) {
		knock_refuse(k, err, why);
		return;
	}
	ibtrs_msg_verdict_encode(k->out[1].buf, IBTRS_MSG_AUTH_VERDICT, 0, "");
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

static void knock_forget(struct ibtrs_srv_knock *k)
{
	lockdep_assert_held(&knocks_lock);
	list_del(&k->entry);
	kfree_sensitive(k);
	knocks_nr--;
	wake_up_all(&knocks_gone);
}

/* Nothing of @k is left but its place, which is taken until its second is over. */
static void knock_keep_place(struct ibtrs_srv_knock *k)
{
	unsigned long end = k->since + KNOCK_SECOND, now = jiffies;

	guard(mutex)(&knocks_lock);
	if (k->auth.state == IBTRS_AUTH_IN || !ibtrs_srv.accepting || !time_before(now, end)) {
		knock_forget(k);
		return;
	}
	k->gone = true;
	queue_delayed_work(ibtrs_srv.info_wq, &k->late, end - now);
}

static void knock_late(struct work_struct *work)
{
	struct ibtrs_srv_knock *k =
		container_of(to_delayed_work(work), struct ibtrs_srv_knock, late);

	scoped_guard(mutex, &knocks_lock) {
		if (k->gone) {
			knock_forget(k);
			return;
		}
	}
	ibtrs_srv_knock_end(k);
}

static void knock_end_work(struct work_struct *work)
{
	struct ibtrs_srv_knock *k = container_of(work, struct ibtrs_srv_knock, end);
	unsigned int i;

	mutex_lock(&k->built);
	mutex_unlock(&k->built);
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
	for (i = 0; i < IBTRS_AUTH_MSGS; i++) {
		ibtrs_iu_free(&k->in[i]);
		ibtrs_iu_free(&k->out[i]);
	}
	ibtrs_dev_put(k->dev);
	if (k->c.id)
		rdma_destroy_id(k->c.id);
	knock_keep_place(k);
	/* ibtrs_srv_knock_end_all() flushes this queue: the module stays until here */
}

void ibtrs_srv_knock_end_all(void)
{
	struct ibtrs_srv_knock *k, *next;

	scoped_guard(mutex, &knocks_lock)
		list_for_each_entry_safe(k, next, &knocks, entry)
			if (!k->gone)
				ibtrs_srv_knock_end(k);
			else if (cancel_delayed_work(&k->late))
				knock_forget(k);
	wait_event(knocks_gone, !READ_ONCE(knocks_nr));
	flush_workqueue(ibtrs_srv.info_wq);
}

/* ---- the beginning ------------------------------------------------------ */

static bool knock_is_alike(const struct ibtrs_srv_knock *k, const struct ibtrs_auth_req *req,
			   const struct ibtrs_addr *peer)
{
	return k->kind == IBTRS_CALLER_BACK ?
		       !memcmp(k->req.session_uuid, req->session_uuid, sizeof(req->session_uuid)) :
		       ibtrs_addr_equal(&k->peer, peer);
}

/* Ends @k, which has had its second, for the next one. */
static bool knock_gives_way(struct ibtrs_srv_knock *k)
{
	if (!k || time_before(jiffies, k->since + KNOCK_SECOND))
		return false;
	ibtrs_srv_knock_end(k);
	return true;
}

/* Is there a place? Ends the knock that makes room for the next one, if that takes one. */
static bool knock_make_room(enum ibtrs_caller kind, const struct ibtrs_auth_req *req,
			    const struct ibtrs_addr *peer)
{
	struct ibtrs_srv_knock *k, *oldest = NULL, *oldest_alike = NULL;
	unsigned int nr = 0, alike = 0;

	list_for_each_entry(k, &knocks, entry) {
		bool ends = READ_ONCE(k->ending);

		if (k->kind != kind)
			continue;
		nr++;
		if (!oldest && !ends)
			oldest = k;
		if (!knock_is_alike(k, req, peer))
			continue;
		alike++;
		if (!oldest_alike && !ends)
			oldest_alike = k;
	}
	/* Those that have made room count until they are taken apart. */
	if (nr >= 2 * KNOCKS_MAX || alike >= 2 * KNOCKS_PER_PEER)
		return false;
	if (nr >= KNOCKS_MAX && alike < KNOCKS_PER_PEER)
		return knock_gives_way(oldest);
	return alike < min_t(unsigned int, KNOCKS_PER_PEER, KNOCKS_MAX - nr) ||
	       knock_gives_way(oldest_alike);
}

static int knock_build(struct ibtrs_srv_knock *k, struct rdma_cm_id *id, const char **why)
{
	const struct ibtrs_conn_caps caps = {
		.send_wr = IBTRS_AUTH_MSGS, .recv_wr = IBTRS_AUTH_MSGS,
		.send_sge = 1,
		.poll = IB_POLL_WORKQUEUE,
	};
	struct ibtrs_dev *dev;
	unsigned int i;
	int err;

	dev = ibtrs_dev_get(id->device);
	if (IS_ERR(dev))
		return refuse(why, "the RDMA device cannot be used", PTR_ERR(dev));
	k->dev = dev;
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
	*why = "the connection manager cannot accept";
	return rdma_accept(k->c.id, &param);
}

int ibtrs_srv_knock(struct rdma_cm_id *id, const struct ibtrs_auth_req *req, const void *wire,
		    const struct ibtrs_addr *peer, struct ibtrs_srv_knock **out, const char **why)
{
	enum ibtrs_caller kind;
	struct ibtrs_srv_knock *k;
	int err;

	if (ibtrs_srv.ops->auth() == IBTRS_SRV_AUTH_OFF)
		return refuse(why, "authentication is disabled here (auth=off): map without auth=",
			      -EKEYREJECTED);
	if (!ibtrs_conn_has_gids(id))
		return refuse(why, "the RDMA device has no GIDs, to which a proof would be bound",
			      -EOPNOTSUPP);
	kind = ibtrs_srv_name_caller(req->session_uuid, peer);
	scoped_guard(mutex, &knocks_lock) {
		if (!knock_make_room(kind, req, peer))
			return refuse(why, "too many connections that have not authenticated yet",
				      -ENOSPC);
		k = kzalloc(sizeof(*k), GFP_KERNEL);
		if (!k)
			return refuse(why, "out of memory", -ENOMEM);
		k->kind = kind;
		k->req = *req;
		k->peer = *peer;
		k->since = jiffies;
		INIT_DELAYED_WORK(&k->work, knock_work);
		INIT_DELAYED_WORK(&k->late, knock_late);
		INIT_WORK(&k->end, knock_end_work);
		mutex_init(&k->built);
		mutex_lock(&k->built);
		list_add_tail(&k->entry, &knocks);
		knocks_nr++;
	}
	k->c.id = id;
	id->context = k;
	id->event_handler = knock_event;
	*out = k;
	/* before the receives: what they bring may end the knock */
	queue_delayed_work(ibtrs_srv.quick_wq, &k->late, KNOCK_LIFE);
	err = knock_build(k, id, why);
	err = err ?: knock_accept(k, wire, why);
	mutex_unlock(&k->built);
	return err;
}
