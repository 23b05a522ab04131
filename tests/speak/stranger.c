// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibnbd-stranger: who wants to get into a server that asks for a key, with one, without, or with
 * what he has overheard.
 *
 *	modprobe ibnbd-stranger to=ip:10.0.0.2
 *	echo "name=db-1 secret=HEX conn=good next=good" > visit		one step after the other
 *	cat said							a line for each
 *
 * name=	of the key; without one there is no exchange
 * secret=	64 hex digits
 * session= path= recon=	numbers of who it says it is
 * uuid=	32 hex digits, in the place of session=
 * spoil=	hello, which, proof: one bit of that message is another one; req: of what the server
 *		takes for AUTH_REQ
 * replay=1	the proof of the visit before
 * conn= next=	CONN_REQ of cid 0, of cid 1: good; bad, with another proof; plain, without the
 *		extension; again, the bytes of the visit before
 *
 * What was connected stays so until the next visit. tests/cases/trust/auth-strangers says what must
 * come of it.
 */
#include <linux/completion.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/rdma_cm.h>
#include <ibtrs/addr.h>
#include "ibtrs/core/conn.h"
#include "ibtrs/core/iu.h"
#include "ibtrs/core/key.h"
#include "ibtrs/logic/auth.h"
#include "ibtrs/proto/auth.h"
#include "ibtrs/proto/msg.h"

#define STRANGER_MS   8000
#define STRANGER_ROOM 256

static char *to = "";
module_param(to, charp, 0444);

struct stranger_conn {
	struct ibtrs_conn c;
	struct ibtrs_dev *dev;
	struct completion told;
	enum rdma_cm_event_type event;
	u8 priv[256];
	size_t priv_len;
	struct ibtrs_iu out, in;
	struct completion came;
	int len;
};

struct stranger_words {
	char name[IBTRS_KEY_NAME_LEN], conn[8], next[8], spoil[8];
	u8 secret[IBTRS_KEY_LEN], uuid[IBTRS_UUID_LEN];
	unsigned int session, path, recon, replay;
};

static DEFINE_MUTEX(stranger_lock);
static struct ibtrs_dev_pool devs;
static struct stranger_conn knock, conns[2];
static struct ibtrs_wire_auth_proof last_proof;
static struct ibtrs_wire_conn_req last_req[2];
static char said[1024];

static __printf(1, 2) void say(const char *fmt, ...)
{
	size_t n = strlen(said);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said + n, sizeof(said) - n, fmt, ap);
	va_end(ap);
}

static int stranger_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct stranger_conn *s = id->context;

	if (ev->event == RDMA_CM_EVENT_DISCONNECTED || ev->event == RDMA_CM_EVENT_TIMEWAIT_EXIT) {
		s->len = -ENOTCONN;
		complete(&s->came);
		return 0;
	}
	s->event = ev->event;
	s->priv_len = min_t(size_t, ev->param.conn.private_data_len, sizeof(s->priv));
	if (s->priv_len && ev->param.conn.private_data)
		memcpy(s->priv, ev->param.conn.private_data, s->priv_len);
	complete(&s->told);
	return 0;
}

static int stranger_wait(struct stranger_conn *s, enum rdma_cm_event_type want)
{
	if (!wait_for_completion_timeout(&s->told, msecs_to_jiffies(STRANGER_MS)))
		return -ETIME;
	return s->event == want ? 0 : -EPROTO;
}

static void stranger_leave(struct stranger_conn *s)
{
	if (!s->c.id)
		return;
	if (s->c.qp) {
		rdma_disconnect(s->c.id);
		ib_drain_qp(s->c.qp);
	}
	ibtrs_conn_destroy(&s->c);
	ibtrs_iu_free(&s->out);
	ibtrs_iu_free(&s->in);
	ibtrs_dev_put(s->dev);
	rdma_destroy_id(s->c.id);
	memset(s, 0, sizeof(*s));
}

static void stranger_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct stranger_conn *s = container_of(cq->cq_context, struct stranger_conn, c);

	if (wc->status != IB_WC_SUCCESS)
		return;
	s->len = wc->byte_len;
	complete(&s->came);
}

static void stranger_sent(struct ib_cq *cq, struct ib_wc *wc)
{
}

static int stranger_expect(struct stranger_conn *s)
{
	return ibtrs_iu_post_recv(&s->in, &s->c, s->dev);
}

/* 0: established. -ECONNREFUSED: rejected, the answer lies in s->priv. */
static int stranger_connect(struct stranger_conn *s, const void *priv, u8 len)
{
	const struct ibtrs_conn_caps caps = {
		.send_wr = 8, .recv_wr = 8, .send_sge = 1, .recv_sge = 1, .poll = IB_POLL_WORKQUEUE
	};
	struct rdma_conn_param param = { .private_data = priv,
					 .private_data_len = len,
					 .retry_count = 6,
					 .rnr_retry_count = 7 };
	struct sockaddr_in dst = { .sin_family = AF_INET, .sin_port = htons(1234) };
	struct rdma_cm_id *id;
	int err;

	if (strncmp(to, "ip:", 3))
		return -EINVAL;
	dst.sin_addr.s_addr = in_aton(to + 3);
	init_completion(&s->told);
	init_completion(&s->came);
	id = rdma_create_id(&init_net, stranger_event, s, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	s->c.id = id;
	err = rdma_resolve_addr(id, NULL, (struct sockaddr *)&dst, STRANGER_MS);
	err = err ?: stranger_wait(s, RDMA_CM_EVENT_ADDR_RESOLVED);
	err = err ?: rdma_resolve_route(id, STRANGER_MS);
	err = err ?: stranger_wait(s, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (err)
		return err;
	s->dev = ibtrs_dev_get(&devs, id->device);
	if (IS_ERR(s->dev)) {
		err = PTR_ERR(s->dev);
		s->dev = NULL;
		return err;
	}
	err = ibtrs_conn_create(&s->c, s->dev->pd, &caps);
	err = err
		      ?: ibtrs_iu_init(&s->out, id->device, STRANGER_ROOM, DMA_TO_DEVICE,
				       stranger_sent);
	err = err
		      ?: ibtrs_iu_init(&s->in, id->device, STRANGER_ROOM, DMA_FROM_DEVICE,
				       stranger_received);
	err = err ?: stranger_expect(s);
	err = err ?: rdma_connect(id, &param);
	if (err)
		return err;
	err = stranger_wait(s, RDMA_CM_EVENT_ESTABLISHED);
	return err == -EPROTO && s->event == RDMA_CM_EVENT_REJECTED ? -ECONNREFUSED : err;
}

static int stranger_send(struct stranger_conn *s, u32 len)
{
	int err = ibtrs_iu_send(&s->out, &s->c, s->dev, len);

	if (err)
		return err;
	if (!wait_for_completion_timeout(&s->came, msecs_to_jiffies(STRANGER_MS)))
		return -ETIME;
	ibtrs_iu_sync_cpu(&s->in);
	return s->len < 0 ? s->len : 0;
}

static void stranger_say_refused(const struct stranger_conn *s, int err)
{
	char text[IBTRS_WORDS_LEN];
	struct ibtrs_conn_rsp rsp;
	const char *why;

	if (err != -ECONNREFUSED ||
	    ibtrs_msg_conn_rsp_decode(s->priv, s->priv_len, true, true, &rsp, &why)) {
		say("no answer %d\n", err);
		return;
	}
	ibtrs_msg_conn_refused_words(s->priv, s->priv_len, text);
	say("refused %d %s\n", -rsp.err, text);
}

static void stranger_session(const struct stranger_words *w, u8 *uuid)
{
	if (memchr_inv(w->uuid, 0, sizeof(w->uuid)))
		memcpy(uuid, w->uuid, sizeof(w->uuid));
	else
		memset(uuid, w->session, sizeof(w->uuid));
}

static void flip(void *msg, size_t off)
{
	((u8 *)msg)[off] ^= 1;
}

/* The exchange. a->ks is what a stranger would go on with, right or wrong. */
static void stranger_auth(const struct stranger_words *w, struct ibtrs_auth *a)
{
	struct ibtrs_auth_req req = { .recon_cnt = w->recon, .ext = IBTRS_EXT_WORDS };
	struct ibtrs_keys keys = { .nr = 1 };
	struct ibtrs_wire_auth_proof *proof;
	struct ibtrs_wire_auth_req wire;
	char text[IBTRS_WORDS_LEN];
	u8 nonce[IBTRS_NONCE_LEN];
	const char *why = "";
	int err;

	memset(req.path_uuid, w->path, sizeof(req.path_uuid));
	stranger_session(w, req.session_uuid);
	memcpy(keys.key[0], w->secret, IBTRS_KEY_LEN);
	ibtrs_auth_req_encode(&wire, &req);
	ibtrs_auth_clt_init(a, &wire, w->name, &keys);
	if (!strcmp(w->spoil, "req"))
		flip(&wire, 12); /* on the way, after it was sent */
	say("knock: ");
	err = stranger_connect(&knock, &wire, sizeof(wire));
	if (err) {
		stranger_say_refused(&knock, err);
		return;
	}
	get_random_bytes(nonce, sizeof(nonce));
	err = ibtrs_auth_clt_hello(a, knock.priv, knock.priv_len, nonce, knock.out.buf, &why);
	if (!strcmp(w->spoil, "hello"))
		flip(knock.out.buf, 0);
	err = err ?: stranger_send(&knock, sizeof(struct ibtrs_wire_auth_hello));
	if (!err && ibtrs_auth_verdict_is(knock.in.buf, knock.len)) {
		err = ibtrs_auth_clt_verdict(a, knock.in.buf, knock.len, text);
		say("verdict %d %s\n", -err, text);
		return;
	}
	proof = knock.out.buf;
	if (!err &&
	    ibtrs_auth_clt_challenge(a, &ibtrs_auth_kernel, knock.in.buf, knock.len, proof, &why)) {
		say("server has another key, ");
		ibtrs_auth_proof_encode(proof, 0, nonce); /* he tries all the same */
	}
	if (w->replay)
		*proof = last_proof;
	last_proof = *proof;
	if (!strcmp(w->spoil, "proof"))
		flip(proof, 39);
	if (!strcmp(w->spoil, "which"))
		flip(proof, 2);
	err = err ?: stranger_expect(&knock);
	err = err ?: stranger_send(&knock, sizeof(*proof));
	if (err) {
		say("no verdict %d\n", err);
		return;
	}
	a->state = IBTRS_AUTH_PROVED;
	err = ibtrs_auth_clt_verdict(a, knock.in.buf, knock.len, text);
	say("verdict %d %s\n", -err, text);
}

static void stranger_conn(const struct stranger_words *w, const struct ibtrs_auth *a, u16 cid,
			  const char *how)
{
	struct ibtrs_conn_req req = { .cid = cid,
				      .cid_num = 2,
				      .recon_cnt = w->recon,
				      .first_conn = true,
				      .ext = IBTRS_EXT_KNOWN };
	struct ibtrs_wire_conn_req wire;
	int err;

	if (!*how)
		return;
	memset(req.path_uuid, w->path, sizeof(req.path_uuid));
	stranger_session(w, req.session_uuid);
	if (!strcmp(how, "plain"))
		req.ext = IBTRS_EXT_OFFERED;
	ibtrs_msg_conn_req_encode(&wire, &req);
	if (strcmp(how, "plain"))
		ibtrs_auth_req_sign(&ibtrs_auth_kernel, a->ks, &wire);
	if (!strcmp(how, "bad"))
		wire.mac[7] ^= 1;
	if (!strcmp(how, "again"))
		wire = last_req[cid];
	last_req[cid] = wire;
	err = stranger_connect(&conns[cid], &wire, sizeof(wire));
	say("cid %u: ", cid);
	if (err)
		stranger_say_refused(&conns[cid], err);
	else
		say("accepted%s\n",
		    req.ext & IBTRS_EXT_AUTH && ibtrs_auth_rsp_good(&ibtrs_auth_kernel, a->ks,
								    &wire, conns[cid].priv)
			    ? ", and proved"
			    : "");
}

static int stranger_word(const char *word, const char *value, struct stranger_words *w)
{
	static const char *const numbers[] = { "session", "path", "recon", "replay" };
	unsigned int *const values[] = { &w->session, &w->path, &w->recon, &w->replay };
	int i = match_string(numbers, ARRAY_SIZE(numbers), word);

	if (i >= 0)
		return kstrtouint(value, 0, values[i]);
	if (!strcmp(word, "secret"))
		return hex2bin(w->secret, value, IBTRS_KEY_LEN);
	if (!strcmp(word, "uuid"))
		return hex2bin(w->uuid, value, sizeof(w->uuid));
	if (!strcmp(word, "name"))
		strscpy(w->name, value, sizeof(w->name));
	else if (!strcmp(word, "conn"))
		strscpy(w->conn, value, sizeof(w->conn));
	else if (!strcmp(word, "next"))
		strscpy(w->next, value, sizeof(w->next));
	else if (!strcmp(word, "spoil"))
		strscpy(w->spoil, value, sizeof(w->spoil));
	else
		return -EINVAL;
	return 0;
}

static void stranger_leave_all(void)
{
	stranger_leave(&conns[1]);
	stranger_leave(&conns[0]);
	stranger_leave(&knock);
}

static int visit_set(const char *val, const struct kernel_param *kp)
{
	struct stranger_words w = { .session = 7, .path = 7, .recon = 1 };
	char *text, *rest, *word, *value;
	struct ibtrs_auth *a;
	int err = 0;

	text = kstrdup(val, GFP_KERNEL);
	a = kzalloc(sizeof(*a), GFP_KERNEL);
	if (!text || !a) {
		kfree(text);
		kfree(a);
		return -ENOMEM;
	}
	rest = strim(text);
	while (!err && (word = strsep(&rest, " "))) {
		value = strchr(word, '=');
		if (value)
			*value++ = '\0';
		err = value ? stranger_word(word, value, &w) : -EINVAL;
	}
	mutex_lock(&stranger_lock);
	if (!err) {
		stranger_leave_all();
		said[0] = 0;
		if (w.name[0])
			stranger_auth(&w, a);
		stranger_conn(&w, a, 0, w.conn);
		stranger_conn(&w, a, 1, w.next);
	}
	mutex_unlock(&stranger_lock);
	kfree(text);
	kfree_sensitive(a);
	return err;
}

static const struct kernel_param_ops visit_ops = { .set = visit_set };
module_param_cb(visit, &visit_ops, NULL, 0200);

static int said_get(char *text, const struct kernel_param *kp)
{
	guard(mutex)(&stranger_lock);
	return sysfs_emit(text, "%s", said);
}

static const struct kernel_param_ops said_ops = { .get = said_get };
module_param_cb(said, &said_ops, NULL, 0444);

static int __init stranger_init(void)
{
	ibtrs_dev_pool_init(&devs);
	return 0;
}

static void __exit stranger_exit(void)
{
	stranger_leave_all();
}

module_init(stranger_init);
module_exit(stranger_exit);
MODULE_DESCRIPTION("a client that proves what it is told to, for tests");
MODULE_LICENSE("GPL");
