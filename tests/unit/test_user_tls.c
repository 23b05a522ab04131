// SPDX-License-Identifier: GPL-2.0-only
/*
 * TLS of the stream (protocol 12.1): what is made from a key, who is let in and in which words,
 * handshakes that are cut, changed, left half done, or not TLS at all.
 */
#include "ibtrs/user/clt.h"
#include "ibtrs/user/srv.h"
#include "ibtrs/user/stream.h"
#include "auth_vectors.h"
#include "user.h"

#define NOT_TAKEN "key %s: the server does not take this key: it has none of that name loaded, or another one, or takes no keys"

static unsigned int keys_nr;

static unsigned int keys_get(void *priv, const char *name,
			     uint8_t key[IBTRS_SECRETS][IBTRS_SECRET_LEN])
{
	memcpy(key[0], golden_key, IBTRS_SECRET_LEN);
	memcpy(key[1], golden_next, IBTRS_SECRET_LEN);
	return strcmp(name, "db-1") ? 0 : keys_nr;
}

static struct ibtrs_srv_opts server(uint32_t auth)
{
	keys_nr = 1;
	return (struct ibtrs_srv_opts){
		.size = sizeof(struct ibtrs_srv_opts), .queue_depth = 32, .max_io_size = 8192,
		.auth = auth, .key = keys_get,
	};
}

static const struct ibtrs_clt_opts with_key = {
	.flags = IBTRS_CLT_TLS, .key_name = "db-1", .key = golden_key,
};

static struct ibtrs_path_info path_info(struct world *w)
{
	struct ibtrs_path_info info = { .size = sizeof(info) };

	ibtrs_clt_path_info(w->clt, 0, &info);
	return info;
}

/* HKDF by another implementation. */
UNIT_TEST(golden_secret)
{
	static const uint8_t golden_psk[] = {
		0x40, 0x46, 0x9c, 0xfc, 0x73, 0xf6, 0x25, 0x41, 0xbd, 0x95, 0x4b, 0x3c, 0x80, 0x19,
		0x7f, 0xe5, 0x1d, 0xe6, 0x98, 0xb4, 0xbb, 0x00, 0xbf, 0x91, 0x0f, 0xad, 0x6a, 0x0c,
		0x6c, 0x45, 0xd9, 0x6a,
	};
	static const uint8_t golden_mark[] = { 0x04, 0x91, 0x05, 0x9c, 0x22, 0x03, 0x51, 0x0e };
	static const char identity[] = "db-1.0491059c2203510e";
	static const uint8_t dhe_alone[] = { 0x00, 0x2d, 0x00, 0x02, 0x01, 0x01 };
	uint8_t psk[IBTRS_KEY_LEN], mark[IBTRS_TLS_MARK_LEN], hello[2048];
	struct ibtrs_tls *tls;
	const char *why;
	ssize_t n;
	int fd[2];

	ibtrs_tls_derive(golden_key, psk, mark);
	CHECK_MEM(psk, golden_psk, sizeof(psk));
	CHECK_MEM(mark, golden_mark, sizeof(mark));
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	tls = ibtrs_tls_clt(fd[0], "db-1", golden_key);
	CHECK_EQ(ibtrs_tls_shake(tls, &why), 0);
	n = recv(fd[1], hello, sizeof(hello), 0);
	CHECK(n > 0 && hello[0] == IBTRS_TLS_FIRST);
	CHECK(memmem(hello, n, identity, sizeof(identity) - 1));
	CHECK(memmem(hello, n, dhe_alone, sizeof(dhe_alone)));
	ibtrs_tls_free(tls);
	close(fd[0]);
	close(fd[1]);
}

UNIT_TEST(who_is_let_in)
{
	static const struct {
		const char *what, *name;
		const uint8_t *key, *next;
		uint32_t auth, nr;
		const char *why;
	} *r, rows[] = {
		{ "the key", "db-1", golden_key, NULL, IBTRS_SRV_AUTH_REQUIRED, 1, NULL },
		{ "optional", "db-1", golden_key, NULL, IBTRS_SRV_AUTH_OPTIONAL, 1, NULL },
		{ "off", "db-1", golden_key, NULL, IBTRS_SRV_AUTH_OFF, 1, NOT_TAKEN },
		{ "another key", "db-1", golden_nonce_c, NULL, IBTRS_SRV_AUTH_OPTIONAL, 2,
		  NOT_TAKEN },
		{ "another name", "db-3", golden_key, NULL, IBTRS_SRV_AUTH_REQUIRED, 1, NOT_TAKEN },
		{ "none is loaded", "db-1", golden_key, NULL, IBTRS_SRV_AUTH_REQUIRED, 0,
		  NOT_TAKEN },
		{ "the server's next", "db-1", golden_next, NULL, IBTRS_SRV_AUTH_REQUIRED, 2,
		  NULL },
		{ "the client's next", "db-1", golden_nonce_c, golden_key, IBTRS_SRV_AUTH_REQUIRED,
		  1, NULL },
		{ "neither", "db-1", golden_nonce_c, golden_nonce_s, IBTRS_SRV_AUTH_REQUIRED, 2,
		  NOT_TAKEN },
	};

	for (r = rows; r < rows + ARRAY_SIZE(rows); r++) {
		struct ibtrs_srv_opts so = server(r->auth);
		struct ibtrs_clt_opts o = {
			.flags = IBTRS_CLT_TLS, .key_name = r->name, .key = r->key,
			.next_key = r->next, .queues = 2,
		};
		struct ibtrs_path_info info;
		char data[32] = "nobody else may read this", why[IBTRS_WHY_LEN] = "";
		struct world_hdr h;
		struct ibtrs_io io;
		struct world w;

		UNIT_ROW("%s", r->what);
		keys_nr = r->nr;
		world_open(&w, &so, 1, &o);
		w.secret = data;
		world_turns(&w, 60);
		info = path_info(&w);
		CHECK_EQ(world_up(&w), !r->why);
		CHECK_EQ(info.err, r->why ? -EKEYREJECTED : 0);
		if (r->why)
			snprintf(why, sizeof(why), r->why, r->name);
		CHECK_STR(info.why, why);
		if (!r->why) {
			io = world_io(IBTRS_IO_WRITE, &h, 3, data, sizeof(data));
			CHECK_EQ(world_do(&w, &io), 0);
			CHECK_MEM(w.disk[3], data, sizeof(data));
			io.dir = IBTRS_IO_READ;
			CHECK_EQ(world_do(&w, &io), 0);
		}
		CHECK(!w.leaked);
		world_end(&w);
	}
}

/* The tap works, or what it does not see would mean nothing. */
UNIT_TEST(without_tls_it_is_seen)
{
	struct ibtrs_srv_opts so = server(IBTRS_SRV_AUTH_REQUIRED);
	struct ibtrs_clt_opts o = { .key_name = "db-1", .key = golden_key };
	char data[] = "anybody may read this";
	struct world_hdr h;
	struct ibtrs_io io;
	struct world w;

	world_open(&w, &so, 1, &o);
	w.secret = data;
	CHECK(world_until_up(&w, 1));
	io = world_io(IBTRS_IO_WRITE, &h, 3, data, sizeof(data));
	CHECK_EQ(world_do(&w, &io), 0);
	CHECK(w.leaked);
	world_end(&w);
}

/* A TCP socket of the caller's: with a key TLS, without one plain text, if the server has that. */
UNIT_TEST(over_tcp)
{
	static const struct {
		const char *what, *kind;
		uint32_t auth;
		bool key;
		int err;
		const char *why;
	} *r, rows[] = {
		{ "key", "tls", IBTRS_SRV_AUTH_REQUIRED, true, 0, "" },
		{ "nothing", "plain", IBTRS_SRV_AUTH_REQUIRED, false, -EACCES,
		  "the server says: authentication is required here: open with a key (map with auth=KEY)" },
		{ "nothing, optional", "plain", IBTRS_SRV_AUTH_OPTIONAL, false, 0, "" },
	};

	for (r = rows; r < rows + ARRAY_SIZE(rows); r++) {
		struct ibtrs_srv_opts so = server(r->auth);
		struct ibtrs_clt_opts o = { .dial = world_dial_tcp };
		struct ibtrs_path_info info = { 0 };
		struct world w;
		int i;

		UNIT_ROW("%s", r->what);
		if (r->key) {
			o.key_name = "db-1";
			o.key = golden_key;
		}
		world_open(&w, &so, 1, &o);
		for (i = 0; i < 4000 && !info.err && !world_up(&w); i++) {
			world_turn(&w);
			usleep(300);
			info = path_info(&w);
		}
		CHECK_EQ(world_up(&w), !r->err);
		CHECK_STR(info.kind, r->kind);
		CHECK_EQ(info.err, r->err);
		CHECK_STR(info.why, r->why);
		world_end(&w);
	}
}

/* A session with TLS, its handshakes in pieces, cut after every so many bytes. */
UNIT_TEST(cut_anywhere)
{
	struct ibtrs_srv_opts so = server(IBTRS_SRV_AUTH_REQUIRED);
	struct world w;
	long cut, whole;

	world_open(&w, &so, 1, &with_key);
	w.grain = 7;
	CHECK(world_until_up(&w, 1));
	whole = w.moved[0];
	CHECK(whole > 2000);
	world_end(&w);
	for (cut = 1; cut < whole; cut += 61) {
		UNIT_ROW("after %ld of %ld bytes", cut, whole);
		world_open(&w, &so, 1, &with_key);
		w.budget[0] = cut;
		world_turns(&w, 60);
		/* Who was about to send is told otherwise. */
		if (!CHECK(path_info(&w).err == -ECONNRESET || path_info(&w).err == -EPIPE) ||
		    !CHECK(!strncmp(path_info(&w).why, "the peer ended the connection", 29)))
			cut = whole;
		CHECK(world_until_up(&w, 1));
		world_end(&w);
	}
}

/* One bit, in the handshake and behind it. */
UNIT_TEST(changed_on_the_way)
{
	struct ibtrs_srv_opts so = server(IBTRS_SRV_AUTH_REQUIRED);
	struct world_hdr h;
	struct ibtrs_io io, *list = &io;
	uint8_t data[64] = { 1 };
	unsigned int turns;
	struct world w;

	for (turns = 0; turns < 6; turns++) {
		UNIT_ROW("turn %u", turns);
		world_open(&w, &so, 1, &with_key);
		world_turns(&w, turns);
		w.flip = true;
		world_turns(&w, 60);
		CHECK(path_info(&w).err < 0);
		CHECK(!w.flip);
		CHECK(world_until_up(&w, 1));
		world_end(&w);
	}
	UNIT_ROW("up");
	world_open(&w, &so, 1, &with_key);
	CHECK(world_until_up(&w, 1));
	io = world_io(IBTRS_IO_WRITE, &h, 3, data, sizeof(data));
	CHECK_EQ(world_do(&w, &io), 0);
	io.dir = IBTRS_IO_READ;
	w.late = true;
	CHECK_EQ(ibtrs_q_submit(ibtrs_clt_q(w.clt, 0), &list, 1), 1);
	world_turns(&w, 5);
	CHECK_EQ(w.nr_kept, 1);
	w.late = false;
	world_execute(&w, w.kept[--w.nr_kept]);
	w.flip = true;
	CHECK_EQ(world_do_end(&w, &io), 0);
	CHECK_EQ(data[0], 1);
	CHECK_EQ(path_info(&w).err, -EBADMSG);
	CHECK_STR(path_info(&w).why,
		  "what arrived was not sent by the peer, or was changed on the way");
	CHECK_EQ(path_info(&w).established, 2);
	world_end(&w);
}

/* ---- peers without the library ------------------------------------------ */

static int other_end;

static int dial_nobody(void *priv, const char *path, unsigned int cid)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd))
		abort();
	other_end = fd[1];
	return fd[0];
}

UNIT_TEST(a_server_that_has_no_tls)
{
	static const struct {
		const char *what, *says;
		size_t len;
		bool ends;
		int err;
		const char *why;
	} *r, rows[] = {
		{ "silent", "", 0, false, -ETIMEDOUT, "the server did not answer in time" },
		{ "ends", "", 0, true, -ECONNRESET,
		  "the peer ended the connection within the TLS handshake" },
		{ "half a record", "\x16\x03\x03\x00\x40\x02", 6, true, -ECONNRESET,
		  "the peer ended the connection within the TLS handshake" },
		{ "a frame", "\x38\0\0\0\x03\0\0\0", 8, false, -EPROTO,
		  "the peer's part of the TLS handshake makes no sense: it is no libibtrs, or somebody is between" },
		{ "data", "\x17\x03\x03\x00\x02xy", 7, false, -EPROTO,
		  "the peer's part of the TLS handshake makes no sense: it is no libibtrs, or somebody is between" },
	};
	struct ibtrs_srv_opts so = server(IBTRS_SRV_AUTH_REQUIRED);
	struct ibtrs_clt_opts o = with_key;

	o.dial = dial_nobody;
	for (r = rows; r < rows + ARRAY_SIZE(rows); r++) {
		struct world w;
		int i;

		UNIT_ROW("%s", r->what);
		world_open(&w, &so, 1, &o);
		world_turns(&w, 4);
		CHECK_EQ(path_info(&w).err, 0);
		CHECK_EQ(send(other_end, r->says, r->len, 0), r->len);
		if (r->ends)
			close(other_end);
		for (i = 0; i < 8000 && !path_info(&w).err; i++)
			world_turn(&w);
		CHECK_EQ(path_info(&w).err, r->err);
		CHECK_STR(path_info(&w).why, r->why);
		world_end(&w);
		if (!r->ends)
			close(other_end);
	}
}

/* Half a handshake costs a stranger's place for five seconds, and nobody else anything. */
UNIT_TEST(a_client_that_is_slow)
{
	static const char hello[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
	struct ibtrs_srv_opts so = server(IBTRS_SRV_AUTH_REQUIRED);
	struct world w;
	char byte;
	int fd[2];

	world_open(&w, &so, 1, &with_key);
	CHECK(world_until_up(&w, 1));
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	CHECK_EQ(ibtrs_srv_take(w.srv, fd[1]), 0);
	CHECK_EQ(send(fd[0], hello, sizeof(hello) - 1, 0), sizeof(hello) - 1);
	world_turns(&w, 4900);
	CHECK_EQ(recv(fd[0], &byte, 1, 0), -1);
	CHECK_EQ(errno, EAGAIN);
	world_turns(&w, 200);
	CHECK_EQ(recv(fd[0], &byte, 1, 0), 0);
	close(fd[0]);
	CHECK_EQ(world_up(&w), 1);
	CHECK_EQ(path_info(&w).established, 1);
	world_end(&w);
}

/* ---- a pair of streams -------------------------------------------------- */

static int one_key(void *priv, const char *name, struct ibtrs_keys *keys)
{
	keys->nr = 1;
	memcpy(keys->key[0], golden_key, IBTRS_KEY_LEN);
	return 0;
}

/* A client and a server, and a socket that takes little. */
static void pair(struct ibtrs_qp **clt, struct ibtrs_qp **srv)
{
	int fd[2], small = 4096;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	*clt = ibtrs_stream_new(fd[0], ibtrs_tls_clt(fd[0], "db-1", golden_key));
	*srv = ibtrs_stream_take(fd[1], one_key, NULL);
}

static void end(struct ibtrs_qp *qp)
{
	qp->verbs->close(qp);
	qp->verbs->free(qp);
}

/* gnutls keeps 32 MiB of a message that claims 16; a stranger gets no memory for that. */
UNIT_TEST(a_message_without_end)
{
	static const struct {
		const char *what, *begin;
		bool client;
	} *r, rows[] = {
		{ "a server's", "\x16\x03\x03\x10\x00\x02\xff\xff\xff", true },
		{ "a client's", "\x16\x03\x03\x10\x00\x01\xff\xff\xff", false },
	};
	uint8_t record[5 + 4096] = { 0 };

	for (r = rows; r < rows + ARRAY_SIZE(rows); r++) {
		struct ibtrs_qp *qp;
		struct ibtrs_wc wc;
		int fd[2], i;

		UNIT_ROW("%s", r->what);
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
		qp = r->client ? ibtrs_stream_new(fd[0], ibtrs_tls_clt(fd[0], "db-1", golden_key)) :
				 ibtrs_stream_take(fd[0], one_key, NULL);
		qp->verbs->flush(qp);
		memcpy(record, r->begin, 9);
		for (i = 0; i < 100 && !qp->err; i++) {
			CHECK_EQ(send(fd[1], record, sizeof(record), 0), sizeof(record));
			memset(record + 5, 0, 4);
			qp->verbs->turn(qp, false);
			qp->verbs->poll(qp, &wc);
		}
		CHECK(i > 4 && i < 16);
		CHECK_EQ(qp->err, -EMSGSIZE);
		CHECK_STR(qp->why, "the peer sends a TLS message that is longer than any of libibtrs");
		end(qp);
		close(fd[1]);
	}
}

/* More than the socket takes, by a record that it takes in pieces; and a turn that ends early. */
UNIT_TEST(more_than_fits)
{
	static uint8_t from[300000], to[300000];
	struct ibtrs_frame f = { .op = IBTRS_FRAME_SEND, .len = sizeof(from) };
	struct ibtrs_qp *clt, *srv;
	struct ibtrs_wc wc = { 0 };
	struct ibtrs_wr wr;
	int i, n = 0;

	for (i = 0; i < (int)sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	pair(&clt, &srv);
	CHECK_EQ(srv->verbs->expect(srv, to, sizeof(to)), 0);
	ibtrs_wr_init(&wr);
	ibtrs_wr_frame(&wr, &f);
	ibtrs_wr_ref(&wr, from, 100000);
	ibtrs_wr_ref(&wr, from + 100000, sizeof(from) - 100000);
	ibtrs_qp_post(clt, &wr);
	for (i = 0; i < 100000 && !n; i++) {
		CHECK_EQ(clt->verbs->flush(clt), 0);
		clt->verbs->turn(clt, false);
		CHECK_EQ(clt->verbs->poll(clt, &wc), 0);
		srv->verbs->turn(srv, false);
		CHECK_EQ(srv->verbs->flush(srv), 0);
		n = srv->verbs->poll(srv, &wc);
	}
	CHECK_EQ(n, 1);
	CHECK(i > 20 && i < 100000);
	CHECK_EQ(wc.len, sizeof(from));
	CHECK_MEM(to, from, sizeof(from));
	CHECK(!wr.posted && !srv->bare);
	clt->verbs->close(clt);
	CHECK_EQ(srv->verbs->poll(srv, &wc), -ECONNRESET);
	CHECK_STR(srv->why, "the peer ended the connection");
	end(clt);
	end(srv);
}

/* What is posted while the socket has taken half a record goes into the next one. */
UNIT_TEST(a_record_that_waits)
{
	static struct ibtrs_wr wr[512];
	struct ibtrs_qp *clt, *srv;
	struct ibtrs_wc wc = { 0 };
	uint32_t sent = 0, seen = 0, k;
	int i;

	pair(&clt, &srv);
	for (i = 0; i < 20000 && seen < 5000; i++) {
		for (k = 0; k < 40 && sent < 5000 && !wr[sent % 512].posted; k++, sent++)
			ibtrs_qp_post_imm(clt, &wr[sent % 512], sent);
		CHECK_EQ(clt->verbs->flush(clt), 0);
		clt->verbs->turn(clt, false);
		CHECK_EQ(clt->verbs->poll(clt, &wc), 0);
		if (i > 5 && i % 8)
			continue;
		srv->verbs->turn(srv, false);
		srv->verbs->flush(srv);
		while (srv->verbs->poll(srv, &wc) == 1 && wc.imm == seen)
			seen++;
	}
	CHECK_EQ(seen, 5000);
	CHECK_EQ(srv->err, 0);
	end(clt);
	end(srv);
}

UNIT_TEST(options)
{
	struct ibtrs_clt_opts o = {
		.size = sizeof(o), .name = "test", .flags = IBTRS_CLT_TLS, .dial = dial_nobody,
	};
	const char *path = "A";
	char why[IBTRS_WHY_LEN];
	struct ibtrs_ctx *ctx;
	struct ibtrs_clt *clt;

	CHECK_EQ(ibtrs_ctx_new(&ctx, NULL), 0);
	CHECK_EQ(ibtrs_clt_open(ctx, &path, 1, &o, &clt, why), -EINVAL);
	CHECK_STR(why, "test: TLS needs a key");
	CHECK_EQ(ibtrs_ctx_free(ctx), 0);
}
