// SPDX-License-Identifier: GPL-2.0-only
/*
 * The writer generation of each backing object tells which client wrote last.
 *
 * The generation must outlive the export: while a client that lost its link holds writes, another
 * client may open the disk, write and close it. So generations are kept in records of their own.
 * writer_file.c keeps them beyond the life of the module. The key of a record is the disk's
 * identity, because its device number may be reused. A disk without an identity is found by its
 * number all the same: generations begin at random, so the record of another disk at worst fences
 * a client.
 *
 * The server vouches only for what it remembers (law L30): a record begins at a generation that
 * tells every client that had the disk open before that another client may have written since. With
 * writer_file=none it begins at one that promises nothing and fences no client.
 *
 * Only an open that may write makes a record, so a reader that opens many names pushes out no
 * record. Beyond WRITER_RECORDS, a new one replaces the one that no writer has had open for the
 * longest time, if there is such a one.
 *
 * Lock: the export lock. Callers: export.c, epoch.c and main.c.
 */
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/list.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/uuid.h>
#include "ibnbd/logic/record.h"
#include "ibnbd/server/session.h"
#include "ibnbd/server/writer.h"

#define WRITER_RECORDS	4096

struct writer_record {
	struct hlist_node hash;
	struct list_head idle;	/* in writer_idle while no writer has the object open */
	struct ibnbd_identity id;
	uuid_t writer;		/* session that wrote last, or null */
	u64 gen;
	unsigned int opens;	/* writers that have it open */
	struct ibnbd_epoch cache;
};

static DEFINE_HASHTABLE(writer_records, 11);
static LIST_HEAD(writer_idle);	/* the one that was left last is last */
static unsigned int writer_nr;
static bool writer_forgot;	/* a record was dropped */

static u32 writer_hash(const struct ibnbd_identity *id)
{
	return jhash(id->id, sizeof(id->id), id->kind);
}

static struct writer_record *writer_find(const struct ibnbd_identity *id)
{
	struct writer_record *r;

	hash_for_each_possible(writer_records, r, hash, writer_hash(id))
		if (r->id.kind == id->kind && !memcmp(r->id.id, id->id, sizeof(id->id)))
			return r;
	return NULL;
}

static u64 writer_new_gen(void)
{
	return ibnbd_record_first(get_random_u32(), get_random_u32(),
				  ibnbd_srv_writer_file_is_none(), writer_forgot);
}

static void writer_drop(struct writer_record *r)
{
	writer_nr--;
	hash_del(&r->hash);
	list_del(&r->idle);
	kfree(r);
}

/*
 * Drop one record if there are too many, and one that no writer has open. While writers have all
 * objects open there may be more.
 */
static void writer_trim(void)
{
	struct writer_record *r;

	r = list_first_entry_or_null(&writer_idle, struct writer_record, idle);
	if (!r || writer_nr <= WRITER_RECORDS)
		return;
	writer_forgot = true;
	writer_drop(r);
}

/*
 * Make a record for a writer's object that has none: from the file, if it has an entry, else with a
 * new generation. A null writer in the file stands for several writers: a random uuid then makes
 * every session count as another writer. NULL without memory.
 */
static struct writer_record *writer_make(const struct ibnbd_srv_export *e)
{
	struct writer_record *r = kzalloc(sizeof(*r), GFP_KERNEL);

	if (!r)
		return NULL;
	INIT_LIST_HEAD(&r->idle);
	r->id = e->writer_id;
	hash_add(writer_records, &r->hash, writer_hash(&r->id));
	writer_nr++;
	writer_trim();
	ibnbd_srv_writer_file_recall_epoch(&e->cache_id, &r->cache);
	if (!ibnbd_srv_writer_file_recall(&r->id, &r->gen, &r->writer))
		r->gen = writer_new_gen();
	else if (uuid_is_null(&r->writer))
		uuid_gen(&r->writer);
	return r;
}

int ibnbd_srv_writer_note(const struct ibnbd_srv_open *open, struct ibnbd_srv_export *e)
{
	struct writer_record *r = writer_find(&e->writer_id);
	uuid_t writer;

	if (!ibnbd_access_writes(open->access)) {
		/* A reader holds no writes, so it gets no record: 0 = no known writer. */
		e->writer_gen = r ? r->gen : 0;
		if (!r)
			ibnbd_srv_writer_file_recall(&e->writer_id, &e->writer_gen, &writer);
		return 0;
	}
	r = r ?: writer_make(e);
	if (!r)
		return -ENOMEM;
	list_del_init(&r->idle);
	r->opens++;
	if (!uuid_equal(&r->writer, &open->session->uuid)) {
		if (!uuid_is_null(&r->writer))
			r->gen = ibnbd_record_raise(r->gen);
		r->writer = open->session->uuid;
	}
	ibnbd_srv_writer_file_store(&r->id, r->gen, e->writers ? &uuid_null : &r->writer);
	e->writer_gen = r->gen;
	return 0;
}

void ibnbd_srv_writer_recall_epoch(struct ibnbd_srv_export *e)
{
	const struct writer_record *r = writer_find(&e->writer_id);

	if (r)
		e->cache = r->cache;
	else
		ibnbd_srv_writer_file_recall_epoch(&e->cache_id, &e->cache);
}

void ibnbd_srv_writer_store_epoch(const struct ibnbd_srv_export *e)
{
	struct writer_record *r = writer_find(&e->writer_id);

	if (r)
		r->cache = e->cache;
	ibnbd_srv_writer_file_store_epoch(&e->cache_id, &e->cache);
}

void ibnbd_srv_writer_left(struct ibnbd_srv_export *e, const struct ibnbd_srv_open *last)
{
	struct writer_record *r = writer_find(&e->writer_id);

	if (!r)
		return;
	if (!--r->opens)
		list_add_tail(&r->idle, &writer_idle);
	if (last) {
		r->gen = ibnbd_record_raise(r->gen);
		r->writer = last->session->uuid;
		ibnbd_srv_writer_file_store(&r->id, r->gen, &r->writer);
	}
	e->writer_gen = r->gen;
	writer_trim();
}

void ibnbd_srv_writer_forget(void)
{
	struct writer_record *r, *next;
	int i;

	guard(mutex)(&ibnbd_srv_export_lock);
	if (ibnbd_srv_writer_file_is_none())
		return;
	list_for_each_entry_safe(r, next, &writer_idle, idle)
		writer_drop(r);
	/* A disk that hangs: its last open is still being released. */
	hash_for_each(writer_records, i, r, hash) {
		r->gen = writer_new_gen();
		r->writer = uuid_null;
	}
}

void ibnbd_srv_writer_exit(void)
{
	struct writer_record *r;
	struct hlist_node *next;
	int i;

	hash_for_each_safe(writer_records, i, next, r, hash)
		kfree(r);
}
