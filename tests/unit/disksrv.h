/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A server of disks for tests of libibnbd: a disk in memory, on ibtrs_srv, in a thread of its own.
 *
 * It speaks with the encoders of ibnbd/proto and checks with the rules of ibnbd/logic. What it says
 * of the disk, and what it refuses, are fields that a test sets while it holds the lock. A session
 * that comes back has its mapping again, by its name. A restart ends all mappings; identity,
 * generation, epoch and data stay as the test leaves them.
 */
#ifndef TEST_DISKSRV_H
#define TEST_DISKSRV_H

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "ibnbd/logic/access.h"
#include "ibtrs/user/libibtrs.h"

#define DISKSRV_BLOCK	4096u
#define DISKSRV_MAPS	64
#define DISKSRV_WIRES	256
#define DISKSRV_LATE	256

struct disksrv_map {
	bool open;
	u32 id;
	u64 number;			/* of the session, for events */
	char session[64];
	u64 features;
	u8 version;
	enum ibnbd_access access;
	u32 busy;			/* ops that are kept */
};

struct disksrv {
	pthread_mutex_t lock;
	struct ibtrs_srv *srv;
	struct ibtrs_srv_opts opts;
	pthread_t thread;
	bool stop;
	const char *name;
	u8 *disk;
	struct ibnbd_open_rsp rsp;	/* as OPEN answers, device_id aside */
	u64 features;			/* that it accepts */
	u32 next_id;
	int refuse;			/* OPEN: an errno .. */
	const char *words;		/* .. and words */
	int io_err;			/* of the next request of io_op */
	enum ibnbd_op io_op;
	bool mute;			/* OPEN is never answered */
	bool no_flush;			/* flushes are kept .. */
	bool late;			/* .. requests are, too, until disksrv_release() */
	struct ibtrs_op *kept[DISKSRV_LATE];
	u32 nr_kept;
	struct disksrv_map maps[DISKSRV_MAPS];
	u32 opens, closes, infos, reads, writes, flushes, fuas, discards, zeroes, unknown;
	u32 last_flags;
	u32 closed_dial;		/* bit for each path on which nobody gets through */
	int wires[DISKSRV_WIRES];	/* the client's ends, for the scissors */
	u32 nr_wires;
};

static struct disksrv_map *disksrv_of(struct disksrv *s, const char *session)
{
	u32 i;

	for (i = 0; i < DISKSRV_MAPS && s->maps[i].session[0]; i++)
		if (!strcmp(s->maps[i].session, session))
			return &s->maps[i];
	if (i == DISKSRV_MAPS)
		abort();
	snprintf(s->maps[i].session, sizeof(s->maps[i].session), "%s", session);
	return &s->maps[i];
}

static int disksrv_open(struct disksrv *s, struct disksrv_map *m, struct ibtrs_op *op)
{
	struct ibnbd_open_rsp rsp = s->rsp;
	struct ibnbd_wire_open_rsp_dur wire;
	struct ibnbd_open o;
	const char *why = NULL;
	u32 i, writers = 0, n;
	int err;

	s->opens++;
	err = ibnbd_msg_open_decode(op->hdr, op->hdr_len, op->dir == IBTRS_IO_READ, op->len,
				    m->features, &o, &why);
	if (!err && s->refuse) {
		err = s->refuse;
		why = s->words;
	}
	if (!err && strcmp(o.name, s->name)) {
		err = -ENOENT;
		why = "nothing is exported under that name";
	}
	for (i = 0; i < DISKSRV_MAPS; i++)
		writers += &s->maps[i] != m && s->maps[i].open &&
			   ibnbd_access_writes(s->maps[i].access);
	if (!err && !m->open)
		err = ibnbd_access_open(writers, true, o.access, &why);
	if (!err && m->busy && !m->open) {
		err = -EBUSY;
		why = "requests of the closed mapping are under way";
	}
	if (err && o.words && why) {
		struct ibnbd_wire_open_refused w;

		ibnbd_msg_open_refused_encode(&w, err, why);
		memcpy(op->data, &w, sizeof(w));
		return 0;
	}
	if (err)
		return err;
	if (!m->open)
		m->id = s->next_id++;
	m->open = true;
	m->access = o.access;
	rsp.device_id = m->id;
	rsp.has_identity = o.identity;
	rsp.has_durability = o.durability;
	n = ibnbd_msg_open_rsp_encode(&wire, &rsp);
	memset(op->data, 0, op->len);
	memcpy(op->data, &wire, n < op->len ? n : op->len);
	return 0;
}

static int disksrv_io(struct disksrv *s, struct disksrv_map *m, struct ibtrs_op *op)
{
	struct ibnbd_facts f = {
		.nsectors			= s->rsp.nsectors,
		.logical_block_size		= s->rsp.logical_block_size,
		.max_discard_sectors		= s->rsp.max_discard_sectors,
		.max_write_zeroes_sectors	= s->rsp.max_write_zeroes_sectors,
	};
	struct ibnbd_io io;
	const char *why;
	u8 *at;
	int err;

	err = ibnbd_msg_io_decode(op->hdr, op->hdr_len, op->dir == IBTRS_IO_READ, op->len,
				  m->version, &io, &why);
	if (err)
		return err;
	if (!m->open || io.device_id != m->id) {
		s->unknown++;
		return -ENOTCONN;
	}
	err = ibnbd_access_io(&f, m->access, &io, &why);
	if (!err && s->io_err && s->io_op == io.op) {
		err = s->io_err;
		s->io_err = 0;
	}
	if (err)
		return err;
	s->last_flags = io.flags;
	at = s->disk + (io.op == IBNBD_OP_FLUSH ? 0 : io.sector << IBNBD_SECTOR_SHIFT);
	switch (io.op) {
	case IBNBD_OP_READ:
		s->reads++;
		memcpy(op->data, at, io.bytes);
		break;
	case IBNBD_OP_WRITE:
		s->writes++;
		s->fuas += !!(io.flags & IBNBD_F_FUA);
		memcpy(at, op->data, io.bytes);
		break;
	case IBNBD_OP_FLUSH:
		s->flushes++;
		break;
	case IBNBD_OP_DISCARD:
		s->discards++;
		memset(at, 0xdd, io.bytes);
		break;
	default:
		s->zeroes++;
		memset(at, 0, io.bytes);
		break;
	}
	return 0;
}

/* Return: 1: it is kept. */
static int disksrv_execute(struct disksrv *s, struct ibtrs_op *op, bool again)
{
	struct disksrv_map *m = disksrv_of(s, op->name);
	struct ibnbd_sess_info info;
	const char *why;
	bool nowait;
	int err;
	u32 id;

	m->number = op->session;
	switch (ibnbd_msg_type(op->hdr, op->hdr_len, &why)) {
	case IBNBD_MSG_SESS_INFO:
		s->infos++;
		err = ibnbd_msg_sess_info_decode(op->hdr, op->hdr_len,
						 op->dir == IBTRS_IO_READ, op->len, &info, &why);
		if (err)
			return err;
		info.features &= s->features;
		m->version = info.version;
		m->features = info.features;
		ibnbd_msg_sess_info_encode(op->data, IBNBD_MSG_SESS_INFO_RSP, &info);
		return 0;
	case IBNBD_MSG_OPEN:
		if (s->mute && s->nr_kept < DISKSRV_LATE) {
			s->kept[s->nr_kept++] = op;
			return 1;
		}
		return disksrv_open(s, m, op);
	case IBNBD_MSG_CLOSE:
		err = ibnbd_msg_close_decode(op->hdr, op->hdr_len, m->features, &id, &nowait,
					     &why);
		if (!err && m->open && m->id == id) {
			m->open = false;
			s->closes++;
		}
		return err;
	case IBNBD_MSG_IO:
		if ((s->late || (s->no_flush && op->dir == IBTRS_IO_READ && !op->len)) &&
		    !again && s->nr_kept < DISKSRV_LATE) {
			s->kept[s->nr_kept++] = op;
			m->busy++;
			return 1;
		}
		m->busy -= again;
		return disksrv_io(s, m, op);
	default:
		return -EINVAL;
	}
}

static void *disksrv_run(void *arg)
{
	struct disksrv *s = arg;
	struct ibtrs_op *op[16];
	int n, i, err;

	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
		n = ibtrs_srv_poll(s->srv, op, 16, 5);
		pthread_mutex_lock(&s->lock);
		for (i = 0; i < n; i++) {
			err = disksrv_execute(s, op[i], false);
			if (err <= 0)
				ibtrs_op_reply(op[i], err);
		}
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

/* Executes what was kept. The lock is held. */
__attribute__((unused))
static void disksrv_release(struct disksrv *s)
{
	u32 i, n = s->nr_kept;

	s->nr_kept = 0;
	s->late = s->mute = s->no_flush = false;
	for (i = 0; i < n; i++)
		ibtrs_op_reply(s->kept[i], disksrv_execute(s, s->kept[i], true));
}

static void disksrv_up(struct disksrv *s)
{
	char why[IBTRS_WHY_LEN] = "";
	struct ibtrs_srv *srv;

	if (ibtrs_srv_new(&s->opts, &srv, why)) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	pthread_mutex_lock(&s->lock);
	memset(s->maps, 0, sizeof(s->maps));
	s->stop = false;
	s->srv = srv;
	if (pthread_create(&s->thread, NULL, disksrv_run, s))
		abort();
	pthread_mutex_unlock(&s->lock);
}

static void disksrv_init(struct disksrv *s, u64 blocks)
{
	memset(s, 0, sizeof(*s));
	pthread_mutex_init(&s->lock, NULL);
	s->name = "db1";
	s->opts.size = sizeof(s->opts);
	s->opts.queue_depth = 32;
	s->opts.max_io_size = 65536;
	s->features = IBNBD_FEAT_KNOWN;
	s->next_id = 7;
	s->disk = calloc(blocks, DISKSRV_BLOCK);
	s->rsp = (struct ibnbd_open_rsp){
		.nsectors			= blocks * (DISKSRV_BLOCK / IBNBD_SECTOR_SIZE),
		.max_hw_sectors			= 128,
		.max_write_zeroes_sectors	= 256,
		.max_discard_sectors		= 256,
		.discard_granularity		= DISKSRV_BLOCK,
		.physical_block_size		= DISKSRV_BLOCK,
		.logical_block_size		= DISKSRV_BLOCK,
		.max_segments			= 32,
		.fua				= true,
		.writeback			= true,
		.identity			= {
			.id = "a disk", .kind = IBNBD_ID_UUID,
			.flags = IBNBD_ID_F_ROTATIONAL, .writer_gen = 0x1234567800000005ull,
		},
		.durability			= {
			.cache_epoch = 0xe0, .flags = IBNBD_DUR_F_VOLATILE,
		},
	};
	if (!s->disk)
		abort();
}

__attribute__((unused))
static void disksrv_start(struct disksrv *s, u64 blocks)
{
	disksrv_init(s, blocks);
	disksrv_up(s);
}

__attribute__((unused))
static void disksrv_cut(struct disksrv *s)
{
	pthread_mutex_lock(&s->lock);
	while (s->nr_wires) {
		shutdown(s->wires[--s->nr_wires], SHUT_RDWR);
		close(s->wires[s->nr_wires]);
	}
	pthread_mutex_unlock(&s->lock);
}

/*
 * Ends the server as kill -9 does: sessions, numbers and what is kept. Nobody gets through until
 * disksrv_up().
 */
__attribute__((unused))
static void disksrv_down(struct disksrv *s)
{
	__atomic_store_n(&s->stop, true, __ATOMIC_RELEASE);
	pthread_join(s->thread, NULL);
	pthread_mutex_lock(&s->lock);
	if (ibtrs_srv_free(s->srv)) {		/* all connections are closed now */
		while (s->nr_kept)
			ibtrs_op_reply(s->kept[--s->nr_kept], -EIO);
		while (ibtrs_srv_free(s->srv))
			usleep(1000);
	}
	s->late = s->mute = s->no_flush = false;
	s->srv = NULL;
	pthread_mutex_unlock(&s->lock);
	disksrv_cut(s);
}

__attribute__((unused))
static void disksrv_end(struct disksrv *s)
{
	disksrv_down(s);
	free(s->disk);
	pthread_mutex_destroy(&s->lock);
}

/* For struct ibtrs_clt_opts.dial. */
__attribute__((unused))
static int disksrv_dial(void *priv, const char *path, unsigned int cid)
{
	struct disksrv *s = priv;
	int fd[2], err;

	pthread_mutex_lock(&s->lock);
	err = 0;
	if (s->closed_dial & 1u << (path[0] - 'A') || !s->srv || s->nr_wires == DISKSRV_WIRES)
		err = -ECONNREFUSED;
	if (!err && socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		abort();
	if (!err) {
		err = ibtrs_srv_take(s->srv, fd[1]);
		if (!err)
			s->wires[s->nr_wires++] = dup(fd[0]);
		else
			close(fd[0]);
	}
	pthread_mutex_unlock(&s->lock);
	return err ?: fd[0];
}

#endif
