// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls of the kernel that go on while the server does other things: by io_uring, and where that is
 * forbidden (containers, kernel.io_uring_disabled) by workers.
 *
 * Memory that an adapter has locked is registered with the ring, too, where the kernel can do that
 * one by one (5.19): then no call has to look up and hold its pages.
 */
#include <fcntl.h>
#include <liburing.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>
#include "ibnbd/user/serverd/serverd.h"

#define RING_ENTRIES	256

#define RING_MEMORIES	256		/* of as many paths */

struct serverd_ring {
	struct io_uring uring;
	bool queued;
	bool registers;
	bool registered[RING_MEMORIES];
};

void serverd_ring_start(struct serverd *d)
{
	struct serverd_ring *r = calloc(1, sizeof(*r));
	int err = r ? io_uring_queue_init(RING_ENTRIES, &r->uring, 0) : -ENOMEM;

	if (!err) {
		r->registers = !io_uring_register_buffers_sparse(&r->uring, RING_MEMORIES);
		d->ring = r;
		return;
	}
	free(r);
	serverd_log("no io_uring (%s): %d threads read and write in its place", strerror(-err),
		    SERVERD_WORKERS);
}

int serverd_ring_fd(const struct serverd *d)
{
	return d->ring ? d->ring->uring.ring_fd : -1;
}

void serverd_ring_stop(struct serverd *d)
{
	if (!d->ring)
		return;
	io_uring_queue_exit(&d->ring->uring);
	free(d->ring);
	d->ring = NULL;
}

/* io_uring's entry @i has @addr; NULL: nothing any more. */
static bool ring_register(struct serverd_ring *r, unsigned int i, void *addr, size_t len)
{
	const struct iovec v = { .iov_base = addr, .iov_len = len };

	r->registered[i] = io_uring_register_buffers_update_tag(&r->uring, i, &v, NULL, 1) == 1 &&
			   addr;
	return r->registered[i];
}

int serverd_ring_memory(void *priv, void *addr, size_t len)
{
	struct serverd *d = priv;
	unsigned int i = 0;

	if (!d->ring || !d->ring->registers)
		return -1;
	while (i < RING_MEMORIES && d->ring->registered[i])
		i++;
	return i < RING_MEMORIES && ring_register(d->ring, i, addr, len) ? (int)i : -1;
}

void serverd_ring_memory_gone(void *priv, int memory)
{
	struct serverd *d = priv;

	ring_register(d->ring, (unsigned int)memory, NULL, 0);
}

static int ring_call(struct serverd_ring_job *r)
{
	struct iovec v = { .iov_base = r->buf, .iov_len = r->len };
	uint64_t range[2] = { r->pos, r->len };
	ssize_t n = 0;

	switch (r->op) {
	case SERVERD_READ:
		n = preadv2(r->fd, &v, 1, (off_t)r->pos, r->flags);
		break;
	case SERVERD_WRITE:
		n = pwritev2(r->fd, &v, 1, (off_t)r->pos, r->flags);
		break;
	case SERVERD_FSYNC:
		n = fdatasync(r->fd);
		break;
	case SERVERD_FALLOCATE:
		n = fallocate(r->fd, r->flags, (off_t)r->pos, r->len);
		break;
	case SERVERD_DISCARD:
		n = ioctl(r->fd, BLKDISCARD, range);
		break;
	}
	return n < 0 ? -errno : (int)n;
}

static void ring_run(struct serverd_job *job)
{
	struct serverd_ring_job *r = (struct serverd_ring_job *)job;

	r->res = ring_call(r);
}

static void ring_ran(struct serverd *d, struct serverd_job *job)
{
	struct serverd_ring_job *r = (struct serverd_ring_job *)job;

	r->done(d, r);
}

static struct io_uring_sqe *ring_entry(struct serverd *d)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&d->ring->uring);

	if (sqe)
		return sqe;
	io_uring_submit(&d->ring->uring);
	return io_uring_get_sqe(&d->ring->uring);
}

void serverd_ring(struct serverd *d, struct serverd_ring_job *r)
{
	struct io_uring_sqe *sqe;

	if (r->nbd) {
		serverd_nbd(d, r);
		return;
	}
	sqe = d->ring && r->op != SERVERD_DISCARD ? ring_entry(d) : NULL;
	if (!sqe) {
		r->job.run = ring_run;
		r->job.done = ring_ran;
		serverd_job(d, &r->job);
		return;
	}
	switch (r->op) {
	case SERVERD_READ:
		if (r->memory < 0)
			io_uring_prep_read(sqe, r->fd, r->buf, r->len, r->pos);
		else
			io_uring_prep_read_fixed(sqe, r->fd, r->buf, r->len, r->pos, r->memory);
		break;
	case SERVERD_WRITE:
		if (r->memory < 0)
			io_uring_prep_write(sqe, r->fd, r->buf, r->len, r->pos);
		else
			io_uring_prep_write_fixed(sqe, r->fd, r->buf, r->len, r->pos, r->memory);
		break;
	case SERVERD_FSYNC:
		io_uring_prep_fsync(sqe, r->fd, IORING_FSYNC_DATASYNC);
		break;
	default:
		io_uring_prep_fallocate(sqe, r->fd, r->flags, (off_t)r->pos, r->len);
		break;
	}
	if (r->op == SERVERD_READ || r->op == SERVERD_WRITE)
		sqe->rw_flags = r->flags;
	io_uring_sqe_set_data(sqe, r);
	d->ring->queued = true;
}

void serverd_ring_flush(struct serverd *d)
{
	if (!d->ring || !d->ring->queued)
		return;
	/* What the kernel does not take now stays queued for the next turn. */
	io_uring_submit(&d->ring->uring);
	d->ring->queued = io_uring_sq_ready(&d->ring->uring);
}

void serverd_ring_done(struct serverd *d)
{
	struct serverd_ring_job *r;
	struct io_uring_cqe *cqe;

	while (d->ring && !io_uring_peek_cqe(&d->ring->uring, &cqe)) {
		r = io_uring_cqe_get_data(cqe);
		r->res = cqe->res;
		io_uring_cqe_seen(&d->ring->uring, cqe);
		r->done(d, r);
	}
}
