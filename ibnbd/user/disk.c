// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Disks: opening, closing, what they are.
 *
 * A disk has a session of its own, so its number on the server is the only one that a request of
 * this session can name. Before ibnbd_disk_open() returns, its caller exchanges the messages;
 * afterwards the control thread does (watch.c), until ibnbd_disk_close() has stopped it.
 */
#include <stdlib.h>
#include <time.h>
#include "ibnbd/logic/errword.h"
#include "ibnbd/user/disk.h"

#define DISK_FIRST_MS	10000
#define DISK_CLOSE_MS	5000
#define DISK_HOLD_MS	100000		/* hold= of the kernel's client .. */
#define DISK_RETAIN_MB	64		/* .. and retain_mb= */
#define DISK_RETAIN_MAX	65536

static_assert((int)IBNBD_DISK_AUTO == (int)IBNBD_ZEROES_AUTO &&
	      (int)IBNBD_DISK_ON == (int)IBNBD_ZEROES_ON &&
	      (int)IBNBD_DISK_OFF == (int)IBNBD_ZEROES_OFF &&
	      (int)IBNBD_DISK_AUTO == (int)IBNBD_CACHE_AUTO &&
	      (int)IBNBD_DISK_ON == (int)IBNBD_CACHE_ON &&
	      (int)IBNBD_DISK_OFF == (int)IBNBD_CACHE_OFF, "the numbers are those of the map options");

u64 disk_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000 + (u64)t.tv_nsec / 1000000;
}

void disk_tell(struct ibnbd_disk *d, u32 news)
{
	pthread_mutex_lock(&d->news_lock);
	d->news |= news;
	pthread_cond_signal(&d->news_cond);
	pthread_mutex_unlock(&d->news_lock);
}

bool disk_stops(struct ibnbd_disk *d)
{
	bool stops;

	pthread_mutex_lock(&d->news_lock);
	stops = d->news & DISK_NEWS_STOP;
	pthread_mutex_unlock(&d->news_lock);
	return stops;
}

static void disk_link(void *disk)
{
	disk_tell(disk, DISK_NEWS_LINK);
}

/* A hint (protocol 8.3). The session has no other disk. */
static void disk_event(void *disk, uint32_t kind, uint32_t id)
{
	if (kind == IBNBD_EVENT_RESIZED)
		disk_tell(disk, DISK_NEWS_RESIZED);
	else if (kind == IBNBD_EVENT_REVOKED)
		disk_tell(disk, DISK_NEWS_REVOKED);
}

static int disk_dial(void *disk, const char *path, unsigned int cid)
{
	struct ibnbd_disk *d = disk;

	return d->dial(d->dial_priv, path, cid);
}

int disk_why(char why[IBTRS_WHY_LEN], int err, const char *fmt, ...)
{
	va_list ap;

	if (!why)
		return err;
	va_start(ap, fmt);
	vsnprintf(why, IBTRS_WHY_LEN, fmt, ap);
	va_end(ap);
	return err;
}

/* ---- options ------------------------------------------------------------ */

/* A struct that the caller's header may know a shorter or a longer form of. */
static int disk_copy_opts(void *to, size_t size, const void *from)
{
	const u8 *f = from;
	size_t has, i;

	memset(to, 0, size);
	if (!from)
		return 0;
	memcpy(&has, from, sizeof(has));
	if (has < sizeof(has))
		return -EINVAL;
	for (i = size; i < has; i++)
		if (f[i])
			return -E2BIG;
	memcpy(to, from, has < size ? has : size);
	memcpy(to, &size, sizeof(size));
	return 0;
}

static int disk_options(struct ibnbd_disk *d, const char *name,
			const struct ibtrs_clt_opts *session, const struct ibnbd_disk_opts *o,
			char *why)
{
	static const enum ibnbd_access access[] = {
		[IBNBD_DISK_RW]		= IBNBD_ACCESS_RW,
		[IBNBD_DISK_RO]		= IBNBD_ACCESS_RO,
		[IBNBD_DISK_MIGRATION]	= IBNBD_ACCESS_MIGRATION,
	};
	size_t len = strlen(name);
	int err;

	err = disk_copy_opts(&d->opts, sizeof(d->opts), o);
	if (!err)
		err = disk_copy_opts(&d->session, sizeof(d->session), session);
	if (err)
		return disk_why(why, err, "%.100s: an option that this library does not know",
				name);
	if (!len || len >= sizeof(d->name))
		return disk_why(why, -EINVAL, "the name of a disk has 1 to %zu bytes",
				sizeof(d->name) - 1);
	memcpy(d->name, name, len + 1);
	if (d->opts.access >= ARRAY_SIZE(access) || d->opts.write_zeroes > IBNBD_DISK_OFF ||
	    d->opts.write_cache > IBNBD_DISK_OFF ||
	    d->opts.unflushed > IBNBD_DISK_UNFLUSHED_REPLAY ||
	    d->opts.retain_mb > DISK_RETAIN_MAX || d->opts.hold_ms < IBNBD_HOLD_NONE)
		return disk_why(why, -EINVAL, "%.100s: an option has no value that it may have",
				name);
	d->access = access[d->opts.access];
	if (d->opts.hold_ms == IBNBD_HOLD_DEFAULT)
		d->opts.hold_ms = DISK_HOLD_MS;
	d->opts.retain_mb = d->opts.retain_mb ?: DISK_RETAIN_MB;
	d->session.flags = IBTRS_CLT_ASK_REPLAY;
	d->dial = d->session.dial;
	d->dial_priv = d->session.priv;
	if (d->dial)
		d->session.dial = disk_dial;
	d->session.priv = d;
	d->session.event = disk_event;
	d->session.link = disk_link;
	d->session.link_priv = d;
	d->nr_qs = d->session.queues ?: 1;
	return 0;
}

/* ---- opening and closing ------------------------------------------------ */

static void disk_free(struct ibnbd_disk *d)
{
	u32 i;

	for (i = 0; d->qs && i < d->nr_qs; i++)
		disk_q_free(&d->qs[i]);
	free(d->qs);
	ibtrs_clt_close(d->clt);
	disk_kept_free(d);
	pthread_mutex_destroy(&d->kept_lock);
	pthread_cond_destroy(&d->news_cond);
	pthread_mutex_destroy(&d->news_lock);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

static struct ibnbd_disk *disk_alloc(void)
{
	struct ibnbd_disk *d = calloc(1, sizeof(*d));
	pthread_condattr_t attr;

	if (!d)
		return NULL;
	pthread_mutex_init(&d->lock, NULL);
	pthread_mutex_init(&d->news_lock, NULL);
	pthread_mutex_init(&d->kept_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&d->news_cond, &attr);
	pthread_condattr_destroy(&attr);
	return d;
}

static int disk_queues(struct ibnbd_disk *d, char *why)
{
	u32 i;
	int err = 0;

	d->qs = calloc(d->nr_qs, sizeof(*d->qs));
	if (!d->qs)
		return disk_why(why, -ENOMEM, "%s: no memory", d->name);
	for (i = 0; i < d->nr_qs; i++) {
		d->qs[i].ep = d->qs[i].wake = -1;
		d->qs[i].done_end = &d->qs[i].done;
		pthread_mutex_init(&d->qs[i].lock, NULL);
		pthread_cond_init(&d->qs[i].news, NULL);
	}
	for (i = 0; i < d->nr_qs && !err; i++)
		err = disk_q_init(&d->qs[i], d, i);
	return err ? disk_why(why, err, "%s: its queues cannot be made: %s", d->name,
			      strerror(-err)) : 0;
}

static int disk_first(struct ibnbd_disk *d, char *why)
{
	const char *said = NULL;
	struct disk_grant g;
	int err;

	disk_watch_link(d);
	err = disk_ask(d, d->ups, &g, DISK_FIRST_MS, &said);
	if (!err && !disk_ask_on(d, d->ups))
		err = -ECONNRESET;
	if (err)
		return disk_why(why, err, "cannot open %.100s on session %.60s: %s%s", d->name,
				d->session.name, said == d->said.text ? "the server says: " : "",
				said ?: ibnbd_errword_open(err));
	pthread_mutex_lock(&d->lock);
	disk_post(d, IBNBD_DEV_EV_OPENED, &g);
	ibtrs_clt_replay(d->clt, g.ups);
	pthread_mutex_unlock(&d->lock);
	return 0;
}

int ibnbd_disk_open(struct ibtrs_ctx *ctx, const char *name, const char *const *paths,
		    unsigned int nr, const struct ibtrs_clt_opts *session,
		    const struct ibnbd_disk_opts *o, struct ibnbd_disk **disk,
		    char why[IBTRS_WHY_LEN])
{
	struct ibnbd_disk *d = disk_alloc();
	int err;

	if (!d)
		return disk_why(why, -ENOMEM, "%.100s: no memory", name);
	err = disk_options(d, name, session, o, why);
	if (!err && disk_kept_init(d))
		err = disk_why(why, -ENOMEM, "%.100s: no memory for retain_mb=%u", name,
			       d->opts.retain_mb);
	if (!err)
		err = ibtrs_clt_open(ctx, paths, nr, &d->session, &d->clt, why);
	if (!err)
		err = disk_queues(d, why);
	if (!err)
		err = disk_first(d, why);
	if (!err) {
		err = -pthread_create(&d->thread, NULL, disk_watch, d);
		if (err)
			disk_why(why, err, "%.100s: no thread: %s", name, strerror(-err));
		d->started = !err;
	}
	if (err)
		ibnbd_disk_close(d);
	else
		*disk = d;
	return err;
}

void ibnbd_disk_close(struct ibnbd_disk *d)
{
	enum ibnbd_dev_state state;

	if (!d)
		return;
	if (d->started) {
		disk_tell(d, DISK_NEWS_STOP);
		pthread_join(d->thread, NULL);
	}
	if (d->clt)
		disk_watch_link(d);
	pthread_mutex_lock(&d->lock);
	state = d->state;
	pthread_mutex_unlock(&d->lock);
	if (d->clt)
		disk_ask_close(d, state, false, DISK_CLOSE_MS);
	disk_free(d);
}

/* ---- questions ---------------------------------------------------------- */

struct ibnbd_q *ibnbd_disk_q(struct ibnbd_disk *d, unsigned int i)
{
	return i < d->nr_qs ? &d->qs[i] : NULL;
}

struct ibtrs_clt *ibnbd_disk_session(struct ibnbd_disk *d)
{
	return d->clt;
}

int ibnbd_disk_info(struct ibnbd_disk *d, struct ibnbd_disk_info *info)
{
	struct ibtrs_clt_info clt = { .size = sizeof(clt) };
	const struct ibnbd_limits *lim = &d->grant.lim;
	struct ibnbd_disk_info i = {};
	size_t has = info->size;

	if (has < sizeof(has))
		return -EINVAL;
	ibtrs_clt_info(d->clt, &clt);
	pthread_mutex_lock(&d->lock);
	i.size = has;
	i.bytes = lim->nsectors << IBNBD_SECTOR_SHIFT;
	i.block_size = lim->logical_block_size;
	i.physical_block_size = lim->physical_block_size;
	i.io_min = lim->io_min;
	i.io_opt = lim->io_opt;
	i.max_bytes = lim->max_hw_sectors << IBNBD_SECTOR_SHIFT;
	i.max_discard = lim->max_discard_sectors << IBNBD_SECTOR_SHIFT;
	i.max_zeroes = lim->max_write_zeroes_sectors << IBNBD_SECTOR_SHIFT;
	i.discard_granularity = lim->discard_granularity;
	i.discard_alignment = lim->discard_alignment;
	i.q_depth = clt.q_depth;
	i.paths = clt.paths;
	i.paths_up = clt.paths_up;
	i.read_only = d->access == IBNBD_ACCESS_RO ||
		      d->grant.rsp.identity.flags & IBNBD_ID_F_READ_ONLY;
	i.rotational = lim->rotational;
	i.cache = lim->write_cache;
	i.fua = lim->fua;
	i.unmap = d->grant.features & IBNBD_FEAT_ZEROES;
	i.state = ibnbd_dev_sm_word(d->state);
	i.state_detail = ibnbd_dev_sm_state_name(d->state);
	i.unflushed = disk_account_unflushed(d);
	i.opened = d->opened;
	i.replays = d->replays;
	memcpy(i.reason, d->reason, sizeof(i.reason));
	pthread_mutex_unlock(&d->lock);
	memcpy(info, &i, has < sizeof(i) ? has : sizeof(i));
	return 0;
}
