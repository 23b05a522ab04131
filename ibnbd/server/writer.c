// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who wrote last to each backing object: the writer generation.
 *
 * It must outlive the export: a client that lost its link holds writes while another opens, writes
 * and closes. Generations therefore live in records of their own until the module is unloaded. The
 * key of a record is the disk's identity, if it has one, because its device number may be reused.
 * For longer than the module, and for disks that can be found again, writer_file.c keeps them.
 *
 * Only an open that may write makes a record: however many names a reader opens, no record is
 * dropped for it. When there are WRITER_RECORDS, the least recently used one is dropped, but none
 * whose object a writer has open; then there are more than WRITER_RECORDS. Dropping one is safe: a
 * new record starts at a new random number, so the client is fenced at worst.
 *
 * Lock: export.c's. Callers: export.c and epoch.c.
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
	/* of a disk without an identity; others may come back under other numbers */
	struct writer_key key;
	struct ibnbd_identity id;
	uuid_t writer;		/* session, or null */
	u64 gen;
	unsigned int opens;	/* of writers, now: it is not forgotten */
	struct ibnbd_epoch cache;	/* epoch.c's */
};

static LIST_HEAD(writer_records);
static unsigned int writer_nr;
static bool writer_forgot;	/* a record was given to another object */

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
 * A new record: as an earlier life of the server left it, or a new one. Of several writers anybody
 * is another.
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
	/* The first writer is nobody's successor, unless we may have known one before. */
	r->gen = (u64)get_random_u32() << 32 | (writer_forgot || ibnbd_srv_writer_file_forgot());
}

/* The longest unused one that no writer has open; NULL: there is none. */
static struct writer_record *writer_victim(void)
{
	struct writer_record *r;

	list_for_each_entry_reverse(r, &writer_records, link)
		if (!r->opens)
			return r;
	return NULL;
}

/* Of an object that had none, for a writer. */
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

/* A reader holds no writes, so what it hears needs no record: 0 where nobody is known to write. */
static u64 writer_gen_for_reader(const struct writer_record *r, const struct ibnbd_identity *id)
{
	uuid_t writer;
	u64 gen;

	if (r)
		return r->gen;
	return ibnbd_srv_writer_file_recall(id, &gen, &writer) ? gen : 0;
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
			r->gen = (r->gen & ~(u64)U32_MAX) | max_t(u32, (u32)r->gen + 1, 1);
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

void ibnbd_srv_writer_left(const struct ibnbd_srv_open *gone, const struct ibnbd_srv_open *last)
{
	struct writer_key key = writer_key_of(gone);
	struct writer_record *r = writer_find(&key, &gone->export->identity);

	if (!r)
		return;
	r->opens--;
	if (last) {
		r->writer = last->session->uuid;
		ibnbd_srv_writer_file_store(&gone->export->identity, r->gen, &r->writer);
	}
	/* More than there should be were made while writers had them open. */
	r = writer_nr > WRITER_RECORDS ? writer_victim() : NULL;
	if (!r)
		return;
	writer_forgot = true;
	writer_nr--;
	list_del(&r->link);
	kfree(r);
}

void ibnbd_srv_writer_exit(void)
{
	struct writer_record *r, *next;

	list_for_each_entry_safe(r, next, &writer_records, link)
		kfree(r);
}
