// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls of the kernel that go on while the server does other things: by io_uring, and where that is
 * forbidden (containers, kernel.io_uring_disabled) by workers.
 *
 * Memory that an adapter has locked has a ring of its own, where it is registered: then no call has
 * to look up and hold its pages. With one ring for all, the kernel would release no memory while
 * any call of any disk has not ended.
 */
#include <fcntl.h>
#include <liburing.h>
#include <linux/fs.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>
#include "ibnbd/user/serverd/serverd.h"

#define RING_ENTRIES	256

struct serverd_ring {
	struct io_uring uring;
	bool queued;
};

static int ring_new(struct serverd *d, struct serverd_ring **ring)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct serverd_ring *r = calloc(1, sizeof(*r));
	int err = r ? io_uring_queue_init(RING_ENTRIES, &r->uring, 0) : -ENOMEM;

	if (!err) {
		ev.data.fd = r->uring.ring_fd;
		if (!epoll_ctl(d->ep, EPOLL_CTL_ADD, r->uring.ring_fd, &ev)) {
			*ring = r;
			return 0;
		}
		err = -errno;
		io_uring_queue_exit(&r->uring);
	}
	free(r);
	return err;
}

static void ring_free(struct serverd_ring **ring)
{
	if (!*ring)
		return;
	io_uring_queue_exit(&(*ring)->uring);
	free(*ring);
	*ring = NULL;
}

void serverd_ring_start(struct serverd *d)
{
	int err = ring_new(d, &d->rings[0]);

	d->nr_rings = 1;
	if (err)
		serverd_log("no io_uring (%s): %d threads read and write in its place",
			    strerror(-err), SERVERD_WORKERS);
}

void serverd_ring_stop(struct serverd *d)
{
	ring_free(&d->rings[0]);
}

int serverd_ring_memory(void *priv, void *addr, size_t len)
{
	const struct iovec v = { .iov_base = addr, .iov_len = len };
	struct serverd *d = priv;
	unsigned int i = 1;

	while (i < SERVERD_RINGS && d->rings[i])
		i++;
	if (!d->rings[0] || i == SERVERD_RINGS || ring_new(d, &d->rings[i]))
		return -1;
	if (io_uring_register_buffers(&d->rings[i]->uring, &v, 1)) {
		ring_free(&d->rings[i]);
		return -1;
	}
	if (d->nr_rings <= i)
		d->nr_rings = i + 1;
	return (int)i;
}

void serverd_ring_memory_gone(void *priv, int memory)
{
	struct serverd *d = priv;

	ring_free(&d->rings[memory]);
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

static struct io_uring_sqe *ring_entry(struct serverd_ring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);

	if (sqe)
		return sqe;
	io_uring_submit(&ring->uring);
	return io_uring_get_sqe(&ring->uring);
}

void serverd_ring(struct serverd *d, struct serverd_ring_job *r)
{
	bool moves = r->op == SERVERD_READ || r->op == SERVERD_WRITE;
	bool fixed = moves && r->memory >= 0;
	struct serverd_ring *ring = d->rings[fixed ? r->memory : 0];
	struct io_uring_sqe *sqe;

	if (r->nbd) {
		serverd_nbd(d, r);
		return;
	}
	sqe = ring && r->op != SERVERD_DISCARD ? ring_entry(ring) : NULL;
	if (!sqe) {
		r->job.run = ring_run;
		r->job.done = ring_ran;
		serverd_job(d, &r->job);
		return;
	}
	switch (r->op) {
	case SERVERD_READ:
		if (fixed)
			io_uring_prep_read_fixed(sqe, r->fd, r->buf, r->len, r->pos, 0);
		else
			io_uring_prep_read(sqe, r->fd, r->buf, r->len, r->pos);
		break;
	case SERVERD_WRITE:
		if (fixed)
			io_uring_prep_write_fixed(sqe, r->fd, r->buf, r->len, r->pos, 0);
		else
			io_uring_prep_write(sqe, r->fd, r->buf, r->len, r->pos);
		break;
	case SERVERD_FSYNC:
		io_uring_prep_fsync(sqe, r->fd, IORING_FSYNC_DATASYNC);
		break;
	default:
		io_uring_prep_fallocate(sqe, r->fd, r->flags, (off_t)r->pos, r->len);
		break;
	}
	if (moves)
		sqe->rw_flags = r->flags;
	io_uring_sqe_set_data(sqe, r);
	ring->queued = true;
}

void serverd_ring_flush(struct serverd *d)
{
	struct serverd_ring *ring;
	unsigned int i;

	for (i = 0; i < d->nr_rings; i++) {
		ring = d->rings[i];
		if (!ring || !ring->queued)
			continue;
		/* What the kernel does not take now stays queued for the next turn. */
		io_uring_submit(&ring->uring);
		ring->queued = io_uring_sq_ready(&ring->uring);
	}
}

void serverd_ring_done(struct serverd *d)
{
	struct serverd_ring_job *r;
	struct io_uring_cqe *cqe;
	unsigned int i;

	for (i = 0; i < d->nr_rings; i++)
		while (d->rings[i] && !io_uring_peek_cqe(&d->rings[i]->uring, &cqe)) {
			r = io_uring_cqe_get_data(cqe);
			r->res = cqe->res;
			io_uring_cqe_seen(&d->rings[i]->uring, cqe);
			r->done(d, r);
		}
}
