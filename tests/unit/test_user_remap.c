// SPDX-License-Identifier: GPL-2.0-only
/*
 * Disks of libibnbd whose link is lost: held, and then sent again to the same disk, or fenced, or
 * failed when hold_ms is over.
 */
#include "disk.h"
#include "ibnbd/logic/limits.h"

static struct pair p;
static struct batch b, c;

static bool reason_has(const char *words)
{
	return strstr(pair_info(&p).reason, words);
}

/* Eight requests that the server has, and does not answer. */
static void leave(enum ibnbd_req_op op)
{
	SRV_DO(&p, p.s.late = true);
	batch_submit(&p, &b, op, 8, 100);
	UNTIL(SRV(&p, nr_kept) == 8);
}

static bool all_zero(const u8 *at, size_t len)
{
	while (len && !*at)
		at++, len--;
	return !len;
}

UNIT_TEST(a_path_that_is_lost_takes_nothing_with_it)
{
	pair_start(&p, NULL);
	leave(IBNBD_REQ_WRITE);
	SRV_DO(&p, p.s.closed_dial = 1);
	disksrv_cut(&p.s);
	CHECK(pair_until(&p, "held"));
	CHECK_STR(pair_info(&p).reason, "no path to the server is up");
	batch_submit(&p, &c, IBNBD_REQ_READ, 8, 0);
	/* The server lets the path in when the first copies have ended. */
	SRV_DO(&p, p.s.closed_dial = 0; disksrv_release(&p.s));
	pair_until_opened(&p, 2);
	CHECK_STR(pair_info(&p).reason, "");
	CHECK_EQ(batch_wait(&p, &b), 0);
	CHECK_EQ(batch_wait(&p, &c), 0);
	batch_on_disk(&p, &b);
	CHECK_EQ(SRV(&p, infos), 2);
	CHECK_EQ(SRV(&p, opens), 2);
	CHECK_EQ(SRV(&p, writes), 16);
	CHECK_EQ(SRV(&p, unknown), 0);
	pair_end(&p);
}

/* Numbers are others then: nothing may be sent under an old one. */
UNIT_TEST(a_server_that_comes_back_gets_what_was_under_way)
{
	unsigned int i;

	for (i = 0; i < 3; i++) {
		UNIT_ROW("round %u", i);
		pair_start(&p, NULL);
		leave(IBNBD_REQ_WRITE);
		disksrv_down(&p.s);
		CHECK(pair_until(&p, "held"));
		batch_submit(&p, &c, IBNBD_REQ_READ, 8, 0);
		CHECK(all_zero(p.s.disk, DISKSRV_BLOCK));
		disksrv_up(&p.s);
		CHECK_EQ(batch_wait(&p, &b), 0);
		CHECK_EQ(batch_wait(&p, &c), 0);
		batch_on_disk(&p, &b);
		CHECK_EQ(SRV(&p, writes), 8);
		CHECK_EQ(SRV(&p, unknown), 0);
		pair_end(&p);
	}
}

/* ---- the same disk? ----------------------------------------------------- */

static void same(struct disksrv *s) { }
static void other_id(struct disksrv *s) { s->rsp.identity.id[3] ^= 1; }
static void other_kind(struct disksrv *s) { s->rsp.identity.kind = IBNBD_ID_FILE; }
static void no_kind(struct disksrv *s) { s->rsp.identity.kind = IBNBD_ID_NONE; }
static void no_identity(struct disksrv *s) { s->features ^= s->features; }
static void larger(struct disksrv *s) { s->rsp.nsectors += 8; }
static void smaller(struct disksrv *s) { s->rsp.nsectors -= 8; }
static void no_size(struct disksrv *s) { s->rsp.nsectors ^= s->rsp.nsectors; }
static void other_writer(struct disksrv *s) { s->rsp.identity.writer_gen++; }
static void forgot_writers(struct disksrv *s) { s->rsp.identity.writer_gen ^= 7ull << 32; }
static void no_writers(struct disksrv *s) { s->rsp.identity.writer_gen = 3ull << 32; }
static void other_epoch(struct disksrv *s) { s->rsp.durability.cache_epoch++; }
static void no_epoch(struct disksrv *s) { s->features &= ~(u64)IBNBD_FEAT_DURABILITY; }
static void read_only(struct disksrv *s) { s->rsp.identity.flags |= IBNBD_ID_F_READ_ONLY; }
static void smaller_block(struct disksrv *s) { s->rsp.logical_block_size = 512; }
static void larger_block(struct disksrv *s) { s->rsp.logical_block_size = 4096; }

static const struct {
	const char *name;
	void (*change)(struct disksrv *s);
	u32 block;			/* the first logical block size; 0: 4096 */
} changes[] = {
	{ "same", same },
	{ "other identity", other_id },
	{ "other kind of identity", other_kind },
	{ "kind none", no_kind },
	{ "no features", no_identity },
	{ "larger", larger },
	{ "smaller", smaller },
	{ "no size", no_size },
	{ "other writer", other_writer },
	{ "writers forgotten", forgot_writers },
	{ "no other writer", no_writers },
	{ "other epoch", other_epoch },
	{ "no epoch", no_epoch },
	{ "read-only", read_only },
	{ "smaller block", smaller_block },
	{ "larger block", larger_block, 512 },
};

/* An answer as the client decodes it. */
static struct ibnbd_open_rsp told(const struct disksrv *s)
{
	struct ibnbd_open_rsp r = s->rsp;

	r.has_identity = s->features & IBNBD_FEAT_IDENTITY;
	r.has_durability = s->features & IBNBD_FEAT_DURABILITY;
	if (!r.has_identity)
		memset(&r.identity, 0, sizeof(r.identity));
	if (!r.has_durability)
		memset(&r.durability, 0, sizeof(r.durability));
	return r;
}

/*
 * @dirty: a write that no flush covers was answered, and others are under way; @fence: if it may be
 * lost, the disk is fenced, else it is sent again
 */
static void remap(unsigned int i, enum ibnbd_disk_access mode, bool dirty, bool fence)
{
	static const enum ibnbd_access access[] = {
		IBNBD_ACCESS_RW, IBNBD_ACCESS_RO, IBNBD_ACCESS_MIGRATION,
	};
	const struct ibnbd_disk_opts o = {
		.access = mode,
		.unflushed = fence ? IBNBD_DISK_UNFLUSHED_FENCE : IBNBD_DISK_UNFLUSHED_AUTO,
	};
	struct ibnbd_open_rsp old, new;
	const char *why, *state;
	enum ibnbd_remap verdict;
	bool lost;

	UNIT_ROW("%s, mode %u, dirty %u, fence %u", changes[i].name, mode, dirty, fence);
	pair_prepare(&p);
	if (changes[i].block)
		p.s.rsp.logical_block_size = changes[i].block;
	CHECK_EQ(pair_open(&p, "db1", NULL, &o), 0);
	dirty &= mode != IBNBD_DISK_RO;
	if (dirty) {
		batch_submit(&p, &b, IBNBD_REQ_WRITE, 1, 9);
		CHECK_EQ(batch_wait(&p, &b), 0);
	}
	leave(dirty ? IBNBD_REQ_WRITE : IBNBD_REQ_READ);
	old = told(&p.s);
	disksrv_down(&p.s);
	memset(p.s.disk, 0, DISKSRV_BLOCK);
	changes[i].change(&p.s);
	new = told(&p.s);
	ibnbd_limits_keep_block(&old, &new);
	disksrv_up(&p.s);
	verdict = ibnbd_remap_compare(&old, &new, access[mode],
				      mode == IBNBD_DISK_RW || dirty, &why);
	lost = dirty && (!new.has_durability ||
			 old.durability.cache_epoch != new.durability.cache_epoch);
	if (verdict == IBNBD_REMAP_RETRY) {
		UNTIL(reason_has(why));
		CHECK_STR(pair_info(&p).state_detail, "held");
		CHECK(reason_has("the server's disk is not ready yet (-123): "));
	} else {
		state = verdict == IBNBD_REMAP_FENCE || (lost && fence) ? "fenced" : "open";
		CHECK_EQ(batch_wait(&p, &b), *state == 'f' ? -EIO : 0);
		CHECK(pair_until(&p, state));
		if (verdict == IBNBD_REMAP_FENCE)
			CHECK_STR(pair_info(&p).reason, why);
		else
			CHECK_STR(pair_info(&p).reason, !lost || !fence ? "" :
				  "the server may have lost its disk's write cache, and the last 1 MiB written were not flushed: close the disk and open it again to accept the loss");
		CHECK_EQ(all_zero(p.s.disk, DISKSRV_BLOCK), *state == 'f' || !dirty);
		/* given back, and everything on it fails */
		batch_submit(&p, &c, IBNBD_REQ_READ, 1, 0);
		CHECK_EQ(batch_wait(&p, &c), *state == 'f' ? -EIO : 0);
		UNTIL(SRV(&p, closes) == (*state == 'f'));
		CHECK_EQ(pair_info(&p).replays, lost && *state == 'o');
		if (*state == 'o')
			CHECK_EQ(pair_info(&p).bytes, new.nsectors * 512);
	}
	CHECK_EQ(SRV(&p, unknown), 0);
	pair_end(&p);
}

UNIT_TEST(the_same_disk_for_a_writer)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(changes); i++) {
		remap(i, IBNBD_DISK_RW, false, false);
		remap(i, IBNBD_DISK_RW, true, false);
		remap(i, IBNBD_DISK_RW, true, true);
	}
}

UNIT_TEST(the_same_disk_for_a_reader)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(changes); i++)
		remap(i, IBNBD_DISK_RO, false, false);
}

UNIT_TEST(the_same_disk_while_a_machine_moves)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(changes); i++) {
		remap(i, IBNBD_DISK_MIGRATION, false, false);
		remap(i, IBNBD_DISK_MIGRATION, true, false);
		remap(i, IBNBD_DISK_MIGRATION, true, true);
	}
}

/* What a flush has covered cannot be lost; who says so goes on without. */
UNIT_TEST(another_epoch_after_a_flush)
{
	const struct ibnbd_disk_opts fence = { .unflushed = IBNBD_DISK_UNFLUSHED_FENCE },
		ignore = { .unflushed = IBNBD_DISK_UNFLUSHED_IGNORE };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		UNIT_ROW("ignore %u", i);
		pair_start(&p, i ? &ignore : &fence);
		batch_submit(&p, &b, IBNBD_REQ_WRITE, 4, 9);
		CHECK_EQ(batch_wait(&p, &b), 0);
		if (!i)
			CHECK_EQ(ibnbd_flush(p.q, NULL), 0);
		disksrv_down(&p.s);
		other_epoch(&p.s);
		disksrv_up(&p.s);
		pair_until_opened(&p, 2);
		/* What is written from now on counts again. */
		batch_submit(&p, &b, IBNBD_REQ_WRITE, 4, 9);
		CHECK_EQ(batch_wait(&p, &b), 0);
		disksrv_down(&p.s);
		other_epoch(&p.s);
		disksrv_up(&p.s);
		CHECK(pair_until(&p, i ? "open" : "fenced"));
		pair_end(&p);
	}
}

/* A server that says nothing of its cache is believed, unless the user says otherwise. */
UNIT_TEST(a_server_without_epochs)
{
	const struct ibnbd_disk_opts fence = { .unflushed = IBNBD_DISK_UNFLUSHED_FENCE };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		UNIT_ROW("fence %u", i);
		pair_prepare(&p);
		p.s.features = IBNBD_FEAT_IDENTITY;
		CHECK_EQ(pair_open(&p, "db1", NULL, i ? &fence : NULL), 0);
		batch_submit(&p, &b, IBNBD_REQ_WRITE, 4, 9);
		CHECK_EQ(batch_wait(&p, &b), 0);
		disksrv_cut(&p.s);
		if (i)
			CHECK(pair_until(&p, "fenced"));
		else
			pair_until_opened(&p, 2);
		pair_end(&p);
	}
}

/* ---- refusals, and no answer -------------------------------------------- */

UNIT_TEST(a_server_that_does_not_open_it_yet)
{
	pair_start(&p, NULL);
	leave(IBNBD_REQ_READ);
	disksrv_down(&p.s);
	p.s.refuse = -EBUSY;
	p.s.words = "somebody else has it";
	disksrv_up(&p.s);
	UNTIL(reason_has("the server's disk is still in use (-16): the server says: somebody else has it"));
	CHECK_STR(pair_info(&p).state_detail, "held");
	SRV_DO(&p, p.s.refuse = 0);
	CHECK_EQ(batch_wait(&p, &b), 0);
	CHECK_STR(pair_info(&p).state, "open");
	pair_end(&p);
}

UNIT_TEST(a_server_that_will_not_open_it_again)
{
	pair_start(&p, NULL);
	leave(IBNBD_REQ_READ);
	disksrv_down(&p.s);
	p.s.refuse = -EACCES;
	p.s.words = "policy.conf, line 3";
	disksrv_up(&p.s);
	CHECK_EQ(batch_wait(&p, &b), -EIO);
	CHECK(pair_until(&p, "fenced"));
	CHECK_STR(pair_info(&p).reason, "the server no longer lets us write: the server says: policy.conf, line 3");
	pair_end(&p);
}

UNIT_TEST(hold_ms_without_a_path)
{
	const struct ibnbd_disk_opts o = { .hold_ms = 200 };
	u32 writes;

	pair_start(&p, &o);
	leave(IBNBD_REQ_WRITE);
	disksrv_down(&p.s);
	CHECK(pair_until(&p, "held"));
	batch_submit(&p, &c, IBNBD_REQ_READ, 8, 0);
	CHECK_EQ(batch_wait(&p, &b), -EIO);
	CHECK_EQ(batch_wait(&p, &c), -EIO);
	CHECK(pair_until(&p, "failed"));
	CHECK_STR(pair_info(&p).reason, "hold_ms=200 is over: no path to the server is up");
	batch_submit(&p, &c, IBNBD_REQ_READ, 8, 0);
	CHECK_EQ(batch_wait(&p, &c), -EIO);
	CHECK_STR(c.req[0].why, "the disk is not open: ibnbd_disk_info() says why");
	writes = SRV(&p, writes);
	disksrv_up(&p.s);
	CHECK(pair_until(&p, "open"));
	batch_submit(&p, &c, IBNBD_REQ_WRITE, 8, 0);
	CHECK_EQ(batch_wait(&p, &c), 0);
	CHECK_EQ(SRV(&p, writes), writes + 8);
	pair_end(&p);
}

/* Also when the server can be reached, and says nothing. */
UNIT_TEST(hold_ms_without_an_answer)
{
	const struct ibnbd_disk_opts o = { .hold_ms = 300 };

	pair_start(&p, &o);
	leave(IBNBD_REQ_READ);
	disksrv_down(&p.s);
	p.s.mute = true;
	disksrv_up(&p.s);
	CHECK_EQ(batch_wait(&p, &b), -EIO);
	CHECK(SRV(&p, infos) > 1);
	SRV_DO(&p, disksrv_release(&p.s));
	CHECK(pair_until(&p, "open"));
	pair_end(&p);
}

/* A server that comes and goes opens the disk each time, and never answers a request. */
UNIT_TEST(hold_ms_is_over_in_spite_of_new_links)
{
	/* a round takes 50 ms, and as long as half a second on a host with other work */
	const struct ibnbd_disk_opts o = { .hold_ms = 3000 };
	struct ibnbd_req *done;
	unsigned int i;

	pair_start(&p, &o);
	leave(IBNBD_REQ_READ);
	for (i = 0; i < 60 && ibnbd_q_poll(p.q, &done, 1, 0) != 1; i++) {
		disksrv_down(&p.s);
		p.s.late = true;
		disksrv_up(&p.s);
		UNTIL(pair_info(&p).opened >= i + 2);
		usleep(50000);
	}
	CHECK(i > 1 && i < 60);
	b.got = 1;
	CHECK_EQ(batch_wait(&p, &b), -EIO);
	SRV_DO(&p, disksrv_release(&p.s));
	CHECK(pair_until(&p, "open"));
	pair_end(&p);
}

UNIT_TEST(no_hold_at_all)
{
	const struct ibnbd_disk_opts o = { .hold_ms = IBNBD_HOLD_NONE };

	pair_start(&p, &o);
	leave(IBNBD_REQ_READ);
	disksrv_down(&p.s);
	CHECK_EQ(batch_wait(&p, &b), -EIO);
	CHECK_STR(pair_info(&p).state_detail, "failed");
	disksrv_up(&p.s);
	CHECK(pair_until(&p, "open"));
	pair_end(&p);
}

/*
 * Law L8: the server has a write that was given up. Nothing newer is written before it has ended:
 * the old mapping is closed, and the server opens another one when it has.
 */
UNIT_TEST(a_write_that_was_given_up_comes_first)
{
	const struct ibnbd_disk_opts o = { .hold_ms = 200 };
	u32 id;

	p.paths = 2;
	pair_prepare(&p);
	p.s.closed_dial = 2;
	CHECK_EQ(pair_open(&p, "db1", NULL, &o), 0);
	p.paths = 0;
	leave(IBNBD_REQ_WRITE);
	id = SRV(&p, maps[0].id);
	SRV_DO(&p, p.s.closed_dial = 3);
	disksrv_cut(&p.s);
	CHECK_EQ(batch_wait(&p, &b), -EIO);
	CHECK(pair_until(&p, "failed"));
	SRV_DO(&p, p.s.closed_dial = 1);
	UNTIL(reason_has("requests of the closed mapping are under way"));
	CHECK_EQ(SRV(&p, closes), 1);
	CHECK_STR(pair_info(&p).state_detail, "failed");
	batch_submit(&p, &c, IBNBD_REQ_WRITE, 1, 7);
	CHECK_EQ(batch_wait(&p, &c), -EIO);
	SRV_DO(&p, disksrv_release(&p.s));
	CHECK(pair_until(&p, "open"));
	CHECK(SRV(&p, maps[0].id) != id);
	batch_submit(&p, &c, IBNBD_REQ_WRITE, 8, 7);
	CHECK_EQ(batch_wait(&p, &c), 0);
	batch_on_disk(&p, &c);
	pair_end(&p);
}

/*
 * A server that gives numbers again cannot be told by CLOSE. So nothing is written until the path
 * that the write was lost on is up again, which no server allows before the write has ended.
 */
UNIT_TEST(a_write_that_was_given_up_without_identity)
{
	const struct ibnbd_disk_opts o = { .hold_ms = 200 };

	p.paths = 2;
	pair_prepare(&p);
	p.s.features = 0;
	p.s.closed_dial = 2;
	CHECK_EQ(pair_open(&p, "db1", NULL, &o), 0);
	p.paths = 0;
	leave(IBNBD_REQ_WRITE);
	SRV_DO(&p, p.s.closed_dial = 3);
	disksrv_cut(&p.s);
	CHECK_EQ(batch_wait(&p, &b), -EIO);
	CHECK(pair_until(&p, "failed"));
	SRV_DO(&p, p.s.closed_dial = 1; p.s.late = false);
	CHECK(pair_until(&p, "open"));
	CHECK_STR(pair_info(&p).reason, "writes disabled: the server may still execute an aborted one");
	CHECK_EQ(SRV(&p, closes), 0);
	batch_submit(&p, &c, IBNBD_REQ_WRITE, 1, 7);
	CHECK_EQ(batch_wait(&p, &c), -EIO);
	CHECK_STR(c.req[0].why, "no writes: the server may still execute one that was given up");
	SRV_DO(&p, p.s.closed_dial = 0; disksrv_release(&p.s));
	UNTIL(!pair_info(&p).reason[0]);
	batch_submit(&p, &c, IBNBD_REQ_WRITE, 8, 7);
	CHECK_EQ(batch_wait(&p, &c), 0);
	batch_on_disk(&p, &c);
	pair_end(&p);
}

/* ---- news of the server ------------------------------------------------- */

UNIT_TEST(a_mapping_that_the_server_has_closed)
{
	pair_start(&p, NULL);
	SRV_DO(&p, p.s.maps[0].open = false);
	batch_submit(&p, &b, IBNBD_REQ_WRITE, 8, 3);
	CHECK_EQ(batch_wait(&p, &b), 0);
	batch_on_disk(&p, &b);
	CHECK_EQ(pair_info(&p).opened, 2);
	CHECK(SRV(&p, unknown) > 0);
	pair_end(&p);
}

static void tell(u32 kind)
{
	SRV_DO(&p, ibtrs_srv_event(p.s.srv, p.s.maps[0].number, kind,
				   p.s.maps[0].id & IBNBD_EVENT_ID_MASK));
}

/* Without a request that would notice it; and not for each of many events. */
UNIT_TEST(a_disk_that_is_resized)
{
	u64 bytes;
	u32 i;

	pair_start(&p, NULL);
	bytes = pair_info(&p).bytes;
	SRV_DO(&p, p.s.rsp.nsectors += 8);
	tell(IBNBD_EVENT_RESIZED);
	UNTIL(pair_info(&p).bytes == bytes + 4096);
	CHECK_EQ(pair_info(&p).opened, 2);
	CHECK_EQ(SRV(&p, closes), 0);
	for (i = 0; i < 100; i++)
		tell(IBNBD_EVENT_RESIZED);
	SRV_DO(&p, p.s.rsp.nsectors -= 16);
	CHECK(pair_until(&p, "fenced"));
	CHECK(reason_has("the disk shrank"));
	CHECK(SRV(&p, opens) < 6);
	pair_end(&p);
}

/* A refusal of a new size changes nothing; one that takes the disk back does. */
UNIT_TEST(a_disk_that_is_taken_back)
{
	pair_start(&p, NULL);
	SRV_DO(&p, p.s.refuse = -EACCES; p.s.words = "policy.conf, line 3");
	tell(IBNBD_EVENT_RESIZED);
	UNTIL(SRV(&p, opens) == 2);
	usleep(20000);
	CHECK_STR(pair_info(&p).state, "open");
	SRV_DO(&p, p.s.maps[0].open = false);
	tell(IBNBD_EVENT_REVOKED);
	CHECK(pair_until(&p, "fenced"));
	CHECK_STR(pair_info(&p).reason,
		  "the server no longer lets us write: the server says: policy.conf, line 3");
	pair_end(&p);
}

/* The disk reports a failed flush once; what it had to write may be dropped. */
UNIT_TEST(a_flush_that_fails)
{
	const struct ibnbd_disk_opts fence = { .unflushed = IBNBD_DISK_UNFLUSHED_FENCE };
	struct ibnbd_req req;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		UNIT_ROW("row %u", i);
		pair_start(&p, &fence);
		req = (struct ibnbd_req){ .op = IBNBD_REQ_FLUSH };
		if (i) {
			batch_submit(&p, &b, IBNBD_REQ_WRITE, 8, 3);
			CHECK_EQ(batch_wait(&p, &b), 0);
		}
		SRV_DO(&p, p.s.io_err = -EIO; p.s.io_op = IBNBD_OP_FLUSH);
		if (i == 2) {
			SRV_DO(&p, p.s.io_op = IBNBD_OP_WRITE);
			req = b.req[0];
			req.flags = IBNBD_REQ_FUA;
		}
		CHECK_EQ(ibnbd_q_do(p.q, &req), -EIO);
		if (i) {
			CHECK(pair_until(&p, "fenced"));
			CHECK(reason_has("a flush failed on the server, which may have dropped the unwritten data, and the last 1 MiB"));
			CHECK_EQ(ibnbd_flush(p.q, NULL), -EIO);
		} else {
			CHECK_EQ(ibnbd_flush(p.q, NULL), 0);
			CHECK_STR(pair_info(&p).state, "open");
		}
		pair_end(&p);
	}
}
