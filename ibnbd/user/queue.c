// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * The way of a request: checked and sent by ibnbd_q_submit(), handed back by ibnbd_q_poll().
 *
 * A request is in flight when libibtrs has it, where it also stays when all paths are lost, or it
 * waits here until the disk is open. Answers are taken and accounted in one place, q_harvest(),
 * by the one that looks first: a thread that polls, or the control thread, which must know all of
 * what the server has answered before it judges what the server has lost.
 *
 * When the server answers that it does not know the disk (a forced close, a new cache epoch), the
 * request waits until the disk is open again, three times at most.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "ibnbd/proto/msg_io.h"
#include "ibnbd/user/disk.h"

#define Q_STRAYS_MAX	3
#define Q_BATCH		32

static const char q_not_open[] = "the disk is not open: ibnbd_disk_info() says why";

/* ---- lists and waking --------------------------------------------------- */

static void list_add(struct disk_list *l, struct disk_op *op)
{
	op->prev = l->last;
	op->next = NULL;
	if (l->last)
		l->last->next = op;
	else
		l->first = op;
	l->last = op;
	l->nr++;
}

static void list_del(struct disk_list *l, struct disk_op *op)
{
	if (op->prev)
		op->prev->next = op->next;
	else
		l->first = op->next;
	if (op->next)
		op->next->prev = op->prev;
	else
		l->last = op->prev;
	l->nr--;
}

static void q_wake(struct ibnbd_q *q)
{
	u64 one = 1;

	if (q->woken)
		return;
	q->woken = true;
	if (write(q->wake, &one, sizeof(one)) < 0)
		return;
}

static void q_settle(struct ibnbd_q *q)
{
	u64 n;

	if (!q->woken)
		return;
	q->woken = false;
	if (read(q->wake, &n, sizeof(n)) < 0)
		return;
}

/* ---- the end of a request ----------------------------------------------- */

static void q_end(struct ibnbd_q *q, struct disk_op *op, int err, const char *why)
{
	struct ibnbd_req *req = disk_op_req(op);

	req->err = err;
	req->why = err ? why : NULL;
	req->next = NULL;
	op->over = true;
	if (op->sync) {
		pthread_cond_broadcast(&q->news);
	} else {
		*q->done_end = req;
		q->done_end = &req->next;
	}
}

static void q_answered(struct ibnbd_q *q, struct disk_op *op, int err)
{
	list_del(&q->flight, op);
	if (err == -ENOTCONN && q->gate != DISK_GATE_FAIL && op->tries < Q_STRAYS_MAX) {
		op->tries++;
		list_add(&q->waits, op);
		disk_tell(q->disk, DISK_NEWS_STRAY);
		return;
	}
	/* No disk has answered: a flush of these has not failed, it has covered nothing. */
	if (err == -ENOTCONN || err == -ECONNABORTED) {
		q_end(q, op, -EIO, err == -ENOTCONN ? "the server does not know the disk" :
						      q_not_open);
		return;
	}
	if (err)
		disk_account_failed(q, op);
	else
		disk_account_done(q, op);
	q_end(q, op, err, "the server's disk has answered with an error");
}

/* The lock is held. */
static void q_harvest(struct ibnbd_q *q)
{
	struct ibtrs_io *done[Q_BATCH];
	int n, i;

	while ((n = ibtrs_q_poll(q->q, done, Q_BATCH, 0)) > 0)
		for (i = 0; i < n; i++)
			q_answered(q, (struct disk_op *)done[i], done[i]->err);
}

/* The control thread has taken answers: tasks that wait for them have to hear of it. */
static void q_harvest_for_others(struct ibnbd_q *q)
{
	q_harvest(q);
	if (q->done || q->led)
		q_wake(q);
}

/* ---- the beginning ------------------------------------------------------ */

static const enum ibnbd_op q_ops[] = {
	[IBNBD_REQ_READ]	= IBNBD_OP_READ,
	[IBNBD_REQ_WRITE]	= IBNBD_OP_WRITE,
	[IBNBD_REQ_FLUSH]	= IBNBD_OP_FLUSH,
	[IBNBD_REQ_DISCARD]	= IBNBD_OP_DISCARD,
	[IBNBD_REQ_ZEROES]	= IBNBD_OP_WRITE_ZEROES,
};

/* The rules are those of the server (E-22, E-24, E-26, E-27). */
static int q_check(const struct ibnbd_q *q, const struct ibnbd_req *req, struct ibnbd_io *m,
		   const char **why)
{
	const struct disk_terms *t = &q->terms;
	int err;

	*why = "an operation or a flag that this library does not know";
	if (req->op >= ARRAY_SIZE(q_ops) || req->flags & ~(IBNBD_REQ_FUA | IBNBD_REQ_NOUNMAP))
		return -EINVAL;
	*m = (struct ibnbd_io){
		.device_id	= t->device_id,
		.sector		= req->offset >> IBNBD_SECTOR_SHIFT,
		.op		= q_ops[req->op],
		.bytes		= req->len,
	};
	if (req->flags & IBNBD_REQ_FUA && t->cache) {
		*why = "the server's disk has no FUA: flush instead";
		if (!t->fua)
			return -EOPNOTSUPP;
		m->flags |= IBNBD_F_FUA;
	}
	if (req->flags & IBNBD_REQ_NOUNMAP && t->unmap)
		m->flags |= IBNBD_F_NOUNMAP;
	*why = "not aligned to the logical block size";
	if (req->offset & (IBNBD_SECTOR_SIZE - 1))
		return -EINVAL;
	err = ibnbd_msg_io_shape(m, ibnbd_msg_op_reads(m->op),
				 ibnbd_msg_io_data_len(m->op, m->bytes), why);
	if (err)
		return err;
	*why = "more than the session carries at a time, or no memory for it";
	if (ibnbd_msg_io_data_len(m->op, m->bytes) &&
	    (m->bytes > t->max_bytes || !req->data))
		return -EINVAL;
	return ibnbd_access_io(&t->facts, t->access, m, why);
}

static bool q_fails(const struct ibnbd_q *q, enum ibnbd_op op)
{
	return q->gate == DISK_GATE_FAIL ||
	       (q->gate == DISK_GATE_NO_WRITES && op != IBNBD_OP_READ && op != IBNBD_OP_FLUSH);
}

/* Hands @io to libibtrs, with one doorbell. What it does not take, which would be a bug, fails. */
static void q_send(struct ibnbd_q *q, struct ibtrs_io **io, unsigned int nr)
{
	int n = nr ? ibtrs_q_submit(q->q, io, nr) : 0;
	unsigned int i;

	for (i = n < 0 ? 0 : (unsigned int)n; i < nr; i++) {
		list_del(&q->flight, (struct disk_op *)io[i]);
		q_end(q, (struct disk_op *)io[i], -EIO, "the transport does not take it");
	}
}

/* Return: true: send it now. */
static bool q_take(struct ibnbd_q *q, struct ibnbd_req *req, const struct ibnbd_io *m, bool sync)
{
	struct disk_op *op = disk_op_of(req);

	memset(op, 0, sizeof(*op));
	op->sync = sync;
	op->io.hdr_len = (u16)ibnbd_msg_io_encode(&op->hdr, q->terms.version, m);
	op->io.hdr = &op->hdr;
	op->io.dir = ibnbd_msg_op_reads(m->op) ? IBTRS_IO_READ : IBTRS_IO_WRITE;
	op->io.len = ibnbd_msg_io_data_len(m->op, m->bytes);
	op->io.data = req->data;
	if (q_fails(q, m->op)) {
		q_end(q, op, -EIO, q->gate == DISK_GATE_FAIL ? q_not_open :
		      "no writes: the server may still execute one that was given up");
		return false;
	}
	disk_account_send(q, op);
	if (q->gate == DISK_GATE_HOLD) {
		op->held_at = disk_now();
		list_add(&q->waits, op);
		return false;
	}
	list_add(&q->flight, op);
	return true;
}

/* The lock is held. */
static int q_submit(struct ibnbd_q *q, struct ibnbd_req *const *req, unsigned int nr, bool sync)
{
	struct ibtrs_io *io[Q_BATCH];
	unsigned int n, send = 0;
	struct ibnbd_io m;
	int err = 0;

	for (n = 0; n < nr && q->flight.nr + q->waits.nr < q->depth; n++) {
		err = q_check(q, req[n], &m, &req[n]->why);
		if (err) {
			req[n]->err = err;
			break;
		}
		if (q_take(q, req[n], &m, sync))
			io[send++] = &disk_op_of(req[n])->io;
		if (send == Q_BATCH) {
			q_send(q, io, send);
			send = 0;
		}
	}
	q_send(q, io, send);
	return n ? (int)n : err;
}

int ibnbd_q_submit(struct ibnbd_q *q, struct ibnbd_req *const *req, unsigned int nr)
{
	int n;

	pthread_mutex_lock(&q->lock);
	n = q_submit(q, req, nr, false);
	if (q->done)
		q_wake(q);
	pthread_mutex_unlock(&q->lock);
	return n;
}

static unsigned int q_hand_back(struct ibnbd_q *q, struct ibnbd_req **done, unsigned int max)
{
	unsigned int n = 0;

	while (n < max && q->done) {
		done[n] = q->done;
		q->done = done[n++]->next;
	}
	if (!q->done)
		q->done_end = &q->done;
	return n;
}

int ibnbd_q_poll(struct ibnbd_q *q, struct ibnbd_req **done, unsigned int max, int timeout_ms)
{
	struct pollfd fd = { .fd = q->ep, .events = POLLIN };
	u64 end = timeout_ms > 0 ? disk_now() + (u64)timeout_ms : 0, now;
	unsigned int n;

	for (;;) {
		pthread_mutex_lock(&q->lock);
		q_settle(q);
		q_harvest(q);
		n = q_hand_back(q, done, max);
		if (q->done || q->led)
			q_wake(q);
		pthread_mutex_unlock(&q->lock);
		if (n || !timeout_ms || !max)
			return (int)n;
		now = disk_now();
		if (timeout_ms > 0 && now >= end)
			return 0;
		if (poll(&fd, 1, timeout_ms < 0 ? -1 : (int)(end - now)) < 0 && errno != EINTR)
			return -errno;
	}
}

int ibnbd_q_fd(const struct ibnbd_q *q)
{
	return q->ep;
}

/* ---- waiting ------------------------------------------------------------ */

/*
 * One of the threads that wait sleeps on the queue and takes the answers of all; the others sleep
 * until it has news. The lock is held.
 */
static void q_wait(struct ibnbd_q *q)
{
	struct pollfd fd = { .fd = q->ep, .events = POLLIN };

	if (q->led) {
		pthread_cond_wait(&q->news, &q->lock);
		return;
	}
	q->led = true;
	pthread_mutex_unlock(&q->lock);
	poll(&fd, 1, -1);
	pthread_mutex_lock(&q->lock);
	q->led = false;
	q_settle(q);
	q_harvest(q);
	pthread_cond_broadcast(&q->news);
	if (q->done)
		q_wake(q);
}

int ibnbd_q_do(struct ibnbd_q *q, struct ibnbd_req *req)
{
	struct disk_op *op = disk_op_of(req);
	int n;

	pthread_mutex_lock(&q->lock);
	while (!(n = q_submit(q, &req, 1, true)))
		q_wait(q);
	while (n == 1 && !op->over)
		q_wait(q);
	pthread_mutex_unlock(&q->lock);
	return n < 0 ? n : req->err;
}

/* ---- the control thread's side ------------------------------------------ */

void disk_q_gate(struct ibnbd_q *q, enum disk_gate gate)
{
	pthread_mutex_lock(&q->lock);
	q->gate = gate;
	pthread_mutex_unlock(&q->lock);
}

void disk_q_terms(struct ibnbd_q *q, const struct disk_terms *terms)
{
	pthread_mutex_lock(&q->lock);
	q->terms = *terms;
	pthread_mutex_unlock(&q->lock);
}

static void q_readdress(struct ibnbd_q *q, struct disk_op *op)
{
	op->hdr.device_id = cpu_to_le32(q->terms.device_id);
	/* The account may have begun while the request waited. */
	if (op->account == DISK_ACCOUNT_NOTHING)
		disk_account_send(q, op);
}

void disk_q_readdress(struct ibnbd_q *q)
{
	struct disk_op *op;

	pthread_mutex_lock(&q->lock);
	for (op = q->flight.first; op; op = op->next)
		q_readdress(q, op);
	pthread_mutex_unlock(&q->lock);
}

void disk_q_resume(struct ibnbd_q *q)
{
	struct ibtrs_io *io;
	struct disk_op *op;

	pthread_mutex_lock(&q->lock);
	while ((op = q->waits.first)) {
		list_del(&q->waits, op);
		if (q_fails(q, disk_op_kind(op))) {
			q_end(q, op, -EIO, q_not_open);
			continue;
		}
		q_readdress(q, op);
		list_add(&q->flight, op);
		io = &op->io;
		q_send(q, &io, 1);
	}
	q_harvest_for_others(q);
	pthread_mutex_unlock(&q->lock);
}

static bool op_writes(const struct disk_op *op)
{
	return op->io.dir == IBTRS_IO_WRITE;
}

void disk_q_look(struct ibnbd_q *q, struct disk_q_sum *sum)
{
	const struct disk_op *op;

	pthread_mutex_lock(&q->lock);
	q_harvest_for_others(q);
	sum->flight += q->flight.nr;
	sum->waits += q->waits.nr;
	for (op = q->flight.first; op; op = op->next) {
		sum->writes |= op_writes(op);
		if (op->held_at && op->held_at < sum->held_since)
			sum->held_since = op->held_at;
	}
	for (op = q->waits.first; op; op = op->next) {
		sum->writes |= op_writes(op);
		sum->strays += le32_to_cpu(op->hdr.device_id) == q->terms.device_id;
		if (op->held_at && op->held_at < sum->held_since)
			sum->held_since = op->held_at;
	}
	pthread_mutex_unlock(&q->lock);
}

void disk_q_hold(struct ibnbd_q *q, u64 now)
{
	struct disk_op *op;

	pthread_mutex_lock(&q->lock);
	for (op = q->flight.first; op; op = op->next)
		op->held_at = op->held_at ?: now;
	for (op = q->waits.first; op; op = op->next)
		op->held_at = op->held_at ?: now;
	pthread_mutex_unlock(&q->lock);
}

void disk_q_abort(struct ibnbd_q *q, struct disk_q_given_up *g)
{
	struct disk_op *op;

	pthread_mutex_lock(&q->lock);
	q_harvest(q);
	/* These were never sent, or answered: the server cannot execute them. */
	while ((op = q->waits.first)) {
		list_del(&q->waits, op);
		q_end(q, op, -EIO, q_not_open);
	}
	for (op = q->flight.first; op; op = op->next)
		g->writes |= op_writes(op);
	if (ibtrs_q_abort(q->q, -ECONNABORTED))
		g->any = true;
	q_harvest_for_others(q);
	g->left += q->flight.nr;
	pthread_mutex_unlock(&q->lock);
}

static int q_watch(int ep, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

int disk_q_init(struct ibnbd_q *q, struct ibnbd_disk *d, u32 i)
{
	struct ibtrs_clt_info info = { .size = sizeof(info) };
	int err;

	q->disk = d;
	q->q = ibtrs_clt_q(d->clt, i);
	q->gate = DISK_GATE_HOLD;
	ibtrs_clt_info(d->clt, &info);
	q->depth = info.q_depth;
	q->ep = epoll_create1(EPOLL_CLOEXEC);
	q->wake = q->ep < 0 ? -1 : eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (q->wake < 0)
		return -errno;
	err = q_watch(q->ep, q->wake);
	return err ?: q_watch(q->ep, ibtrs_q_fd(q->q));
}

void disk_q_free(struct ibnbd_q *q)
{
	if (q->wake >= 0)
		close(q->wake);
	if (q->ep >= 0)
		close(q->ep);
	pthread_cond_destroy(&q->news);
	pthread_mutex_destroy(&q->lock);
}
