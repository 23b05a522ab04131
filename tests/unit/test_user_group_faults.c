// SPDX-License-Identifier: GPL-2.0-only
/* Groups of libibtrs whose legs lose paths, hang, answer late, or are too slow. */
#include "user_group.h"

/* A leg loses its path under load: writes wait for it, reads go on with the others. */
UNIT_TEST(a_leg_loses_its_path)
{
	static struct group_world x;
	struct req *w[4];
	unsigned int i, n;

	start(&x, 3, 0, 0);
	all_up(&x);
	CHECK_EQ(do_io(&x, IBTRS_IO_WRITE, 9, 9, 0), 0);
	x.w[1].late = true;
	for (i = 0; i < 4; i++)
		w[i] = submit(&x, IBTRS_IO_WRITE, i, i, 0);
	for (i = 0; i < 6; i++)
		submit(&x, IBTRS_IO_READ, 9, 0, 0);
	for (i = 0; i < 20; i++)
		turn(&x);
	x.w[1].refuse_dial[0] = true;
	world_cut(&x.w[1], 0);
	for (n = 0, i = 0; i < 300; i++) {
		struct req *one;

		turn(&x);
		one = poll_one(&x);
		if (!one)
			continue;
		CHECK_EQ(one->io.dir, IBTRS_IO_READ);
		CHECK_EQ(one->io.err, 0);
		CHECK_MEM(one->data, x.w[0].disk[9], WORLD_BLOCK);
		drop(&x, one);
		n++;
	}
	CHECK_EQ(n, 6);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(w[i]->io.err, -EINPROGRESS);
		CHECK_EQ(w[i]->leg[0].err, 0);
		CHECK_EQ(w[i]->leg[1].err, -EINPROGRESS);
		CHECK_EQ(w[i]->io.left, 1);
	}
	/* it comes back: nothing is missed */
	x.w[1].late = false;
	answer_kept(&x, 1);
	x.w[1].refuse_dial[0] = false;
	for (n = 0; n < 4; n++) {
		struct req *one = wait_one(&x, 20000);

		if (!CHECK(one))
			break;
		CHECK_EQ(one->io.err, 0);
		CHECK_EQ(one->leg[1].err, 0);
		drop(&x, one);
	}
	for (i = 0; i < 4; i++)
		CHECK(leg_has(&x, 1, i, i));
	CHECK_EQ(leg_info(&x, 1).missed, 0);
	end(&x);
}

/* The caller does not wait for a leg without a path. */
UNIT_TEST(a_leg_is_out)
{
	static struct group_world x;
	unsigned int i;
	struct req *r;

	start(&x, 3, 2, 0);
	all_up(&x);
	x.w[2].refuse_dial[0] = true;
	world_cut(&x.w[2], 0);
	r = submit(&x, IBTRS_IO_WRITE, 1, 1, 0);
	CHECK(!wait_one(&x, 200));
	CHECK_EQ(ibtrs_group_out(x.g, 2, true), 0);
	CHECK(wait_one(&x, 2) == r);
	CHECK_EQ(r->io.err, 0);
	CHECK_EQ(r->leg[2].err, -ENOTCONN);
	drop(&x, r);
	/* as long as it is */
	r = submit(&x, IBTRS_IO_WRITE, 2, 2, 0);
	CHECK(wait_one(&x, 20) == r);
	CHECK_EQ(r->io.err, 0);
	CHECK_EQ(r->leg[2].err, -ENOTCONN);
	drop(&x, r);
	CHECK_EQ(leg_info(&x, 2).missed, 2);
	CHECK_EQ(leg_info(&x, 2).out, 1);
	CHECK_EQ(do_io(&x, IBTRS_IO_READ, 2, 0, 1u << 2), -ENODATA);
	/* it comes back, is repaired, and is a leg like the others */
	x.w[2].refuse_dial[0] = false;
	CHECK(world_until_up(&x.w[2], 1));
	CHECK_EQ(ibtrs_group_out(x.g, 2, false), 0);
	CHECK_EQ(do_io(&x, IBTRS_IO_WRITE, 3, 3, 0), 0);
	CHECK(leg_has(&x, 2, 3, 3));
	CHECK_EQ(x.w[2].executed, 1);
	for (i = 1; i < 3; i++)
		CHECK_EQ(do_io(&x, IBTRS_IO_WRITE, i, i, 1u << 2), 0);
	CHECK_EQ(ibtrs_group_whole(x.g, 2, 2), 0);
	for (i = 0; i < 3; i++)
		CHECK_EQ(do_io(&x, IBTRS_IO_READ, 1, 0, 0), 0);
	CHECK_EQ(x.w[2].executed, 4);
	CHECK_EQ(ibtrs_group_out(x.g, 3, true), -EINVAL);
	CHECK_EQ(ibtrs_group_whole(x.g, 3, 0), -EINVAL);
	end(&x);
}

/*
 * A leg that hangs: the request is done for the caller, and its memory is in use until that leg has
 * answered. Nobody reads from the leg meanwhile what others have.
 */
UNIT_TEST(early_and_late)
{
	static struct group_world x;
	unsigned int i, before;
	struct req *r;

	start(&x, 3, 2, IBTRS_GROUP_EARLY);
	all_up(&x);
	x.w[0].late = true;
	r = submit(&x, IBTRS_IO_WRITE, 1, 1, 0);
	CHECK(wait_one(&x, 300) == r);
	CHECK_EQ(r->io.err, 0);
	CHECK_EQ(r->io.left, 1);
	CHECK_EQ(r->leg[0].err, -EINPROGRESS);
	CHECK_EQ(leg_info(&x, 0).owes, 1);
	CHECK_EQ(x.w[0].nr_kept, 1);
	before = x.w[1].executed + x.w[2].executed;
	for (i = 0; i < 10; i++)
		CHECK_EQ(do_io(&x, IBTRS_IO_READ, 1, 0, 0), 0);
	CHECK_EQ(x.w[1].executed + x.w[2].executed, before + 10);
	CHECK_EQ(ibtrs_group_free(x.g), -EBUSY);
	CHECK(!wait_one(&x, 100));
	/* late, and still from the same memory */
	x.w[0].late = false;
	answer_kept(&x, 0);
	CHECK(leg_has(&x, 0, 1, 1));
	CHECK(wait_one(&x, 300) == r);
	CHECK_EQ(r->leg[0].err, 0);
	drop(&x, r);
	CHECK_EQ(leg_info(&x, 0).owes, 0);
	CHECK_EQ(leg_info(&x, 0).missed, 0);
	for (i = 0; i < 3; i++)
		CHECK_EQ(do_io(&x, IBTRS_IO_READ, 1, 0, 0), 0);
	CHECK_EQ(x.w[0].executed, 2);

	/* late, and an error: that counts when the caller is told, and the leg is not read from */
	x.w[0].late = true;
	r = submit(&x, IBTRS_IO_WRITE, 2, 2, 0);
	CHECK(wait_one(&x, 300) == r);
	x.w[0].answer = -EIO;
	answer_kept(&x, 0);
	for (i = 0; i < 50; i++)
		turn(&x);
	CHECK_EQ(ibtrs_gq_poll(x.q, NULL, 0, 0), 0);
	CHECK_EQ(r->leg[0].err, -EIO);
	CHECK_EQ(leg_info(&x, 0).missed, 0);
	CHECK_EQ(leg_info(&x, 0).owes, 1);
	CHECK(wait_one(&x, 300) == r);
	CHECK_EQ(r->io.err, 0);
	drop(&x, r);
	CHECK_EQ(leg_info(&x, 0).missed, 1);

	/* no quorum any more: that is certain before the last leg has ended */
	x.w[1].answer = -ENOSPC;
	x.w[0].answer = -ENOSPC;
	x.w[0].late = false;
	x.w[2].late = true;
	r = submit(&x, IBTRS_IO_WRITE, 3, 3, 0);
	CHECK(wait_one(&x, 300) == r);
	CHECK_EQ(r->io.err, -ENOSPC);
	CHECK_EQ(r->io.left, 1);
	answer_kept(&x, 2);
	CHECK(wait_one(&x, 300) == r);
	CHECK_EQ(r->io.err, -ENOSPC);
	drop(&x, r);

	/* at the same time: handed back once */
	x.w[2].late = false;
	x.w[0].answer = x.w[1].answer = 0;
	r = submit(&x, IBTRS_IO_WRITE, 3, 3, 0);
	for (i = 0; i < 50; i++)
		turn(&x);
	CHECK(poll_one(&x) == r);
	drop(&x, r);
	CHECK(!wait_one(&x, 100));
	end(&x);
}

/* A server that never answers: who shuts the session gets the memory back. */
UNIT_TEST(a_hung_leg_is_shut)
{
	static struct group_world x;
	struct req *r, *read;

	start(&x, 3, 2, IBTRS_GROUP_EARLY);
	all_up(&x);
	x.w[1].late = true;
	r = submit(&x, IBTRS_IO_WRITE, 1, 1, 0);
	CHECK(wait_one(&x, 300) == r);
	read = submit(&x, IBTRS_IO_READ, 1, 0, 1u << 1 | 1u << 2);
	CHECK_EQ(ibtrs_group_out(x.g, 1, true), 0);
	/* its path is up, and its server can still write to memory */
	if (read->leg[1].err == -ENODATA)
		CHECK_EQ(done(&x, read), 0);
	CHECK(!wait_one(&x, 100));
	ibtrs_clt_shut(x.w[1].clt);
	if (r->io.left == 0)
		CHECK_EQ(x.live, 1);
	while (x.live) {
		struct req *one = wait_one(&x, 3);

		if (!CHECK(one))
			break;
		CHECK_EQ(one->io.err, 0);
		CHECK_EQ(one->leg[1].err, -ENOTCONN);
		drop(&x, one);
	}
	/* the server executes it when nobody is there any more; shut twice is shut */
	answer_kept(&x, 1);
	ibtrs_clt_shut(x.w[1].clt);
	CHECK_EQ(do_io(&x, IBTRS_IO_WRITE, 2, 2, 0), 0);
	end(&x);
}

/* Far more requests than a leg has slots: they wait, in order, and hold up no other leg. */
UNIT_TEST(more_than_a_leg_has_slots)
{
	static struct group_world x;
	unsigned int i, n = 0, k;
	struct req *r;

	start(&x, 2, 1, IBTRS_GROUP_EARLY);
	all_up(&x);
	x.w[0].frozen[0] = true;
	for (i = 0; i < 300; i++)
		submit(&x, IBTRS_IO_WRITE, i % 4, i, 0);
	for (i = 0; i < 600 && n < 300; i++) {
		turn(&x);
		while ((r = poll_one(&x))) {
			CHECK_EQ(r->io.left, 1);
			CHECK(!r->told);
			r->told = true;
			n++;
		}
	}
	CHECK_EQ(n, 300);
	CHECK_EQ(x.w[1].executed, 300);
	CHECK_EQ(x.w[0].executed, 0);
	CHECK_EQ(leg_info(&x, 0).owes, 300);
	x.w[0].frozen[0] = false;
	for (i = 0; i < 30000 && x.live; i++) {
		turn(&x);
		while ((r = poll_one(&x))) {
			CHECK(r->told);
			drop(&x, r);
		}
	}
	CHECK_EQ(x.w[0].executed, 300);
	for (k = 0; k < 4; k++)
		CHECK(leg_has(&x, 0, k, 296 + k));
	CHECK_EQ(leg_info(&x, 0).owes, 0);
	end(&x);
}

/* One leg's path is cut after any byte: each write ends well on all legs, each read is right. */
UNIT_TEST(a_path_is_cut_anywhere)
{
	static struct group_world x;
	long cut, all = 0;
	unsigned int i;
	bool ok = true;
	struct req *r;

	for (cut = -1; ok && cut < all; cut = cut < 0 ? 1 : cut + 67) {
		UNIT_ROW("cut after %ld bytes", cut);
		start(&x, 2, 0, 0);
		x.w[0].grain = 300;
		x.w[0].budget[0] = cut;
		for (i = 0; i < 4; i++) {
			submit(&x, IBTRS_IO_WRITE, i, i + 100, 0);
			submit(&x, IBTRS_IO_READ, 5, 0, 0);
		}
		while (ok && x.live) {
			r = wait_one(&x, 30000);
			ok = CHECK(r);
			if (!ok)
				abort();
			ok &= CHECK_EQ(r->io.err, 0);
			if (r->io.dir == IBTRS_IO_READ)
				CHECK_MEM(r->data, x.w[1].disk[5], WORLD_BLOCK);
			drop(&x, r);
		}
		for (i = 0; i < 4; i++) {
			ok &= CHECK(leg_has(&x, 0, i, i + 100));
			ok &= CHECK(leg_has(&x, 1, i, i + 100));
		}
		if (cut < 0)
			all = x.w[0].moved[0];
		end(&x);
	}
	CHECK(all > 3000);
}
