// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file writer_file: it keeps who wrote last to each disk, and its cache epoch, for the next
 * load of this module.
 *
 * A client may hold writes for as long as its administrator allows, over restarts of the server
 * too. If another client wrote in that time, and the server had forgotten it, the held writes would
 * be replayed over newer data. So each change of a writer is on disk before its OPEN is answered.
 * Only disks with an identity can be found again. Other disks are known only by their device
 * numbers, which change at a restart.
 *
 * The file is two tables of SLOTS slots of 64 bytes: the writers, and behind them the cache epochs,
 * which old files do not have. The first slot of each table is a header that names the table. The
 * tables are read once and written slot by slot, in place. The file is closed in between, so that
 * its file system can be unmounted. A slot with a wrong checksum, or a slot that is reused for
 * another disk, leaves a gap among the writers: from then on a disk that is not in the table may
 * have had a writer (writer.c draws the safe conclusion). The file remembers that: a damaged slot
 * stays marked as lost, and slots are reused only when all are taken. A disk that is not among the
 * epochs gets a new epoch. The table of epochs also has disks without an identity, for as long as
 * the machine runs; their slots are reused first.
 *
 * Locks: file_lock serializes writing the file. ibnbd_srv_writer_file_keep() waits for it, so that
 * a client's slot is on disk when the function returns 0. table_lock is held for moments only,
 * inside file_lock and inside the export lock.
 */
#include <linux/bitmap.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include "ibnbd/server/identity.h"
#include "ibnbd/server/writer_file.h"

#define SLOTS		4096		/* of a table */

enum table {
	WRITERS,
	EPOCHS,
	TABLES,
};

#define ALL_SLOTS	(TABLES * SLOTS)

#define SLOT_LOST	255		/* a kind that no disk has: the record was damaged */

static const char *const table_header_text[TABLES] = {
	"ibnbd-server: who wrote last, 1\n",
	"ibnbd-server: cache epochs, 1\n",
};

struct slot {
	__le64 sum;		/* of what follows; a slot of zeroes is free */
	u8 kind;
	u8 clean;		/* epochs: it ended clean */
	u8 reserved[6];
	u8 id[IBNBD_ID_LEN];
	union {
		struct {
			__le64 gen;
			u8 writer[UUID_SIZE];
			u8 reserved2[8];
		};
		struct {
			__le64 epoch;
			u8 reserved3[24];
		};
	};
};

static_assert(sizeof(struct slot) == 64);

static char *writer_file = "";
module_param(writer_file, charp, 0444);
MODULE_PARM_DESC(writer_file,
		 "file that keeps who wrote last to each disk, so that a restart does not forget it; an absolute path; empty: forget");

static DEFINE_MUTEX(file_lock);
static DEFINE_MUTEX(table_lock);
static struct slot *table;			/* NULL: no file is used */
static DECLARE_BITMAP(table_dirty, ALL_SLOTS);
static bool table_gap;				/* among the writers */
static unsigned int table_victim[TABLES];	/* the slot that was reused last */

/* The checksum finds torn or damaged slots. It does not find forged ones: the file is root's. */
static __le64 slot_sum(const struct slot *s)
{
	static const siphash_key_t key = { { 0x69626e62642d7772ULL, 1 } };

	return cpu_to_le64(siphash(&s->kind, sizeof(*s) - offsetof(struct slot, kind), &key));
}

static void table_header(enum table t, struct slot *s)
{
	memset(s, 0, sizeof(*s));
	strscpy((char *)s, table_header_text[t], sizeof(*s));
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

static int file_write_slot(struct file *f, unsigned int i)
{
	loff_t pos = (loff_t)i * sizeof(struct slot);
	struct slot s;
	ssize_t n;

	mutex_lock(&table_lock);
	s = table[i];
	mutex_unlock(&table_lock);
	n = kernel_write(f, &s, sizeof(s), &pos);
	if (n < 0)
		return n;
	return n == sizeof(s) ? 0 : -EIO;
}

/* Write the dirty slots. After an error all of them count as not written. */
static int file_write(const unsigned long *dirty)
{
	struct file *f = file_open();
	unsigned int i;
	int err = 0;

	if (IS_ERR(f))
		return PTR_ERR(f);
	for_each_set_bit(i, dirty, ALL_SLOTS) {
		err = file_write_slot(f, i);
		if (err)
			break;
	}
	if (!err)
		err = vfs_fsync(f, 0);
	cx_fput(f);
	return err;
}

/* An epoch that is not found begins anew, but a writer that is not found must not count as none. */
static void slot_lose(enum table t, struct slot *s)
{
	memset(s, 0, sizeof(*s));
	if (t == EPOCHS)
		return;
	s->kind = SLOT_LOST;
	s->sum = slot_sum(s);
}

/*
 * Looks at one of the tables that were read from the file. A table of zeroes was never written to
 * the end, so it counts as new and gets its header. @damaged: set if the record of a slot is.
 */
static int table_check_one(enum table t, bool *damaged)
{
	bool gap = false, full = true;
	unsigned int i = t * SLOTS;
	struct slot header;

	table_header(t, &header);
	if (!memchr_inv(&table[i], 0, sizeof(*table))) {
		table[i] = header;
		__set_bit(i, table_dirty);
	} else if (memcmp(&table[i], &header, sizeof(header))) {
		return -EINVAL;
	}
	for (i++; i < (t + 1) * SLOTS; i++) {
		if (!memchr_inv(&table[i], 0, sizeof(*table))) {
			full = false;
			continue;
		}
		if (table[i].sum != slot_sum(&table[i])) {
			*damaged = true;
			slot_lose(t, &table[i]);
			__set_bit(i, table_dirty);
		}
		gap |= table[i].kind == SLOT_LOST;
	}
	if (t == WRITERS)
		table_gap = gap || full;
	return 0;
}

static int table_check(void)
{
	bool damaged = false;
	int err;

	err = table_check_one(WRITERS, &damaged);
	err = err ?: table_check_one(EPOCHS, &damaged);
	if (err)
		return err;
	if (damaged)
		pr_warn("%s is damaged: clients that hold writes while they come back may be fenced\n",
			writer_file);
	return 0;
}

static int table_read(void)
{
	struct file *f = file_open();
	loff_t pos = 0;
	ssize_t n;

	if (IS_ERR(f))
		return PTR_ERR(f);
	do {
		n = kernel_read(f, (char *)table + pos, ALL_SLOTS * sizeof(*table) - pos,
				&pos);
	} while (n > 0);
	cx_fput(f);
	return n;
}

/**
 * ibnbd_srv_writer_file_load() - read the file, or begin one
 *
 * Process context, before the server listens. Without the parameter this function and the others of
 * this file do nothing.
 *
 * Return: 0 or a negative errno, with the reason in the log.
 */
int ibnbd_srv_writer_file_load(void)
{
	int err;

	if (!*writer_file)
		return 0;
	table = kvcalloc(ALL_SLOTS, sizeof(*table), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	err = *writer_file == '/' ? table_read() : -EINVAL;
	if (!err)
		err = table_check();
	if (!err && !bitmap_empty(table_dirty, ALL_SLOTS))
		err = file_write(table_dirty);
	if (err) {
		pr_err("writer_file=%s: %s (%d); mend it, name another file, or leave it empty and forget at each restart who wrote\n",
		       writer_file,
		       err == -EINVAL ?
			       "not an absolute path to a file that this module has written" :
			       "cannot be used",
		       err);
		ibnbd_srv_writer_file_exit();
		/* for -ENOENT modprobe would report a missing symbol */
		err = err == -ENOENT ? -EIO : err;
	}
	bitmap_zero(table_dirty, ALL_SLOTS);
	return err;
}

void ibnbd_srv_writer_file_exit(void)
{
	kvfree(table);
	table = NULL;
}

/* May a disk that is not in the table have had a writer? */
bool ibnbd_srv_writer_file_forgot(void)
{
	return READ_ONCE(table_gap);
}

static struct slot *table_find(enum table t, const struct ibnbd_identity *id)
{
	unsigned int i;

	lockdep_assert_held(&table_lock);
	for (i = t * SLOTS + 1; i < (t + 1) * SLOTS; i++)
		if (table[i].kind == id->kind && !memcmp(table[i].id, id->id, sizeof(id->id)))
			return &table[i];
	return NULL;
}

/*
 * Choose a slot to reuse when all are taken: one that no other boot will ask for, else the next in
 * turn.
 */
static struct slot *table_evict(enum table t)
{
	unsigned int i;

	for (i = 0; i < SLOTS; i++) {
		table_victim[t] = table_victim[t] % (SLOTS - 1) + 1;
		if (table[t * SLOTS + table_victim[t]].kind == IBNBD_ID_INSTANCE)
			break;
	}
	return &table[t * SLOTS + table_victim[t]];
}

static struct slot *table_place(enum table t, const struct ibnbd_identity *id)
{
	static const struct ibnbd_identity none;	/* kind NONE, as in a free slot */
	struct slot *s = table_find(t, id) ?: table_find(t, &none);

	static_assert(IBNBD_ID_NONE == 0);
	if (s)
		return s;
	if (t == WRITERS)
		WRITE_ONCE(table_gap, true);
	return table_evict(t);
}

static void table_store(enum table t, const struct ibnbd_identity *id, struct slot *new)
{
	struct slot *s;

	new->kind = id->kind;
	memcpy(new->id, id->id, sizeof(new->id));
	new->sum = slot_sum(new);
	guard(mutex)(&table_lock);
	s = table_place(t, id);
	if (!memcmp(s, new, sizeof(*new)))
		return;
	*s = *new;
	__set_bit(s - table, table_dirty);
}

/**
 * ibnbd_srv_writer_file_recall() - what the file says about a disk's writers
 * @id: the disk
 * @gen: its writer generation
 * @writer: session that wrote last; null: one of several
 *
 * Return: false: the file has no entry of the disk.
 */
bool ibnbd_srv_writer_file_recall(const struct ibnbd_identity *id, u64 *gen, uuid_t *writer)
{
	struct slot *s;

	if (!table || id->kind == IBNBD_ID_NONE)
		return false;
	guard(mutex)(&table_lock);
	s = table_find(WRITERS, id);
	if (!s)
		return false;
	*gen = le64_to_cpu(s->gen);
	import_uuid(writer, s->writer);
	return true;
}

/* Store in memory; ibnbd_srv_writer_file_keep() writes it to the file. */
void ibnbd_srv_writer_file_store(const struct ibnbd_identity *id, u64 gen, const uuid_t *writer)
{
	struct slot new = { .gen = cpu_to_le64(gen) };

	if (!table || id->kind == IBNBD_ID_NONE)
		return;
	export_uuid(new.writer, writer);
	table_store(WRITERS, id, &new);
}

/* What the file says about a disk's cache epoch; epoch 0: no entry. */
void ibnbd_srv_writer_file_recall_epoch(const struct ibnbd_identity *id, struct ibnbd_epoch *e)
{
	struct slot *s;

	memset(e, 0, sizeof(*e));
	if (!table || id->kind == IBNBD_ID_NONE)
		return;
	guard(mutex)(&table_lock);
	s = table_find(EPOCHS, id);
	if (!s)
		return;
	e->epoch = le64_to_cpu(s->epoch);
	e->clean = s->clean;
}

/* As ibnbd_srv_writer_file_store(). */
void ibnbd_srv_writer_file_store_epoch(const struct ibnbd_identity *id, const struct ibnbd_epoch *e)
{
	struct slot new = { .clean = e->clean, .epoch = cpu_to_le64(e->epoch) };

	if (!table || id->kind == IBNBD_ID_NONE)
		return;
	table_store(EPOCHS, id, &new);
}

/**
 * ibnbd_srv_writer_file_keep() - write to the file what was stored
 *
 * Sleeps for as long as the file system takes; the caller holds no lock of the exports. If writing
 * fails, the next call tries again. Until then a restart would forget the slots. This is logged,
 * but it is no reason to take disks away from clients.
 *
 * Return: 0: all that was stored before the call is on disk, or no file is used. Else a negative
 * errno.
 */
int ibnbd_srv_writer_file_keep(void)
{
	static DECLARE_BITMAP(writing, ALL_SLOTS);
	int err;

	if (!table)
		return 0;
	guard(mutex)(&file_lock);
	mutex_lock(&table_lock);
	bitmap_copy(writing, table_dirty, ALL_SLOTS);
	bitmap_zero(table_dirty, ALL_SLOTS);
	mutex_unlock(&table_lock);
	if (bitmap_empty(writing, ALL_SLOTS))
		return 0;
	err = file_write(writing);
	if (!err)
		return 0;
	mutex_lock(&table_lock);
	bitmap_or(table_dirty, table_dirty, writing, ALL_SLOTS);
	mutex_unlock(&table_lock);
	pr_err_ratelimited(
		"cannot write %s (%d): after a restart this server would not know who wrote last, and a client could replay old writes\n",
		writer_file, err);
	return err;
}
