// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cache epochs: each record that may be found, and a model of a disk whose cache is lost at any
 * moment of any life. Whatever happens, a client whose unflushed writes are gone is told another
 * epoch than the one that it wrote under.
 */
#include "unit.h"
#include "ibnbd/logic/epoch.h"

UNIT_TEST(epoch_begin)
{
	static const struct { u64 epoch; bool clean, keeps; } rows[] = {
		{ 0, false, false }, { 0, true, false }, { 77, false, false }, { 77, true, true },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_epoch e = { .epoch = rows[i].epoch, .clean = rows[i].clean };

		UNIT_ROW("epoch %llu, clean %u", (unsigned long long)rows[i].epoch, rows[i].clean);
		CHECK_EQ(ibnbd_epoch_begin(&e, 88), rows[i].keeps);
		CHECK_EQ(e.epoch, rows[i].keeps ? 77 : 88);
		CHECK(e.clean);		/* nobody writes under it yet */
	}
}

UNIT_TEST(epoch_numbers)
{
	struct ibnbd_epoch e = {};

	CHECK(!ibnbd_epoch_begin(&e, 0));
	CHECK_EQ(e.epoch, 1);			/* 0 is none */
	ibnbd_epoch_writer(&e);
	CHECK(!e.clean);
	CHECK_EQ(e.epoch, 1);
	ibnbd_epoch_lost(&e, 1);		/* the same number again would tell nobody */
	CHECK(e.epoch && e.epoch != 1);
	CHECK(!e.clean);			/* its writer is still there */
	e.epoch = ~0ull;
	ibnbd_epoch_lost(&e, ~0ull);
	CHECK(e.epoch && e.epoch != ~0ull);
	e.epoch = 5;
	ibnbd_epoch_end(&e, true, 9);
	CHECK_EQ(e.epoch, 5);
	CHECK(e.clean);
	ibnbd_epoch_lost(&e, 6);
	CHECK(e.clean);
	ibnbd_epoch_writer(&e);
	ibnbd_epoch_end(&e, false, 9);		/* a failed flush may have dropped what it held */
	CHECK_EQ(e.epoch, 9);
	CHECK(e.clean);
}

/*
 * The walk. The disk: under which epoch was written what is in its cache alone. The server: the
 * record in memory, and in the file, which may refuse to be written. Steps are drawn at random, all
 * that can happen among them.
 */
struct world {
	struct ibnbd_epoch mem, file;
	/* epochs of the client: now; when it wrote what no flush has covered (0: nothing) */
	u64 told, wrote;
	u64 next;
	bool open, file_fails, lost;
};

static void world_store(struct world *w)
{
	if (!w->file_fails)
		w->file = w->mem;
}

static void world_open(struct world *w)
{
	u64 clean_epoch = 0;

	ibnbd_epoch_begin(&w->mem, w->next++);
	if (w->mem.clean)
		clean_epoch = w->mem.epoch;
	ibnbd_epoch_writer(&w->mem);
	world_store(w);
	if (w->file_fails && clean_epoch == w->mem.epoch)	/* as server/epoch.c does */
		ibnbd_epoch_lost(&w->mem, w->next++);
	w->told = w->mem.epoch;
	w->open = true;
}

static void world_step(struct world *w, unsigned int what)
{
	switch (what) {
	case 0:
		if (!w->open)
			world_open(w);
		break;
	case 1:			/* a write is acknowledged */
		if (w->open && w->mem.epoch == w->told)
			w->wrote = w->wrote ?: w->told;
		break;
	case 2:			/* a flush */
		if (w->open && w->mem.epoch == w->told && !w->lost)
			w->wrote = 0;
		break;
	case 3:			/* the last writer leaves; a flush that fails drops what it held */
	case 4:
		if (!w->open)
			break;
		ibnbd_epoch_end(&w->mem, what == 3, w->next++);
		world_store(w);
		if (what == 4)
			w->lost |= w->wrote != 0;
		else if (!w->lost)
			w->wrote = 0;
		w->open = false;
		break;
	case 5:			/* power */
		w->lost |= w->wrote && w->open;
		w->mem = w->file;
		w->open = false;
		break;
	case 6:			/* the module is loaded anew, in good order */
		if (w->open)
			world_step(w, 3);
		w->mem = w->file;
		break;
	case 7:			/* the disk loses its power, and somebody says so */
		if (!w->open)
			break;
		w->lost |= w->wrote != 0;
		ibnbd_epoch_lost(&w->mem, w->next++);
		w->file = w->mem;	/* else the store says that it has failed */
		w->told = w->mem.epoch;
		break;
	case 8:
		w->file_fails = !w->file_fails;
		break;
	}
}

UNIT_TEST(epoch_walk)
{
	unsigned int run, step, losses = 0, kept = 0;
	u64 seed = 1;

	for (run = 0; run < 20000; run++) {
		struct world w = { .next = 1000 };

		for (step = 0; step < 30; step++) {
			world_step(&w, (unsigned int)(unit_random(&seed) % 9));
			if (!w.open || !w.wrote)
				continue;
			losses += w.lost;
			kept += !w.lost && w.told == w.wrote;
			if (w.lost && w.told == w.wrote) {
				CHECK(!"a client was told the epoch under which it lost its writes");
				return;
			}
			if (w.told != w.wrote) {	/* it sends them again, and goes on */
				w.wrote = 0;
				w.lost = false;
			}
		}
	}
	CHECK(losses > 1000 && kept > 1000);
}
