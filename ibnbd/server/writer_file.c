// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file writer_file: it keeps who wrote last to each disk, and its cache epoch, for the next
 * life of this module, or for another server that has the disks and this file after it.
 *
 * A client may hold writes for as long as its administrator allows, over restarts of the server
 * too. If another client wrote in that time, and the server had forgotten it, the held writes would
 * be replayed over newer data. So each change of a writer is on disk before its OPEN is answered,
 * and no OPEN is answered by a promise that another process would have to keep.
 *
 * logic/record says what the file is; old files have no table of cache epochs. The tables are read
 * when the server begins to listen, and written slot by slot, in place. All blocks of the file are
 * written when it is made, so a slot that changes costs a write and a flush, and the file system no
 * transaction. OPENs that come at once share them. The file is closed in between, so that its file
 * system can be unmounted. A disk that is not in the table counts as one that any client may have
 * written to (writer.c), and gets a new epoch. The table of epochs also has disks without an
 * identity, for as long as the machine runs; their slots are reused first.
 *
 * If the default file cannot be used, the server says so and remembers in memory only. A file that
 * was named, and cannot be used, is an error, and while it cannot be written no new writer comes.
 *
 * Locks: file_lock serializes reading and writing the file. ibnbd_srv_writer_file_keep() waits for
 * it, so that a client's slot is on disk when the function returns 0. table_lock is held for
 * moments only, inside file_lock and inside the export lock.
 */
#include <linux/bitmap.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include "ibnbd/logic/record.h"
#include "ibnbd/server/writer.h"

#define SLOTS		IBNBD_RECORD_SLOTS
#define ALL_SLOTS	IBNBD_RECORD_ALL

/* A copy of the file. */
struct copy {
	struct ibnbd_record_slot slot[ALL_SLOTS];
	unsigned int victim[IBNBD_RECORD_TABLES];	/* the slot that was reused last */
	DECLARE_BITMAP(dirty, ALL_SLOTS);
};

static const char default_file[] = "/var/lib/ibnbd/writers";
static char *writer_file = (char *)default_file;
module_param(writer_file, charp, 0444);
MODULE_PARM_DESC(writer_file,
		 "file that records the last writer of each disk over a restart; an absolute path; empty: remember while loaded; none: each disk has one client only (/var/lib/ibnbd/writers)");

static DEFINE_MUTEX(file_lock);
static DEFINE_MUTEX(table_lock);
static struct copy *copy;	/* NULL: no file is used. Changed under both locks */

/* Did an administrator name the file? */
bool ibnbd_srv_writer_file_is_given(void)
{
	return writer_file != default_file && *writer_file;
}

/* Did an administrator say that no client may be fenced for what this server does not remember? */
bool ibnbd_srv_writer_file_is_none(void)
{
	return !strcmp(writer_file, "none");
}

static struct file *file_open(void)
{
	struct file *f = ERR_PTR(-ENOENT);

	scoped_with_init_fs()
		f = filp_open(writer_file, O_RDWR | O_CREAT | O_NOFOLLOW | O_LARGEFILE, 0600);
	if (!IS_ERR(f) && !S_ISREG(file_inode(f)->i_mode)) {
		cx_fput(f);
		return ERR_PTR(-EINVAL);
	}
	return f;
}

static int file_put(struct file *f, const void *data, size_t len, loff_t pos)
{
	ssize_t n = kernel_write(f, data, len, &pos);

	if (n < 0)
		return n;
	return n == len ? 0 : -EIO;
}

static int file_put_slot(struct file *f, unsigned int i)
{
	struct ibnbd_record_slot s;

	scoped_guard(mutex, &table_lock)
		s = copy->slot[i];
	return file_put(f, &s, sizeof(s), (loff_t)i * sizeof(s));
}

/* Write these slots. After an error all of them count as not written. */
static int file_write(const unsigned long *dirty)
{
	struct file *f = file_open();
	unsigned int i;
	int err = 0;

	if (IS_ERR(f))
		return PTR_ERR(f);
	for_each_set_bit(i, dirty, ALL_SLOTS) {
		err = file_put_slot(f, i);
		if (err)
			break;
	}
	err = err ?: vfs_fsync(f, 1);
	cx_fput(f);
	return err;
}

/*
 * Looks at one of the tables that were read from the file. A table of zeroes was never written to
 * the end, so it counts as new and gets its header. @changed: set if the file has to be written;
 * @damaged: set if the record of a slot is.
 */
static int table_check(struct copy *c, enum ibnbd_record_table t, bool *changed, bool *damaged)
{
	unsigned int i = (t + 1) * SLOTS;
	struct ibnbd_record_slot header, *s;

	while (--i > t * SLOTS) {
		s = &c->slot[i];
		if (memchr_inv(s, 0, sizeof(*s)) && s->sum != ibnbd_record_sum(s)) {
			*damaged = true;
			*changed = true;
			memset(s, 0, sizeof(*s));
		}
	}
	s = &c->slot[i];
	ibnbd_record_header(t, &header);
	if (!memcmp(s, &header, sizeof(header)))
		return 0;
	if (memchr_inv(s, 0, sizeof(*s)))
		return -EINVAL;
	*s = header;
	*changed = true;
	return 0;
}

static int file_read(struct file *f, struct copy *c)
{
	bool changed, damaged = false;
	loff_t pos = 0;
	ssize_t n;
	int err;

	do {
		n = kernel_read(f, (char *)c->slot + pos, sizeof(c->slot) - pos, &pos);
	} while (n > 0);
	if (n < 0)
		return n;
	changed = pos < sizeof(c->slot);
	err = table_check(c, IBNBD_RECORD_WRITERS, &changed, &damaged);
	err = err ?: table_check(c, IBNBD_RECORD_EPOCHS, &changed, &damaged);
	if (!err && changed)
		err = file_put(f, c->slot, sizeof(c->slot), 0) ?: vfs_fsync(f, 0);
	if (!err && damaged)
		pr_warn("%s is damaged: clients that hold writes while they come back may be fenced\n",
			writer_file);
	return err;
}

/* A copy of the file as it is now, or of a new one. */
static struct copy *file_load(void)
{
	struct copy *c;
	struct file *f;
	int err;

	if (*writer_file != '/')
		return ERR_PTR(-EINVAL);
	c = kvzalloc(sizeof(*c), GFP_KERNEL);
	if (!c)
		return ERR_PTR(-ENOMEM);
	f = file_open();
	err = PTR_ERR_OR_ZERO(f);
	if (!err) {
		err = file_read(f, c);
		cx_fput(f);
	}
	if (!err)
		return c;
	kvfree(c);
	return ERR_PTR(err);
}

static void file_use(struct copy *c)
{
	scoped_guard(mutex, &table_lock)
		swap(copy, c);
	kvfree(c);
}

/* Why the file cannot be used, for the log. */
static const char *file_why(int err)
{
	switch (err) {
	case -EINVAL:
		return "not an absolute path to a file that this module has written";
	case -ENOENT:
		return "its directory does not exist";
	default:
		return "cannot be used";
	}
}

/**
 * ibnbd_srv_writer_file_load() - read the file, or begin one
 *
 * Process context, before the server listens. If no file is to be used this function and the others
 * of this file do nothing.
 *
 * Return: 0 or a negative errno, with the reason in the log.
 */
int ibnbd_srv_writer_file_load(void)
{
	struct copy *c;
	int err = 0;

	guard(mutex)(&file_lock);
	if (!*writer_file || ibnbd_srv_writer_file_is_none())
		return 0;
	/* A record that could not be written must not be replaced by an older one of the file. */
	if (copy)
		err = file_write(copy->dirty);
	c = err ? ERR_PTR(err) : file_load();
	if (!IS_ERR(c)) {
		file_use(c);
		return 0;
	}
	err = PTR_ERR(c);
	if (writer_file != default_file) {
		pr_err("writer_file=%s: %s (%d); repair it, name another file, or say none if each disk has one client only\n",
		       writer_file, file_why(err), err);
		/* for -ENOENT modprobe would report a missing symbol */
		return err == -ENOENT ? -EIO : err;
	}
	pr_warn("%s: %s (%d): after a restart of this server, clients that hold writes are fenced; make it usable and load the module again, or name a place with writer_file=\n",
		default_file, file_why(err), err);
	writer_file = "";
	file_use(NULL);
	return 0;
}

void ibnbd_srv_writer_file_exit(void)
{
	kvfree(copy);
}

/*
 * The slot of the disk @id; NULL: it has none. Of kind NONE: a free slot. Looks at all slots in
 * turn, which are less than 300 KB: an OPEN asks, and waits for a disk anyway.
 */
static struct ibnbd_record_slot *table_find(enum ibnbd_record_table t,
					    const struct ibnbd_identity *id)
{
	struct ibnbd_record_slot *s = &copy->slot[t * SLOTS], *header = s;

	lockdep_assert_held(&table_lock);
	while (++s < header + SLOTS)
		if (s->kind == id->kind && !memcmp(s->id, id->id, sizeof(s->id)))
			return s;
	return NULL;
}

/*
 * Choose a slot to reuse when all are taken: one that no other boot will ask for, else the next in
 * turn.
 */
static struct ibnbd_record_slot *table_evict(enum ibnbd_record_table t)
{
	struct ibnbd_record_slot *s;
	unsigned int i = 0;

	do {
		copy->victim[t] = copy->victim[t] % (SLOTS - 1) + 1;
		s = &copy->slot[t * SLOTS + copy->victim[t]];
	} while (s->kind != IBNBD_ID_INSTANCE && ++i < SLOTS);
	return s;
}

static void table_store(enum ibnbd_record_table t, const struct ibnbd_identity *id,
			struct ibnbd_record_slot *new)
{
	static const struct ibnbd_identity none;
	struct ibnbd_record_slot *s;

	if (id->kind == IBNBD_ID_NONE)
		return;
	new->kind = id->kind;
	memcpy(new->id, id->id, sizeof(new->id));
	new->sum = ibnbd_record_sum(new);
	guard(mutex)(&table_lock);
	if (!copy)
		return;
	s = table_find(t, id) ?: table_find(t, &none) ?: table_evict(t);
	if (!memcmp(s, new, sizeof(*new)))
		return;
	*s = *new;
	__set_bit(s - copy->slot, copy->dirty);
}

/* Copies the slot of @id; false: it has none. */
static bool table_recall(enum ibnbd_record_table t, const struct ibnbd_identity *id,
			 struct ibnbd_record_slot *s)
{
	const struct ibnbd_record_slot *found;

	guard(mutex)(&table_lock);
	if (!copy || id->kind == IBNBD_ID_NONE)
		return false;
	found = table_find(t, id);
	if (found)
		*s = *found;
	return found;
}

/**
 * ibnbd_srv_writer_file_recall() - what the file says about a disk's writers
 * @id: the disk; of kind IBNBD_ID_NUMBER for one that has no identity
 * @gen: its writer generation
 * @writer: session that wrote last; null: one of several
 *
 * Return: false: the file has no entry of the disk.
 */
bool ibnbd_srv_writer_file_recall(const struct ibnbd_identity *id, u64 *gen, uuid_t *writer)
{
	struct ibnbd_record_slot s;

	if (!table_recall(IBNBD_RECORD_WRITERS, id, &s))
		return false;
	*gen = le64_to_cpu(s.gen);
	import_uuid(writer, s.writer);
	return true;
}

/* Store in memory; ibnbd_srv_writer_file_keep() writes it to the file. */
void ibnbd_srv_writer_file_store(const struct ibnbd_identity *id, u64 gen, const uuid_t *writer)
{
	struct ibnbd_record_slot new = { .gen = cpu_to_le64(gen) };

	export_uuid(new.writer, writer);
	table_store(IBNBD_RECORD_WRITERS, id, &new);
}

/* Reads a disk's cache epoch from the file; epoch 0: no entry. */
void ibnbd_srv_writer_file_recall_epoch(const struct ibnbd_identity *id, struct ibnbd_epoch *e)
{
	struct ibnbd_record_slot s;

	memset(e, 0, sizeof(*e));
	if (!table_recall(IBNBD_RECORD_EPOCHS, id, &s))
		return;
	e->epoch = le64_to_cpu(s.epoch);
	e->clean = s.clean;
}

/* As ibnbd_srv_writer_file_store(). */
void ibnbd_srv_writer_file_store_epoch(const struct ibnbd_identity *id, const struct ibnbd_epoch *e)
{
	struct ibnbd_record_slot new = { .clean = e->clean, .epoch = cpu_to_le64(e->epoch) };

	table_store(IBNBD_RECORD_EPOCHS, id, &new);
}

/**
 * ibnbd_srv_writer_file_keep() - write to the file what was stored
 *
 * Sleeps for as long as the file system takes; the caller holds no lock of the exports. If writing
 * fails, the next call tries again. Until then a restart would forget the slots. This is logged. No
 * client loses a disk that it has open.
 *
 * Return: 0: all that was stored before the call is on disk, or no file is used. Else a negative
 * errno.
 */
int ibnbd_srv_writer_file_keep(void)
{
	static DECLARE_BITMAP(writing, ALL_SLOTS);
	int err;

	guard(mutex)(&file_lock);
	if (!copy)
		return 0;
	scoped_guard(mutex, &table_lock) {
		bitmap_copy(writing, copy->dirty, ALL_SLOTS);
		bitmap_zero(copy->dirty, ALL_SLOTS);
	}
	if (bitmap_empty(writing, ALL_SLOTS))
		return 0;
	err = file_write(writing);
	if (!err)
		return 0;
	scoped_guard(mutex, &table_lock)
		bitmap_or(copy->dirty, copy->dirty, writing, ALL_SLOTS);
	pr_err_ratelimited(
		"cannot write %s (%d): after a restart this server would not know the last writers, and a client could replay old writes\n",
		writer_file, err);
	return err;
}
