// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Contexts: the thread that steps one, the library's or the caller's, does what is due for all of
 * its sessions. Sleeping is done without the lock, on the epoll set itself; events are then fetched
 * one by one under the lock, so none can be about a connection that has been freed meanwhile.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "ibtrs/user/clt.h"
#include "ibtrs/user/ctx.h"

#define CTX_LOOK_MS	20
#define CTX_EVENTS	16	/* events before what they mean is done, and timers are looked at */

/* ---- common ------------------------------------------------------------- */

int ibtrs_user_eventfd(int ep, void *ptr)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = ptr };
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

void ibtrs_user_signal(int fd)
{
	u64 one = 1;

	/* A counter that is full has been signalled, too. */
	if (write(fd, &one, sizeof(one)) < 0)
		return;
}

void ibtrs_user_settle(int fd)
{
	u64 n;

	if (read(fd, &n, sizeof(n)) < 0)
		return;
}

u64 ibtrs_user_clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000 + (u64)t.tv_nsec / 1000;
}

u64 ibtrs_user_clock(void)
{
	return ibtrs_user_clock_us() / 1000;
}

u64 ibtrs_user_end(int timeout_ms)
{
	if (timeout_ms > 0)
		return ibtrs_user_clock() + (u64)timeout_ms;
	return timeout_ms ? U64_MAX : 0;
}

int ibtrs_user_sleep(int fd, u64 end, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	u64 now = ibtrs_user_clock();

	if (now >= end)
		return 0;
	if (end != U64_MAX && (ms < 0 || (u64)ms > end - now))
		ms = (int)(end - now);
	return poll(&p, 1, ms) < 0 && errno != EINTR ? -errno : 1;
}

int ibtrs_user_random(void *to, size_t len)
{
	return getrandom(to, len, 0) == (ssize_t)len ? 0 : -EIO;
}

/* No worse than a constant if there is no randomness: paths then come back in step. */
u32 ibtrs_user_jitter(void)
{
	u32 rnd = 1u << 31;

	ibtrs_user_random(&rnd, sizeof(rnd));
	return rnd;
}

int ibtrs_user_opts(void *to, size_t size, const void *from)
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
	return 0;
}

int ibtrs_user_tell(void *to, const void *from, size_t size)
{
	size_t has;

	memcpy(&has, to, sizeof(has));
	if (has < sizeof(has))
		return -EINVAL;
	if (has > size)
		memset((u8 *)to + size, 0, has - size);
	memcpy((u8 *)to + sizeof(has), (const u8 *)from + sizeof(has),
	       (has < size ? has : size) - sizeof(has));
	return 0;
}

int ibtrs_user_why(char why[IBTRS_WHY_LEN], int err, const char *what, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (!why)
		return err;
	n = scnprintf(why, IBTRS_WHY_LEN, "%.120s: ", what);
	va_start(ap, fmt);
	vsnprintf(why + n, IBTRS_WHY_LEN - n, fmt, ap);
	va_end(ap);
	return err;
}

/* ---- context ------------------------------------------------------------ */

u64 ibtrs_ctx_now(const struct ibtrs_ctx *ctx)
{
	return ctx->now_ms ? ctx->now_ms(ctx->priv) : ibtrs_user_clock();
}

void ibtrs_ctx_wake(const struct ibtrs_ctx *ctx)
{
	ibtrs_user_signal(ctx->wake);
}

/* Under the lock. Return: number of things done. */
static int ctx_work(struct ibtrs_ctx *ctx)
{
	struct epoll_event ev;
	struct ibtrs_clt *clt;
	int n = 0;

	while (n < CTX_EVENTS && epoll_wait(ctx->ep, &ev, 1, 0) == 1) {
		if (ev.data.ptr == ctx)
			ibtrs_user_settle(ctx->wake);
		else
			ibtrs_clt_conn_event(ev.data.ptr);
		n++;
	}
	for (clt = ctx->clts; clt; clt = clt->next)
		n += ibtrs_clt_work(clt);
	if (n)
		pthread_cond_broadcast(&ctx->news);
	return n;
}

/* Under the lock. Milliseconds until a timer is due; -1: none runs. */
static int ctx_due_ms(struct ibtrs_ctx *ctx)
{
	u64 now = ibtrs_ctx_now(ctx), due = U64_MAX, at;
	struct ibtrs_clt *clt;

	for (clt = ctx->clts; clt; clt = clt->next) {
		at = ibtrs_clt_due(clt);
		if (at < due)
			due = at;
	}
	if (due == U64_MAX)
		return -1;
	return due <= now ? 0 : due - now > 60000 ? 60000 : (int)(due - now);
}

int ibtrs_ctx_step(struct ibtrs_ctx *ctx, int timeout_ms)
{
	struct pollfd fd = { .fd = ctx->ep, .events = POLLIN };
	int n, ms;

	pthread_mutex_lock(&ctx->lock);
	n = ctx_work(ctx);
	if (!n && timeout_ms) {
		ms = ctx_due_ms(ctx);
		if (timeout_ms > 0 && (ms < 0 || ms > timeout_ms))
			ms = timeout_ms;
		pthread_mutex_unlock(&ctx->lock);
		if (poll(&fd, 1, ms) < 0 && errno != EINTR)
			return -errno;
		pthread_mutex_lock(&ctx->lock);
		n = ctx_work(ctx);
	}
	pthread_mutex_unlock(&ctx->lock);
	return n;
}

int ibtrs_ctx_wait_ms(struct ibtrs_ctx *ctx)
{
	int ms;

	pthread_mutex_lock(&ctx->lock);
	ms = ctx_due_ms(ctx);
	pthread_mutex_unlock(&ctx->lock);
	return ms;
}

int ibtrs_ctx_fd(const struct ibtrs_ctx *ctx)
{
	return ctx->ep;
}

void ibtrs_ctx_wait(struct ibtrs_ctx *ctx, u32 ms)
{
	struct timespec t;

	if (!ctx->threaded) {
		/* Another thread may step, too, and take what this one waits for. */
		pthread_mutex_unlock(&ctx->lock);
		ibtrs_ctx_step(ctx, ms < CTX_LOOK_MS ? (int)ms : CTX_LOOK_MS);
		pthread_mutex_lock(&ctx->lock);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	pthread_cond_timedwait(&ctx->news, &ctx->lock, &t);
}

static void *ctx_thread(void *arg)
{
	struct ibtrs_ctx *ctx = arg;

	while (!__atomic_load_n(&ctx->stop, __ATOMIC_ACQUIRE))
		ibtrs_ctx_step(ctx, -1);
	return NULL;
}

static void ctx_destroy(struct ibtrs_ctx *ctx)
{
	if (ctx->wake >= 0)
		close(ctx->wake);
	if (ctx->ep >= 0)
		close(ctx->ep);
	pthread_cond_destroy(&ctx->news);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx);
}

/**
 * ibtrs_ctx_new() - make a context
 * @out: result
 * @o: options, or NULL
 *
 * Return: 0, -ENOMEM, -EMFILE, -E2BIG ...
 */
int ibtrs_ctx_new(struct ibtrs_ctx **out, const struct ibtrs_ctx_opts *o)
{
	struct ibtrs_ctx_opts opts;
	pthread_condattr_t attr;
	struct ibtrs_ctx *ctx;
	int err;

	err = ibtrs_user_opts(&opts, sizeof(opts), o);
	if (err)
		return err;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return -ENOMEM;
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&ctx->news, &attr);
	pthread_condattr_destroy(&attr);
	ctx->now_ms = opts.now_ms;
	ctx->priv = opts.priv;
	ctx->wake = -1;
	ctx->ep = epoll_create1(EPOLL_CLOEXEC);
	err = ctx->ep < 0 ? -errno : 0;
	if (!err) {
		ctx->wake = ibtrs_user_eventfd(ctx->ep, ctx);
		err = ctx->wake < 0 ? ctx->wake : 0;
	}
	if (!err && opts.flags & IBTRS_CTX_THREAD) {
		ctx->threaded = true;
		err = -pthread_create(&ctx->thread, NULL, ctx_thread, ctx);
	}
	if (err)
		ctx_destroy(ctx);
	else
		*out = ctx;
	return err;
}

/**
 * ibtrs_ctx_free() - free a context
 * @ctx: may be NULL
 *
 * Return: 0, or -EBUSY: a session is still open.
 */
int ibtrs_ctx_free(struct ibtrs_ctx *ctx)
{
	bool busy;

	if (!ctx)
		return 0;
	pthread_mutex_lock(&ctx->lock);
	busy = ctx->clts;
	pthread_mutex_unlock(&ctx->lock);
	if (busy)
		return -EBUSY;
	if (ctx->threaded) {
		__atomic_store_n(&ctx->stop, true, __ATOMIC_RELEASE);
		ibtrs_ctx_wake(ctx);
		pthread_join(ctx->thread, NULL);
	}
	ctx_destroy(ctx);
	return 0;
}
