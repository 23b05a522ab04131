// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * The control thread of a disk: it follows the link, opens the disk again, and ends what has waited
 * for too long.
 *
 * libibtrs tells that a link has come or gone; queues tell of answers that need a look. The thread
 * sleeps otherwise. Messages wait for their answer without a lock, and no longer than hold_ms
 * allows.
 */
#include <time.h>
#include "ibnbd/user/disk.h"

#define WATCH_OPEN_MS	5000
#define WATCH_CLOSE_MS	5000
#define WATCH_INFO_MS	1000		/* until SESS_INFO is sent again */
#define WATCH_OWED_MS	2000		/* until CLOSE is */
#define WATCH_LOOK_MS	1000		/* from one look at a new size to the next */

static const char watch_stray[] = "the server does not know the device any more";

/* ---- timers ------------------------------------------------------------- */

static u64 watch_hold_end(const struct ibnbd_disk *d)
{
	if (d->opts.hold_ms == IBNBD_HOLD_FOREVER || !ibnbd_dev_sm_waits(d->state))
		return U64_MAX;
	return d->held_since + (d->opts.hold_ms < 0 ? 0 : (u32)d->opts.hold_ms);
}

static bool watch_asks(const struct ibnbd_disk *d)
{
	return d->up && (ibnbd_dev_sm_holds(d->state) || d->state == IBNBD_DEV_FAILED ||
			 (d->state == IBNBD_DEV_OPEN && !disk_takes_writes(d)));
}

/* When to look again; U64_MAX: on news. */
static u64 watch_due(const struct ibnbd_disk *d)
{
	u64 due = watch_hold_end(d);

	if (watch_asks(d) && d->ask_at < due)
		due = d->ask_at;
	if (d->look_at && d->up && d->look_at < due)
		due = d->look_at;
	if (d->sweep_at && d->sweep_at < due)
		due = d->sweep_at;
	if (d->close_at && d->up && d->close_at < due)
		due = d->close_at;
	return due;
}

static void watch_hold(struct ibnbd_disk *d)
{
	char why[DISK_REASON_LEN];

	if (disk_now() < watch_hold_end(d))
		return;
	memcpy(why, d->reason, sizeof(why));
	why[sizeof(why) - 48] = 0;
	disk_say(d, "hold_ms=%d is over: %s", d->opts.hold_ms < 0 ? 0 : d->opts.hold_ms, why);
	disk_post(d, IBNBD_DEV_EV_HOLD_EXPIRED, NULL);
}

/* ---- news --------------------------------------------------------------- */

void disk_watch_link(struct ibnbd_disk *d)
{
	struct ibtrs_clt_info info = { .size = sizeof(info) };

	ibtrs_clt_info(d->clt, &info);
	pthread_mutex_lock(&d->lock);
	if (d->up && (!info.paths_up || info.ups != d->ups)) {
		d->up = false;
		disk_lose(d, "no path to the server is up");
	}
	if (!d->up && info.paths_up) {
		d->up = true;
		d->ups = info.ups;
		disk_ask_later(d, 0);
		if (ibnbd_dev_sm_waits(d->state) || d->state == IBNBD_DEV_FAILED)
			disk_say(d, "waiting for the server to open the disk again");
	}
	pthread_mutex_unlock(&d->lock);
}

/* Requests of an earlier number are sent again; those of the present one make it void. */
static void watch_strays(struct ibnbd_disk *d)
{
	struct disk_q_sum sum = {};
	u32 i;

	for (i = 0; i < d->nr_qs; i++)
		disk_q_look(&d->qs[i], &sum);
	if (d->state != IBNBD_DEV_OPEN) {
		if (!ibnbd_dev_sm_holds(d->state))
			disk_abort(d);
	} else if (sum.strays) {
		disk_lose(d, watch_stray);
		disk_ask_later(d, 0);
	} else {
		for (i = 0; i < d->nr_qs; i++)
			disk_q_resume(&d->qs[i]);
	}
}

static void watch_news(struct ibnbd_disk *d, u32 news)
{
	pthread_mutex_lock(&d->lock);
	if (news & DISK_NEWS_FLUSH && d->state == IBNBD_DEV_OPEN) {
		disk_lose(d, "a flush has failed on the server");
		disk_ask_later(d, 0);
	}
	if (news & DISK_NEWS_REVOKED) {
		disk_lose(d, "the server has taken the disk back");
		disk_ask_later(d, 0);
	}
	if (news & DISK_NEWS_RESIZED && !d->look_at)
		d->look_at = d->looked + WATCH_LOOK_MS;
	if (news & DISK_NEWS_STRAY)
		watch_strays(d);
	watch_hold(d);
	if (d->sweep_at && disk_now() >= d->sweep_at)
		disk_abort(d);
	pthread_mutex_unlock(&d->lock);
}

/* ---- messages ----------------------------------------------------------- */

/* How long an answer may take: no longer than what is held. */
static int watch_patience(struct ibnbd_disk *d)
{
	u64 end, now = disk_now();

	pthread_mutex_lock(&d->lock);
	end = watch_hold_end(d);
	pthread_mutex_unlock(&d->lock);
	if (end <= now)
		return 1;
	return end - now < WATCH_OPEN_MS ? (int)(end - now) : WATCH_OPEN_MS;
}

static void watch_open(struct ibnbd_disk *d, u32 ups)
{
	enum ibnbd_dev_state state;
	struct disk_grant g;
	const char *why;
	bool at_large, replay = false;
	int err;

	err = disk_ask(d, ups, &g, watch_patience(d), &why);
	pthread_mutex_lock(&d->lock);
	at_large = !err && disk_judge_at_large(d, &g);
	state = d->state;
	pthread_mutex_unlock(&d->lock);
	if (at_large) {
		disk_ask_close(d, state, true, WATCH_CLOSE_MS);
		err = disk_ask(d, ups, &g, watch_patience(d), &why);
	}
	/* A new link sends its own OPEN; without a link there is no server to ask. */
	if (!disk_ask_on(d, ups))
		return;
	pthread_mutex_lock(&d->lock);
	if (d->known_ups != ups) {
		disk_ask_later(d, WATCH_INFO_MS);
	} else if (err && d->state == IBNBD_DEV_OPEN && disk_takes_writes(d)) {
		/* The server does not repeat its news of a new size. */
		if (disk_ask_unreached(err))
			d->look_at = disk_now() + WATCH_LOOK_MS;
	} else if (err) {
		disk_judge_error(d, err, why);
	} else {
		replay = disk_judge_answer(d, &g);
	}
	pthread_mutex_unlock(&d->lock);
	if (replay)
		disk_kept_replay(d, &g);
}

/* Until the server hears the CLOSE of a fenced disk, it keeps it, maybe for writing. */
static void watch_close(struct ibnbd_disk *d)
{
	disk_ask_close(d, IBNBD_DEV_FENCED, false, WATCH_CLOSE_MS);
	pthread_mutex_lock(&d->lock);
	d->close_at = d->state == IBNBD_DEV_FENCED && ibnbd_open_sm_owes(d->remote) ?
		      disk_now() + WATCH_OWED_MS : 0;
	pthread_mutex_unlock(&d->lock);
}

static void watch_ask(struct ibnbd_disk *d)
{
	u64 now = disk_now();
	bool ask, close;
	u32 ups;

	pthread_mutex_lock(&d->lock);
	ask = (watch_asks(d) && now >= d->ask_at) || (d->look_at && d->up && now >= d->look_at);
	close = d->close_at && d->up && now >= d->close_at;
	ups = d->ups;
	if (ask) {
		disk_ask_later(d, WATCH_OPEN_MS);	/* unless the answer says otherwise */
		d->look_at = 0;
		d->looked = now;
	}
	pthread_mutex_unlock(&d->lock);
	if (ask)
		watch_open(d, ups);
	if (close)
		watch_close(d);
}

/* ---- the thread --------------------------------------------------------- */

static u32 watch_sleep(struct ibnbd_disk *d)
{
	struct timespec t;
	u64 due;
	u32 news;

	pthread_mutex_lock(&d->lock);
	due = watch_due(d);
	pthread_mutex_unlock(&d->lock);
	t.tv_sec = (time_t)(due / 1000);
	t.tv_nsec = (long)(due % 1000) * 1000000;
	pthread_mutex_lock(&d->news_lock);
	while (!d->news && (due == U64_MAX || disk_now() < due)) {
		if (due == U64_MAX)
			pthread_cond_wait(&d->news_cond, &d->news_lock);
		else
			pthread_cond_timedwait(&d->news_cond, &d->news_lock, &t);
	}
	news = d->news;
	d->news = 0;
	pthread_mutex_unlock(&d->news_lock);
	return news;
}

void *disk_watch(void *disk)
{
	struct ibnbd_disk *d = disk;
	u32 news;

	while (!((news = watch_sleep(d)) & DISK_NEWS_STOP)) {
		disk_watch_link(d);
		watch_news(d, news);
		watch_ask(d);
		if (news & DISK_NEWS_LOW)
			disk_kept_low(d);
	}
	return NULL;
}
