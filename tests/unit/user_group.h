/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups of libibtrs: one client, several servers. Each leg is a world of its own, so it has its
 * own server, wires, clock and disk.
 *
 * Requests are allocated and freed as soon as the library says that it has no more use for them, so
 * that ASan sees who touches them later.
 */
#ifndef TEST_USER_GROUP_H
#define TEST_USER_GROUP_H

#include "user.h"

#define LEGS	3

struct group_world {
	struct world w[LEGS];
	struct ibtrs_group *g;
	struct ibtrs_gq *q;
	unsigned int nr;
	unsigned int live;	/* requests that are not freed */
};

struct req {
	struct ibtrs_gio io;
	struct ibtrs_io leg[LEGS];
	struct world_hdr h;
	uint8_t data[WORLD_BLOCK];
	bool told;
};

__attribute__((unused))
static void fill(uint8_t *p, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)(seed * 53 + i * 7 + 1);
}

__attribute__((unused))
static void start(struct group_world *x, unsigned int nr, unsigned int quorum, uint32_t flags)
{
	const struct ibtrs_group_opts o = {
		.size = sizeof(o), .flags = flags, .quorum = quorum,
	};
	struct ibtrs_clt *clt[LEGS];
	char why[IBTRS_WHY_LEN] = "";
	unsigned int i;

	x->nr = nr;
	x->live = 0;
	for (i = 0; i < nr; i++) {
		world_start(&x->w[i], NULL, 1, 1, 0);
		clt[i] = x->w[i].clt;
	}
	if (!CHECK_EQ(ibtrs_group_new(clt, nr, &o, &x->g, why), 0)) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	x->q = ibtrs_group_q(x->g, 0);
	CHECK(!ibtrs_group_q(x->g, 1));
}

__attribute__((unused))
static void all_up(struct group_world *x)
{
	unsigned int i;

	for (i = 0; i < x->nr; i++)
		CHECK(world_until_up(&x->w[i], 1));
}

__attribute__((unused))
static void turn(struct group_world *x)
{
	unsigned int i;

	for (i = 0; i < x->nr; i++)
		world_turn(&x->w[i]);
}

__attribute__((unused))
static void end(struct group_world *x)
{
	unsigned int i;

	CHECK_EQ(x->live, 0);
	CHECK_EQ(ibtrs_group_free(x->g), 0);
	for (i = 0; i < x->nr; i++)
		world_end(&x->w[i]);
}

__attribute__((unused))
static struct req *submit(struct group_world *x, enum ibtrs_io_dir dir, uint32_t block,
			  unsigned int seed, uint32_t legs)
{
	struct req *r = calloc(1, sizeof(*r));
	struct ibtrs_gio *io;

	if (!r)
		abort();
	r->h = (struct world_hdr){ .block = block, .magic = WORLD_MAGIC };
	if (dir == IBTRS_IO_WRITE)
		fill(r->data, sizeof(r->data), seed);
	r->io = (struct ibtrs_gio){
		.dir = dir, .hdr = &r->h, .hdr_len = sizeof(r->h), .data = r->data,
		.len = sizeof(r->data), .legs = legs, .leg = r->leg, .user = r,
	};
	io = &r->io;
	if (!CHECK_EQ(ibtrs_gq_submit(x->q, &io, 1), 1))
		abort();
	x->live++;
	return r;
}

__attribute__((unused))
static struct req *poll_one(struct group_world *x)
{
	struct ibtrs_gio *io;

	return ibtrs_gq_poll(x->q, &io, 1, 0) == 1 ? io->user : NULL;
}

/* Turns until something is handed back; NULL: nothing is. */
__attribute__((unused))
static struct req *wait_one(struct group_world *x, unsigned int turns)
{
	struct req *r = NULL;

	while (turns-- && !r) {
		turn(x);
		r = poll_one(x);
	}
	return r;
}

__attribute__((unused))
static void drop(struct group_world *x, struct req *r)
{
	CHECK_EQ(r->io.left, 0);
	x->live--;
	free(r);
}

/* One request from its submission to its end. Return: its result. */
__attribute__((unused))
static int32_t done(struct group_world *x, struct req *r)
{
	int32_t err = 1;

	if (CHECK(wait_one(x, 300) == r)) {
		err = r->io.err;
		drop(x, r);
	}
	return err;
}

__attribute__((unused))
static int32_t do_io(struct group_world *x, enum ibtrs_io_dir dir, uint32_t block,
		     unsigned int seed, uint32_t legs)
{
	return done(x, submit(x, dir, block, seed, legs));
}

__attribute__((unused))
static struct ibtrs_leg_info leg_info(struct group_world *x, unsigned int i)
{
	struct ibtrs_leg_info info = { .size = sizeof(info) };

	CHECK_EQ(ibtrs_group_leg(x->g, i, &info), 0);
	return info;
}

__attribute__((unused))
static bool leg_has(struct group_world *x, unsigned int i, uint32_t block, unsigned int seed)
{
	uint8_t want[WORLD_BLOCK];

	fill(want, sizeof(want), seed);
	return !memcmp(x->w[i].disk[block], want, sizeof(want));
}

__attribute__((unused))
static void answer_kept(struct group_world *x, unsigned int i)
{
	while (x->w[i].nr_kept)
		world_execute(&x->w[i], x->w[i].kept[--x->w[i].nr_kept]);
}

#endif
