// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys of libibtrs against peers without it: proofs that are cut, changed, or sent again; servers
 * that have not the key.
 */
#include "ibtrs/user/auth.h"
#include "auth_vectors.h"
#include "raw.h"

static uint64_t clock_ms;

static uint64_t clock_now(void *priv)
{
	return clock_ms;
}

static unsigned int keys_get(void *priv, const char *name,
			     uint8_t key[IBTRS_SECRETS][IBTRS_SECRET_LEN])
{
	memcpy(key[0], golden_key, IBTRS_SECRET_LEN);
	return !strcmp(name, "db-1");
}

static struct ibtrs_srv *server(uint32_t auth)
{
	const struct ibtrs_srv_opts o = {
		.size = sizeof(o), .queue_depth = 16, .max_io_size = 8192, .now_ms = clock_now,
		.auth = auth, .key = keys_get,
	};
	struct ibtrs_srv *srv = NULL;

	clock_ms = 1000000;
	CHECK_EQ(ibtrs_srv_new(&o, &srv, NULL), 0);
	return srv;
}

/* A client without the library, and what it has sent. */
struct knock {
	struct raw_path p;
	struct ibtrs_auth a;
	struct ibtrs_wire_auth_proof proof;
};

static int say(struct raw_path *p, uint16_t op, const void *data, size_t len)
{
	raw_send(&p->r, op, 0, 0, 0, data, (uint32_t)len);
	raw_poll(p);
	return raw_recv(&p->r);
}

/* Until the proof is made. @id: of path and session. */
static bool knock_begin(struct knock *k, struct ibtrs_srv *srv, uint8_t id)
{
	struct ibtrs_auth_req m = {
		.recon_cnt = 1, .ext = IBTRS_EXT_WORDS, .path_uuid = { id },
		.session_uuid = { id },
	};
	struct ibtrs_keys keys = { .nr = 1 };
	struct ibtrs_wire_auth_hello hello;
	struct ibtrs_wire_auth_req req;
	uint8_t nonce[IBTRS_NONCE_LEN] = { id };
	const char *why = "";

	memcpy(keys.key[0], golden_key, IBTRS_KEY_LEN);
	ibtrs_auth_req_encode(&req, &m);
	ibtrs_auth_clt_init(&k->a, &req, "db-1", &keys);
	raw_dial(&k->p, srv);
	return CHECK_EQ(say(&k->p, IBTRS_FRAME_REQ, &req, sizeof(req)), 1) &&
	       CHECK_EQ(k->p.r.f.op, IBTRS_FRAME_REP) &&
	       CHECK_EQ(ibtrs_auth_clt_hello(&k->a, k->p.r.data, k->p.r.f.len, nonce, &hello, &why),
			0) &&
	       CHECK_EQ(say(&k->p, IBTRS_FRAME_SEND, &hello, sizeof(hello)), 1) &&
	       CHECK_EQ(ibtrs_auth_clt_challenge(&k->a, &ibtrs_auth_user, k->p.r.data,
						 k->p.r.f.len, &k->proof, &why), 0);
}

/* The verdict: 0 or an error, and how long it took. */
static int knock_verdict(struct knock *k, char *text, uint64_t *ms)
{
	uint64_t from = clock_ms;
	int n;

	while (!(n = raw_recv(&k->p.r)) && clock_ms < from + 10000) {
		clock_ms += 10;
		raw_poll(&k->p);
	}
	*ms = clock_ms - from;
	return n == 1 ? ibtrs_auth_verdict_decode(k->p.r.data, k->p.r.f.len, text) : n ?: 1;
}

UNIT_TEST(proofs_that_are_none)
{
	struct ibtrs_srv *srv = server(IBTRS_SRV_AUTH_REQUIRED);
	struct knock first, k;
	static const struct {
		const char *what;
		unsigned int len, bit, err;
		bool replay;
		const char *text;
	} *r, rows[] = {
		{ "the proof", 40, 0, 0, false, "" },
		{ "cut by a byte", 39, 0, EKEYREJECTED, false, "the second message is no proof" },
		{ "a byte longer", 41, 0, EKEYREJECTED, false, "the second message is no proof" },
		{ "nothing", 0, 0, EKEYREJECTED, false, "the second message is no proof" },
		{ "a bit is changed", 40, 8 * 8 + 1, EKEYREJECTED, false,
		  "the proof is wrong: the client has another key of that name, or none" },
		{ "the other place", 40, 8 * 2, EKEYREJECTED, false,
		  "the proof is wrong: the client has another key of that name, or none" },
		{ "sent again", 40, 0, EKEYREJECTED, true,
		  "the proof is wrong: the client has another key of that name, or none" },
	};
	char text[IBTRS_WORDS_LEN];
	uint8_t bytes[48];
	uint64_t ms;

	CHECK(knock_begin(&first, srv, 1));
	for (r = rows; r < rows + ARRAY_SIZE(rows); r++) {
		UNIT_ROW("%s", r->what);
		CHECK(knock_begin(&k, srv, 1));
		memset(bytes, 0, sizeof(bytes));
		memcpy(bytes, r->replay ? &first.proof : &k.proof, sizeof(k.proof));
		if (r->bit)
			bytes[r->bit / 8] ^= 1 << r->bit % 8;
		raw_send(&k.p.r, IBTRS_FRAME_SEND, 0, 0, 0, bytes, r->len);
		raw_poll(&k.p);
		CHECK_EQ(knock_verdict(&k, text, &ms), -(int)r->err);
		CHECK_STR(text, r->text);
		/* Who guesses waits. */
		CHECK_EQ(ms, r->err ? 1000 : 0);
		raw_path_end(&k.p);
	}
	raw_path_end(&first.p);
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}

UNIT_TEST(messages_out_of_order)
{
	struct ibtrs_srv *srv = server(IBTRS_SRV_AUTH_OPTIONAL);
	struct ibtrs_wire_auth_hello hello;
	struct knock k;
	char text[IBTRS_WORDS_LEN];
	uint64_t ms;

	UNIT_ROW("a second HELLO in place of the proof");
	CHECK(knock_begin(&k, srv, 1));
	ibtrs_auth_hello_encode(&hello, "db-1", golden_nonce_c);
	raw_send(&k.p.r, IBTRS_FRAME_SEND, 0, 0, 0, &hello, sizeof(hello));
	raw_poll(&k.p);
	CHECK_EQ(knock_verdict(&k, text, &ms), -EKEYREJECTED);
	CHECK_STR(text, "the second message is no proof");
	raw_path_end(&k.p);

	UNIT_ROW("the proof again, while the refusal waits");
	CHECK(knock_begin(&k, srv, 1));
	raw_send(&k.p.r, IBTRS_FRAME_SEND, 0, 0, 0, &k.proof, 39);
	raw_poll(&k.p);
	CHECK_EQ(say(&k.p, IBTRS_FRAME_SEND, &k.proof, sizeof(k.proof)), 0);
	CHECK_EQ(knock_verdict(&k, text, &ms), -EKEYREJECTED);
	CHECK_STR(text, "the second message is no proof");
	CHECK_EQ(ms, 1000);
	/* The verdict was the last word. */
	CHECK_EQ(say(&k.p, IBTRS_FRAME_SEND, &k.proof, sizeof(k.proof)), -1);
	raw_path_end(&k.p);

	UNIT_ROW("a write while the refusal waits");
	CHECK(knock_begin(&k, srv, 1));
	raw_send(&k.p.r, IBTRS_FRAME_SEND, 0, 0, 0, &k.proof, 39);
	raw_poll(&k.p);
	CHECK_EQ(say(&k.p, IBTRS_FRAME_WRITE_IMM, NULL, 0), -1);
	raw_path_end(&k.p);

	UNIT_ROW("a write");
	CHECK(knock_begin(&k, srv, 1));
	CHECK_EQ(say(&k.p, IBTRS_FRAME_WRITE_IMM, NULL, 0), -1);
	raw_path_end(&k.p);

	UNIT_ROW("nothing");
	CHECK(knock_begin(&k, srv, 1));
	CHECK_EQ(knock_verdict(&k, text, &ms), -1);
	CHECK_EQ(ms, 5000);
	raw_path_end(&k.p);
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}

/* CONN_REQ of @id and @cid, signed by @ks, then bit @bit changed. Return: err of the answer. */
static int conn_req(struct raw_path *p, struct ibtrs_srv *srv, const uint8_t *ks, uint8_t id,
		    uint16_t cid, uint16_t recon_cnt, unsigned int bit)
{
	const struct ibtrs_conn_req m = {
		.cid = cid, .cid_num = 2, .recon_cnt = recon_cnt, .first_conn = true,
		.ext = IBTRS_EXT_WORDS | (ks ? IBTRS_EXT_AUTH : 0), .path_uuid = { id },
		.session_uuid = { id },
	};
	struct ibtrs_wire_conn_req w;
	struct ibtrs_conn_rsp rsp = { .err = -1 };

	ibtrs_msg_conn_req_encode(&w, &m);
	if (ks)
		ibtrs_auth_req_sign(&ibtrs_auth_user, ks, &w);
	((uint8_t *)&w)[bit / 8] ^= bit ? 1 << bit % 8 : 0;
	raw_dial(p, srv);
	if (say(p, IBTRS_FRAME_REQ, &w, sizeof(w)) != 1)
		return 1;
	if (p->r.f.op == IBTRS_FRAME_REP)
		return ks && !ibtrs_auth_rsp_good(&ibtrs_auth_user, ks, &w, p->r.data) ? 2 : 0;
	ibtrs_msg_conn_rsp_decode(p->r.data, p->r.f.len, true, false, &rsp, NULL);
	return rsp.err;
}

/* Proves the key, and leaves. */
static void grant(struct ibtrs_srv *srv, struct knock *k, uint8_t id)
{
	char text[IBTRS_WORDS_LEN];
	uint64_t ms;

	CHECK(knock_begin(k, srv, id));
	raw_send(&k->p.r, IBTRS_FRAME_SEND, 0, 0, 0, &k->proof, sizeof(k->proof));
	raw_poll(&k->p);
	CHECK_EQ(knock_verdict(k, text, &ms), 0);
	raw_path_end(&k->p);
}

UNIT_TEST(grants)
{
	struct ibtrs_srv *srv = server(IBTRS_SRV_AUTH_OPTIONAL);
	struct raw_path p[6];
	struct knock k, other;
	const uint8_t *ks = k.a.ks;

	UNIT_ROW("nothing was proved");
	CHECK_EQ(conn_req(&p[0], srv, golden_ks, 1, 0, 1, 0), -EKEYREJECTED);
	raw_path_end(&p[0]);

	grant(srv, &k, 1);
	UNIT_ROW("a wrong proof does not use it up");
	CHECK_EQ(conn_req(&p[0], srv, ks, 1, 0, 1, 48 * 8), -EKEYREJECTED);
	raw_path_end(&p[0]);
	UNIT_ROW("another path, or another life of it");
	CHECK_EQ(conn_req(&p[0], srv, ks, 2, 0, 1, 0), -EKEYREJECTED);
	raw_path_end(&p[0]);
	CHECK_EQ(conn_req(&p[0], srv, ks, 1, 0, 2, 0), -EKEYREJECTED);
	raw_path_end(&p[0]);
	UNIT_ROW("a good one does");
	CHECK_EQ(conn_req(&p[0], srv, ks, 1, 0, 1, 0), 0);
	CHECK_EQ(conn_req(&p[1], srv, ks, 1, 0, 1, 0), -EKEYREJECTED);
	raw_path_end(&p[1]);

	UNIT_ROW("other connections of the path");
	grant(srv, &other, 1);
	CHECK_EQ(conn_req(&p[1], srv, other.a.ks, 1, 1, 1, 0), -EKEYREJECTED);
	raw_path_end(&p[1]);
	CHECK_EQ(conn_req(&p[1], srv, ks, 1, 1, 1, 50 * 8), -EKEYREJECTED);
	raw_path_end(&p[1]);
	/* It finds no path: those of a key are not to be seen without it. */
	CHECK_EQ(conn_req(&p[1], srv, NULL, 1, 1, 1, 0), -ECONNRESET);
	raw_path_end(&p[1]);
	CHECK_EQ(conn_req(&p[1], srv, ks, 1, 1, 1, 0), 0);
	UNIT_ROW("a client without a key does not end it");
	CHECK_EQ(conn_req(&p[2], srv, NULL, 1, 0, 9, 0), 0);
	CHECK_EQ(raw_recv(&p[0].r), 0);
	raw_path_end(&p[2]);
	raw_path_end(&p[1]);
	raw_path_end(&p[0]);

	UNIT_ROW("for half a minute");
	grant(srv, &k, 3);
	clock_ms += 29999;
	CHECK_EQ(conn_req(&p[0], srv, ks, 3, 0, 1, 0), 0);
	raw_path_end(&p[0]);
	grant(srv, &k, 4);
	clock_ms += 30001;
	CHECK_EQ(conn_req(&p[0], srv, ks, 4, 0, 1, 0), -EKEYREJECTED);
	raw_path_end(&p[0]);
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}

/* One key has 128 grants at a time. */
UNIT_TEST(grants_are_bounded)
{
	struct ibtrs_srv *srv = server(IBTRS_SRV_AUTH_REQUIRED);
	static struct knock k[130];
	struct raw_path p;
	unsigned int i;

	for (i = 1; i < 130; i++)
		grant(srv, &k[i], (uint8_t)i);
	CHECK_EQ(conn_req(&p, srv, k[1].a.ks, 1, 0, 1, 0), -EKEYREJECTED);
	raw_path_end(&p);
	CHECK_EQ(conn_req(&p, srv, k[2].a.ks, 2, 0, 1, 0), 0);
	raw_path_end(&p);
	CHECK_EQ(conn_req(&p, srv, k[129].a.ks, 129, 0, 1, 0), 0);
	raw_path_end(&p);
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}

/* ---- a server without the library --------------------------------------- */

static int dialled = -1;

static int dial(void *priv, const char *path, unsigned int cid)
{
	int fd[2];

	if (dialled >= 0)
		return -ENETUNREACH;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd))
		abort();
	dialled = fd[1];
	return fd[0];
}

/* Takes a frame of the client; steps it. */
static int take(struct ibtrs_ctx *ctx, struct raw *r, uint16_t op, size_t len)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		ibtrs_ctx_step(ctx, 0);
	r->fd = dialled;
	return raw_recv(r) == 1 && r->f.op == op && r->f.len == len;
}

UNIT_TEST(servers_without_the_key)
{
	enum { NOT_OURS, LIES, NO_MAC, EARLY, ROWS };
	static const char *const whys[ROWS] = {
		[NOT_OURS] = "the server cannot authenticate, it is an in-kernel one or an old one: open without a key, or with another server",
		[LIES] = "key db-1: the server does not prove that it has the key: it has none of that name loaded, or another one, or is not the server",
		[NO_MAC] = "the server's answer does not carry the proof that it has the key",
		[EARLY] = "key db-1: the server refused the proof, and did not say why",
	};
	static const char *const names[] = { "A" };
	struct ibtrs_clt_opts o = {
		.size = sizeof(o), .flags = IBTRS_CLT_NOWAIT, .name = "test", .key_name = "db-1",
		.key = golden_key, .dial = dial,
	};
	struct ibtrs_ctx_opts co = { .size = sizeof(co), .now_ms = clock_now };
	const struct ibtrs_conn_rsp conn_rsp = {
		.limits = { .queue_depth = 16, .max_io_size = 8192, .max_hdr_size = 4096 },
		.ext = IBTRS_EXT_FENCE | IBTRS_EXT_AUTH,
	};
	struct ibtrs_keys keys = { .nr = 1 };
	struct ibtrs_wire_auth_challenge challenge;
	struct ibtrs_wire_verdict verdict;
	struct ibtrs_wire_conn_refused refused;
	struct ibtrs_wire_conn_rsp plain;
	struct ibtrs_wire_auth_rsp rsp;
	struct ibtrs_path_info info = { .size = sizeof(info) };
	static struct raw r;
	struct ibtrs_ctx *ctx;
	struct ibtrs_clt *clt;
	struct ibtrs_auth a;
	const char *why;
	int i;

	for (i = 0; i < ROWS; i++) {
		UNIT_ROW("%d", i);
		memcpy(keys.key[0], i == LIES ? golden_next : golden_key, IBTRS_KEY_LEN);
		CHECK_EQ(ibtrs_ctx_new(&ctx, &co), 0);
		CHECK_EQ(ibtrs_clt_open(ctx, names, 1, &o, &clt, NULL), 0);
		CHECK(take(ctx, &r, IBTRS_FRAME_REQ, sizeof(struct ibtrs_wire_auth_req)));
		if (i == NOT_OURS) {
			raw_send(&r, IBTRS_FRAME_REJ, 0, 0, 0, &refused,
				 ibtrs_msg_conn_refused_encode(&refused, -ECONNRESET, 0, ""));
			goto judge;
		}
		ibtrs_auth_rsp_encode(&rsp);
		ibtrs_auth_srv_init(&a, r.data, &rsp);
		raw_send(&r, IBTRS_FRAME_REP, 0, 0, 0, &rsp, sizeof(rsp));
		CHECK(take(ctx, &r, IBTRS_FRAME_SEND, sizeof(struct ibtrs_wire_auth_hello)));
		CHECK_EQ(ibtrs_auth_srv_hello(&a, r.data, r.f.len, &why), 0);
		ibtrs_auth_srv_challenge(&a, &ibtrs_auth_user, &keys, golden_nonce_s, &challenge);
		ibtrs_msg_verdict_encode(&verdict, IBTRS_MSG_AUTH_VERDICT, 0, "");
		if (i == EARLY)
			raw_send(&r, IBTRS_FRAME_SEND, 0, 0, 0, &verdict, sizeof(verdict));
		else
			raw_send(&r, IBTRS_FRAME_SEND, 0, 0, 0, &challenge, sizeof(challenge));
		if (i == NO_MAC) {
			CHECK(take(ctx, &r, IBTRS_FRAME_SEND,
				   sizeof(struct ibtrs_wire_auth_proof)));
			CHECK_EQ(ibtrs_auth_srv_proof(&a, &ibtrs_auth_user, r.data, r.f.len, &why),
				 0);
			raw_send(&r, IBTRS_FRAME_SEND, 0, 0, 0, &verdict, sizeof(verdict));
			close(dialled);
			dialled = -1;
			CHECK(take(ctx, &r, IBTRS_FRAME_REQ, sizeof(struct ibtrs_wire_conn_req)));
			CHECK(ibtrs_auth_req_good(&ibtrs_auth_user, a.ks, r.data));
			ibtrs_msg_conn_rsp_encode(&plain, &conn_rsp);
			raw_send(&r, IBTRS_FRAME_REP, 0, 0, 0, &plain, sizeof(plain));
		}
judge:
		/* It leaves, and sends nothing more. */
		CHECK(!take(ctx, &r, 0, 0));
		CHECK_EQ(raw_recv(&r), -1);
		ibtrs_clt_path_info(clt, 0, &info);
		CHECK_EQ(info.err, -EKEYREJECTED);
		CHECK_STR(info.why, whys[i]);
		ibtrs_clt_close(clt);
		CHECK_EQ(ibtrs_ctx_free(ctx), 0);
		close(dialled);
		dialled = -1;
	}
}

/* The server does not trust a proof on a stream that leaves the host. */
UNIT_TEST(in_the_open)
{
	static const char why[] = "over TCP a key is proved in TLS alone: the client is another one, or somebody is between";
	const struct ibtrs_auth_req auth = { .recon_cnt = 1, .ext = IBTRS_EXT_WORDS };
	const struct ibtrs_conn_req req = {
		.cid_num = 1, .recon_cnt = 1, .first_conn = true,
		.ext = IBTRS_EXT_AUTH | IBTRS_EXT_WORDS,
	};
	struct ibtrs_wire_auth_req a;
	struct ibtrs_wire_conn_req c;
	const struct {
		const char *what;
		const void *data;
		uint32_t len, auth;
		bool tcp;
	} *r, rows[] = {
		{ "AUTH_REQ", &a, sizeof(a), IBTRS_SRV_AUTH_REQUIRED, true },
		{ "AUTH_REQ, optional", &a, sizeof(a), IBTRS_SRV_AUTH_OPTIONAL, true },
		{ "CONN_REQ", &c, sizeof(c), IBTRS_SRV_AUTH_OPTIONAL, true },
		{ "AUTH_REQ in the host", &a, sizeof(a), IBTRS_SRV_AUTH_REQUIRED, false },
	};

	ibtrs_auth_req_encode(&a, &auth);
	ibtrs_msg_conn_req_encode(&c, &req);
	for (r = rows; r < rows + ARRAY_SIZE(rows); r++) {
		struct ibtrs_srv *srv = server(r->auth);
		struct raw_path p = { 0 };
		char words[IBTRS_WORDS_LEN] = "";
		int fd[2], i, n = 0;

		UNIT_ROW("%s", r->what);
		if (r->tcp) {
			tcp_pair("127.0.0.1", fd);
			CHECK_EQ(ibtrs_srv_take(srv, fd[1]), 0);
			p.srv = srv;
			p.r.fd = fd[0];
		} else {
			raw_dial(&p, srv);
		}
		raw_send(&p.r, IBTRS_FRAME_REQ, 0, 0, 0, r->data, r->len);
		for (i = 0; i < 4000 && !n; i++) {
			raw_poll(&p);
			usleep(300);
			n = raw_recv(&p.r);
		}
		CHECK_EQ(n, 1);
		CHECK_EQ(p.r.f.op, r->tcp ? IBTRS_FRAME_REJ : IBTRS_FRAME_REP);
		if (r->tcp) {
			CHECK(ibtrs_msg_conn_refused_words(p.r.data, p.r.f.len, words));
			CHECK_STR(words, why);
		}
		close(p.r.fd);
		CHECK_EQ(ibtrs_srv_free(srv), 0);
	}
}
