// SPDX-License-Identifier: GPL-2.0-only
/*
 * Authentication: golden bytes of each message and proof, the order of the steps, and all that must
 * not pass.
 */
#include "ibtrs/logic/auth.h"
#include "ibtrs/proto/auth.h"
#include "ibtrs/proto/msg.h"
#include "auth_vectors.h"
#include "hmac.h"
#include "unit.h"

static bool hmac_broken;

static int test_hmac(const u8 *key, const void *data, size_t len, u8 *mac)
{
	return hmac_broken ? -ENOMEM : hmac_sha256(key, data, len, mac);
}

static const struct ibtrs_auth_ops ops = { .hmac = test_hmac,
					   .differ = hmac_differ,
					   .wipe = hmac_wipe };
static const u8 zeros[64];
static const char *why;

static struct ibtrs_keys keys_of(const u8 *a, const u8 *b)
{
	struct ibtrs_keys k = { .nr = b ? 2 : 1 };

	memcpy(k.key[0], a, IBTRS_KEY_LEN);
	if (b)
		memcpy(k.key[1], b, IBTRS_KEY_LEN);
	else
		memset(k.key[1], 0x5a, IBTRS_KEY_LEN); /* random, on a server */
	return k;
}

static struct ibtrs_wire_auth_req the_req(void)
{
	struct ibtrs_auth_req m = { .recon_cnt = 7, .ext = IBTRS_EXT_WORDS };
	struct ibtrs_wire_auth_req w;
	int i;

	for (i = 0; i < 16; i++) {
		m.path_uuid[i] = 0xa0 + i;
		m.session_uuid[i] = 0xc0 + i;
	}
	memset(&w, 0xa5, sizeof(w));
	ibtrs_auth_req_encode(&w, &m);
	return w;
}

struct both {
	struct ibtrs_auth c, s;
	struct ibtrs_wire_auth_rsp rsp;
	struct ibtrs_wire_auth_hello hello;
	struct ibtrs_wire_auth_challenge challenge;
	struct ibtrs_wire_auth_proof proof;
};

/* Until the challenge is made. */
static void both_begin(struct both *b, const struct ibtrs_keys *c, const struct ibtrs_keys *s)
{
	struct ibtrs_wire_auth_req req = the_req();

	ibtrs_auth_rsp_encode(&b->rsp);
	ibtrs_auth_clt_init(&b->c, &req, "db-1", c);
	ibtrs_auth_srv_init(&b->s, &req, &b->rsp);
	memcpy(b->c.t.client, golden_client, sizeof(golden_client));
	memcpy(b->c.t.server, golden_server, sizeof(golden_server));
	memcpy(b->s.t.client, golden_client, sizeof(golden_client));
	memcpy(b->s.t.server, golden_server, sizeof(golden_server));
	CHECK_EQ(ibtrs_auth_clt_hello(&b->c, &b->rsp, 56, golden_nonce_c, &b->hello, &why), 0);
	CHECK_EQ(ibtrs_auth_srv_hello(&b->s, &b->hello, sizeof(b->hello), &why), 0);
	CHECK_STR((char *)b->s.t.name, "db-1");
	CHECK_EQ(ibtrs_auth_srv_challenge(&b->s, &ops, s, golden_nonce_s, &b->challenge), 0);
}

static int both_challenge(struct both *b)
{
	return ibtrs_auth_clt_challenge(&b->c, &ops, &b->challenge, sizeof(b->challenge), &b->proof,
					&why);
}

static int both_proof(struct both *b)
{
	return ibtrs_auth_srv_proof(&b->s, &ops, &b->proof, sizeof(b->proof), &why);
}

UNIT_TEST(hmac_of_rfc_4231)
{
	/* Test case 2 has a short key; zeros behind a key are the same key. */
	static const u8 want[32] = {
		0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24,
		0x26, 0x08, 0x95, 0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27,
		0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43,
	};
	u8 key[32] = "Jefe", mac[32];

	hmac_sha256(key, "what do ya want for nothing?", 28, mac);
	CHECK_MEM(mac, want, 32);
}

UNIT_TEST(golden_exchange)
{
	struct ibtrs_keys c = keys_of(golden_key, NULL), s = keys_of(golden_key, golden_next);
	struct ibtrs_wire_auth_req req = the_req();
	struct ibtrs_wire_verdict v;
	char text[IBTRS_WORDS_LEN];
	struct both b;

	both_begin(&b, &c, &s);
	CHECK_MEM(&req, golden_auth_req, 56);
	CHECK_MEM(&b.rsp, golden_auth_rsp, 56);
	CHECK_MEM(&b.hello, golden_hello, sizeof(golden_hello));
	CHECK_MEM(&b.challenge, golden_challenge, sizeof(golden_challenge));
	CHECK_EQ(both_challenge(&b), 0);
	CHECK_MEM(&b.proof, golden_proof, sizeof(golden_proof));
	CHECK_EQ(both_proof(&b), 0);
	CHECK_EQ(b.s.state, IBTRS_AUTH_IN);
	CHECK_MEM(b.s.ks, golden_ks, 32);
	CHECK_MEM(b.c.ks, golden_ks, 32);
	UNIT_ROW("the keys are forgotten as soon as they are not needed");
	CHECK_MEM(b.c.keys.key[0], zeros, 64);
	CHECK_MEM(b.s.keys.key[0], zeros, 64);
	UNIT_ROW("verdict");
	ibtrs_msg_verdict_encode(&v, IBTRS_MSG_AUTH_VERDICT, 0, "");
	CHECK_EQ(ibtrs_auth_clt_verdict(&b.c, &v, sizeof(v), text), 0);
	CHECK_EQ(b.c.state, IBTRS_AUTH_IN);
	ibtrs_auth_end(&b.c, &ops);
	CHECK_MEM(b.c.ks, zeros, 32);
	ibtrs_msg_verdict_encode(&v, IBTRS_MSG_AUTH_VERDICT, -129, "no");
	CHECK_MEM(&v, golden_verdict, sizeof(v));
}

UNIT_TEST(golden_connections)
{
	struct ibtrs_wire_conn_req req;
	struct ibtrs_wire_conn_rsp rsp;
	u8 bad[56];
	int i;

	memcpy(&req, golden_conn_req, 56);
	memset(req.mac, 0, sizeof(req.mac));
	CHECK_EQ(ibtrs_auth_req_sign(&ops, golden_ks, &req), 0);
	CHECK_MEM(&req, golden_conn_req, 56);
	memcpy(&rsp, golden_conn_rsp, 56);
	memset(rsp.mac, 0, sizeof(rsp.mac));
	CHECK_EQ(ibtrs_auth_rsp_sign(&ops, golden_ks, &req, &rsp), 0);
	CHECK_MEM(&rsp, golden_conn_rsp, 56);

	for (i = 0; i < 56 * 8; i++) {
		UNIT_ROW("bit %d of CONN_REQ", i);
		memcpy(bad, golden_conn_req, 56);
		bad[i / 8] ^= 1 << i % 8;
		/* the connection manager overwrites the first two bytes */
		CHECK_EQ(ibtrs_auth_req_good(&ops, golden_ks, bad), i < 16);
		UNIT_ROW("bit %d of CONN_RSP", i);
		memcpy(bad, golden_conn_rsp, 56);
		bad[i / 8] ^= 1 << i % 8;
		/* what is reserved is not looked at */
		CHECK_EQ(ibtrs_auth_rsp_good(&ops, golden_ks, golden_conn_req, bad), i >= 44 * 8);
	}
	UNIT_ROW("the answer to another question");
	memcpy(bad, golden_conn_req, 56);
	bad[6] = 3;
	CHECK(!ibtrs_auth_rsp_good(&ops, golden_ks, bad, golden_conn_rsp));
	UNIT_ROW("another session's key");
	CHECK(!ibtrs_auth_req_good(&ops, golden_key, golden_conn_req));
	CHECK(!ibtrs_auth_rsp_good(&ops, golden_key, golden_conn_req, golden_conn_rsp));
	UNIT_ROW("no hash");
	hmac_broken = true;
	CHECK(!ibtrs_auth_req_good(&ops, golden_ks, golden_conn_req));
	CHECK(!ibtrs_auth_rsp_good(&ops, golden_ks, golden_conn_req, golden_conn_rsp));
	CHECK_EQ(ibtrs_auth_req_sign(&ops, golden_ks, &req), -ENOMEM);
	hmac_broken = false;
}

UNIT_TEST(rotation)
{
	static const u8 *const a = golden_key, *const b = golden_next;
	static const struct {
		const char *name;
		const u8 *c0, *c1, *s0, *s1;
		int which; /* -1: refused */
	} rows[] = {
		{ "neither has begun", a, NULL, a, NULL, 0 },
		{ "the server knows the next one", a, NULL, a, b, 0 },
		{ "the client knows the next one", a, b, a, NULL, 0 },
		{ "both know both", a, b, a, b, 0 },
		{ "the client is through", b, NULL, a, b, 1 },
		{ "the server is through", a, b, b, NULL, 0 },
		{ "both are through", b, NULL, b, NULL, 0 },
		{ "the server is through too early", a, NULL, b, NULL, -1 },
		{ "the client is through too early", b, NULL, a, NULL, -1 },
	};
	struct ibtrs_keys c, s;
	struct both both;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%s", rows[i].name);
		c = keys_of(rows[i].c0, rows[i].c1);
		s = keys_of(rows[i].s0, rows[i].s1);
		both_begin(&both, &c, &s);
		CHECK_EQ(both_challenge(&both), rows[i].which < 0 ? -EKEYREJECTED : 0);
		if (rows[i].which < 0)
			continue;
		CHECK_EQ(le16_to_cpu(both.proof.which), rows[i].which);
		CHECK_EQ(both_proof(&both), 0);
		CHECK_MEM(both.c.ks, both.s.ks, 32);
	}
}

UNIT_TEST(nothing_else_passes)
{
	struct ibtrs_keys k = keys_of(golden_key, NULL),
			  both_keys = keys_of(golden_key, golden_next);
	char text[IBTRS_WORDS_LEN];
	struct ibtrs_wire_verdict v;
	struct both b, other;
	unsigned int i;

	for (i = 0; i < sizeof(b.challenge) * 8; i++) {
		UNIT_ROW("bit %u of the challenge", i);
		both_begin(&b, &k, &k);
		((u8 *)&b.challenge)[i / 8] ^= 1 << i % 8;
		/* reserved bytes, and the MAC of the key that we have not */
		if ((i >= 16 && i < 64) || i >= 72 * 8)
			CHECK_EQ(both_challenge(&b), 0);
		else
			CHECK_EQ(both_challenge(&b), -EKEYREJECTED);
	}
	for (i = 0; i < sizeof(b.proof) * 8; i++) {
		UNIT_ROW("bit %u of the proof", i);
		both_begin(&b, &k, &both_keys);
		both_challenge(&b);
		((u8 *)&b.proof)[i / 8] ^= 1 << i % 8;
		if (i >= 32 && i < 64)
			CHECK_EQ(both_proof(&b), 0);
		else
			CHECK_EQ(both_proof(&b), -EKEYREJECTED);
	}
	for (i = 16; i < 56 * 8; i++) {
		UNIT_ROW("bit %u of AUTH_REQ on the way", i);
		both_begin(&b, &k, &k);
		b.c.t.req[i / 8 - 2] ^= 1 << i % 8;
		CHECK_EQ(both_challenge(&b), -EKEYREJECTED);
	}
	for (i = 0; i < 16 * 8; i++) {
		UNIT_ROW("bit %u of the client that the server sees", i);
		both_begin(&b, &k, &k);
		b.c.t.client[i / 8] ^= 1 << i % 8;
		CHECK_EQ(both_challenge(&b), -EKEYREJECTED);
		UNIT_ROW("bit %u of the server that the client sees", i);
		both_begin(&b, &k, &k);
		b.c.t.server[i / 8] ^= 1 << i % 8;
		CHECK_EQ(both_challenge(&b), -EKEYREJECTED);
		UNIT_ROW("bit %u of the client, the server's proof apart", i);
		both_begin(&b, &k, &k);
		CHECK_EQ(both_challenge(&b), 0);
		b.s.t.client[i / 8] ^= 1 << i % 8;
		CHECK_EQ(both_proof(&b), -EKEYREJECTED);
	}
	UNIT_ROW("the proof of another exchange");
	both_begin(&b, &k, &k);
	both_challenge(&b);
	both_begin(&other, &k, &k);
	ibtrs_auth_srv_init(&other.s, golden_auth_req, &other.rsp);
	CHECK_EQ(ibtrs_auth_srv_hello(&other.s, &b.hello, sizeof(b.hello), &why), 0);
	CHECK_EQ(ibtrs_auth_srv_challenge(&other.s, &ops, &k, golden_nonce_c, &other.challenge), 0);
	CHECK_EQ(ibtrs_auth_srv_proof(&other.s, &ops, &b.proof, sizeof(b.proof), &why),
		 -EKEYREJECTED);
	UNIT_ROW("the server's MAC for a proof");
	both_begin(&b, &k, &k);
	both_challenge(&b);
	memcpy(b.proof.mac, b.challenge.mac[0], 32);
	CHECK_EQ(both_proof(&b), -EKEYREJECTED);
	UNIT_ROW("one attempt");
	CHECK_EQ(b.s.state, IBTRS_AUTH_FAILED);
	CHECK_EQ(ibtrs_auth_srv_proof(&b.s, &ops, golden_proof, sizeof(golden_proof), &why),
		 -EKEYREJECTED);
	CHECK_EQ(ibtrs_auth_srv_hello(&b.s, golden_hello, sizeof(golden_hello), &why),
		 -EKEYREJECTED);
	UNIT_ROW("a right proof with a key that is not there");
	both_begin(&b, &both_keys, &k);
	b.s.keys = both_keys;
	b.s.keys.nr = 1;
	both_challenge(&b);
	CHECK_EQ(ibtrs_auth_srv_proof(&b.s, &ops, golden_proof_next, sizeof(golden_proof_next),
				      &why),
		 -EKEYREJECTED);
	UNIT_ROW("a proof before the challenge");
	ibtrs_auth_srv_init(&b.s, golden_auth_req, &b.rsp);
	CHECK_EQ(ibtrs_auth_srv_proof(&b.s, &ops, golden_proof, sizeof(golden_proof), &why),
		 -EKEYREJECTED);
	UNIT_ROW("let in without a proof");
	both_begin(&b, &k, &k);
	ibtrs_msg_verdict_encode(&v, IBTRS_MSG_AUTH_VERDICT, 0, "");
	CHECK_EQ(ibtrs_auth_clt_verdict(&b.c, &v, sizeof(v), text), -EKEYREJECTED);
	UNIT_ROW("no hash");
	both_begin(&b, &k, &k);
	hmac_broken = true;
	CHECK_EQ(both_challenge(&b), -ENOMEM);
	CHECK_EQ(b.c.state, IBTRS_AUTH_FAILED);
	CHECK_EQ(both_proof(&b), -ENOMEM);
	CHECK_EQ(b.s.state, IBTRS_AUTH_FAILED);
	CHECK_MEM(b.s.ks, zeros, 32);
	hmac_broken = false;
}

UNIT_TEST(codec_refuses)
{
	static const char *const names[] = { "", "a.b", "a:next", "a/b", "a b", "\xc3\xa4" };
	struct ibtrs_wire_auth_challenge c;
	struct ibtrs_wire_auth_hello h;
	struct ibtrs_wire_auth_proof p;
	struct ibtrs_wire_verdict v;
	struct ibtrs_auth_req m;
	char text[IBTRS_WORDS_LEN];
	struct ibtrs_conn_req conn;
	u8 raw[200];
	unsigned int i;

	UNIT_ROW("lengths");
	CHECK(ibtrs_auth_hello_decode(golden_hello, 104, &h, &why));
	CHECK(!ibtrs_auth_hello_decode(golden_hello, 103, &h, &why));
	CHECK(!ibtrs_auth_challenge_decode(golden_challenge, 103, &c, &why));
	CHECK(!ibtrs_auth_proof_decode(golden_proof, 39, &p, &why));
	CHECK_EQ(ibtrs_auth_verdict_decode(golden_verdict, 191, text), -EKEYREJECTED);
	CHECK(!ibtrs_auth_req_decode(golden_auth_req, 55, &m, &why));
	UNIT_ROW("nobody takes one request for the other");
	CHECK(!ibtrs_auth_req_is(golden_conn_req, 56));
	CHECK(!ibtrs_auth_req_decode(golden_conn_req, 56, &m, &why));
	CHECK_EQ(ibtrs_msg_conn_req_decode(golden_auth_req, 56, 4096, &conn, &why), -ECONNRESET);
	CHECK_EQ(conn.ext, 0);
	UNIT_ROW("padded by the connection manager");
	memcpy(raw, golden_auth_req, 56);
	memset(raw + 56, 0, 36);
	CHECK(ibtrs_auth_req_decode(raw, 92, &m, &why));
	CHECK_EQ(m.recon_cnt, 7);
	CHECK_EQ(m.ext, IBTRS_EXT_WORDS);
	UNIT_ROW("another version");
	raw[5] = 2;
	CHECK(!ibtrs_auth_req_decode(raw, 56, &m, &why));
	CHECK_EQ(m.ext, IBTRS_EXT_WORDS);
	memcpy(raw, golden_auth_rsp, 56);
	raw[3] = 2;
	CHECK(!ibtrs_auth_rsp_decode(raw, 56, &why));
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		UNIT_ROW("name '%s'", names[i]);
		ibtrs_auth_hello_encode(&h, names[i], golden_nonce_c);
		memcpy(raw, &h, sizeof(h));
		CHECK(!ibtrs_auth_hello_decode(raw, sizeof(h), &h, &why));
	}
	UNIT_ROW("a name without an end, and one with something behind it");
	memcpy(raw, golden_hello, sizeof(golden_hello));
	memset(raw + 8, 'a', 64);
	CHECK(!ibtrs_auth_hello_decode(raw, 104, &h, &why));
	raw[8 + 62] = 0;
	CHECK(!ibtrs_auth_hello_decode(raw, 104, &h, &why));
	raw[8 + 63] = 0;
	CHECK(ibtrs_auth_hello_decode(raw, 104, &h, &why));
	UNIT_ROW("words of a verdict are printable");
	memcpy(raw, golden_verdict, sizeof(golden_verdict));
	raw[8] = 0x1b;
	CHECK_EQ(ibtrs_auth_verdict_decode(raw, sizeof(v), text), -129);
	CHECK_STR(text, "?o");
	raw[3] = 0xff;
	CHECK_EQ(ibtrs_auth_verdict_decode(raw, sizeof(v), text), -EKEYREJECTED);
	memcpy(raw + 2, (const u8[]){ 0xff, 0x01 }, 2);
	CHECK_EQ(ibtrs_auth_verdict_decode(raw, sizeof(v), text), -511);
	memcpy(raw + 2, (const u8[]){ 0x00, 0x02 }, 2);	/* from here on they are the kernel's own */
	CHECK_EQ(ibtrs_auth_verdict_decode(raw, sizeof(v), text), -EKEYREJECTED);
}

UNIT_TEST(mark)
{
	struct ibtrs_keys c = keys_of(golden_key, NULL), s = keys_of(golden_next, golden_key);
	struct both b;

	both_begin(&b, &c, &s);
	CHECK_EQ(both_challenge(&b), 0);
	CHECK_EQ(both_proof(&b), 0);
	UNIT_ROW("the key that was proved, in either place");
	CHECK(ibtrs_auth_has_mark(&ops, &s, b.s.mark));
	CHECK(ibtrs_auth_has_mark(&ops, &c, b.s.mark));
	UNIT_ROW("replaced, removed, or where there is no hash");
	s.nr = 1;
	CHECK(!ibtrs_auth_has_mark(&ops, &s, b.s.mark));
	c.nr = 0;
	CHECK(!ibtrs_auth_has_mark(&ops, &c, b.s.mark));
	c.nr = 1;
	hmac_broken = true;
	CHECK(!ibtrs_auth_has_mark(&ops, &c, b.s.mark));
	hmac_broken = false;
}

UNIT_TEST(identity)
{
	/* The server keeps it in a file, so it must stay as it is. Computed by Python's hmac. */
	static const u8 want[16] = { 0x6a, 0x97, 0x79, 0xa9, 0x14, 0x60, 0xf2, 0x0f,
				     0x51, 0x11, 0x2f, 0x6b, 0xcb, 0xd4, 0x8c, 0x8a };
	u8 uuid[16], plain[16], one[16], other[16];
	int i;

	for (i = 0; i < 16; i++)
		uuid[i] = 0xc0 + i;
	CHECK_EQ(ibtrs_auth_identity(&ops, uuid, "db-1", one), 0);
	CHECK_MEM(one, want, 16);
	CHECK_EQ(ibtrs_auth_identity(&ops, uuid, "db-2", other), 0);
	CHECK(memcmp(one, other, 16));
	UNIT_ROW("without a key it is the uuid, also where there is no hash");
	hmac_broken = true;
	uuid[6] = 0x4f;			/* version 4: random */
	CHECK_EQ(ibtrs_auth_identity(&ops, uuid, "", plain), 0);
	CHECK_MEM(plain, uuid, 16);
	CHECK_EQ(ibtrs_auth_identity(&ops, uuid, "db-1", plain), -ENOMEM);
	hmac_broken = false;
	UNIT_ROW("who chooses an identity as its uuid does not get it");
	CHECK_EQ(ibtrs_auth_identity(&ops, one, "", plain), 0);
	CHECK(memcmp(plain, one, 16));
	UNIT_ROW("nor that of a uuid which differs in one bit, whichever it is");
	for (i = 0; i < 128; i++) {
		CHECK_EQ(ibtrs_auth_identity(&ops, uuid, "", plain), 0);
		memcpy(one, uuid, 16);
		one[i / 8] ^= 1 << i % 8;
		CHECK_EQ(ibtrs_auth_identity(&ops, one, "", other), 0);
		CHECK(memcmp(plain, other, 16));
		CHECK(!(other[6] & 0x80));
	}
	hmac_broken = true;
	one[6] |= 0x80;
	CHECK_EQ(ibtrs_auth_identity(&ops, one, "", plain), -ENOMEM);
	hmac_broken = false;
	UNIT_ROW("nobody is nobody");
	memset(uuid, 0, 16);
	CHECK_EQ(ibtrs_auth_identity(&ops, uuid, "", plain), 0);
	CHECK(memcmp(plain, zeros, 16));
	uuid[6] = 0x80;
	CHECK_EQ(ibtrs_auth_identity(&ops, uuid, "", plain), 0);
	CHECK(memcmp(plain, zeros, 16));
}
