// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who wrote last to each backing object: the writer generation.
 *
 * The generation must outlive the export: while a client that lost its link holds writes, another
 * client may open the disk, write and close it. So generations are kept in records of their own
 * until the module is unloaded. The key of a record is the disk's identity, if it has one, because
 * its device number may be reused. writer_file.c keeps the generations of disks with an identity
 * beyond that.
 *
 * Only an open that may write makes a record, so a reader that opens many names pushes out no
 * record. When there are WRITER_RECORDS records, a new one replaces the least recently used one
 * whose object no writer has open. If writers have all the objects open, there will be more than
 * WRITER_RECORDS. Dropping a record is safe: the next record of its object starts at a new random
 * number, so at worst the client is fenced.
 *
 * Lock: the export lock. Callers: export.c and epoch.c.
 */
#include <linux/list.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/uuid.h>
#include "ibnbd/server/session.h"
#include "ibnbd/server/writer.h"
#include "ibnbd/server/writer_file.h"

#define WRITER_RECORDS	4096

struct writer_key {
	dev_t dev;
	u64 ino;		/* 0: the block device itself */
	u32 generation;
};

struct writer_record {
	struct list_head link;	/* most recently used first */
	/* compared only for a disk without an identity: others may come back under other numbers */
	struct writer_key key;
	struct ibnbd_identity id;
	uuid_t writer;		/* session that wrote last, or null */
	u64 gen;
	unsigned int opens;	/* writers that have it open; dropped only at 0 */
	struct ibnbd_epoch cache;	/* epoch.c's */
};

static LIST_HEAD(writer_records);
static unsigned int writer_nr;
static bool writer_forgot;	/* a record was dropped, or given to another object */

static struct writer_key writer_key_of(const struct ibnbd_srv_open *open)
{
	struct writer_key key = {};
	struct inode *inode;

	if (open->bdev) {
		key.dev = open->bdev->bd_dev;
		return key;
	}
	inode = file_inode(open->file);
	key.dev = inode->i_sb->s_dev;
	key.ino = inode->i_ino;
	key.generation = inode->i_generation;
	return key;
}

static bool writer_is_of(const struct writer_record *r, const struct writer_key *key,
			 const struct ibnbd_identity *id)
{
	if (id->kind != r->id.kind)
		return false;
	if (id->kind != IBNBD_ID_NONE)
		return !memcmp(id->id, r->id.id, sizeof(id->id));
	return r->key.dev == key->dev && r->key.ino == key->ino &&
	       r->key.generation == key->generation;
}

static struct writer_record *writer_find(const struct writer_key *key,
					 const struct ibnbd_identity *id)
{
	struct writer_record *r;

	list_for_each_entry(r, &writer_records, link)
		if (writer_is_of(r, key, id))
			return r;
	return NULL;
}

/*
 * Fill a new record: from the file, if it has an entry, else with a new generation. A null writer
 * in the file stands for several writers: a random uuid then makes every session count as another
 * writer.
 */
static void writer_begin(struct writer_record *r, const struct ibnbd_identity *id,
			 const struct ibnbd_identity *cache_id)
{
	ibnbd_srv_writer_file_recall_epoch(cache_id, &r->cache);
	if (ibnbd_srv_writer_file_recall(id, &r->gen, &r->writer)) {
		if (uuid_is_null(&r->writer))
			uuid_gen(&r->writer);
		return;
	}
	r->writer = uuid_null;
	/*
	 * The low half counts the earlier writers: 0, or 1 if there may have been one whose record
	 * is lost. The file has no records of disks without an identity.
	 */
	r->gen = (u64)get_random_u32() << 32 |
		 (writer_forgot ||
		  (id->kind != IBNBD_ID_NONE && ibnbd_srv_writer_file_forgot()));
}

/* The least recently used record whose object no writer has open; NULL: there is none. */
static struct writer_record *writer_victim(void)
{
	struct writer_record *r;

	list_for_each_entry_reverse(r, &writer_records, link)
		if (!r->opens)
			return r;
	return NULL;
}

/* Make a record for a writer's object that has none. NULL without memory. */
static struct writer_record *writer_make(const struct writer_key *key,
					 const struct ibnbd_identity *id,
					 const struct ibnbd_identity *cache_id)
{
	struct writer_record *r = writer_nr < WRITER_RECORDS ? NULL : writer_victim();

	if (r) {
		writer_forgot = true;
	} else {
		r = kzalloc(sizeof(*r), GFP_KERNEL);
		if (!r)
			return NULL;
		writer_nr++;
		list_add(&r->link, &writer_records);
	}
	r->key = *key;
	r->id = *id;
	writer_begin(r, id, cache_id);
	return r;
}

/*
 * What a reader is told. It holds no writes, so no record is made for it: 0 if no writer is known.
 */
static u64 writer_gen_for_reader(const struct writer_record *r, const struct ibnbd_identity *id)
{
	uuid_t writer;
	u64 gen;

	if (r)
		return r->gen;
	return ibnbd_srv_writer_file_recall(id, &gen, &writer) ? gen : 0;
}

/* Somebody else has written. The low half never returns to 0. */
static void writer_raise(struct writer_record *r)
{
	r->gen = (r->gen & ~(u64)U32_MAX) | max_t(u32, (u32)r->gen + 1, 1);
}

int ibnbd_srv_writer_note(const struct ibnbd_srv_open *open, const struct ibnbd_srv_export *e,
			  u64 *gen)
{
	struct writer_key key = writer_key_of(open);
	struct writer_record *r = writer_find(&key, &e->identity);

	if (!ibnbd_access_writes(open->access)) {
		*gen = writer_gen_for_reader(r, &e->identity);
		return 0;
	}
	r = r ?: writer_make(&key, &e->identity, &e->cache_id);
	if (!r)
		return -ENOMEM;
	list_move(&r->link, &writer_records);
	r->opens++;
	if (!uuid_equal(&r->writer, &open->session->uuid)) {
		if (!uuid_is_null(&r->writer))
			writer_raise(r);
		r->writer = open->session->uuid;
	}
	ibnbd_srv_writer_file_store(&e->identity, r->gen, e->writers ? &uuid_null : &r->writer);
	*gen = r->gen;
	return 0;
}

struct ibnbd_epoch *ibnbd_srv_writer_cache(const struct ibnbd_srv_open *open,
					   const struct ibnbd_srv_export *e)
{
	struct writer_key key = writer_key_of(open);
	struct writer_record *r = writer_find(&key, &e->identity);

	return r ? &r->cache : NULL;
}

/* While writers had all objects open, more than WRITER_RECORDS may have been made: drop one. */
static void writer_trim(void)
{
	struct writer_record *r = writer_nr > WRITER_RECORDS ? writer_victim() : NULL;

	if (!r)
		return;
	writer_forgot = true;
	writer_nr--;
	list_del(&r->link);
	kfree(r);
}

u64 ibnbd_srv_writer_left(const struct ibnbd_srv_open *gone, const struct ibnbd_srv_open *last)
{
	struct writer_key key = writer_key_of(gone);
	struct writer_record *r = writer_find(&key, &gone->export->identity);
	u64 gen;

	if (!r)
		return gone->export->writer_gen;
	r->opens--;
	if (last) {
		writer_raise(r);
		r->writer = last->session->uuid;
		ibnbd_srv_writer_file_store(&gone->export->identity, r->gen, &r->writer);
	}
	gen = r->gen;
	writer_trim();
	return gen;
}

void ibnbd_srv_writer_exit(void)
{
	struct writer_record *r, *next;

	list_for_each_entry_safe(r, next, &writer_records, link)
		kfree(r);
}
