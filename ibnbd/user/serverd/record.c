// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who wrote last to each disk, and its cache epoch, in the file of the kernel's server
 * (logic/record): the two can have the disks and the file one after the other.
 *
 * This server has one table, which the file is a copy of. A change is in the file before an OPEN is
 * answered that depends on it: one write and one flush, of a worker, for all changes that wait.
 *
 * A record of an epoch that is not clean does not mean the same as in a kernel. A write that this
 * server has acknowledged is with the disk, or on it if it went through the page cache (io.c). So a
 * server that was killed has lost none as long as the machine has not been started again, and the
 * record names the boot. A flush that has failed is answered only after the new epoch is recorded.
 */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "ibnbd/user/serverd/serverd.h"
#include "tools/conf/server_conf.h"
#include "tools/host/sysfs.h"

struct record_change {
	unsigned int nr;
	struct ibnbd_record_slot slot;
};

struct serverd_records {
	struct ibnbd_record_slot slot[IBNBD_RECORD_ALL];
	bool dirty[IBNBD_RECORD_ALL];
	unsigned int victim[IBNBD_RECORD_TABLES];
	bool forgot;
	bool none;
	bool failed;
	int fd;				/* -1: no file is used */
	char *path;
	struct serverd_job job;
	struct serverd_keep *waiting, *writing;
	struct record_change *changes;
	unsigned int nr_changes;
	int err;
	bool running;
};

static bool record_is_free(const struct ibnbd_record_slot *s)
{
	static const struct ibnbd_record_slot zero;

	return !memcmp(s, &zero, sizeof(zero));
}

/* Return: 0; -EINVAL: the file is no file of records. */
static int record_check(struct serverd_records *r, enum ibnbd_record_table t)
{
	struct ibnbd_record_slot *s = &r->slot[t * IBNBD_RECORD_SLOTS], header;
	bool damaged = false;
	unsigned int i;

	ibnbd_record_header(t, &header);
	if (!record_is_free(s) && memcmp(s, &header, sizeof(header)))
		return -EINVAL;
	r->dirty[t * IBNBD_RECORD_SLOTS] = record_is_free(s);
	*s = header;
	for (i = 1; i < IBNBD_RECORD_SLOTS; i++) {
		if (record_is_free(&s[i]) || s[i].sum == ibnbd_record_sum(&s[i]))
			continue;
		damaged = true;
		memset(&s[i], 0, sizeof(s[i]));
		r->dirty[t * IBNBD_RECORD_SLOTS + i] = true;
	}
	if (damaged)
		serverd_log("%s is damaged: clients that hold writes while they come back may be fenced",
			    r->path);
	return 0;
}

static int record_write(int fd, const void *data, size_t len, off_t pos)
{
	ssize_t n = pwrite(fd, data, len, pos);

	return n < 0 ? -errno : (size_t)n == len ? 0 : -EIO;
}

static int record_read(struct serverd_records *r)
{
	size_t size = sizeof(r->slot), got = 0;
	struct stat st;
	ssize_t n;
	int err;

	if (fstat(r->fd, &st) || !S_ISREG(st.st_mode))
		return -EINVAL;
	if (flock(r->fd, LOCK_EX | LOCK_NB))
		return -EBUSY;
	do {
		n = pread(r->fd, (char *)r->slot + got, size - got, (off_t)got);
		got += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	if (n < 0)
		return -errno;
	err = record_check(r, IBNBD_RECORD_WRITERS);
	err = err ?: record_check(r, IBNBD_RECORD_EPOCHS);
	/* Whole: a slot that changes costs the file system no transaction. */
	if (!err && got < size)
		err = record_write(r->fd, r->slot, size, 0);
	if (!err && fsync(r->fd))
		err = -errno;
	return err;
}

static const char *record_why(int err)
{
	switch (err) {
	case -EINVAL:
		return "not a file that a server of ibnbd has written";
	case -ENOENT:
		return "its directory does not exist";
	case -EBUSY:
		return "another ibnbd-serverd has it";
	default:
		return strerror(-err);
	}
}

int serverd_records_load(struct serverd *d)
{
	const char *given = d->conf->writer_file;
	struct serverd_records *r = calloc(1, sizeof(*r));
	int err = 0;

	if (!r)
		return -ENOMEM;
	d->records = r;
	r->fd = -1;
	r->none = given && !strcmp(given, "none");
	if (r->none || (given && !*given))
		return 0;
	r->path = given ? strdup(given) : sysfs_root(SERVER_WRITERS);
	r->fd = r->path ? open(r->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
	err = r->fd < 0 ? -errno : record_read(r);
	if (!err)
		return 0;
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
	if (given) {
		serverd_log("writer_file=%s: %s; repair it, name another file, or say none if each disk has one client only",
			    given, record_why(err));
		return err;
	}
	serverd_log("%s: %s: after a restart of this server, clients that hold writes are fenced; name a place with writer_file",
		    r->path, record_why(err));
	memset(r->slot, 0, sizeof(r->slot));
	memset(r->dirty, 0, sizeof(r->dirty));
	return 0;
}

/* ---- the table --------------------------------------------------------------- */

static struct ibnbd_record_slot *record_find(struct serverd_records *r, enum ibnbd_record_table t,
					     const struct ibnbd_identity *id)
{
	struct ibnbd_record_slot *s = &r->slot[t * IBNBD_RECORD_SLOTS];
	unsigned int i;

	for (i = 1; i < IBNBD_RECORD_SLOTS && id->kind != IBNBD_ID_NONE; i++)
		if (s[i].kind == id->kind && !memcmp(s[i].id, id->id, sizeof(s[i].id)))
			return &s[i];
	return NULL;
}

/* A free slot; else one that no other boot will ask for; else the next in turn. */
static struct ibnbd_record_slot *record_room(struct serverd_records *r, enum ibnbd_record_table t)
{
	struct ibnbd_record_slot *s = &r->slot[t * IBNBD_RECORD_SLOTS];
	unsigned int i;

	for (i = 1; i < IBNBD_RECORD_SLOTS; i++)
		if (s[i].kind == IBNBD_ID_NONE)
			return &s[i];
	r->forgot = true;
	for (i = 0; i < IBNBD_RECORD_SLOTS; i++) {
		r->victim[t] = r->victim[t] % (IBNBD_RECORD_SLOTS - 1) + 1;
		if (s[r->victim[t]].kind == IBNBD_ID_INSTANCE)
			break;
	}
	return &s[r->victim[t]];
}

static void record_store(struct serverd_records *r, enum ibnbd_record_table t,
			 const struct ibnbd_identity *id, struct ibnbd_record_slot *new)
{
	struct ibnbd_record_slot *s = record_find(r, t, id);

	if (id->kind == IBNBD_ID_NONE)
		return;
	new->kind = id->kind;
	memcpy(new->id, id->id, sizeof(new->id));
	new->sum = ibnbd_record_sum(new);
	s = s ?: record_room(r, t);
	if (!memcmp(s, new, sizeof(*s)))
		return;
	*s = *new;
	r->dirty[s - r->slot] = true;
}

bool serverd_record_writer(struct serverd *d, const struct ibnbd_identity *id, u64 *gen,
			   u8 writer[16])
{
	struct ibnbd_record_slot *s = record_find(d->records, IBNBD_RECORD_WRITERS, id);

	if (!s)
		return false;
	*gen = le64_to_cpu(s->gen);
	memcpy(writer, s->writer, sizeof(s->writer));
	return true;
}

void serverd_record_set_writer(struct serverd *d, const struct ibnbd_identity *id, u64 gen,
			       const u8 writer[16])
{
	struct ibnbd_record_slot new = { .gen = cpu_to_le64(gen) };

	memcpy(new.writer, writer, sizeof(new.writer));
	record_store(d->records, IBNBD_RECORD_WRITERS, id, &new);
}

void serverd_record_epoch(struct serverd *d, const struct ibnbd_identity *id, u64 boot,
			  struct ibnbd_epoch *e)
{
	struct ibnbd_record_slot *s = record_find(d->records, IBNBD_RECORD_EPOCHS, id);

	memset(e, 0, sizeof(*e));
	if (!s)
		return;
	e->epoch = le64_to_cpu(s->epoch);
	e->clean = s->clean || (boot && le64_to_cpu(s->boot) == boot);
}

void serverd_record_set_epoch(struct serverd *d, const struct ibnbd_identity *id, u64 boot,
			      const struct ibnbd_epoch *e)
{
	struct ibnbd_record_slot new = { .clean = e->clean, .epoch = cpu_to_le64(e->epoch) };

	new.boot = cpu_to_le64(boot);
	record_store(d->records, IBNBD_RECORD_EPOCHS, id, &new);
}

u64 serverd_record_new_gen(struct serverd *d)
{
	u64 random = serverd_random();

	return ibnbd_record_first((u32)(random >> 32), (u32)random, d->records->none,
				  d->records->forgot);
}

/* ---- writing it ---------------------------------------------------------------- */

static void record_collect(struct serverd_records *r)
{
	unsigned int i;

	r->nr_changes = 0;
	for (i = 0; i < IBNBD_RECORD_ALL; i++)
		r->nr_changes += r->dirty[i];
	r->changes = r->nr_changes ? calloc(r->nr_changes, sizeof(*r->changes)) : NULL;
	r->err = r->nr_changes && !r->changes ? -ENOMEM : 0;
	r->nr_changes = 0;
	for (i = 0; i < IBNBD_RECORD_ALL && r->changes; i++) {
		if (!r->dirty[i])
			continue;
		r->changes[r->nr_changes].nr = i;
		r->changes[r->nr_changes++].slot = r->slot[i];
		r->dirty[i] = false;
	}
}

static void record_run(struct serverd_job *job)
{
	struct serverd_records *r = (struct serverd_records *)((char *)job -
					offsetof(struct serverd_records, job));
	unsigned int i;

	for (i = 0; i < r->nr_changes && !r->err; i++)
		r->err = record_write(r->fd, &r->changes[i].slot, sizeof(r->changes[i].slot),
				      (off_t)(r->changes[i].nr * sizeof(r->changes[i].slot)));
	if (!r->err && r->nr_changes && fdatasync(r->fd))
		r->err = -errno;
}

static void record_start(struct serverd *d);

static void record_done(struct serverd *d, struct serverd_job *job)
{
	struct serverd_records *r = d->records;
	struct serverd_keep *k = r->writing, *next;
	unsigned int i;
	int err = r->err;

	for (i = 0; err && i < r->nr_changes; i++)
		r->dirty[r->changes[i].nr] = true;
	free(r->changes);
	r->changes = NULL;
	r->running = false;
	r->writing = NULL;
	if (err && !r->failed)
		serverd_log("cannot write %s: %s: after a restart this server would not know the last writers",
			    r->path, strerror(-err));
	r->failed = err;
	for (; k; k = next) {
		next = k->next;
		k->kept(d, k, err);
	}
	if (r->waiting && !r->running)
		record_start(d);
}

static void record_start(struct serverd *d)
{
	struct serverd_records *r = d->records;

	r->running = true;
	r->writing = r->waiting;
	r->waiting = NULL;
	record_collect(r);
	r->job.run = record_run;
	r->job.done = record_done;
	serverd_job(d, &r->job);
}

void serverd_records_keep(struct serverd *d, struct serverd_keep *k)
{
	struct serverd_records *r = d->records;

	if (r->fd < 0) {
		k->kept(d, k, 0);
		return;
	}
	k->next = r->waiting;
	r->waiting = k;
	if (!r->running)
		record_start(d);
}

void serverd_records_keep_now(struct serverd *d)
{
	struct serverd_records *r = d->records;

	if (r->fd < 0)
		return;
	record_collect(r);
	record_run(&r->job);
	if (r->err)
		serverd_log("cannot write %s: %s", r->path, strerror(-r->err));
}
