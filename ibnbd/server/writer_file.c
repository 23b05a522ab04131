// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file writer_file: who wrote last to each disk, for the next life of this module.
 *
 * A client may hold writes for as long as its administrator allows, over restarts of the server
 * too. Had another one written meanwhile, and the server forgotten it, those writes would be
 * replayed over newer data. So each change of a writer is on disk before its OPEN is answered. Only
 * disks with an identity can be found again; the rest is known by their numbers, which are others
 * after a restart.
 *
 * The file is a table: SLOTS of 64 bytes, the first says what the file is. It is read once and
 * written slot by slot, in place; it is closed between, so that its file system can be unmounted. A
 * slot that does not fit its checksum, and one that had to make place for another disk, leave a
 * gap: from then on a disk that is not in the table may have had a writer (writer.c draws the safe
 * conclusion).
 *
 * Locks: file_lock orders writers of the file, and is waited for, so that who comes back from
 * keep() knows its slot on disk; table_lock is short, inside it, and inside export.c's.
 */
#include <linux/bitmap.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include "ibnbd/server/writer_file.h"

#define SLOTS		4096
#define HEADER		"ibnbd-server: who wrote last, 1\n"

struct slot {
	__le64 sum;		/* of what follows; a slot of zeroes is free */
	u8 kind;
	u8 reserved[7];
	u8 id[IBNBD_ID_LEN];
	__le64 gen;
	u8 writer[UUID_SIZE];
	u8 reserved2[8];
};

static char *writer_file = "";
module_param(writer_file, charp, 0444);
MODULE_PARM_DESC(writer_file,
		 "file that keeps who wrote last to each disk, so that a restart does not forget it; an absolute path; empty: forget");

static DEFINE_MUTEX(file_lock);
static DEFINE_MUTEX(table_lock);
static struct slot *table;			/* NULL: no file is used */
static DECLARE_BITMAP(table_dirty, SLOTS);
static bool table_gap;
static unsigned int table_victim;		/* next slot to make place when all are taken */

/* Finds what was torn or changed, not what was forged: the file is root's. */
static __le64 slot_sum(const struct slot *s)
{
	static const siphash_key_t key = { { 0x69626e62642d7772ULL, 1 } };

	return cpu_to_le64(siphash(&s->kind, sizeof(*s) - offsetof(struct slot, kind), &key));
}

static void table_header(struct slot *s)
{
	static_assert(sizeof(HEADER) <= sizeof(*s));
	memset(s, 0, sizeof(*s));
	memcpy(s, HEADER, sizeof(HEADER) - 1);
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

/* The dirty slots, all or none of them clean afterwards. */
static int file_write(const unsigned long *dirty)
{
	struct file *f = file_open();
	unsigned int i;
	int err = 0;

	if (IS_ERR(f))
		return PTR_ERR(f);
	for_each_set_bit(i, dirty, SLOTS) {
		err = file_write_slot(f, i);
		if (err)
			break;
	}
	if (!err)
		err = vfs_fsync(f, 0);
	cx_fput(f);
	return err;
}

/* What the file says. One of zeroes, or a short one, is new: it was never written to the end. */
static int table_check(void)
{
	struct slot header;
	unsigned int i;

	table_header(&header);
	if (!memchr_inv(table, 0, sizeof(*table))) {
		table[0] = header;
		__set_bit(0, table_dirty);
	} else if (memcmp(table, &header, sizeof(header))) {
		return -EINVAL;
	}
	for (i = 1; i < SLOTS; i++) {
		if (!memchr_inv(&table[i], 0, sizeof(*table)) ||
		    table[i].sum == slot_sum(&table[i]))
			continue;
		table_gap = true;
		memset(&table[i], 0, sizeof(*table));
		__set_bit(i, table_dirty);
	}
	if (table_gap)
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
		n = kernel_read(f, (char *)table + pos, SLOTS * sizeof(*table) - pos, &pos);
	} while (n > 0);
	cx_fput(f);
	return n;
}

/**
 * ibnbd_srv_writer_file_load() - read the file, or begin one
 *
 * Process context, before the server listens. Without the parameter it does nothing, and so do the
 * others.
 *
 * Return: 0 or a negative errno, with the reason in the log.
 */
int ibnbd_srv_writer_file_load(void)
{
	int err;

	if (!*writer_file)
		return 0;
	table = kvcalloc(SLOTS, sizeof(*table), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	err = *writer_file == '/' ? table_read() : -EINVAL;
	if (!err)
		err = table_check();
	if (!err && !bitmap_empty(table_dirty, SLOTS))
		err = file_write(table_dirty);
	if (err) {
		pr_err("writer_file=%s: %s (%d); mend it, name another file, or leave it empty and forget at each restart who wrote\n",
		       writer_file,
		       err == -EINVAL ?
			       "not an absolute path to a file that this module has written" :
			       "cannot be used",
		       err);
		ibnbd_srv_writer_file_exit();
		/* modprobe would speak of a missing symbol */
		err = err == -ENOENT ? -EIO : err;
	}
	bitmap_zero(table_dirty, SLOTS);
	return err;
}

void ibnbd_srv_writer_file_exit(void)
{
	kvfree(table);
	table = NULL;
}

/* May there have been a writer to a disk that the table does not know? */
bool ibnbd_srv_writer_file_forgot(void)
{
	return READ_ONCE(table_gap);
}

static struct slot *table_find(const struct ibnbd_identity *id)
{
	unsigned int i;

	lockdep_assert_held(&table_lock);
	for (i = 1; i < SLOTS; i++)
		if (table[i].kind == id->kind && !memcmp(table[i].id, id->id, sizeof(id->id)))
			return &table[i];
	return NULL;
}

static struct slot *table_place(const struct ibnbd_identity *id)
{
	static const struct ibnbd_identity none;	/* as is the kind of a free slot */
	struct slot *s = table_find(id) ?: table_find(&none);

	static_assert(IBNBD_ID_NONE == 0);
	if (s)
		return s;
	WRITE_ONCE(table_gap, true);
	table_victim = table_victim % (SLOTS - 1) + 1;
	return &table[table_victim];
}

/**
 * ibnbd_srv_writer_file_recall() - what an earlier life knew
 * @id: the disk
 * @gen: its writer generation
 * @writer: session that wrote last; null: one of several
 *
 * Return: false: nothing.
 */
bool ibnbd_srv_writer_file_recall(const struct ibnbd_identity *id, u64 *gen, uuid_t *writer)
{
	struct slot *s;

	if (!table || id->kind == IBNBD_ID_NONE)
		return false;
	guard(mutex)(&table_lock);
	s = table_find(id);
	if (!s)
		return false;
	*gen = le64_to_cpu(s->gen);
	import_uuid(writer, s->writer);
	return true;
}

/* Remember, in memory; ibnbd_srv_writer_file_keep() does the rest. */
void ibnbd_srv_writer_file_store(const struct ibnbd_identity *id, u64 gen, const uuid_t *writer)
{
	struct slot new = { .kind = id->kind, .gen = cpu_to_le64(gen) };
	struct slot *s;

	if (!table || id->kind == IBNBD_ID_NONE)
		return;
	memcpy(new.id, id->id, sizeof(new.id));
	export_uuid(new.writer, writer);
	new.sum = slot_sum(&new);
	guard(mutex)(&table_lock);
	s = table_place(id);
	if (!memcmp(s, &new, sizeof(new)))
		return;
	*s = new;
	__set_bit(s - table, table_dirty);
}

/**
 * ibnbd_srv_writer_file_keep() - have on disk what was stored
 *
 * Sleeps for as long as the file system does; no lock of the exports is held. One that fails is
 * tried again with the next: until then a restart would forget, which is said, and is no reason to
 * take disks away from clients.
 */
void ibnbd_srv_writer_file_keep(void)
{
	static DECLARE_BITMAP(writing, SLOTS);
	int err;

	if (!table)
		return;
	guard(mutex)(&file_lock);
	mutex_lock(&table_lock);
	bitmap_copy(writing, table_dirty, SLOTS);
	bitmap_zero(table_dirty, SLOTS);
	mutex_unlock(&table_lock);
	if (bitmap_empty(writing, SLOTS))
		return;
	err = file_write(writing);
	if (!err)
		return;
	mutex_lock(&table_lock);
	bitmap_or(table_dirty, table_dirty, writing, SLOTS);
	mutex_unlock(&table_lock);
	pr_err_ratelimited(
		"cannot write %s (%d): after a restart this server would not know who wrote last, and a client could replay old writes\n",
		writer_file, err);
}
