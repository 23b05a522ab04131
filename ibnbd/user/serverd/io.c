// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads, writes, flushes, discards, zeroes.
 *
 * A write is acknowledged when the disk has it: a direct one is with the disk, and one that goes
 * through the page cache, since it does not fit the alignment, is written through (RWF_DSYNC). So
 * no acknowledged write depends on this process, nor on write-back that could fail while no process
 * has the file open. FUA is RWF_DSYNC, FLUSH is fdatasync(2).
 *
 * While a direct write of a file is under way, one through the page cache must not begin: a page
 * that has a neighbour block, too, would hold what the disk held before. So such a write waits for
 * the direct ones of its file, and keeps others from beginning.
 *
 * The client can still write to the memory of its request. Where what is written must not change
 * (copies of the open), it passes through a private buffer.
 *
 * A flush that has failed begins a new cache epoch, and is answered when that is recorded.
 */
#include <fcntl.h>
#include <sys/uio.h>
#include "ibnbd/user/serverd/serverd.h"

/**
 * struct serverd_io - one I/O
 * @call: what the kernel does for it at the moment; first
 * @done: bytes already transferred
 * @direct: the piece under transfer bypasses the page cache; @buffered: no other piece may
 * @private: buffer, or NULL
 * @err: result, while the records are kept
 */
struct serverd_io {
	struct serverd_ring_job call;
	struct ibtrs_op *op;
	struct serverd_open *open;
	struct ibnbd_io msg;
	u32 done;
	bool direct;
	bool buffered;
	void *private;
	int err;
	struct serverd_keep keep;
	struct serverd_io *next;	/* of those that wait */
	struct serverd_io *of_open;
	struct serverd_io **at;		/* what points to it there */
};

static struct serverd_io *io_of(struct serverd_ring_job *r)
{
	return (struct serverd_io *)r;
}

/* Has the disk another epoch than the client was told? */
static bool io_is_of_old(const struct serverd_open *open)
{
	return serverd_session_knows_epochs(open->session) &&
	       open->epoch != open->export->cache.epoch;
}

static void io_end(struct serverd *d, struct serverd_io *io, int err)
{
	struct serverd_open *open = io->open;
	struct ibtrs_op *op = io->op;

	/* To the client it means a device that the server does not know (protocol 10.2). */
	if (err == -ENOTCONN)
		err = -EIO;
	/*
	 * The client opens it again, and sends this again. Where the connection broke before the
	 * open was published, the client has not been told so far.
	 */
	if (err && open->b.nbd && serverd_nbd_gone(open->b.nbd)) {
		serverd_open_lose(d, open, SERVERD_CUT);
		err = -ENOTCONN;
	}
	if (!err && ibnbd_access_shows_disk(&io->msg) && io_is_of_old(open))
		err = -ENOTCONN;
	*io->at = io->of_open;
	if (io->of_open)
		io->of_open->at = io->at;
	free(io->private);
	free(io);
	serverd_open_put(d, open);
	ibtrs_op_reply(op, err);
}

void serverd_io_forget(struct serverd_open *open)
{
	struct serverd_io *io;

	for (io = open->ios; io; io = io->of_open)
		ibtrs_op_may_forget(io->op);
}

static void io_kept(struct serverd *d, struct serverd_keep *keep, int err)
{
	struct serverd_io *io = (struct serverd_io *)((char *)keep -
						      offsetof(struct serverd_io, keep));

	io_end(d, io, io->err);
}

/* The disk or the file system has answered. */
static void io_answered(struct serverd *d, struct serverd_io *io, int err)
{
	if (!err || !ibnbd_access_promises(&io->msg)) {
		io_end(d, io, err);
		return;
	}
	io->err = err;
	io->keep.kept = io_kept;
	serverd_export_doubt(d, io->open->export);
	serverd_records_keep(d, &io->keep);
}

static void io_call(struct serverd *d, struct serverd_io *io, enum serverd_ring_op op,
		    void (*done)(struct serverd *d, struct serverd_ring_job *r))
{
	io->call.op = op;
	io->call.fd = io->open->b.fd;
	io->call.nbd = io->open->b.nbd;
	io->call.flags = 0;
	io->call.done = done;
}

/* ---- direct writes, and others of the same file ---------------------------------- */

static bool mixed_matters(const struct serverd_io *io)
{
	return io->msg.op == IBNBD_OP_WRITE && io->open->b.kind == SERVERD_FILE &&
	       io->open->b.align;
}

static bool mixed_enter(struct serverd_export *e, const struct serverd_io *io)
{
	if (e->mixed || (!io->direct && e->directs))
		return false;
	if (io->direct)
		e->directs++;
	else
		e->mixed = true;
	return true;
}

static void mixed_leave(struct serverd *d, struct serverd_export *e, const struct serverd_io *io)
{
	struct serverd_io *next;

	if (io->direct)
		e->directs--;
	else
		e->mixed = false;
	while ((next = e->waiting) && mixed_enter(e, next)) {
		e->waiting = next->next;
		if (!e->waiting)
			e->waiting_end = &e->waiting;
		serverd_ring(d, &next->call);
	}
}

static void mixed_start(struct serverd *d, struct serverd_io *io)
{
	struct serverd_export *e = io->open->export;

	if (!mixed_matters(io) || (!e->waiting && mixed_enter(e, io))) {
		serverd_ring(d, &io->call);
		return;
	}
	io->next = NULL;
	*e->waiting_end = io;
	e->waiting_end = &io->next;
}

/* ---- data -------------------------------------------------------------------------- */

static void io_transfer(struct serverd *d, struct serverd_io *io);

static void io_ended(struct serverd *d, struct serverd_ring_job *r)
{
	io_answered(d, io_of(r), r->res < 0 ? r->res : 0);
}

/* Of an NBD server that does not know FUA. */
static bool io_flushes_behind(const struct serverd_io *io)
{
	return io->open->b.nbd && io->msg.op == IBNBD_OP_WRITE && io->msg.flags & IBNBD_F_FUA &&
	       !serverd_nbd_can(io->open->b.nbd, SERVERD_NBD_FUA);
}

static void io_moved(struct serverd *d, struct serverd_ring_job *r)
{
	struct serverd_io *io = io_of(r);
	int n = r->res;

	if (mixed_matters(io))
		mixed_leave(d, io->open->export, io);
	if (n == -EINVAL && io->direct && io->open->b.kind == SERVERD_FILE) {
		io->buffered = true;
		io_transfer(d, io);
		return;
	}
	if (n == -EINTR) {
		io_transfer(d, io);
		return;
	}
	if (n <= 0) {
		io_answered(d, io, n ? n : -EIO);
		return;
	}
	if (io->private && io->msg.op == IBNBD_OP_READ)
		memcpy((u8 *)io->op->data + io->done, (u8 *)io->private + io->done, (size_t)n);
	io->done += (u32)n;
	if (io->done < io->msg.bytes) {
		io_transfer(d, io);
	} else if (io_flushes_behind(io)) {
		io_call(d, io, SERVERD_FSYNC, io_ended);
		serverd_ring(d, &io->call);
	} else {
		io_answered(d, io, 0);
	}
}

static void io_transfer(struct serverd *d, struct serverd_io *io)
{
	const struct serverd_backing *b = &io->open->b;
	u32 len = io->msg.bytes - io->done;
	bool write = io->msg.op == IBNBD_OP_WRITE;
	u64 pos = (io->msg.sector << IBNBD_SECTOR_SHIFT) + io->done;
	u8 *buf = io->private ?: io->op->data;

	io_call(d, io, write ? SERVERD_WRITE : SERVERD_READ, io_moved);
	io->direct = b->align && !io->buffered && !((pos | len) & (b->align - 1));
	if (!io->direct)
		io->call.fd = b->page_fd;
	io->call.buf = buf + io->done;
	io->call.memory = io->private ? -1 : io->op->memory;
	io->call.len = len;
	io->call.pos = pos;
	if (write && (!io->direct || (io->msg.flags & IBNBD_F_FUA && !io_flushes_behind(io))))
		io->call.flags = RWF_DSYNC;
	mixed_start(d, io);
}

static void io_preflushed(struct serverd *d, struct serverd_ring_job *r)
{
	if (r->res)
		io_answered(d, io_of(r), r->res);
	else
		io_transfer(d, io_of(r));
}

static void io_data(struct serverd *d, struct serverd_io *io)
{
	if (io->open->copies) {
		io->private = aligned_alloc(4096, (io->msg.bytes + 4095) & ~4095ull);
		if (!io->private) {
			io_end(d, io, -ENOMEM);
			return;
		}
		if (io->msg.op == IBNBD_OP_WRITE)
			memcpy(io->private, io->op->data, io->msg.bytes);
	}
	if (!(io->msg.flags & IBNBD_F_PREFLUSH)) {
		io_transfer(d, io);
		return;
	}
	io_call(d, io, SERVERD_FSYNC, io_preflushed);
	serverd_ring(d, &io->call);
}

/* ---- the rest ------------------------------------------------------------------------- */

static void io_range(struct serverd *d, struct serverd_io *io, enum serverd_ring_op op, int flags,
		     void (*done)(struct serverd *d, struct serverd_ring_job *r))
{
	io_call(d, io, op, done);
	io->call.flags = flags;
	io->call.pos = io->msg.sector << IBNBD_SECTOR_SHIFT;
	io->call.len = io->msg.bytes;
	serverd_ring(d, &io->call);
}

static void io_punched(struct serverd *d, struct serverd_ring_job *r)
{
	struct serverd_io *io = io_of(r);

	if (r->res == -EOPNOTSUPP && io->open->b.kind == SERVERD_FILE)
		io->open->export->no_punch = true;
	if (r->res == -EOPNOTSUPP && io->msg.op == IBNBD_OP_WRITE_ZEROES)
		io_range(d, io, SERVERD_FALLOCATE, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
			 io_ended);
	else
		io_ended(d, r);
}

static void io_discard(struct serverd *d, struct serverd_io *io)
{
	if (io->open->b.kind != SERVERD_FILE)
		io_range(d, io, SERVERD_DISCARD, 0, io_ended);
	else
		io_range(d, io, SERVERD_FALLOCATE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 io_punched);
}

/* Without NOUNMAP a hole is welcome: it reads as zeroes. */
static void io_zeroes(struct serverd *d, struct serverd_io *io)
{
	if (io->msg.flags & IBNBD_F_NOUNMAP)
		io_range(d, io, SERVERD_FALLOCATE, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
			 io_ended);
	else
		io_range(d, io, SERVERD_FALLOCATE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 io_punched);
}

static void io_run(struct serverd *d, struct serverd_io *io)
{
	switch (io->msg.op) {
	case IBNBD_OP_READ:
	case IBNBD_OP_WRITE:
		io_data(d, io);
		break;
	case IBNBD_OP_FLUSH:
		io_call(d, io, SERVERD_FSYNC, io_ended);
		serverd_ring(d, &io->call);
		break;
	case IBNBD_OP_DISCARD:
		io_discard(d, io);
		break;
	case IBNBD_OP_WRITE_ZEROES:
		io_zeroes(d, io);
		break;
	default:
		io_end(d, io, -EOPNOTSUPP);
	}
}

void serverd_io_msg(struct serverd *d, struct serverd_session *s, struct ibtrs_op *op)
{
	struct serverd_io *io = calloc(1, sizeof(*io));
	struct serverd_open *open = NULL;
	const char *why = "no memory";
	int err = io ? 0 : -ENOMEM;

	if (!err)
		err = ibnbd_msg_io_decode(op->hdr, op->hdr_len, op->dir == IBTRS_IO_READ, op->len,
					  s->version, &io->msg, &why);
	if (!err) {
		open = serverd_session_find(s, io->msg.device_id);
		if (!open || open->state != SERVERD_OPEN_LIVE) {
			why = "the session has no such device open";
			err = -ENOTCONN;
		}
	}
	if (!err)
		err = ibnbd_access_io(&open->facts, open->access, &io->msg, &why);
	if (err) {
		serverd_log("session %s: I/O refused: %s (%d)", s->label, why, err);
		free(io);
		ibtrs_op_reply(op, err);
		return;
	}
	io->op = op;
	io->open = open;
	io->of_open = open->ios;
	io->at = &open->ios;
	if (io->of_open)
		io->of_open->at = &io->of_open;
	open->ios = io;
	io_run(d, io);
}
