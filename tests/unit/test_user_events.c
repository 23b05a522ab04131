// SPDX-License-Identifier: GPL-2.0-only
/* Events (protocol 8.3): a server of libibtrs speaks first. */
#include "fake.h"

struct heard {
	struct world w;		/* first: priv of the options is it */
	unsigned int nr;
	uint32_t kind, id;
};

static void event(void *priv, uint32_t kind, uint32_t id)
{
	struct heard *x = priv;

	x->nr++;
	x->kind = kind;
	x->id = id;
}

static void start(struct heard *x, unsigned int paths)
{
	const struct ibtrs_clt_opts o = { .event = event };

	x->nr = 0;
	world_open(&x->w, NULL, paths, &o);
	CHECK(world_until_up(&x->w, paths));
}

/* The number of the session, as a request shows it. */
static uint64_t session(struct world *w)
{
	struct ibtrs_io io, *p = &io, *done;
	struct world_hdr h;
	uint64_t id = 0;
	unsigned int i;

	io = world_io(IBTRS_IO_WRITE, &h, 0, NULL, 0);
	w->late = true;
	CHECK_EQ(ibtrs_q_submit(ibtrs_clt_q(w->clt, 0), &p, 1), 1);
	for (i = 0; i < 50 && !w->nr_kept; i++)
		world_turn(w);
	w->late = false;
	if (CHECK_EQ(w->nr_kept, 1)) {
		id = w->kept[0]->session;
		world_execute(w, w->kept[--w->nr_kept]);
	}
	for (i = 0; i < 50 && ibtrs_q_poll(ibtrs_clt_q(w->clt, 0), &done, 1, 0) != 1; i++)
		world_turn(w);
	CHECK_EQ(io.err, 0);
	return id;
}

UNIT_TEST(an_event_arrives)
{
	static struct heard x;
	uint64_t id;

	start(&x, 2);
	id = session(&x.w);
	CHECK_EQ(ibtrs_srv_event(x.w.srv, id, 1, 77), 0);
	world_turns(&x.w, 5);
	CHECK_EQ(x.nr, 1);
	CHECK_EQ(x.kind, 1);
	CHECK_EQ(x.id, 77);
	CHECK_EQ(ibtrs_srv_event(x.w.srv, id, IBTRS_EVENT_KIND_MAX, IBTRS_EVENT_ID_MAX), 0);
	CHECK_EQ(ibtrs_srv_event(x.w.srv, id, 0, 0), 0);
	world_turns(&x.w, 5);
	CHECK_EQ(x.nr, 3);
	CHECK_EQ(ibtrs_srv_event(x.w.srv, id, 16, 0), -EINVAL);
	CHECK_EQ(ibtrs_srv_event(x.w.srv, id, 0, 1u << 24), -EINVAL);
	CHECK_EQ(ibtrs_srv_event(x.w.srv, id + 1, 0, 0), -ENOENT);
	world_turns(&x.w, 5);
	CHECK_EQ(x.nr, 3);
	/* requests go on as ever */
	CHECK_EQ(session(&x.w), id);
	world_end(&x.w);
}

UNIT_TEST(an_event_takes_a_path_that_is_up)
{
	static struct heard x;
	unsigned int path;
	uint64_t id;

	for (path = 0; path < 2; path++) {
		UNIT_ROW("path %u is lost", path);
		start(&x, 2);
		id = session(&x.w);
		x.w.refuse_dial[path] = true;
		world_cut(&x.w, path);
		/* whether the server has noticed or not */
		CHECK_EQ(ibtrs_srv_event(x.w.srv, id, 2, 5), 0);
		world_turns(&x.w, 20);
		CHECK_EQ(ibtrs_srv_event(x.w.srv, id, 2, 6), 0);
		world_turns(&x.w, 20);
		CHECK_EQ(x.nr, 2);
		CHECK_EQ(x.id, 6);
		world_end(&x.w);
	}
}

/* A session that only an op keeps, and one that nothing keeps. */
UNIT_TEST(an_event_without_a_path)
{
	static struct heard x;
	struct ibtrs_io io, *p = &io;
	struct world_hdr h;
	uint64_t id;

	start(&x, 1);
	id = session(&x.w);
	x.w.late = true;
	io = world_io(IBTRS_IO_WRITE, &h, 0, NULL, 0);
	CHECK_EQ(ibtrs_q_submit(ibtrs_clt_q(x.w.clt, 0), &p, 1), 1);
	world_turns(&x.w, 10);
	CHECK_EQ(x.w.nr_kept, 1);
	x.w.refuse_dial[0] = true;
	world_cut(&x.w, 0);
	world_turns(&x.w, 10);
	CHECK_EQ(ibtrs_srv_event(x.w.srv, id, 1, 1), -ENOTCONN);
	world_execute(&x.w, x.w.kept[--x.w.nr_kept]);
	world_turns(&x.w, 10);
	CHECK_EQ(ibtrs_srv_event(x.w.srv, id, 1, 1), -ENOENT);
	CHECK_EQ(x.nr, 0);
	world_end(&x.w);
}

/* A client that does not read: what was taken arrives, and the rest is refused. */
UNIT_TEST(more_events_than_a_path_takes)
{
	static struct heard x;
	unsigned int n, k;
	uint64_t id;
	int err = 0;

	start(&x, 1);
	id = session(&x.w);
	x.w.frozen[0] = true;
	for (n = 0; n < 100000; n++) {
		err = ibtrs_srv_event(x.w.srv, id, 1, n);
		if (err)
			break;
	}
	CHECK_EQ(err, -EAGAIN);
	CHECK(n > 8);
	x.w.frozen[0] = false;
	for (k = 0; k < 2000 && x.nr < n; k++)
		world_turn(&x.w);
	CHECK_EQ(x.nr, n);
	CHECK_EQ(x.id, n - 1);
	CHECK_EQ(ibtrs_srv_event(x.w.srv, id, 1, 5), 0);
	world_turns(&x.w, 5);
	CHECK_EQ(x.id, 5);
	world_end(&x.w);
}

/* A client that has not asked for events gets none; one without a function for them lives on. */
UNIT_TEST(clients_that_take_no_events)
{
	struct ibtrs_srv_opts o = { .size = sizeof(o), .queue_depth = 16 };
	struct ibtrs_srv *srv;
	struct raw_path p;
	static struct world w;
	uint64_t id;

	if (!CHECK_EQ(ibtrs_srv_new(&o, &srv, NULL), 0) ||
	    !CHECK(raw_path_up(&p, srv, IBTRS_EXT_FENCE, 1)))
		return;
	CHECK_EQ(ibtrs_srv_event(srv, 1, 1, 1), -EOPNOTSUPP);
	CHECK_EQ(raw_recv(&p.r), 0);
	raw_path_end(&p);
	CHECK(raw_path_up(&p, srv, IBTRS_EXT_FENCE | IBTRS_EXT_EVENTS, 2));
	CHECK_EQ(ibtrs_srv_event(srv, 2, 2, 0x123456), 0);
	CHECK_EQ(raw_recv(&p.r), 1);
	CHECK_EQ(p.r.f.op, IBTRS_FRAME_WRITE_IMM);
	CHECK_EQ(p.r.f.imm, 0xa2123456);
	CHECK_EQ(p.r.f.len, 0);
	raw_path_end(&p);
	CHECK_EQ(ibtrs_srv_free(srv), 0);

	world_start(&w, NULL, 1, 1, 0);
	CHECK(world_until_up(&w, 1));
	id = session(&w);
	CHECK_EQ(ibtrs_srv_event(w.srv, id, 1, 1), -EOPNOTSUPP);
	world_end(&w);
}

/* Not negotiated, or on a connection of requests: ignored, and the path lives. */
UNIT_TEST(events_that_mean_nothing)
{
	static struct fake x;
	struct fake *f = &x;
	struct ibtrs_io *done;

	if (!fake_up(f, false, IBTRS_EXT_FENCE))
		return;
	raw_send(&f->conn[0], IBTRS_FRAME_WRITE_IMM, 0xa1000001, 0, 0, NULL, 0);
	fake_step(f);
	CHECK(fake_is_up(f));
	CHECK_EQ(f->events, 0);
	fake_close(f);

	if (!fake_up(f, false, IBTRS_EXT_FENCE | IBTRS_EXT_EVENTS))
		return;
	raw_send(&f->conn[1], IBTRS_FRAME_WRITE_IMM, 0xa1000001, 0, 0, NULL, 0);
	CHECK_EQ(ibtrs_q_poll(f->q, &done, 1, 0), 0);
	CHECK(fake_is_up(f));
	CHECK_EQ(f->events, 0);
	raw_send(&f->conn[0], IBTRS_FRAME_WRITE_IMM, 0xa1000001, 0, 0, NULL, 0);
	fake_step(f);
	CHECK(fake_is_up(f));
	CHECK_EQ(f->events, 1);
	fake_close(f);
}
