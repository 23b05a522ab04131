// SPDX-License-Identifier: GPL-2.0-only
/* Work requests of libibtrs as both providers see them, and what RDMA is without a device. */
#include "ibtrs/user/clt.h"
#include "user.h"

static const struct ibtrs_verbs no_verbs;

/* An answer with NEED_INVAL: the longest chain that there is. */
UNIT_TEST(operations_of_a_chain)
{
	static const uint16_t ops[] = {
		IBTRS_FRAME_WRITE, IBTRS_FRAME_SEND_INV, IBTRS_FRAME_WRITE_IMM,
	};
	struct ibtrs_frame f = { .key = 7 }, got;
	struct ibtrs_wr wr;
	char data[100];
	uint32_t i, bytes = 0;

	ibtrs_wr_init(&wr);
	for (i = 0; i < 3; i++) {
		f.op = ops[i];
		f.len = i ? 0 : sizeof(data);
		ibtrs_wr_frame(&wr, &f);
		ibtrs_wr_ref(&wr, data, f.len);
	}
	CHECK_EQ(wr.nr_ops, 3);
	CHECK_EQ(wr.nr, IBTRS_WR_IOVS);
	for (i = 0; i < 3; i++) {
		const struct iovec *v = &wr.iov[wr.op[i].iov];

		CHECK_EQ(wr.op[i].f.op, ops[i]);
		CHECK_EQ(v->iov_len, IBTRS_FRAME_LEN);
		ibtrs_frame_decode(v->iov_base, &got);
		CHECK_EQ(got.op, ops[i]);
		CHECK_EQ(got.key, 7);
	}
	CHECK(wr.iov[1].iov_base == data);
	for (i = 0; i < wr.nr; i++)
		bytes += wr.iov[i].iov_len;
	CHECK_EQ(bytes, 3 * IBTRS_FRAME_LEN + sizeof(data));
}

/* Copied bytes join the frame that they belong to, and no other one joins them. */
UNIT_TEST(a_frame_begins_a_piece)
{
	struct ibtrs_frame f = { .op = IBTRS_FRAME_SEND, .len = 4 };
	struct ibtrs_wr wr;

	ibtrs_wr_init(&wr);
	ibtrs_wr_frame(&wr, &f);
	ibtrs_wr_copy(&wr, "abcd", 4);
	ibtrs_wr_frame(&wr, &f);
	ibtrs_wr_copy(&wr, "efgh", 4);
	CHECK_EQ(wr.nr, 2);
	CHECK_EQ(wr.op[1].iov, 1);
	CHECK_EQ(wr.iov[0].iov_len, IBTRS_FRAME_LEN + 4);
	CHECK_MEM((uint8_t *)wr.iov[1].iov_base + IBTRS_FRAME_LEN, "efgh", 4);
}

/* The owner may use a work request again when it was taken, or when nothing is sent any more. */
UNIT_TEST(who_has_a_work_request)
{
	struct ibtrs_wr a = { .posted = false }, b = a, c = a;
	struct ibtrs_qp qp;

	ibtrs_qp_init(&qp, &no_verbs);
	ibtrs_qp_post_imm(&qp, &a, 1);
	ibtrs_qp_post_imm(&qp, &a, 2);		/* waits still: that one will do */
	ibtrs_qp_post_imm(&qp, &b, 3);
	CHECK(qp.out == &a && a.next == &b && !b.next);
	CHECK_EQ(a.op[0].f.imm, 1);
	ibtrs_qp_taken(&qp);
	CHECK(!a.posted && b.posted);
	ibtrs_qp_post_imm(&qp, &a, 4);
	CHECK(b.next == &a);
	CHECK_EQ(ibtrs_qp_break(&qp, -EPROTO, "first"), -EPROTO);
	CHECK_EQ(ibtrs_qp_break(&qp, -EIO, "second"), -EPROTO);
	CHECK_STR(qp.why, "first");
	ibtrs_qp_post_imm(&qp, &c, 5);
	CHECK(!c.posted);
	ibtrs_qp_end(&qp);
	CHECK(!qp.out && !a.posted && !b.posted);
}

/* An address of RDMA where there is none: an error with words, at once, and nothing left behind. */
UNIT_TEST(no_device)
{
	struct ibtrs_clt_opts o = { .size = sizeof(o), .name = "test" };
	const char *path = "ip:192.0.2.1";
	char why[IBTRS_WHY_LEN] = "";
	struct ibtrs_clt *clt = NULL;
	struct ibtrs_ctx *ctx;
	struct ibtrs_srv *srv;

	CHECK_EQ(ibtrs_ctx_new(&ctx, NULL), 0);
	CHECK(ibtrs_clt_open(ctx, &path, 1, &o, &clt, why) < 0);
	CHECK(!strncmp(why, "ip:192.0.2.1: ", 14) && strlen(why) > 30);
	CHECK_EQ(ibtrs_ctx_free(ctx), 0);
	CHECK_EQ(ibtrs_srv_new(NULL, &srv, why), 0);
	CHECK(ibtrs_srv_listen(srv, path, why) < 0);
	CHECK(!strncmp(why, "ip:192.0.2.1: cannot listen there: ", 35));
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}

/* q_depth takes a part of what the server grants. */
UNIT_TEST(a_shallow_queue)
{
	struct ibtrs_clt_opts o = {
		.size = sizeof(o), .flags = IBTRS_CLT_NOWAIT, .name = "test", .dial = world_dial,
		.q_depth = 3,
	};
	struct ibtrs_clt_info i = { .size = sizeof(i) };
	const char *path = "A";
	struct world_hdr h[4];
	struct ibtrs_io io[4], *list[4];
	char why[IBTRS_WHY_LEN];
	uint8_t data[4][16] = { 0 };
	struct world w;
	unsigned int n;

	world_start(&w, NULL, 1, 1, 0);
	CHECK(world_until_up(&w, 1));
	ibtrs_clt_info(w.clt, &i);
	CHECK_EQ(i.q_depth, 28);
	ibtrs_clt_close(w.clt);
	o.priv = &w;
	CHECK_EQ(ibtrs_clt_open(w.ctx, &path, 1, &o, &w.clt, why), 0);
	CHECK(world_until_up(&w, 1));
	ibtrs_clt_info(w.clt, &i);
	CHECK_EQ(i.q_depth, 3);
	for (n = 0; n < 4; n++) {
		io[n] = world_io(IBTRS_IO_WRITE, &h[n], n, data[n], 16);
		list[n] = &io[n];
	}
	CHECK_EQ(ibtrs_q_submit(ibtrs_clt_q(w.clt, 0), list, 4), 3);
	for (n = 0; n < 100; n++)
		world_turn(&w);
	CHECK_EQ(ibtrs_q_poll(ibtrs_clt_q(w.clt, 0), list, 4, 0), 3);
	world_end(&w);
}

/* Law L21: towards a server that may be another's, one path at a time asks for the session. */
UNIT_TEST(one_path_asks)
{
	struct world w;

	world_start(&w, NULL, 2, 1, 0);
	CHECK(!w.clt->one_asks);		/* streams alone */
	w.clt->one_asks = true;
	w.frozen[0] = true;
	world_turns(&w, 100);
	CHECK_EQ(w.dials[0], 1);
	CHECK_EQ(w.dials[1], 0);
	w.frozen[0] = false;
	CHECK(world_until_up(&w, 2));
	CHECK_EQ(w.clt->paths[1].recon_cnt, 1);
	/* who asks into the dark gives the turn away */
	world_cut(&w, 0);
	world_cut(&w, 1);
	w.frozen[0] = true;
	world_turns(&w, 300);
	CHECK_EQ(world_up(&w), 0);
	world_turns(&w, 5000);
	CHECK_EQ(world_up(&w), 1);
	CHECK_EQ(w.clt->paths[1].state, IBTRS_PATH_UP);
	world_end(&w);
}
