// SPDX-License-Identifier: GPL-2.0-only
/* The bytes of the stream (protocol 12), and a server whose client does what it must not. */
#include "raw.h"

static struct ibtrs_srv *server(void)
{
	struct ibtrs_srv_opts o = { .size = sizeof(o), .queue_depth = 16, .max_io_size = 8192 };
	struct ibtrs_srv *srv;
	char why[IBTRS_WHY_LEN];

	if (ibtrs_srv_new(&o, &srv, why))
		abort();
	return srv;
}

/* docs/protocol.md 12 */
static const uint8_t golden_req[] = {
	0x38, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0xbd, 0x1b, 0x00, 0x02, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00,
	0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t golden_rep[] = {
	0x38, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0xbd, 0x1b, 0x00, 0x02, 0x00, 0x00, 0x10, 0x00, 0x00, 0x20, 0x00, 0x00,
	0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
/* INFO_RSP: one descriptor, key 0x00010000, 16 chunks of 12288 bytes; behind it HB_MSG */
static const uint8_t golden_info_rsp[] = {
	0x18, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x01, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x03, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x80, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
/* a read of 8 bytes in slot 2, user header "abcd", to address 0x10 of key 0x00050003 */
static const uint8_t golden_read[] = {
	0x1c, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x0c,
	0x00, 0x00, 0x01, 0x00, 0x08, 0x60, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	'a', 'b', 'c', 'd',
	0x03, 0x00, 0x04, 0x00, 0x00, 0x00, 0x01, 0x00,
	0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x03, 0x00, 0x05, 0x00, 0x08, 0x00, 0x00, 0x00,
};
/* its answer: the data and the immediate in one frame */
static const uint8_t golden_read_rsp[] = {
	0x08, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x02,
	0x03, 0x00, 0x05, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	'1', '2', '3', '4', '5', '6', '7', '8',
};
/* the same with NEED_INVAL: WRITE, SEND WITH INVALIDATE, WRITE WITH IMM IO_RSP_INV */
static const uint8_t golden_read_inv_rsp[] = {
	0x08, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x03, 0x00, 0x05, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	'1', '2', '3', '4', '5', '6', '7', '8',
	0x00, 0x00, 0x00, 0x00, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x03, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00, 0x02,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};

static void golden(struct raw_path *p, const void *want, size_t len)
{
	uint8_t got[512] = { 0 };

	CHECK_EQ(recv(p->r.fd, got, sizeof(got), 0), len);
	CHECK_MEM(got, want, len);
}

UNIT_TEST(golden_bytes)
{
	struct ibtrs_srv *srv = server();
	struct ibtrs_wire_info_req info;
	uint8_t read_inv[sizeof(golden_read)];
	struct raw_path p;
	struct ibtrs_op *op;
	unsigned int i;

	raw_dial(&p, srv);
	raw_bytes(&p.r, golden_req, sizeof(golden_req));
	CHECK(!raw_poll(&p));
	golden(&p, golden_rep, sizeof(golden_rep));
	ibtrs_msg_info_req_encode(&info, "golden");
	raw_send(&p.r, IBTRS_FRAME_SEND, 0, 0, 0, &info, sizeof(info));
	CHECK(!raw_poll(&p));
	golden(&p, golden_info_rsp, sizeof(golden_info_rsp));
	memcpy(read_inv, golden_read, sizeof(read_inv));
	read_inv[IBTRS_FRAME_LEN + 4 + 4] = IBTRS_READ_F_NEED_INVAL;
	for (i = 0; i < 2; i++) {
		raw_bytes(&p.r, i ? read_inv : golden_read, sizeof(golden_read));
		op = raw_poll(&p);
		if (!CHECK(op))
			break;
		CHECK_EQ(op->dir, IBTRS_IO_READ);
		CHECK(op->service);
		CHECK_EQ(op->len, 8);
		CHECK_EQ(op->hdr_len, 4);
		CHECK_MEM(op->hdr, "abcd", 4);
		memcpy(op->data, "12345678", 8);
		ibtrs_op_reply(op, 0);
		if (i)
			golden(&p, golden_read_inv_rsp, sizeof(golden_read_inv_rsp));
		else
			golden(&p, golden_read_rsp, sizeof(golden_read_rsp));
	}
	raw_path_end(&p);
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}

/* ---- nonsense before there is a path ------------------------------------ */

static const struct {
	const char *name;
	uint32_t len;
	uint16_t op;
} first[] = {
	{ "no operation", 0, 0 },
	{ "an unknown operation", 0, 9 },
	{ "a request of another protocol", 0x50544854, 0x2f20 },
	{ "4 GiB of private data", 0xffffffff, IBTRS_FRAME_REQ },
	{ "one byte more than there is room for", 513, IBTRS_FRAME_REQ },
	{ "a SEND", 0, IBTRS_FRAME_SEND },
	{ "a WRITE of a byte", 1, IBTRS_FRAME_WRITE },
	{ "a WRITE of 4 GiB", 0xffffffff, IBTRS_FRAME_WRITE_IMM },
	{ "a WRITE of nothing", 0, IBTRS_FRAME_WRITE_IMM },
	{ "an answer", 56, IBTRS_FRAME_REP },
};

UNIT_TEST(first_frames_that_are_no_request)
{
	struct ibtrs_srv *srv = server();
	uint8_t room[600] = { 0 };
	struct raw_path p;
	unsigned int i;

	for (i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		const struct ibtrs_frame f = { .len = first[i].len, .op = first[i].op };
		uint8_t head[IBTRS_FRAME_LEN];

		UNIT_ROW("%s", first[i].name);
		raw_dial(&p, srv);
		ibtrs_frame_encode(head, &f);
		raw_bytes(&p.r, head, sizeof(head));
		if (first[i].len <= sizeof(room))
			raw_bytes(&p.r, room, first[i].len);
		raw_poll(&p);
		CHECK_EQ(raw_recv(&p.r), -1);
		raw_path_end(&p);
	}
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}

UNIT_TEST(refusals_of_requests)
{
	static const struct {
		const char *name;
		struct ibtrs_conn_req m;
		int err;
		const char *why;
	} rows[] = {
		{ "no session", { .cid_num = 1, .ext = IBTRS_EXT_WORDS }, -ENXIO,
		  "no such session" },
		{ "not cid 0", { .cid = 1, .cid_num = 2, .first_conn = true,
				 .ext = IBTRS_EXT_WORDS }, -ECONNRESET,
		  "the first connection of a path must be cid 0" },
		{ "cid too large", { .cid = 2, .cid_num = 2, .first_conn = true,
				     .ext = IBTRS_EXT_WORDS }, -ECONNRESET,
		  "connection id is not below the number of connections" },
		{ "without words", { .cid_num = 1 }, -ENXIO, NULL },
	};
	struct ibtrs_srv *srv = server();
	char words[IBTRS_WORDS_LEN];
	struct ibtrs_conn_rsp rsp;
	struct raw_path p;
	unsigned int i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		UNIT_ROW("%s", rows[i].name);
		raw_dial(&p, srv);
		CHECK_EQ(raw_conn_req(&p, &rows[i].m), 1);
		CHECK_EQ(p.r.f.op, IBTRS_FRAME_REJ);
		CHECK_EQ(ibtrs_msg_conn_rsp_decode(p.r.data, p.r.f.len, true, false, &rsp, NULL),
			 0);
		CHECK_EQ(rsp.err, rows[i].err);
		CHECK_EQ(ibtrs_msg_conn_refused_words(p.r.data, p.r.f.len, words), !!rows[i].why);
		if (rows[i].why)
			CHECK_STR(words, rows[i].why);
		else
			CHECK_EQ(p.r.f.len, 56);
		CHECK_EQ(raw_recv(&p.r), -1);
		raw_path_end(&p);
	}
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}

/* ---- nonsense over a path that is up ------------------------------------ */

struct deed {
	const char *name;
	uint16_t op;
	uint32_t imm;
	uint32_t key;		/* xor */
	uint64_t addr;
	uint32_t len;
	bool harmless;
};

#define CHUNK	12288u
#define ALL	(16 * CHUNK)
#define REQ(slot, off)	((slot) << 24 | (off))

static const struct deed deeds[] = {
	{ "write within", IBTRS_FRAME_WRITE, 0, 0, 0, 64, true },
	{ "write to the last byte", IBTRS_FRAME_WRITE, 0, 0, ALL - 64, 64, true },
	{ "one byte beyond", IBTRS_FRAME_WRITE, 0, 0, ALL - 63, 64 },
	{ "far beyond", IBTRS_FRAME_WRITE, 0, 0, 1ull << 40, 1 },
	{ "address wraps", IBTRS_FRAME_WRITE, 0, 0, ~0ull - 3, 64 },
	{ "at the very end, nothing", IBTRS_FRAME_WRITE, 0, 0, ALL, 0, true },
	{ "at the very end, a byte", IBTRS_FRAME_WRITE, 0, 0, ALL, 1 },
	{ "another key", IBTRS_FRAME_WRITE, 0, 0x10000, 0, 64 },
	{ "key of another index", IBTRS_FRAME_WRITE, 0, 1, 0, 64 },
	{ "key of an index that is none", IBTRS_FRAME_WRITE, 0, 0xffff, 0, 64 },
	{ "no key", IBTRS_FRAME_WRITE, 0, 0x10000, 0, 64 },
	{ "no key, nothing to write", IBTRS_FRAME_WRITE, 0, 0x10000, 0, 0, true },
	{ "4 GiB", IBTRS_FRAME_WRITE, 0, 0, 0, 0xffffffff },
	{ "a SEND", IBTRS_FRAME_SEND, 0, 0, 0, 8 },
	{ "a long SEND", IBTRS_FRAME_SEND, 0, 0, 0, 513 },
	{ "an answer", IBTRS_FRAME_SEND_IMM, 0x10000000, 0, 0, 8 },
	{ "an invalidation", IBTRS_FRAME_SEND_INV, 0, 0, 0, 0 },
	{ "another connection request", IBTRS_FRAME_REQ, 0, 0, 0, 56 },
	{ "an unknown frame", 77, 0, 0, 0, 0 },
	{ "an immediate of no type", IBTRS_FRAME_WRITE_IMM, 0xf0000000, 0, 0, 0, true },
	{ "a heartbeat", IBTRS_FRAME_WRITE_IMM, 0x80000000, 0, 0, 0, true },
	{ "a trial", IBTRS_FRAME_WRITE_IMM, 0xb0000040, 0, 0, 64 },
	{ "a header of zeros", IBTRS_FRAME_WRITE_IMM, REQ(3, 64), 0, 3 * CHUNK, 64 },
	{ "a slot beyond", IBTRS_FRAME_WRITE_IMM, 0x0fffffff, 0, 0, 0 },
	{ "a header beyond its chunk", IBTRS_FRAME_WRITE_IMM, REQ(0, CHUNK), 0, 0, 0 },
	{ "a header over the end", IBTRS_FRAME_WRITE_IMM, REQ(0, CHUNK - 3), 0, 0, 0 },
};

UNIT_TEST(deeds_of_a_client)
{
	static const uint8_t zeros[1024];
	struct ibtrs_srv *srv = server();
	struct raw_path p, good;
	unsigned int i;

	if (!raw_path_up(&good, srv, 0, 200))
		return;
	for (i = 0; i < sizeof(deeds) / sizeof(deeds[0]); i++) {
		const struct deed *d = &deeds[i];
		const struct ibtrs_frame f = {
			.op = d->op, .imm = d->imm, .addr = d->addr, .len = d->len,
			.key = 0x10000 ^ d->key,
		};
		uint8_t head[IBTRS_FRAME_LEN];
		int n;

		UNIT_ROW("%s", d->name);
		if (!raw_path_up(&p, srv, 0, (uint8_t)i))
			break;
		CHECK_EQ(p.key, 0x10000);
		ibtrs_frame_encode(head, &f);
		raw_bytes(&p.r, head, sizeof(head));
		if (d->len <= sizeof(zeros))
			raw_bytes(&p.r, zeros, d->len);
		CHECK(!raw_poll(&p));
		n = raw_recv(&p.r);
		if (d->harmless && n == 1) {
			CHECK_EQ(p.r.f.imm, 0x90000000);
			n = raw_recv(&p.r);
		}
		CHECK_EQ(n, d->harmless ? 0 : -1);
		raw_path_end(&p);
	}
	/* all that concerned nobody else */
	CHECK_EQ(raw_recv(&good.r), 0);
	raw_path_end(&good);
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}

static void request(struct raw_path *p, uint32_t slot, bool fence, uint64_t token)
{
	uint8_t buf[4 + IBTRS_IO_HDR_MAX] = "abcd";
	size_t n = 4 + ibtrs_msg_write_encode(buf + 4, fence, 4, token);

	raw_send(&p->r, IBTRS_FRAME_WRITE_IMM, ibtrs_imm_req(slot, 4, p->off_bits), p->key,
		 (uint64_t)slot * p->chunk, buf, (uint32_t)n);
}

UNIT_TEST(a_busy_slot_again)
{
	struct ibtrs_srv *srv = server();
	struct ibtrs_op *op;
	struct raw_path p;

	if (!raw_path_up(&p, srv, 0, 1))
		return;
	request(&p, 3, false, 0);
	op = raw_poll(&p);
	CHECK(op);
	request(&p, 3, false, 0);
	CHECK(!raw_poll(&p));
	CHECK_EQ(raw_recv(&p.r), -1);
	/* late, to nobody */
	CHECK_EQ(ibtrs_srv_free(srv), -EBUSY);
	ibtrs_op_reply(op, 0);
	close(p.r.fd);
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}

UNIT_TEST(tokens)
{
	struct ibtrs_srv *srv = server();
	struct ibtrs_op *op;
	struct raw_path p;

	if (!raw_path_up(&p, srv, IBTRS_EXT_FENCE, 1))
		return;
	CHECK_EQ(p.rsp.ext, IBTRS_EXT_FENCE);
	CHECK(p.life != 0);
	request(&p, 3, true, 5);
	op = raw_poll(&p);
	if (CHECK(op))
		ibtrs_op_reply(op, 0);
	CHECK_EQ(raw_recv(&p.r), 1);
	CHECK_EQ(p.r.f.imm, 0x10000003);
	/* behind by 4: executed not, answered 384 + bits(4) */
	request(&p, 3, true, 1);
	CHECK(!raw_poll(&p));
	CHECK_EQ(raw_recv(&p.r), 1);
	CHECK_EQ(ibtrs_imm_rsp_err(p.r.f.imm), -386);
	/* no client has counted so far */
	request(&p, 3, true, 6 + (1 << 24));
	CHECK(!raw_poll(&p));
	CHECK_EQ(raw_recv(&p.r), -1);
	raw_path_end(&p);
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}

/* A read that asks for what cannot be is answered, and the slot is free again. */
UNIT_TEST(a_refused_read)
{
	const struct ibtrs_desc d = { .addr = 0, .rkey = 0x20001, .len = 4 };
	struct ibtrs_srv *srv = server();
	uint8_t buf[4 + IBTRS_IO_HDR_MAX] = "abcd";
	struct raw_path p;
	unsigned int i;
	size_t n;

	if (!raw_path_up(&p, srv, 0, 1))
		return;
	for (i = 0; i < 2; i++) {
		n = 4 + ibtrs_msg_read_encode(buf + 4, false, 4, 0, false, &d);
		raw_send(&p.r, IBTRS_FRAME_WRITE_IMM, ibtrs_imm_req(0, 12, p.off_bits), p.key, 8,
			 buf, (uint32_t)n);
		CHECK(!raw_poll(&p));
		CHECK_EQ(raw_recv(&p.r), 1);
		CHECK_EQ(p.r.f.imm, 0x10000000u | EINVAL << 19);
		CHECK_EQ(p.r.f.len, 0);
	}
	raw_path_end(&p);
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}

/* What a path of one client was given is no key for another one; nor is a frame that ends early. */
UNIT_TEST(truncated_at_each_byte)
{
	struct ibtrs_srv *srv = server();
	struct ibtrs_op *op;
	struct raw_path p;
	size_t cut;

	for (cut = 1; cut < sizeof(golden_read); cut++) {
		UNIT_ROW("%zu bytes", cut);
		if (!raw_path_up(&p, srv, 0, (uint8_t)cut))
			break;
		raw_bytes(&p.r, golden_read, cut);
		CHECK(!raw_poll(&p));
		CHECK_EQ(raw_recv(&p.r), 0);
		if (cut % 2) {
			/* the rest, later */
			raw_bytes(&p.r, golden_read + cut, sizeof(golden_read) - cut);
			op = raw_poll(&p);
			if (CHECK(op))
				ibtrs_op_reply(op, -EIO);
			CHECK_EQ(raw_recv(&p.r), 1);
			CHECK_EQ(p.r.f.imm, 0x10000002u | EIO << 19);
		}
		raw_path_end(&p);
	}
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}

/* ---- clocks of a server ------------------------------------------------- */

static uint64_t clock_ms;

static uint64_t clock_now(void *priv)
{
	return clock_ms;
}

static int nobody(void *priv, const char *name, const char *peer, const char *key,
		  char why[IBTRS_WHY_LEN])
{
	snprintf(why, IBTRS_WHY_LEN, "nobody is let in");
	return strcmp(name, "raw9") ? 0 : -EACCES;
}

/* Lets @ms pass. Return: after how many the server ended the connection; 0: it did not. */
static uint64_t pass(struct raw_path *p, uint64_t ms, bool answer)
{
	uint64_t t;
	int n;

	for (t = 0; t <= ms; t += 100, clock_ms += 100) {
		raw_poll(p);
		while ((n = raw_recv(&p->r)) > 0)
			if (answer && p->r.f.imm == 0x80000000)
				raw_send(&p->r, IBTRS_FRAME_WRITE_IMM, 0x90000000, 0, 0, NULL, 0);
		if (n < 0)
			return t;
	}
	return 0;
}

UNIT_TEST(clients_that_say_nothing)
{
	struct ibtrs_srv_opts o = {
		.size = sizeof(o), .queue_depth = 16, .max_io_size = 8192, .now_ms = clock_now,
		.admit = nobody,
	};
	const struct ibtrs_conn_req m = {
		.cid_num = 1, .recon_cnt = 1, .first_conn = true, .path_uuid = { 9 },
		.session_uuid = { 9 }, .ext = IBTRS_EXT_WORDS,
	};
	struct ibtrs_wire_info_req info;
	char words[IBTRS_WORDS_LEN];
	char why[IBTRS_WHY_LEN];
	struct ibtrs_srv *srv;
	struct raw_path p;
	uint64_t t;
	int err;

	clock_ms = 100000;
	if (!CHECK_EQ(ibtrs_srv_new(&o, &srv, why), 0))
		return;
	/* no CONN_REQ */
	raw_dial(&p, srv);
	CHECK_EQ(pass(&p, 20000, false), 5000);
	raw_path_end(&p);
	/* no INFO_REQ */
	raw_dial(&p, srv);
	CHECK_EQ(raw_conn_req(&p, &m), 1);
	CHECK_EQ(pass(&p, 20000, false), 10000);
	raw_path_end(&p);
	/* refused in words, and does not go */
	raw_dial(&p, srv);
	CHECK_EQ(raw_conn_req(&p, &m), 1);
	ibtrs_msg_info_req_encode(&info, "raw9");
	raw_send(&p.r, IBTRS_FRAME_SEND, 0, 0, 0, &info, sizeof(info));
	raw_poll(&p);
	CHECK_EQ(raw_recv(&p.r), 1);
	CHECK(ibtrs_msg_info_refused_decode(p.r.data, p.r.f.len, &err, words));
	CHECK_EQ(err, -EACCES);
	CHECK_STR(words, "nobody is let in");
	CHECK_EQ(pass(&p, 20000, false), 2000);
	raw_path_end(&p);
	/* no heart: five misses are tolerated */
	if (!raw_path_up(&p, srv, 0, 1))
		return;
	t = pass(&p, 20000, false);
	CHECK(t >= 5000);
	CHECK(t <= 7100);
	raw_path_end(&p);
	/* one that answers lives */
	if (!raw_path_up(&p, srv, 0, 2))
		return;
	raw_send(&p.r, IBTRS_FRAME_WRITE_IMM, 0x90000000, 0, 0, NULL, 0);
	CHECK_EQ(pass(&p, 30000, true), 0);
	raw_path_end(&p);
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}
