// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Sessions of a client: opening and closing, their queues and what the server granted, calls.
 *
 * ctx->lock is over all of it. The functions that wait (open, call) step the context themselves if
 * nobody else does.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "ibtrs/user/clt.h"
#include "ibtrs/user/rdma.h"

#define CLT_HB_MS	1000
#define CLT_HB_MISSES	3
#define CLT_MAX_QUEUES	(IBTRS_MAX_CONS - 1)

/* ---- queues ------------------------------------------------------------- */

static int clt_q_init(struct ibtrs_q *q, struct ibtrs_clt *clt, u32 idx)
{
	pthread_mutex_init(&q->lock, NULL);
	q->clt = clt;
	q->idx = idx;
	q->done_end = &q->done;
	q->wake = -1;
	q->conns = calloc(clt->max_paths, sizeof(*q->conns));
	q->ep = epoll_create1(EPOLL_CLOEXEC);
	if (q->ep < 0)
		return -errno;
	q->wake = ibtrs_user_eventfd(q->ep, q);
	return q->wake < 0 ? q->wake : q->conns ? 0 : -ENOMEM;
}

static int clt_q_grant(struct ibtrs_q *q, u32 first, u32 nr)
{
	struct ibtrs_req *reqs = calloc(nr, sizeof(*reqs));
	u32 i;

	if (!reqs)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		reqs[i].slot = first + i;
		reqs[i].next_free = i + 1 < nr ? i + 2 : 0;
	}
	pthread_mutex_lock(&q->lock);
	q->reqs = reqs;
	q->first = first;
	q->free = 1;
	q->nr = nr;
	pthread_mutex_unlock(&q->lock);
	return 0;
}

static void clt_q_free(struct ibtrs_q *q)
{
	if (q->wake >= 0)
		close(q->wake);
	if (q->ep >= 0)
		close(q->ep);
	free(q->conns);
	free(q->reqs);
	pthread_mutex_destroy(&q->lock);
}

/* ---- what the server granted -------------------------------------------- */

/*
 * The slots of the service queue stand at the end, as the kernel's client has it (decision 4). The
 * others are divided evenly; a rest stays unused.
 */
static int clt_slots(struct ibtrs_clt *clt, u32 depth, const char **why)
{
	u32 own = depth < 16 ? 1 : depth / 16 < 4 ? 4 : depth / 16 > 32 ? 32 : depth / 16;
	u32 nr = (depth - own) / (clt->nr_qs - 1), i;
	int err;

	*why = "the server grants fewer slots than there are queues: open fewer, or raise its queue_depth";
	if (!nr)
		return -EPROTO;
	if (clt->opts.q_depth && nr > clt->opts.q_depth)
		nr = clt->opts.q_depth;
	*why = "no memory for the slots";
	err = clt_q_grant(&clt->qs[0], depth - own, own);
	for (i = 1; i < clt->nr_qs && !err; i++)
		err = clt_q_grant(&clt->qs[i], (i - 1) * nr, nr);
	return err;
}

int ibtrs_clt_grant(struct ibtrs_clt *clt, const struct ibtrs_clt_path *path, const char **why)
{
	const struct ibtrs_limits *l = &path->limits;
	int err = ibtrs_grant_check(l, clt->nr_qs, IBTRS_USER_IO_MIN, why);

	if (err)
		return err;
	if (clt->depth) {
		*why = "the server changed its queue depth: close the session and open it again";
		if (l->queue_depth != clt->depth)
			return -EPROTO;
		*why = "the server takes smaller requests than before: close the session and open it again";
		return l->max_io_size < clt->max_io_size || l->max_hdr_size < clt->max_hdr_size ?
		       -EPROTO : 0;
	}
	clt->max_io_size = l->max_io_size;
	clt->max_hdr_size = l->max_hdr_size;
	err = clt_slots(clt, l->queue_depth, why);
	if (!err)
		clt->depth = l->queue_depth;
	return err;
}

/* ---- work --------------------------------------------------------------- */

u32 ibtrs_clt_parked(struct ibtrs_clt *clt)
{
	u32 n = 0, i;

	for (i = 1; i < clt->nr_qs; i++)
		n += __atomic_load_n(&clt->qs[i].parked, __ATOMIC_RELAXED);
	return n;
}

bool ibtrs_clt_flows(struct ibtrs_clt *clt)
{
	u64 sum = 0, before = clt->flowed;
	u32 i;

	for (i = 1; i < clt->nr_qs; i++)
		sum += __atomic_load_n(&clt->qs[i].posted, __ATOMIC_RELAXED);
	clt->flowed = sum;
	return ibtrs_clt_parked(clt) || sum != before;
}

int ibtrs_clt_work(struct ibtrs_clt *clt)
{
	bool want = __atomic_exchange_n(&clt->want, 0, __ATOMIC_ACQUIRE);
	struct ibtrs_retry_now now;
	int n = 0, done;
	u32 i;

	for (i = 0; want && i < clt->nr_paths; i++) {
		now = ibtrs_clt_path_now(&clt->paths[i]);
		if (!ibtrs_retry_rests(&clt->paths[i].retry, &now))
			ibtrs_clt_path_post(&clt->paths[i], IBTRS_PATH_EV_RETRY);
	}
	do {
		done = 0;
		for (i = 0; i < clt->nr_paths; i++)
			done += ibtrs_clt_path_work(&clt->paths[i]);
		n += done;
	} while (done);
	return n;
}

u64 ibtrs_clt_due(const struct ibtrs_clt *clt)
{
	u64 due = U64_MAX;
	u32 i;

	for (i = 0; i < clt->nr_paths; i++)
		if (clt->paths[i].due && clt->paths[i].due < due)
			due = clt->paths[i].due;
	return due;
}

/* ---- calls -------------------------------------------------------------- */

/* @abandoned: the caller has gone; the slot still refers to it */
struct clt_call {
	struct ibtrs_io io;
	bool done;
	bool abandoned;
	u8 room[];			/* reply, header */
};

void ibtrs_clt_calls_end(struct ibtrs_clt *clt, struct ibtrs_io *done)
{
	struct clt_call *call;

	while (done) {
		call = done->user;
		done = done->next;
		call->done = true;
		if (call->abandoned)
			free(call);
	}
	pthread_cond_broadcast(&clt->ctx->news);
}

static int clt_call_wait(struct ibtrs_clt *clt, struct clt_call *call, int timeout_ms)
{
	u64 now = ibtrs_user_clock(), end = ibtrs_user_end(timeout_ms);

	for (; !call->done; now = ibtrs_user_clock()) {
		if (now >= end)
			return -ETIMEDOUT;
		ibtrs_ctx_wait(clt->ctx, end - now > 1000 ? 1000 : (u32)(end - now));
	}
	return call->io.err;
}

int ibtrs_clt_call_io(struct ibtrs_clt *clt, const struct ibtrs_io *as, int timeout_ms)
{
	struct ibtrs_io *io;
	struct clt_call *call;
	int err;

	if (as->len > U32_MAX - U16_MAX)
		return -EINVAL;
	call = calloc(1, sizeof(*call) + as->len + as->hdr_len);
	if (!call)
		return -ENOMEM;
	memcpy(call->room + as->len, as->hdr, as->hdr_len);
	if (as->len && as->dir == IBTRS_IO_WRITE)
		memcpy(call->room, as->data, as->len);
	io = &call->io;
	io->dir = as->dir;
	io->hdr_len = as->hdr_len;
	io->hdr = call->room + as->len;
	io->len = as->len;
	io->data = call->room;
	io->user = call;
	pthread_mutex_lock(&clt->ctx->lock);
	err = !clt->nr_up ? -ENOTCONN : ibtrs_q_submit(&clt->qs[0], &io, 1);
	if (err == 1) {
		ibtrs_clt_calls_end(clt, ibtrs_q_serve(&clt->qs[0]));
		err = clt_call_wait(clt, call, timeout_ms);
	} else {
		call->done = true;
		err = err ?: -EAGAIN;
	}
	if (!err && as->len && as->dir == IBTRS_IO_READ)
		memcpy(as->data, call->room, as->len);
	if (call->done)
		free(call);
	else
		call->abandoned = true;
	pthread_mutex_unlock(&clt->ctx->lock);
	return err;
}

int ibtrs_clt_call(struct ibtrs_clt *clt, const void *hdr, size_t hdr_len, void *reply,
		   size_t reply_len, int timeout_ms)
{
	const struct ibtrs_io io = {
		.dir = reply_len ? IBTRS_IO_READ : IBTRS_IO_WRITE, .hdr = hdr,
		.hdr_len = (u16)hdr_len, .data = reply, .len = (u32)reply_len,
	};

	if (hdr_len > U16_MAX || reply_len > U32_MAX)
		return -EINVAL;
	return ibtrs_clt_call_io(clt, &io, timeout_ms);
}

/* ---- opening and closing ------------------------------------------------ */

static void clt_unlist(struct ibtrs_clt *clt)
{
	struct ibtrs_clt **at = &clt->ctx->clts;

	while (*at && *at != clt)
		at = &(*at)->next;
	if (*at)
		*at = clt->next;
}

void ibtrs_clt_shut(struct ibtrs_clt *clt)
{
	u32 i;

	pthread_mutex_lock(&clt->ctx->lock);
	for (i = 0; i < clt->nr_paths; i++) {
		clt->paths[i].err = -ECONNABORTED;
		/* No thread has stepped since it was opened: it must not begin behind the end. */
		clt->paths[i].events &= ~(1u << IBTRS_PATH_EV_CONNECT);
		ibtrs_clt_path_post(&clt->paths[i], IBTRS_PATH_EV_CLOSE);
	}
	ibtrs_clt_work(clt);
	pthread_mutex_unlock(&clt->ctx->lock);
}

void ibtrs_clt_close(struct ibtrs_clt *clt)
{
	u32 i;

	if (!clt)
		return;
	ibtrs_clt_shut(clt);
	pthread_mutex_lock(&clt->ctx->lock);
	clt_unlist(clt);
	pthread_mutex_unlock(&clt->ctx->lock);
	for (i = 0; i < clt->nr_paths; i++) {
		pthread_mutex_destroy(&clt->paths[i].fail_lock);
		free(clt->paths[i].text);
	}
	for (i = 0; i < clt->nr_qs; i++)
		clt_q_free(&clt->qs[i]);
	free(clt->qs);
	free(clt->paths);
	explicit_bzero(&clt->keys, sizeof(clt->keys));
	free(clt);
}

static int clt_path_init(struct ibtrs_clt_path *path, const char *kind, const char *text, char *why)
{
	const char *reason = NULL;
	int err;

	if (asprintf(&path->text, "%s%s", kind, text) < 0) {
		path->text = NULL;
		return ibtrs_user_why(why, -ENOMEM, text, "no memory");
	}
	err = ibtrs_user_random(path->uuid, sizeof(path->uuid));
	if (err)
		return ibtrs_user_why(why, err, text, "the kernel gives no randomness");
	/* What the caller dials has no place, and finds none. */
	if (path->clt->opts.dial && !path->clt->finds)
		return 0;
	err = ibtrs_place_parse(path->text, &path->place, &reason);
	return err ? ibtrs_user_why(why, err, path->text, "%s", reason) : 0;
}

int ibtrs_clt_path_new(struct ibtrs_clt *clt, const char *kind, const char *text,
		       char why[IBTRS_WHY_LEN])
{
	struct ibtrs_clt_path *path = &clt->paths[clt->nr_paths];
	int err;

	path->clt = clt;
	path->idx = clt->nr_paths;
	err = clt_path_init(path, kind, text, why);
	if (err) {
		free(path->text);
		return err;
	}
	pthread_mutex_init(&path->fail_lock, NULL);
	path->tls = clt->keys.nr && path->place.family != AF_UNIX;
	clt->one_asks |= path->place.rdma;
	clt->nr_paths++;
	return 0;
}

static int clt_policy(struct ibtrs_clt *clt, char *why)
{
	const char *word = clt->opts.policy ?: "min-inflight";
	int policy = ibtrs_mpath_parse(word, strlen(word));

	if (policy < 0)
		return ibtrs_user_why(
			why, policy, clt->name,
			"policy %.40s: round-robin, min-inflight or min-latency is expected", word);
	clt->policy = policy;
	return 0;
}

static int clt_init(struct ibtrs_clt *clt, const char *const *paths, u32 nr, char *why)
{
	const char *reason, *name = clt->opts.name;
	u32 i;
	int err;

	if (!name)
		return ibtrs_user_why(why, -EINVAL, "session", "it needs a name");
	err = ibtrs_msg_name_check(name, strlen(name), &reason);
	if (err)
		return ibtrs_user_why(why, err, "session", "%s", reason);
	memcpy(clt->name, name, strlen(name));
	err = ibtrs_clt_auth_init(clt, &reason);
	if (err)
		return ibtrs_user_why(why, err, name, "%s", reason);
	err = clt_policy(clt, why);
	if (err)
		return err;
	if (clt->opts.queues > CLT_MAX_QUEUES)
		return ibtrs_user_why(why, -EINVAL, name, "at most %u queues", CLT_MAX_QUEUES);
	clt->opts.hb_ms = clt->opts.hb_ms ?: CLT_HB_MS;
	clt->opts.hb_misses = clt->opts.hb_misses ?: CLT_HB_MISSES;
	clt->nr_qs = 1 + (clt->opts.queues ?: 1);
	clt->qs = calloc(clt->nr_qs, sizeof(*clt->qs));
	if (!clt->qs)
		return ibtrs_user_why(why, -ENOMEM, name, "no memory");
	for (i = 0; i < clt->nr_qs; i++)
		clt->qs[i].ep = clt->qs[i].wake = -1;
	for (i = 0; i < clt->nr_qs && !err; i++)
		err = clt_q_init(&clt->qs[i], clt, i);
	if (!err)
		err = ibtrs_user_random(clt->uuid, sizeof(clt->uuid));
	if (err)
		return ibtrs_user_why(why, err, name, "its queues cannot be made: %s",
				      strerror(-err));
	for (i = 0; i < nr && !err; i++)
		err = ibtrs_auto_is(clt, paths[i]) ? ibtrs_auto_paths(clt, paths[i], why) :
						     ibtrs_clt_path_new(clt, "", paths[i], why);
	return err;
}

/* Return: how many there is room to be for, with those that the server may tell of. */
static u32 clt_room(const struct ibtrs_clt *clt, const char *const *paths, u32 nr)
{
	u32 n = nr, autos = 0, i;

	for (i = 0; i < nr; i++)
		autos += ibtrs_auto_is(clt, paths[i]);
	n += autos;
	if (autos && n <= IBTRS_MAX_PATHS)
		n = n + IBTRS_WHERE_MAX < IBTRS_MAX_PATHS ? n + IBTRS_WHERE_MAX : IBTRS_MAX_PATHS;
	return n;
}

/* Until a path is up, or none is worth waiting for. */
static int clt_wait(struct ibtrs_clt *clt, char *why)
{
	const struct ibtrs_clt_path *path;
	u32 i, n;

	while (!clt->nr_up) {
		for (i = 0; i < clt->nr_paths &&
			    clt->paths[i].retry.state != IBTRS_RETRY_FIRST; i++)
			;
		path = &clt->paths[0];
		/* That there is no RDMA is the smaller news. */
		for (n = 0; n < clt->nr_paths && clt->finds; n++)
			if (clt->paths[n].behind)
				path = &clt->paths[n];
		if (i == clt->nr_paths)
			return ibtrs_user_why(why, path->err ?: -ENOTCONN, path->text, "%s",
					      path->why);
		ibtrs_ctx_wait(clt->ctx, 1000);
	}
	return 0;
}

int ibtrs_clt_open(struct ibtrs_ctx *ctx, const char *const *paths, unsigned int nr,
		   const struct ibtrs_clt_opts *o, struct ibtrs_clt **out, char why[IBTRS_WHY_LEN])
{
	struct ibtrs_clt *clt;
	u32 i;
	int err;

	if (!nr || nr > IBTRS_MAX_PATHS)
		return ibtrs_user_why(why, -EINVAL, "session", "it has 1 to %u paths",
				      IBTRS_MAX_PATHS);
	clt = calloc(1, sizeof(*clt));
	if (!clt)
		return ibtrs_user_why(why, -ENOMEM, "session", "no memory");
	clt->ctx = ctx;
	clt->rdma = &ibtrs_rdma;
	err = ibtrs_user_opts(&clt->opts, sizeof(clt->opts), o);
	if (err)
		ibtrs_user_why(why, err, "session", "an option that this library does not know");
	clt->max_paths = clt_room(clt, paths, nr);
	if (!err && clt->max_paths > IBTRS_MAX_PATHS)
		err = ibtrs_user_why(why, -EINVAL, "session", "it has 1 to %u paths, auto: is two",
				     IBTRS_MAX_PATHS);
	clt->paths = err ? NULL : calloc(clt->max_paths, sizeof(*clt->paths));
	if (!err && !clt->paths)
		err = ibtrs_user_why(why, -ENOMEM, "session", "no memory");
	if (!err)
		err = clt_init(clt, paths, nr, why);
	pthread_mutex_lock(&ctx->lock);
	if (!err) {
		clt->next = ctx->clts;
		ctx->clts = clt;
		for (i = 0; i < clt->nr_paths; i++)
			ibtrs_auto_start(&clt->paths[i]);
		ibtrs_ctx_wake(ctx);
		if (!(clt->opts.flags & IBTRS_CLT_NOWAIT))
			err = clt_wait(clt, why);
	}
	pthread_mutex_unlock(&ctx->lock);
	if (err)
		ibtrs_clt_close(clt);
	else
		*out = clt;
	return err;
}

/* ---- questions ---------------------------------------------------------- */

int ibtrs_clt_replay(struct ibtrs_clt *clt, u32 ups)
{
	int err = 0;
	u32 i;

	pthread_mutex_lock(&clt->ctx->lock);
	if (!clt->nr_up || clt->ups != ups)
		err = -ESTALE;
	else
		__atomic_store_n(&clt->cleared, ups, __ATOMIC_RELAXED);
	for (i = 1; i < clt->nr_qs && !err; i++)
		ibtrs_q_resume(&clt->qs[i]);
	pthread_mutex_unlock(&clt->ctx->lock);
	return err;
}

bool ibtrs_clt_settled(struct ibtrs_clt *clt)
{
	u32 i;

	for (i = 0; i < clt->max_paths; i++)
		if (__atomic_load_n(&clt->paths[i].loose, __ATOMIC_RELAXED))
			return false;
	return true;
}

struct ibtrs_q *ibtrs_clt_q(struct ibtrs_clt *clt, unsigned int i)
{
	return i < clt->nr_qs - 1 ? &clt->qs[i + 1] : NULL;
}

int ibtrs_clt_info(struct ibtrs_clt *clt, struct ibtrs_clt_info *info)
{
	struct ibtrs_clt_info i;
	u32 rdma = 0, n;

	pthread_mutex_lock(&clt->ctx->lock);
	for (n = 0; n < clt->nr_paths; n++)
		rdma += clt->paths[n].state == IBTRS_PATH_UP && clt->paths[n].place.rdma;
	i = (struct ibtrs_clt_info){
		.queue_depth	= clt->depth,
		.q_depth	= clt->qs[1].nr,
		.max_io_size	= clt->max_io_size,
		.max_hdr_size	= clt->depth ? clt->max_hdr_size - (u32)IBTRS_IO_HDR_MAX : 0,
		.paths		= clt->nr_paths,
		.paths_up	= clt->nr_up,
		.ups		= clt->ups,
		.life		= clt->life,
		.parked		= ibtrs_clt_parked(clt),
		.rdma_up	= rdma,
	};
	pthread_mutex_unlock(&clt->ctx->lock);
	return ibtrs_user_tell(info, &i, sizeof(i));
}

int ibtrs_clt_path_info(struct ibtrs_clt *clt, unsigned int nr, struct ibtrs_path_info *info)
{
	struct ibtrs_path_info i = {};
	const struct ibtrs_clt_path *path;
	u64 now;

	pthread_mutex_lock(&clt->ctx->lock);
	if (nr >= clt->nr_paths) {
		pthread_mutex_unlock(&clt->ctx->lock);
		return -EINVAL;
	}
	path = &clt->paths[nr];
	now = ibtrs_ctx_now(clt->ctx);
	i.path = path->text;
	i.state = ibtrs_path_sm_state_name(path->state);
	i.err = path->err;
	i.established = path->established;
	i.attempt = path->retry.attempt;
	if (path->state == IBTRS_PATH_WAITING && path->due > now)
		i.wait_ms = (u32)(path->due - now);
	i.latency_us = READ_ONCE(path->latency_us);
	memcpy(i.why, path->why, sizeof(i.why));
	memcpy(i.phase_us, path->took, IBTRS_PHASES * sizeof(*i.phase_us));
	i.phase_us[IBTRS_PHASE_TRIAL] += path->took[IBTRS_HS_DOUBT];
	i.kind = path->place.rdma ? "rdma" : path->tls ? "tls" : "plain";
	pthread_mutex_unlock(&clt->ctx->lock);
	return ibtrs_user_tell(info, &i, sizeof(i));
}
