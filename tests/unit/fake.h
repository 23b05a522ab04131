/* SPDX-License-Identifier: GPL-2.0-only */
/* A server that speaks the stream frame by frame to a client of libibtrs, and may lie. */
#ifndef TEST_FAKE_H
#define TEST_FAKE_H

#include "ibtrs/user/verbs.h"
#include "raw.h"

#define QD	16u
#define IO	8192u
#define CHUNK	(IO + 4096u)
#define KEY	0x5000u

struct fake {
	uint64_t now;
	struct ibtrs_ctx *ctx;
	struct ibtrs_clt *clt;
	struct ibtrs_q *q;
	struct raw conn[2];	/* of the server, by cid */
	int small;		/* send buffer of the client; 0: as it is */
	struct world_hdr h;
	struct ibtrs_io io;
	uint8_t data[IO];
	unsigned int events;	/* that the client was told of */
};

__attribute__((unused))
static uint64_t fake_now(void *priv)
{
	return ((struct fake *)priv)->now;
}

__attribute__((unused))
static int fake_dial(void *priv, const char *path, unsigned int cid)
{
	struct fake *f = priv;
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd))
		abort();
	if (f->small)
		setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &f->small, sizeof(f->small));
	if (f->conn[cid].fd >= 0)
		close(f->conn[cid].fd);
	f->conn[cid].fd = fd[1];
	return fd[0];
}

static void fake_event(void *priv, uint32_t kind, uint32_t id)
{
	((struct fake *)priv)->events++;
}

__attribute__((unused))
static void fake_step(struct fake *f)
{
	while (ibtrs_ctx_step(f->ctx, 0) > 0)
		;
}

__attribute__((unused))
static void fake_open_flags(struct fake *f, uint32_t flags)
{
	static const char *const paths[] = { "fake" };
	struct ibtrs_ctx_opts co = { .size = sizeof(co), .now_ms = fake_now, .priv = f };
	struct ibtrs_clt_opts o = {
		.size = sizeof(o), .flags = IBTRS_CLT_NOWAIT | flags, .name = "liar", .dial = fake_dial,
		.priv = f, .event = fake_event,
	};
	char why[IBTRS_WHY_LEN];

	memset(f, 0, sizeof(*f));
	f->now = 5000;
	f->conn[0].fd = f->conn[1].fd = -1;
	if (ibtrs_ctx_new(&f->ctx, &co) || ibtrs_clt_open(f->ctx, paths, 1, &o, &f->clt, why))
		abort();
	f->q = ibtrs_clt_q(f->clt, 0);
}

__attribute__((unused))
static void fake_open(struct fake *f)
{
	fake_open_flags(f, 0);
}

__attribute__((unused))
static void fake_close(struct fake *f)
{
	ibtrs_clt_close(f->clt);
	CHECK_EQ(ibtrs_ctx_free(f->ctx), 0);
	close(f->conn[0].fd);
	if (f->conn[1].fd >= 0)
		close(f->conn[1].fd);
}

__attribute__((unused))
static struct ibtrs_path_info fake_info(struct fake *f)
{
	struct ibtrs_path_info i = { .size = sizeof(i) };

	CHECK_EQ(ibtrs_clt_path_info(f->clt, 0, &i), 0);
	return i;
}

__attribute__((unused))
static bool fake_is_up(struct fake *f)
{
	return !strcmp(fake_info(f).state, "up");
}

/* Takes CONN_REQ of @cid, and answers with @rsp. */
__attribute__((unused))
static bool fake_accept(struct fake *f, unsigned int cid, const struct ibtrs_conn_rsp *rsp)
{
	struct ibtrs_wire_conn_rsp w;
	struct ibtrs_conn_req m;

	fake_step(f);
	if (!CHECK_EQ(raw_recv(&f->conn[cid]), 1) ||
	    !CHECK_EQ(f->conn[cid].f.op, IBTRS_FRAME_REQ) ||
	    !CHECK_EQ(ibtrs_msg_conn_req_decode(f->conn[cid].data, f->conn[cid].f.len, 64, &m,
						NULL), 0))
		return false;
	CHECK_EQ(m.cid, cid);
	CHECK_EQ(m.cid_num, 2);
	CHECK_EQ(m.ext | IBTRS_EXT_EVENTS, IBTRS_USER_EXT & ~IBTRS_EXT_AUTH);
	CHECK(m.first_conn);
	ibtrs_msg_conn_rsp_encode(&w, rsp);
	raw_send(&f->conn[cid], IBTRS_FRAME_REP, 0, 0, 0, &w, sizeof(w));
	fake_step(f);
	return true;
}

__attribute__((unused))
static struct ibtrs_conn_rsp grant(bool new_rkey, uint32_t ext)
{
	return (struct ibtrs_conn_rsp){
		.ext = ext,
		.limits = { .queue_depth = QD, .max_io_size = IO, .max_hdr_size = 4096,
			    .new_rkey = new_rkey },
	};
}

/* One descriptor per chunk, as NEW_RKEY has it: key KEY + slot. */
__attribute__((unused))
static void fake_info_rsp(struct fake *f, uint16_t sg_cnt, uint32_t len, uint32_t cut)
{
	uint8_t buf[8 + 16 * QD];
	struct ibtrs_desc d[QD];
	unsigned int i;

	for (i = 0; i < QD; i++)
		d[i] = (struct ibtrs_desc){ .addr = 0x100000ull * i, .rkey = KEY + i, .len = len };
	ibtrs_msg_info_rsp_encode((void *)buf, d, sg_cnt, 77);
	raw_send(&f->conn[0], IBTRS_FRAME_SEND, 0, 0, 0, buf,
		 (uint32_t)ibtrs_msg_info_rsp_size(sg_cnt) - cut);
	fake_step(f);
}

__attribute__((unused))
static bool fake_handshake(struct fake *f, bool new_rkey, uint32_t ext)
{
	struct ibtrs_conn_rsp rsp = grant(new_rkey, ext);
	const char *name;

	if (!fake_accept(f, 0, &rsp) || !fake_accept(f, 1, &rsp) ||
	    !CHECK_EQ(raw_recv(&f->conn[0]), 1) || !CHECK_EQ(f->conn[0].f.op, IBTRS_FRAME_SEND) ||
	    !CHECK_EQ(ibtrs_msg_info_req_decode(f->conn[0].data, f->conn[0].f.len, &name, NULL), 0))
		return false;
	CHECK_STR(name, "liar");
	fake_info_rsp(f, QD, CHUNK, 0);
	f->now++;
	fake_step(f);
	return true;
}

__attribute__((unused))
static bool fake_up(struct fake *f, bool new_rkey, uint32_t ext)
{
	fake_open(f);
	if (!fake_handshake(f, new_rkey, ext) || !CHECK(fake_is_up(f)))
		return false;
	/* its heart beats */
	CHECK_EQ(raw_recv(&f->conn[0]), 1);
	CHECK_EQ(f->conn[0].f.imm, 0x80000000);
	return true;
}

/* Submits a request, and takes what arrives of it. Return: its slot. */
__attribute__((unused))
static uint32_t fake_request(struct fake *f, enum ibtrs_io_dir dir, uint32_t len)
{
	struct ibtrs_io *p = &f->io;

	f->io = world_io(dir, &f->h, 1, f->data, len);
	f->io.err = 1;
	CHECK_EQ(ibtrs_q_submit(f->q, &p, 1), 1);
	CHECK_EQ(raw_recv(&f->conn[1]), 1);
	CHECK_EQ(f->conn[1].f.op, IBTRS_FRAME_WRITE_IMM);
	return ibtrs_imm_req_slot(f->conn[1].f.imm, ibtrs_imm_off_bits(QD));
}

/* The descriptor of the read that arrived last. */
__attribute__((unused))
static struct ibtrs_desc fake_desc(struct fake *f, bool fence)
{
	const struct ibtrs_limits l = {
		.queue_depth = QD, .max_io_size = IO, .max_hdr_size = 4096, .chunk_size = CHUNK,
		.fence = fence,
	};
	uint32_t off = ibtrs_imm_req_off(f->conn[1].f.imm, ibtrs_imm_off_bits(QD));
	struct ibtrs_io_hdr h;
	const char *why = "";

	CHECK_EQ(ibtrs_msg_io_decode(f->conn[1].data + sizeof(f->h),
				     f->conn[1].f.len - sizeof(f->h), off, &l, &h, &why), 0);
	CHECK_EQ(h.has_desc, 1);
	CHECK_EQ(h.need_inval, 0);
	return h.desc;
}

__attribute__((unused))
static bool fake_done(struct fake *f, int err)
{
	struct ibtrs_io *done = NULL;

	return CHECK_EQ(ibtrs_q_poll(f->q, &done, 1, 0), 1) && CHECK(done == &f->io) &&
	       CHECK_EQ(done->err, err);
}

__attribute__((unused))
static uint32_t rsp(uint32_t slot, int err)
{
	return ibtrs_imm_rsp(IBTRS_IMM_IO_RSP, slot, err);
}

#endif
