// SPDX-License-Identifier: GPL-2.0-only
/* Groups of libibtrs: who has a write, who is read from, who is woken. */
#include <poll.h>
#include <pthread.h>
#include "user_group.h"

UNIT_TEST(all_legs_have_it)
{
	static struct group_world x;
	uint8_t want[WORLD_BLOCK];
	unsigned int i, k;
	struct req *r;

	start(&x, 3, 0, 0);
	/* before any leg is up */
	r = submit(&x, IBTRS_IO_WRITE, 60, 60, 0);
	CHECK_EQ(ibtrs_group_free(x.g), -EBUSY);
	CHECK_EQ(r->io.err, -EINPROGRESS);
	all_up(&x);
	CHECK_EQ(done(&x, r), 0);
	for (i = 0; i < 20; i++) {
		UNIT_ROW("round %u", i);
		CHECK_EQ(do_io(&x, IBTRS_IO_WRITE, i, i, 0), 0);
		for (k = 0; k < 3; k++)
			CHECK(leg_has(&x, k, i, i));
		fill(want, sizeof(want), i);
		r = submit(&x, IBTRS_IO_READ, i, 0, 0);
		CHECK(wait_one(&x, 300) == r);
		CHECK_EQ(r->io.err, 0);
		CHECK_MEM(r->data, want, sizeof(want));
		drop(&x, r);
	}
	/* each read goes to one leg, and they take turns */
	for (k = 0; k < 3; k++)
		CHECK(x.w[k].executed >= 27 && x.w[k].executed <= 28);
	CHECK_EQ(x.w[0].executed + x.w[1].executed + x.w[2].executed, 3 * 21 + 20);
	end(&x);
}

/* How many legs answer an error; what is the result with each quorum? */
UNIT_TEST(quorum)
{
	static struct group_world x;
	unsigned int quorum, bad, i;
	struct req *r;

	for (quorum = 0; quorum <= 3; quorum++) {
		for (bad = 0; bad <= 3; bad++) {
			UNIT_ROW("quorum %u, %u legs fail", quorum, bad);
			start(&x, 3, quorum, 0);
			all_up(&x);
			for (i = 0; i < bad; i++)
				x.w[i].answer = i ? -EIO : -ENOSPC;
			r = submit(&x, IBTRS_IO_WRITE, 1, 1, 0);
			CHECK(wait_one(&x, 300) == r);
			CHECK_EQ(!r->io.err, 3 - bad >= (quorum ?: 3));
			if (r->io.err)
				CHECK(r->io.err == -ENOSPC || r->io.err == -EIO);
			for (i = 0; i < 3; i++) {
				CHECK_EQ(r->leg[i].err, i >= bad ? 0 : i ? -EIO : -ENOSPC);
				CHECK_EQ(leg_info(&x, i).missed, i < bad);
			}
			drop(&x, r);
			end(&x);
		}
	}
}

/* A leg that has missed a write is not read from before the caller says that it is whole. */
UNIT_TEST(reads_go_to_legs_that_have_missed_nothing)
{
	static struct group_world x;
	struct ibtrs_leg_info info = { .size = sizeof(info) };
	unsigned int i, before;
	struct req *r;

	start(&x, 3, 2, 0);
	all_up(&x);
	x.w[1].answer = -EIO;
	CHECK_EQ(do_io(&x, IBTRS_IO_WRITE, 1, 1, 0), 0);
	x.w[1].answer = 0;
	before = x.w[1].executed;
	for (i = 0; i < 10; i++)
		CHECK_EQ(do_io(&x, IBTRS_IO_READ, 1, 0, 0), 0);
	CHECK_EQ(x.w[1].executed, before);
	/* asked for by name it is */
	CHECK_EQ(do_io(&x, IBTRS_IO_READ, 1, 0, 1u << 1), 0);
	CHECK_EQ(x.w[1].executed, before + 1);
	/* repair it alone; one more is missed meanwhile */
	info = leg_info(&x, 1);
	CHECK_EQ(info.missed, 1);
	CHECK_EQ(info.whole, 0);
	CHECK(info.clt == x.w[1].clt);
	CHECK_EQ(do_io(&x, IBTRS_IO_WRITE, 1, 1, 1u << 1), 0);
	CHECK(leg_has(&x, 1, 1, 1));
	x.w[1].answer = -EIO;
	CHECK_EQ(do_io(&x, IBTRS_IO_WRITE, 2, 2, 0), 0);
	x.w[1].answer = 0;
	CHECK_EQ(ibtrs_group_whole(x.g, 1, info.missed), 0);
	before = x.w[1].executed;
	for (i = 0; i < 10; i++)
		CHECK_EQ(do_io(&x, IBTRS_IO_READ, 1, 0, 0), 0);
	CHECK_EQ(x.w[1].executed, before);
	CHECK_EQ(ibtrs_group_whole(x.g, 1, leg_info(&x, 1).missed), 0);
	for (i = 0; i < 9; i++)
		CHECK_EQ(do_io(&x, IBTRS_IO_READ, 1, 0, 0), 0);
	CHECK_EQ(x.w[1].executed, before + 3);
	/* a write to given legs must reach all of them */
	x.w[0].answer = -EIO;
	r = submit(&x, IBTRS_IO_WRITE, 1, 1, 1u << 0 | 1u << 2);
	CHECK(wait_one(&x, 300) == r);
	CHECK_EQ(r->io.err, -EIO);
	CHECK_EQ(r->leg[0].err, -EIO);
	CHECK_EQ(r->leg[1].err, -ENODATA);
	CHECK_EQ(r->leg[2].err, 0);
	drop(&x, r);
	end(&x);
}

UNIT_TEST(a_read_that_fails_goes_to_another_leg)
{
	static struct group_world x;
	unsigned int i;
	struct req *r;

	start(&x, 3, 0, 0);
	all_up(&x);
	CHECK_EQ(do_io(&x, IBTRS_IO_WRITE, 4, 4, 0), 0);
	x.w[0].answer = -EIO;
	x.w[1].answer = -EILSEQ;
	for (i = 0; i < 6; i++) {
		r = submit(&x, IBTRS_IO_READ, 4, 0, 0);
		CHECK(wait_one(&x, 300) == r);
		CHECK_EQ(r->io.err, 0);
		CHECK_EQ(r->leg[2].err, 0);
		CHECK_MEM(r->data, x.w[2].disk[4], WORLD_BLOCK);
		drop(&x, r);
	}
	/* each of them has its turn; a read that fails is no write that is missed */
	CHECK_EQ(leg_info(&x, 0).missed, 0);
	x.w[2].answer = -ENOMEM;
	r = submit(&x, IBTRS_IO_READ, 4, 0, 0);
	CHECK(wait_one(&x, 300) == r);
	CHECK_EQ(r->leg[0].err, -EIO);
	CHECK_EQ(r->leg[1].err, -EILSEQ);
	CHECK_EQ(r->leg[2].err, -ENOMEM);
	CHECK(r->io.err == -EIO || r->io.err == -EILSEQ || r->io.err == -ENOMEM);
	drop(&x, r);
	/* nobody to read from */
	for (i = 0; i < 3; i++)
		CHECK_EQ(ibtrs_group_out(x.g, i, true), 0);
	CHECK_EQ(do_io(&x, IBTRS_IO_READ, 4, 0, 0), -ENODATA);
	CHECK_EQ(do_io(&x, IBTRS_IO_WRITE, 4, 4, 0), -ENOTCONN);
	end(&x);
}

/* ---- sleeping ----------------------------------------------------------- */

static void *sleeper(void *arg)
{
	struct group_world *x = arg;
	struct ibtrs_gio *io;

	return ibtrs_gq_poll(x->q, &io, 1, -1) == 1 ? io->user : NULL;
}

UNIT_TEST(who_sleeps_is_woken)
{
	static struct group_world x;
	struct pollfd fd;
	pthread_t thread;
	unsigned int i;
	struct req *r;
	void *got;

	start(&x, 2, 1, 0);
	all_up(&x);
	/* by an answer */
	fd = (struct pollfd){ .fd = ibtrs_gq_fd(x.q), .events = POLLIN };
	r = submit(&x, IBTRS_IO_WRITE, 1, 1, 0);
	CHECK(!poll_one(&x));
	for (i = 0; i < 30; i++)
		turn(&x);
	CHECK_EQ(poll(&fd, 1, 1000), 1);
	CHECK(poll_one(&x) == r);
	drop(&x, r);
	for (i = 0; i < 10 && poll(&fd, 1, 0); i++)
		CHECK(!poll_one(&x));
	CHECK_EQ(poll(&fd, 1, 0), 0);
	/* by what another thread says of a leg */
	x.w[0].refuse_dial[0] = true;
	world_cut(&x.w[0], 0);
	r = submit(&x, IBTRS_IO_WRITE, 1, 1, 0);
	CHECK(!wait_one(&x, 100));
	CHECK_EQ(poll(&fd, 1, 0), 0);
	CHECK_EQ(pthread_create(&thread, NULL, sleeper, &x), 0);
	usleep(20000);
	CHECK_EQ(ibtrs_group_out(x.g, 0, true), 0);
	pthread_join(thread, &got);
	CHECK(got == r);
	drop(&x, r);
	/* by a request that ends at once */
	CHECK_EQ(ibtrs_group_out(x.g, 1, true), 0);
	CHECK(!poll_one(&x));
	r = submit(&x, IBTRS_IO_WRITE, 1, 1, 0);
	CHECK_EQ(poll(&fd, 1, 1000), 1);
	CHECK(poll_one(&x) == r);
	drop(&x, r);
	CHECK(!poll_one(&x));
	CHECK_EQ(poll(&fd, 1, 0), 0);
	end(&x);
}

UNIT_TEST(groups_are_checked)
{
	struct {
		struct ibtrs_group_opts o;
		uint64_t later;
	} newer = { .o = { .size = sizeof(newer) }, .later = 1 };
	struct ibtrs_group_opts o = { .size = sizeof(o), .quorum = 3 };
	static struct group_world x;
	struct ibtrs_clt *clt[2];
	char why[IBTRS_WHY_LEN];
	struct ibtrs_group *g;
	struct ibtrs_gio io, *p = &io;
	struct ibtrs_io leg[2];
	static struct world w;

	start(&x, 2, 0, 0);
	world_start(&w, NULL, 1, 2, 0);
	clt[0] = x.w[0].clt;
	clt[1] = x.w[1].clt;
	CHECK_EQ(ibtrs_group_new(clt, 0, NULL, &g, why), -EINVAL);
	CHECK_STR(why, "group: it has 1 to 16 sessions");
	CHECK_EQ(ibtrs_group_new(clt, 2, &o, &g, why), -EINVAL);
	CHECK_STR(why, "group: a quorum of 3, and 2 sessions");
	CHECK_EQ(ibtrs_group_new(clt, 2, &newer.o, &g, why), -E2BIG);
	clt[1] = clt[0];
	CHECK_EQ(ibtrs_group_new(clt, 2, NULL, &g, why), -EINVAL);
	CHECK_STR(why, "test: the session is in the group twice");
	clt[1] = w.clt;
	CHECK_EQ(ibtrs_group_new(clt, 2, NULL, &g, why), -EINVAL);
	CHECK_STR(why, "test: it has 2 queues, and the first session of the group 1");
	CHECK_EQ(ibtrs_group_free(NULL), 0);
	/* requests */
	io = (struct ibtrs_gio){ .dir = IBTRS_IO_WRITE, .hdr = why, .hdr_len = 8, .leg = leg };
	io.legs = 1u << 2;
	CHECK_EQ(ibtrs_gq_submit(x.q, &p, 1), -EINVAL);
	io.legs = 0;
	io.hdr_len = 3;
	CHECK_EQ(ibtrs_gq_submit(x.q, &p, 1), -EINVAL);
	io.hdr_len = 8;
	io.len = 1;
	CHECK_EQ(ibtrs_gq_submit(x.q, &p, 1), -EINVAL);
	io.len = 0;
	io.leg = NULL;
	CHECK_EQ(ibtrs_gq_submit(x.q, &p, 1), -EINVAL);
	CHECK_EQ(ibtrs_gq_submit(x.q, &p, 0), 0);
	/* too long for the legs: each of them says so */
	all_up(&x);
	io.leg = leg;
	io.hdr_len = 5000;
	io.hdr = &x;
	CHECK_EQ(ibtrs_gq_submit(x.q, &p, 1), 1);
	CHECK_EQ(ibtrs_gq_poll(x.q, &p, 1, 0), 1);
	CHECK_EQ(io.err, -EINVAL);
	CHECK_EQ(leg[0].err, -EINVAL);
	CHECK_EQ(leg[1].err, -EINVAL);
	world_end(&w);
	end(&x);
}
