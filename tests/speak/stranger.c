// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibnbd-stranger: a client that wants to get into a server that asks for a key: with a key, without
 * one, or with what it has overheard.
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
 *		takes for AUTH_REQ; from, to: the exchange is passed on from another client, or
 *		was meant for another server
 * replay=1	the proof of the visit before
 * pause=	seconds between the exchange and CONN_REQ
 * claim=	an IPv4 address that it says is its own
 * conn= next=	CONN_REQ of cid 0, of cid 1: good; bad, with another proof; plain, without the
 *		extension; old, without any; again, the bytes of the visit before
 *
 * What was connected stays so until the next visit. tests/cases/trust/auth-strangers says what must
 * come of it. wild.c goes on where this ends: with what is said on connections that were accepted.
 */
#include <linux/delay.h>
#include <linux/hex.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "ibtrs/core/key.h"
#include "ibtrs/proto/auth.h"
#include "ibtrs/proto/msg.h"
#include "tests/speak/stranger.h"

char *stranger_to = "";
module_param_named(to, stranger_to, charp, 0444);
char *stranger_near = "";
module_param_named(near, stranger_near, charp, 0444);	/* another address of the server */

DEFINE_MUTEX(stranger_lock);
static struct stranger_conn knock, conns[2];
static struct ibtrs_wire_auth_proof last_proof;
static struct ibtrs_wire_conn_req last_req[2];
static char said[1024];

void stranger_say(const char *fmt, ...)
{
	size_t n = strlen(said);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said + n, sizeof(said) - n, fmt, ap);
	va_end(ap);
}

void stranger_say_refused(const struct stranger_conn *s, int err)
{
	char text[IBTRS_WORDS_LEN];
	struct ibtrs_conn_rsp rsp;
	const char *why;

	if (err != -ECONNREFUSED ||
	    ibtrs_msg_conn_rsp_decode(s->priv, s->priv_len, true, true, &rsp, &why)) {
		stranger_say("no answer %d\n", err);
		return;
	}
	ibtrs_msg_conn_refused_words(s->priv, s->priv_len, text);
	stranger_say("refused %d %s\n", -rsp.err, text);
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

void stranger_auth(const struct stranger_words *w, struct ibtrs_auth *a)
{
	struct ibtrs_auth_req req = { .recon_cnt = w->recon, .ext = IBTRS_EXT_WORDS };
	struct ibtrs_keys keys = { .nr = 1 };
	struct ibtrs_wire_auth_proof *proof;
	struct ibtrs_wire_auth_req wire;
	char text[IBTRS_WORDS_LEN];
	u8 nonce[IBTRS_NONCE_LEN];
	const char *why = "";
	int err;

	stranger_leave(&knock);
	memset(req.path_uuid, w->path, sizeof(req.path_uuid));
	stranger_session(w, req.session_uuid);
	memcpy(keys.key[0], w->secret, IBTRS_KEY_LEN);
	ibtrs_auth_req_encode(&wire, &req);
	ibtrs_auth_clt_init(a, &wire, w->name, &keys);
	if (!strcmp(w->spoil, "req"))
		flip(&wire, 12); /* on the way, after it was sent */
	stranger_say("knock: ");
	err = stranger_connect(&knock, stranger_to, &wire, sizeof(wire));
	if (err) {
		stranger_say_refused(&knock, err);
		return;
	}
	ibtrs_conn_gids(knock.c.id, a->t.client, a->t.server);
	if (!strcmp(w->spoil, "from"))
		flip(a->t.client, sizeof(a->t.client) - 1);
	if (!strcmp(w->spoil, "to"))
		flip(a->t.server, sizeof(a->t.server) - 1);
	get_random_bytes(nonce, sizeof(nonce));
	err = ibtrs_auth_clt_hello(a, knock.priv, knock.priv_len, nonce, knock.out.buf, &why);
	if (!strcmp(w->spoil, "hello"))
		flip(knock.out.buf, 0);
	err = err ?: stranger_send(&knock, sizeof(struct ibtrs_wire_auth_hello));
	if (!err && ibtrs_auth_verdict_is(knock.in.buf, knock.len)) {
		err = ibtrs_auth_clt_verdict(a, knock.in.buf, knock.len, text);
		stranger_say("verdict %d %s\n", -err, text);
		return;
	}
	proof = knock.out.buf;
	if (!err &&
	    ibtrs_auth_clt_challenge(a, &ibtrs_auth_kernel, knock.in.buf, knock.len, proof, &why)) {
		stranger_say("server has another key, ");
		ibtrs_auth_proof_encode(proof, 0, nonce); /* tries all the same */
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
		stranger_say("no verdict %d\n", err);
		return;
	}
	a->state = IBTRS_AUTH_PROVED;
	err = ibtrs_auth_clt_verdict(a, knock.in.buf, knock.len, text);
	stranger_say("verdict %d %s\n", -err, text);
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
	if (!strcmp(how, "old"))
		req.ext = 0;
	ibtrs_msg_conn_req_encode(&wire, &req);
	if (req.ext & IBTRS_EXT_AUTH)
		ibtrs_auth_req_sign(&ibtrs_auth_kernel, a->ks, &wire);
	if (!strcmp(how, "bad"))
		wire.mac[7] ^= 1;
	if (!strcmp(how, "again"))
		wire = last_req[cid];
	last_req[cid] = wire;
	conns[cid].claim = w->claim;
	err = stranger_connect(&conns[cid], stranger_to, &wire, sizeof(wire));
	stranger_say("cid %u: ", cid);
	if (err)
		stranger_say_refused(&conns[cid], err);
	else
		stranger_say("accepted%s\n",
		    req.ext & IBTRS_EXT_AUTH && ibtrs_auth_rsp_good(&ibtrs_auth_kernel, a->ks,
								    &wire, conns[cid].priv)
			    ? ", and proved"
			    : "");
}

static int stranger_word(const char *word, const char *value, struct stranger_words *w)
{
	static const char *const numbers[] = { "session", "path", "recon", "replay", "pause" };
	unsigned int *const values[] = { &w->session, &w->path, &w->recon, &w->replay, &w->pause };
	int i = match_string(numbers, ARRAY_SIZE(numbers), word);

	if (i >= 0)
		return kstrtouint(value, 0, values[i]);
	if (!strcmp(word, "secret"))
		return hex2bin(w->secret, value, IBTRS_KEY_LEN);
	if (!strcmp(word, "uuid"))
		return hex2bin(w->uuid, value, sizeof(w->uuid));
	if (!strcmp(word, "claim"))
		w->claim = in_aton(value);
	else if (!strcmp(word, "name"))
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

void stranger_silence(void)
{
	lockdep_assert_held(&stranger_lock);
	stranger_leave(&conns[1]);
	stranger_leave(&conns[0]);
	stranger_leave(&knock);
	said[0] = 0;
}

int stranger_words_read(const char *text, struct stranger_words *w)
{
	char *copy = kstrdup(text, GFP_KERNEL), *rest, *word, *value;
	int err = 0;

	if (!copy)
		return -ENOMEM;
	rest = strim(copy);
	while (!err && (word = strsep(&rest, " "))) {
		value = strchr(word, '=');
		if (value)
			*value++ = '\0';
		err = value ? stranger_word(word, value, w) : -EINVAL;
	}
	kfree(copy);
	return err;
}

static int visit_set(const char *val, const struct kernel_param *kp)
{
	struct stranger_words w = { .session = 7, .path = 7, .recon = 1 };
	struct ibtrs_auth *a = kzalloc(sizeof(*a), GFP_KERNEL);
	int err;

	if (!a)
		return -ENOMEM;
	err = stranger_words_read(val, &w);
	mutex_lock(&stranger_lock);
	if (!err) {
		wild_leave_all();
		stranger_silence();
		if (w.name[0])
			stranger_auth(&w, a);
		ssleep(w.pause);
		stranger_conn(&w, a, 0, w.conn);
		stranger_conn(&w, a, 1, w.next);
	}
	mutex_unlock(&stranger_lock);
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
	return 0;
}

static void __exit stranger_exit(void)
{
	guard(mutex)(&stranger_lock);
	wild_leave_all();
	stranger_silence();
}

module_init(stranger_init);
module_exit(stranger_exit);
MODULE_DESCRIPTION("a client that proves what it is told to, and says anything, for tests");
MODULE_LICENSE("GPL");
