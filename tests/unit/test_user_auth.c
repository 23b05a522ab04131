// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys of libibtrs: who is let in and who is not, in which words; proofs that are cut, changed or
 * sent again; servers that have not the key; what is left of a key.
 */
#include "ibtrs/user/clt.h"
#include "ibtrs/user/srv.h"
#include "auth_vectors.h"
#include "user.h"

#define NO_PROOF "the server does not prove that it has the key: it has none of that name loaded, or another one, or is not the server"

static uint64_t clock_ms;

static uint64_t clock_now(void *priv)
{
	return clock_ms;
}

/* The server's keys: db-1 has one or two, db-2 has another, until the test takes them away. */
static unsigned int keys_nr, keys_asked, keys_until;

static unsigned int keys_get(void *priv, const char *name,
			     uint8_t key[IBTRS_SECRETS][IBTRS_SECRET_LEN])
{
	keys_asked++;
	if (keys_until && keys_asked >= keys_until)
		return 0;
	if (!strcmp(name, "db-1")) {
		memcpy(key[0], golden_key, IBTRS_SECRET_LEN);
		memcpy(key[1], golden_next, IBTRS_SECRET_LEN);
		return keys_nr;
	}
	memcpy(key[0], golden_nonce_s, IBTRS_SECRET_LEN);
	return !strcmp(name, "db-2");
}

static void keys_are(unsigned int nr)
{
	keys_nr = nr;
	keys_asked = keys_until = 0;
}

static char admitted[IBTRS_KEY_NAME_LEN];

static int admit(void *priv, const char *name, const char *peer, const char *key,
		 char why[IBTRS_WHY_LEN])
{
	snprintf(admitted, sizeof(admitted), "%s", key);
	return 0;
}

static char said[2 * IBTRS_WHY_LEN];		/* by the server, for its log */

static void refused(void *priv, const char *peer, const char *what)
{
	snprintf(said, sizeof(said), "%s", what);
}

static struct ibtrs_srv_opts server(uint32_t auth)
{
	return (struct ibtrs_srv_opts){
		.size = sizeof(struct ibtrs_srv_opts), .queue_depth = 32, .max_io_size = 8192,
		.admit = admit, .now_ms = clock_now, .auth = auth, .key = keys_get,
		.refused = refused,
	};
}

/* ---- the primitives ----------------------------------------------------- */

UNIT_TEST(golden_exchange)
{
	struct ibtrs_keys c = { .nr = 1 }, s = { .nr = 2 };
	struct ibtrs_wire_auth_challenge challenge;
	struct ibtrs_wire_auth_hello hello;
	struct ibtrs_wire_auth_proof proof;
	struct ibtrs_wire_auth_req req;
	struct ibtrs_wire_auth_rsp rsp;
	struct ibtrs_wire_conn_req creq;
	struct ibtrs_wire_conn_rsp crsp;
	struct ibtrs_auth ac, as;
	const char *why;

	memcpy(&req, golden_auth_req, sizeof(req));
	memcpy(c.key[0], golden_key, sizeof(c.key[0]));
	memcpy(s.key[0], golden_key, sizeof(s.key[0]));
	memcpy(s.key[1], golden_next, sizeof(s.key[1]));
	ibtrs_auth_rsp_encode(&rsp);
	ibtrs_auth_clt_init(&ac, &req, "db-1", &c);
	ibtrs_auth_srv_init(&as, &req, &rsp);
	memcpy(ac.t.client, golden_client, sizeof(ac.t.client));
	memcpy(ac.t.server, golden_server, sizeof(ac.t.server));
	memcpy(as.t.client, golden_client, sizeof(as.t.client));
	memcpy(as.t.server, golden_server, sizeof(as.t.server));
	CHECK_EQ(ibtrs_auth_clt_hello(&ac, &rsp, sizeof(rsp), golden_nonce_c, &hello, &why), 0);
	CHECK_EQ(ibtrs_auth_srv_hello(&as, &hello, sizeof(hello), &why), 0);
	CHECK_EQ(ibtrs_auth_srv_challenge(&as, &ibtrs_auth_user, &s, golden_nonce_s, &challenge),
		 0);
	CHECK_MEM(&challenge, golden_challenge, sizeof(golden_challenge));
	CHECK_EQ(ibtrs_auth_clt_challenge(&ac, &ibtrs_auth_user, &challenge, sizeof(challenge),
					  &proof, &why), 0);
	CHECK_MEM(&proof, golden_proof, sizeof(golden_proof));
	CHECK_EQ(ibtrs_auth_srv_proof(&as, &ibtrs_auth_user, &proof, sizeof(proof), &why), 0);
	CHECK_MEM(ac.ks, golden_ks, sizeof(golden_ks));
	CHECK_MEM(as.ks, golden_ks, sizeof(golden_ks));
	memcpy(&creq, golden_conn_req, sizeof(creq));
	memset(creq.mac, 0, sizeof(creq.mac));
	CHECK_EQ(ibtrs_auth_req_sign(&ibtrs_auth_user, golden_ks, &creq), 0);
	CHECK_MEM(&creq, golden_conn_req, sizeof(creq));
	memcpy(&crsp, golden_conn_rsp, sizeof(crsp));
	memset(crsp.mac, 0, sizeof(crsp.mac));
	CHECK_EQ(ibtrs_auth_rsp_sign(&ibtrs_auth_user, golden_ks, &creq, &crsp), 0);
	CHECK_MEM(&crsp, golden_conn_rsp, sizeof(crsp));
	ibtrs_auth_end(&ac, &ibtrs_auth_user);
	CHECK(ac.ks[0] == 0 && !memcmp(ac.ks, ac.ks + 1, sizeof(ac.ks) - 1));
}

/* ---- both ends ---------------------------------------------------------- */

/* The client that the application sees is that of the kernel's server: a key's is its own. */
static void identity_is_of(const struct ibtrs_srv_session *s, const char *key)
{
	u8 want[IBTRS_UUID_LEN];

	CHECK_EQ(ibtrs_auth_identity(&ibtrs_auth_user, s->uuid, key, want), 0);
	CHECK_MEM(s->paths->ops[0].op.uuid, want, sizeof(want));
	CHECK(!*key || memcmp(want, s->uuid, sizeof(want)));
}

UNIT_TEST(who_is_let_in)
{
	static const struct {
		const char *what, *name;
		const uint8_t *key, *next;
		uint32_t auth, nr;
		int err;
		const char *why, *log;
	} *r, rows[] = {
		{ "no key, off", NULL, NULL, NULL, IBTRS_SRV_AUTH_OFF, 1, 0, "" },
		{ "no key, optional", NULL, NULL, NULL, IBTRS_SRV_AUTH_OPTIONAL, 1, 0, "" },
		{ "no key, required", NULL, NULL, NULL, IBTRS_SRV_AUTH_REQUIRED, 1, -EACCES,
		  "the server says: authentication is required here: open with a key (map with auth=KEY)",
		  "connection refused: authentication is required here: " },
		{ "the key, off", "db-1", golden_key, NULL, IBTRS_SRV_AUTH_OFF, 1, -EKEYREJECTED,
		  "the server says: authentication is disabled here: open without a key (map without auth=)",
		  "connection refused: authentication is disabled here: " },
		{ "the key, optional", "db-1", golden_key, NULL, IBTRS_SRV_AUTH_OPTIONAL, 1, 0, "" },
		{ "the key, required", "db-1", golden_key, NULL, IBTRS_SRV_AUTH_REQUIRED, 1, 0, "" },
		{ "another key, optional", "db-1", golden_nonce_c, NULL, IBTRS_SRV_AUTH_OPTIONAL, 1,
		  -EKEYREJECTED, "key db-1: " NO_PROOF,
		  "key db-1: authentication failed: the client left without a proof: it has another key" },
		{ "another key, required", "db-1", golden_nonce_c, NULL, IBTRS_SRV_AUTH_REQUIRED, 2,
		  -EKEYREJECTED, "key db-1: " NO_PROOF,
		  "key db-1: authentication failed: the client left without a proof: it has another key" },
		{ "a key of another name", "db-3", golden_key, NULL, IBTRS_SRV_AUTH_REQUIRED, 1,
		  -EKEYREJECTED, "key db-3: " NO_PROOF,
		  "key db-3: authentication failed: there is no key of that name here" },
		{ "the server has it as the next", "db-1", golden_next, NULL,
		  IBTRS_SRV_AUTH_REQUIRED, 2, 0, "" },
		{ "the server has it no more", "db-1", golden_next, NULL, IBTRS_SRV_AUTH_REQUIRED,
		  1, -EKEYREJECTED, "key db-1: " NO_PROOF,
		  "key db-1: authentication failed: the client left without a proof: it has another key" },
		{ "the client has it as the next", "db-1", golden_nonce_c, golden_key,
		  IBTRS_SRV_AUTH_REQUIRED, 1, 0, "" },
	};

	for (r = rows; r < rows + ARRAY_SIZE(rows); r++) {
		struct ibtrs_path_info info = { .size = sizeof(info) };
		struct ibtrs_srv_opts so = server(r->auth);
		struct ibtrs_clt_opts o = {
			.key_name = r->name, .key = r->key, .next_key = r->next, .queues = 2,
		};
		struct world_hdr h;
		struct ibtrs_io io;
		uint8_t data[8] = "secrets";
		struct world w;

		UNIT_ROW("%s", r->what);
		keys_are(r->nr);
		strcpy(admitted, "?");
		said[0] = 0;
		world_open(&w, &so, 1, &o);
		world_turns(&w, 40);
		CHECK_EQ(world_up(&w), !r->err);
		ibtrs_clt_path_info(w.clt, 0, &info);
		CHECK_EQ(info.err, r->err);
		CHECK_STR(info.why, r->why);
		CHECK(r->log ? !!strstr(said, r->log) : !*said);
		CHECK_STR(admitted, r->err ? "?" : r->name ?: "");
		if (!r->err) {
			io = world_io(IBTRS_IO_WRITE, &h, 3, data, sizeof(data));
			CHECK_EQ(world_do(&w, &io), 0);
			CHECK_MEM(w.disk[3], data, sizeof(data));
			identity_is_of(w.srv->sessions, r->name ?: "");
		}
		world_end(&w);
	}
}

/* As the manual has it: over TCP, with the addresses of both ends in the proof. */
UNIT_TEST(over_tcp)
{
	struct ibtrs_srv_opts so = server(IBTRS_SRV_AUTH_REQUIRED);
	struct ibtrs_ctx_opts co = { .size = sizeof(co) };
	struct ibtrs_clt_opts o = {
		.size = sizeof(o), .flags = IBTRS_CLT_NOWAIT, .name = "test", .key_name = "db-1",
		.key = golden_key,
	};
	static const char *const at[] = { "127.0.0.1", "[::1]" };
	char why[IBTRS_WHY_LEN] = "", path[64];
	const char *list = path;
	struct ibtrs_ctx *ctx;
	struct ibtrs_srv *srv;
	struct ibtrs_clt *clt;
	unsigned int a, i;
	int port;

	so.now_ms = NULL;
	keys_are(1);
	for (a = 0; a < 2; a++) {
		struct ibtrs_clt_info info = { .size = sizeof(info) };

		UNIT_ROW("%s", at[a]);
		CHECK_EQ(ibtrs_srv_new(&so, &srv, why), 0);
		snprintf(path, sizeof(path), "tcp:%s:0", at[a]);
		port = ibtrs_srv_listen(srv, path, why);
		if (port == -EADDRNOTAVAIL) {	/* no IPv6 here */
			ibtrs_srv_free(srv);
			continue;
		}
		CHECK(port > 0);
		snprintf(path, sizeof(path), "tcp:%s:%d", at[a], port);
		CHECK_EQ(ibtrs_ctx_new(&ctx, &co), 0);
		CHECK_EQ(ibtrs_clt_open(ctx, &list, 1, &o, &clt, why), 0);
		for (i = 0; i < 2000 && !info.paths_up; i++) {
			struct ibtrs_op *op;

			ibtrs_ctx_step(ctx, 1);
			ibtrs_srv_poll(srv, &op, 1, 1);
			ibtrs_clt_info(clt, &info);
		}
		CHECK_EQ(info.paths_up, 1);
		CHECK_STR(admitted, "db-1");
		ibtrs_clt_close(clt);
		ibtrs_ctx_free(ctx);
		CHECK_EQ(ibtrs_srv_free(srv), 0);
	}
}

UNIT_TEST(an_exchange_is_not_passed_on)
{
	struct ibtrs_path_info info = { .size = sizeof(info) };
	struct ibtrs_srv_opts so = server(IBTRS_SRV_AUTH_REQUIRED);
	struct ibtrs_clt_opts o = {
		.key_name = "db-1", .key = golden_key, .dial = world_dial_relay,
	};
	static const uint8_t mapped[16] = { [10] = 0xff, 0xff, 127, 0, 0, 2 };
	struct world w;
	int i;

	keys_are(1);
	world_open(&w, &so, 1, &o);
	for (i = 0; i < 4000 && !info.err; i++) {
		world_turn(&w);
		usleep(300);		/* TCP is the kernel's, whose clock is another one */
		ibtrs_clt_path_info(w.clt, 0, &info);
	}
	CHECK_EQ(info.err, -EKEYREJECTED);
	CHECK_STR(info.why, "key db-1: " NO_PROOF);
	CHECK_MEM(w.clt->paths[0].auth.t.server, mapped, 16);
	world_end(&w);
}

/* The server asks for the key @times times before it is gone. */
static void key_goes_after(unsigned int times, const struct ibtrs_clt_opts *o)
{
	struct ibtrs_path_info info = { .size = sizeof(info) };
	struct ibtrs_srv_opts so = server(IBTRS_SRV_AUTH_REQUIRED);
	struct world w;

	keys_are(1);
	keys_until = times;
	world_open(&w, &so, 1, o);
	world_turns(&w, 40);
	ibtrs_clt_path_info(w.clt, 0, &info);
	CHECK_EQ(info.err, -EKEYREJECTED);
	CHECK_STR(info.why, "the server says: the key that was proved is not loaded here any more");
	CHECK_EQ(keys_asked, times);
	world_end(&w);
}

UNIT_TEST(a_key_that_is_removed)
{
	struct ibtrs_path_info info = { .size = sizeof(info) };
	struct ibtrs_srv_opts so = server(IBTRS_SRV_AUTH_REQUIRED);
	struct ibtrs_clt_opts o = { .key_name = "db-1", .key = golden_key };
	struct world_hdr h;
	uint8_t data[8];
	struct ibtrs_io io;
	struct world w;

	UNIT_ROW("between two paths");
	keys_are(1);
	world_open(&w, &so, 2, &o);
	w.refuse_dial[1] = true;
	CHECK(world_until_up(&w, 1));
	keys_are(0);
	w.refuse_dial[1] = false;
	world_turns(&w, 3000);
	CHECK_EQ(world_up(&w), 1);
	ibtrs_clt_path_info(w.clt, 1, &info);
	CHECK_EQ(info.err, -EKEYREJECTED);
	CHECK_STR(info.why, "key db-1: " NO_PROOF);
	/* What is up stays up. */
	io = world_io(IBTRS_IO_READ, &h, 3, data, sizeof(data));
	CHECK_EQ(world_do(&w, &io), 0);
	keys_are(1);
	CHECK(world_until_up(&w, 2));
	CHECK(w.srv->sessions && !w.srv->sessions->next);
	/* Nothing of the key is left in the server, and of the attempts nothing in the client. */
	CHECK(!w.srv->grants);
	CHECK_EQ(w.srv->sessions->paths->proof.ks[7], 0);
	CHECK(!memcmp(w.srv->sessions->paths->proof.ks,
		      w.srv->sessions->paths->proof.ks + 1, IBTRS_KEY_LEN - 1));
	CHECK(!memcmp(w.clt->paths[0].auth.ks, w.srv->sessions->paths->proof.ks, IBTRS_KEY_LEN));
	CHECK_EQ(w.clt->paths[0].auth.keys.nr, 0);
	world_end(&w);

	UNIT_ROW("between the verdict and CONN_REQ");
	key_goes_after(2, &o);
	UNIT_ROW("between CONN_REQ and INFO_REQ");
	key_goes_after(3, &o);
}

/* Sessions of two keys, and one without, have their names and uuids apart. */
UNIT_TEST(a_session_belongs_to_its_key)
{
	static const char *const names[] = { "A" };
	const struct {
		const char *name;
		const uint8_t *key;
		bool up;
	} *r, rows[] = {
		{ "db-2", golden_nonce_s, true }, { NULL, NULL, true },
		{ "db-1", golden_key, false },
	};
	struct ibtrs_srv_opts so = server(IBTRS_SRV_AUTH_OPTIONAL);
	struct ibtrs_clt_opts o = { .key_name = "db-1", .key = golden_key };
	struct ibtrs_clt *other;
	char why[IBTRS_WHY_LEN];
	struct world w;

	keys_are(1);
	world_open(&w, &so, 1, &o);
	CHECK(world_until_up(&w, 1));
	for (r = rows; r < rows + ARRAY_SIZE(rows); r++) {
		struct ibtrs_clt_opts p = {
			.size = sizeof(p), .flags = IBTRS_CLT_NOWAIT, .name = "test",
			.key_name = r->name, .key = r->key, .dial = world_dial, .priv = &w,
		};
		struct ibtrs_clt_info info = { .size = sizeof(info) };

		UNIT_ROW("%s", r->name ?: "no key");
		CHECK_EQ(ibtrs_clt_open(w.ctx, names, 1, &p, &other, why), 0);
		memcpy(other->uuid, w.clt->uuid, sizeof(other->uuid));
		if (!r->up)
			other->uuid[0]++;
		world_turns(&w, 40);
		ibtrs_clt_info(other, &info);
		CHECK_EQ(info.paths_up, r->up);
		CHECK_EQ(world_up(&w), 1);
		ibtrs_clt_close(other);
		world_turns(&w, 5);
	}
	world_end(&w);
}

UNIT_TEST(options)
{
	static const char *const names[] = { "A" };
	static const struct {
		const char *name, *why;
		const uint8_t *key, *next;
	} *r, rows[] = {
		{ "db-1", "test: a key has a name, and a name a key", NULL, NULL },
		{ NULL, "test: a key has a name, and a name a key", golden_key, NULL },
		{ NULL, "test: a key has a name, and a name a key", NULL, golden_key },
		{ "db.1", "test: the name of a key is 1 to 63 of A-Z a-z 0-9 _ -", golden_key, NULL },
		{ "", "test: the name of a key is 1 to 63 of A-Z a-z 0-9 _ -", golden_key, NULL },
	};
	struct ibtrs_srv_opts so = server(IBTRS_SRV_AUTH_REQUIRED);
	struct ibtrs_ctx *ctx;
	struct ibtrs_srv *srv;
	struct ibtrs_clt *clt;
	char why[IBTRS_WHY_LEN];

	CHECK_EQ(ibtrs_ctx_new(&ctx, NULL), 0);
	for (r = rows; r < rows + ARRAY_SIZE(rows); r++) {
		struct ibtrs_clt_opts o = {
			.size = sizeof(o), .name = "test", .key_name = r->name, .key = r->key,
			.next_key = r->next, .dial = world_dial,
		};

		CHECK_EQ(ibtrs_clt_open(ctx, names, 1, &o, &clt, why), -EINVAL);
		CHECK_STR(why, r->why);
	}
	CHECK_EQ(ibtrs_ctx_free(ctx), 0);
	so.key = NULL;
	CHECK_EQ(ibtrs_srv_new(&so, &srv, why), -EINVAL);
	CHECK_STR(why, "server: auth is off, optional or required, and needs keys");
	so = server(3);
	CHECK_EQ(ibtrs_srv_new(&so, &srv, why), -EINVAL);
}

UNIT_TEST(key_from_a_file)
{
#define NO_KEY "it is no key: it does not begin with ibnbd-key:1:"
	static const struct { const char *text; int err; const char *why; } rows[] = {
		{ "0123456789abcdef0123456789abcdef", 0, "" },
		{ "0123456789abcdef0123456789abcde", -EINVAL, NO_KEY },
		{ "0123456789abcdef0123456789abcdef0", -EINVAL, NO_KEY },
		{ "", -EINVAL, NO_KEY },
		/* as `ibnbd key generate` writes it: base64 of the same bytes and their CRC-32 */
		{ "ibnbd-key:1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWYOtVl3\n", 0, "" },
		{ "ibnbd-key:1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWUOtVl3\n", -EINVAL,
		  "the checksum of the key is wrong: copy it again" },
		{ "ibnbd-key:1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWYOtVl3\nmore", -EINVAL,
		  "the key has another length: was it cut, or copied with something behind it?" },
	};
	char dir[] = "/tmp/unit-key-XXXXXX", file[64], why[IBTRS_WHY_LEN];
	uint8_t key[IBTRS_SECRET_LEN];
	const char *name = NULL;
	unsigned int i;
	FILE *f;

	if (!CHECK(mkdtemp(dir)))
		return;
	snprintf(file, sizeof(file), "%s/db-1", dir);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%s", rows[i].text);
		f = fopen(file, "w");
		fputs(rows[i].text, f);
		fclose(f);
		*why = 0;
		memset(key, 0, sizeof(key));
		CHECK_EQ(ibtrs_key_read(file, key, &name, why), rows[i].err);
		CHECK_STR(why, rows[i].why);
		CHECK_EQ(key[31], rows[i].err ? 0 : 'f');
		CHECK_STR(name, "db-1");
	}
	unlink(file);
	CHECK_EQ(ibtrs_key_read(file, key, &name, why), -ENOENT);
	CHECK_STR(why, "No such file or directory");
	rmdir(dir);
}
