// SPDX-License-Identifier: GPL-2.0-only
/*
 * Disks that another program has, which speaks NBD on a Unix socket of the search path: qemu-nbd
 * (qcow2 and other images), nbdkit (whatever its plugins know), nbd-server. By libnbd.
 *
 * Each open has a connection of its own. A worker makes it and ends it; in between it belongs to
 * the thread of the server, whose epoll set has its socket. Calls that have ended are kept in a
 * list, since libnbd must not be called from its own callbacks. What the NBD server can do is asked
 * once: libnbd has a lock, which a worker that flushes may hold for long.
 *
 * A connection that breaks has lost the write cache, as far as can be known: a new cache epoch
 * begins, and all that have the disk open must open it again. Until the NBD server is back, that is
 * refused as a disk is that comes late, so clients hold their I/O.
 *
 * NBD has no name that tells one disk from another. A description of the export (qemu-nbd
 * --description) is taken for one; without it the path of the socket stands for the disk in the
 * records of this server.
 */
#include <fcntl.h>
#include <libnbd.h>
#include <sys/epoll.h>
#include <sys/un.h>
#include <unistd.h>
#include "ibnbd/user/serverd/serverd.h"

#define NBD_CONNECT_MS	10000

struct serverd_nbd {
	struct nbd_handle *h;
	int fd;
	bool wants_out;			/* as the epoll set has it */
	bool dead;
	u32 can;			/* a bit for each enum serverd_nbd_ability */
	u32 preferred;
	u32 max_len;			/* of a call */
	u64 size;
	struct serverd_job *ended;
	struct serverd_job **ended_end;
	struct serverd_nbd *next;
};

/* ---- a connection, in a worker ----------------------------------------------- */

static int nbd_refuse(struct serverd_find *f, int err, const char *why)
{
	f->why = why;
	return err;
}

static int nbd_handshake(struct serverd_find *f, struct nbd_handle *h, int path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	u64 end = serverd_now_ms() + NBD_CONNECT_MS, now;
	int err;

	snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d", path);
	err = nbd_set_full_info(h, true);
	err = err ?: nbd_aio_connect(h, (struct sockaddr *)&at, sizeof(at));
	while (!err && nbd_aio_is_connecting(h)) {
		now = serverd_now_ms();
		if (now >= end)
			return nbd_refuse(f, -EBUSY, "the NBD server behind the socket does not answer, or has a client already; see qemu-nbd --shared");
		err = nbd_poll(h, (int)(end - now)) < 0;
	}
	if (!err && nbd_aio_is_ready(h))
		return 0;
	switch (nbd_get_errno()) {
	case ECONNREFUSED:
		return nbd_refuse(f, -ENXIO, "no NBD server listens at the socket; start it");
	case ENOMEM:
		return -ENOMEM;
	case EACCES:
	case EPERM:
		return -EACCES;
	}
	return nbd_refuse(f, -ENXIO, "the program behind the socket does not take an NBD client; see its log");
}

static u32 nbd_block(struct nbd_handle *h, int which)
{
	int64_t size = nbd_get_block_size(h, which);

	return size > 0 && size <= U32_MAX ? (u32)size : 0;
}

/* A number for the path of the socket, which is the same when its server is started again. */
static void nbd_name(struct serverd_backing *b, int path)
{
	static const struct ibnbd_identity_place place = { "nbd", IBNBD_ID_UUID };
	struct ibnbd_identity_disk names = { .place = &place };
	char *about = nbd_get_export_description(b->nbd->h);
	char link[32], at[4096], text[IBNBD_IDENTITY_TEXT];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", path);
	n = readlink(link, at, sizeof(at));
	b->dev = U32_MAX;
	b->ino = ibnbd_siphash(at, n > 0 ? (size_t)n : 0, U32_MAX, 0);
	b->boot = serverd_random();
	names.name = about;
	if (about && *about)
		ibnbd_identity_disk(&names, text, &b->id);
	free(about);
	b->cache_id = b->id;
	if (b->id.kind == IBNBD_ID_NONE)
		ibnbd_identity_number(b->ino, 0, b->dev, &b->cache_id);
}

static u32 nbd_abilities(struct nbd_handle *h)
{
	static int (*const asks[])(struct nbd_handle *h) = {
		[SERVERD_NBD_FLUSH]		= nbd_can_flush,
		[SERVERD_NBD_FUA]		= nbd_can_fua,
		[SERVERD_NBD_TRIM]		= nbd_can_trim,
		[SERVERD_NBD_ZERO]		= nbd_can_zero,
		[SERVERD_NBD_READ_ONLY]		= nbd_is_read_only,
		[SERVERD_NBD_ROTATIONAL]	= nbd_is_rotational,
		[SERVERD_NBD_MULTI]		= nbd_can_multi_conn,
	};
	u32 i, can = 0;

	for (i = 0; i < ARRAY_SIZE(asks); i++)
		if (asks[i](h) == 1)
			can |= 1u << i;
	return can;
}

static int nbd_open(struct serverd_find *f, int path)
{
	struct serverd_backing *b = &f->b;
	struct nbd_handle *h = b->nbd->h;
	int err = nbd_handshake(f, h, path);
	int64_t size;
	u32 block;

	if (err)
		return err;
	b->nbd->can = nbd_abilities(h);
	if (f->writes && serverd_nbd_can(b->nbd, SERVERD_NBD_READ_ONLY))
		return nbd_refuse(f, -EACCES,
				  "the NBD server has it read-only; map it with access_mode=ro");
	block = nbd_block(h, LIBNBD_SIZE_MINIMUM);
	b->block = b->align = block > f->file_block ? block : f->file_block;
	if (!ibnbd_msg_block_size_ok(b->block, SERVERD_BLOCK_MAX))
		return nbd_refuse(f, -EINVAL, "its smallest block is above 32768, or no power of two");
	b->nbd->fd = nbd_aio_get_fd(h);
	b->nbd->max_len = nbd_block(h, LIBNBD_SIZE_MAXIMUM);
	b->nbd->preferred = nbd_block(h, LIBNBD_SIZE_PREFERRED);
	size = nbd_get_size(h);
	b->nbd->size = size > 0 ? (u64)size : 0;
	nbd_name(b, path);
	return 0;
}

int serverd_nbd_open(struct serverd_find *f, int path)
{
	struct serverd_nbd *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	f->b.nbd = n;
	n->ended_end = &n->ended;
	n->h = nbd_create();
	return n->h ? nbd_open(f, path) : -ENOMEM;
}

void serverd_nbd_close(struct serverd_nbd *n)
{
	if (n->h)
		nbd_aio_disconnect(n->h, 0);
	nbd_close(n->h);
	free(n);
}

/* The thread of the server has let go of it. */
int serverd_nbd_flush(struct serverd_nbd *n)
{
	if (n->dead)
		return -ENOTCONN;
	return serverd_nbd_can(n, SERVERD_NBD_FLUSH) && nbd_flush(n->h, 0) ? -EIO : 0;
}

u64 serverd_nbd_size(const struct serverd_nbd *n)
{
	return n->size;
}

bool serverd_nbd_can(const struct serverd_nbd *n, enum serverd_nbd_ability what)
{
	return n->can & 1u << what;
}

u32 serverd_nbd_preferred(const struct serverd_nbd *n)
{
	return n->preferred;
}

bool serverd_nbd_gone(const struct serverd_nbd *n)
{
	return n->dead;
}

/* ---- calls ------------------------------------------------------------------- */

/* Asks epoll for room to send only while libnbd has something to send. */
static void nbd_watch_out(struct serverd *d, struct serverd_nbd *n)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = n->fd };

	if (n->dead || n->wants_out == !!(nbd_aio_get_direction(n->h) & LIBNBD_AIO_DIRECTION_WRITE))
		return;
	n->wants_out = !n->wants_out;
	if (n->wants_out)
		ev.events |= EPOLLOUT;
	epoll_ctl(d->ep, EPOLL_CTL_MOD, n->fd, &ev);
}

static void nbd_end(struct serverd_ring_job *r, int res)
{
	struct serverd_nbd *n = r->nbd;

	r->res = res;
	r->job.next = NULL;
	*n->ended_end = &r->job;
	n->ended_end = &r->job.next;
}

static int nbd_ended(void *priv, int *err)
{
	struct serverd_ring_job *r = priv;
	bool moves = r->op == SERVERD_READ || r->op == SERVERD_WRITE;

	nbd_end(r, *err ? -*err : moves ? (int)r->len : 0);
	return 1;
}

static int64_t nbd_call(struct serverd_nbd *n, struct serverd_ring_job *r)
{
	const nbd_completion_callback cb = { .callback = nbd_ended, .user_data = r };

	switch (r->op) {
	case SERVERD_READ:
		return nbd_aio_pread(n->h, r->buf, r->len, r->pos, cb, 0);
	case SERVERD_WRITE:
		return nbd_aio_pwrite(n->h, r->buf, r->len, r->pos, cb,
				      r->flags ? LIBNBD_CMD_FLAG_FUA : 0);
	case SERVERD_FSYNC:
		return nbd_aio_flush(n->h, cb, 0);
	case SERVERD_DISCARD:
		return nbd_aio_trim(n->h, r->len, r->pos, cb, 0);
	case SERVERD_FALLOCATE:
		break;
	}
	return nbd_aio_zero(n->h, r->len, r->pos, cb,
			    r->flags & FALLOC_FL_PUNCH_HOLE ? 0 : LIBNBD_CMD_FLAG_NO_HOLE);
}

void serverd_nbd(struct serverd *d, struct serverd_ring_job *r)
{
	struct serverd_nbd *n = r->nbd;

	if (n->max_len && r->len > n->max_len && (r->op == SERVERD_READ || r->op == SERVERD_WRITE))
		r->len = n->max_len;
	if (r->op == SERVERD_FSYNC && !serverd_nbd_can(n, SERVERD_NBD_FLUSH))
		nbd_end(r, 0);
	else if (n->dead || nbd_call(n, r) < 0)
		nbd_end(r, n->dead ? -ENOTCONN : -(nbd_get_errno() ?: EIO));
	nbd_watch_out(d, n);
}

/* ---- the loop ---------------------------------------------------------------- */

int serverd_nbd_watch(struct serverd *d, struct serverd_nbd *n)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = n->fd };

	if (epoll_ctl(d->ep, EPOLL_CTL_ADD, n->fd, &ev))
		return -errno;
	n->next = d->nbds;
	d->nbds = n;
	return 0;
}

void serverd_nbd_unwatch(struct serverd *d, struct serverd_nbd *n)
{
	struct serverd_nbd **at = &d->nbds;

	while (*at && *at != n)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = n->next;
	if (!n->dead)
		epoll_ctl(d->ep, EPOLL_CTL_DEL, n->fd, NULL);
}

void serverd_nbd_ready(struct serverd *d, int fd, u32 events)
{
	struct serverd_nbd *n = d->nbds;
	unsigned int way;

	while (n && (n->fd != fd || n->dead))
		n = n->next;
	if (!n)
		return;
	way = nbd_aio_get_direction(n->h);
	if (way & LIBNBD_AIO_DIRECTION_READ && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		nbd_aio_notify_read(n->h);
	else if (way & LIBNBD_AIO_DIRECTION_WRITE)
		nbd_aio_notify_write(n->h);
	nbd_watch_out(d, n);
}

static bool nbd_has_died(struct serverd_nbd *n)
{
	return !n->dead && (nbd_aio_is_dead(n->h) || nbd_aio_is_closed(n->h));
}

static struct serverd_nbd *nbd_with_news(struct serverd *d)
{
	struct serverd_nbd *n = d->nbds;

	while (n && !n->ended && !nbd_has_died(n))
		n = n->next;
	return n;
}

/* That the connection broke is known to clients before the calls that it took with it end. */
void serverd_nbd_done(struct serverd *d)
{
	struct serverd_ring_job *r;
	struct serverd_nbd *n;

	while ((n = nbd_with_news(d))) {
		if (nbd_has_died(n)) {
			n->dead = true;
			epoll_ctl(d->ep, EPOLL_CTL_DEL, n->fd, NULL);
			serverd_export_cut(d, n);
			continue;
		}
		r = (struct serverd_ring_job *)n->ended;
		n->ended = r->job.next;
		if (!n->ended)
			n->ended_end = &n->ended;
		r->done(d, r);
	}
}
