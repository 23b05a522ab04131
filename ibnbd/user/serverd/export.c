// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exports: the disks and files that are open, and the openers of each. The rules are those of the
 * kernel's server (ibnbd/server/export.c, and there writer and epoch), on the same pure code: one
 * export for all opens of an object, whatever their names; who may have a place in it; the writer
 * generation; the cache epoch.
 */
#include <fcntl.h>
#include <unistd.h>
#include "ibnbd/user/serverd/serverd.h"

/* ---- places ------------------------------------------------------------------ */

static bool place_still_writes(const struct serverd_export *e)
{
	const struct serverd_open *o;

	for (o = e->opens; o; o = o->of_export)
		if (ibnbd_access_writes(o->access) && o->state == SERVERD_OPEN_CLOSING)
			return true;
	return false;
}

static bool place_has_exclusive(const struct serverd_export *e)
{
	const struct serverd_open *o;

	for (o = e->opens; o; o = o->of_export)
		if (o->access == IBNBD_ACCESS_RW)
			return true;
	return false;
}

bool serverd_export_beside(const struct serverd_open *open)
{
	return open->access == IBNBD_ACCESS_MIGRATION && place_has_exclusive(open->export);
}

static bool place_writer_is_away(struct serverd *d, const struct serverd_export *e)
{
	const struct serverd_open *o;

	for (o = e->opens; o; o = o->of_export)
		if (ibnbd_access_writes(o->access) && !serverd_session_is_here(d, o->session))
			return true;
	return false;
}

static int place_ask(struct serverd *d, const struct serverd_export *e,
		     const struct serverd_open *open, const char **why)
{
	int err;

	if (ibnbd_access_writes(open->access) && place_still_writes(e)) {
		*why = "an earlier mapping of it is not closed: the disk has not ended all its requests";
		return -EBUSY;
	}
	err = ibnbd_access_open(e->writers, !open->beside && place_has_exclusive(e), open->access,
				why);
	if (err == -EPERM && place_writer_is_away(d, e)) {
		*why = "its writer is disconnected, and may still return";
		return -EBUSY;
	}
	return err;
}

/* Of two writers @gone has left: which one counts as the last to write? NULL: no other is left. */
static const struct serverd_open *place_last(struct serverd *d, const struct serverd_export *e,
					     const struct serverd_open *gone)
{
	const struct serverd_open *o, *last = NULL;

	for (o = e->opens; o; o = o->of_export)
		if (ibnbd_access_writes(o->access))
			last = !serverd_session_is_here(d, o->session) &&
			       serverd_session_is_here(d, gone->session) ? gone : o;
	return last;
}

/* ---- claims ------------------------------------------------------------------ */

/* Keep this host from the disk, and find out whether it uses it. */
static int claim_take(struct serverd_export *e, struct serverd_open *o, const char **why)
{
	if (!o->claims)
		return 0;
	if (e->kind != SERVERD_DISK) {
		if (!o->b.used_here || e->writers)
			return 0;
		*why = "a loop device or a program of the server has the file open for writing; see losetup -j, fuser";
		return -EBUSY;
	}
	if (e->claim_fd < 0 && o->b.claim_fd < 0) {
		*why = "it is in use on the server: it, or a part of it, is mounted, swap, below md, LVM or another mapping, or exported already; ibnbd doctor there says which";
		return o->b.claim_fd;
	}
	if (e->claim_fd < 0) {
		e->claim_fd = o->b.claim_fd;
		o->b.claim_fd = -1;
	}
	e->claims++;
	return 0;
}

static void claim_drop(struct serverd_export *e, const struct serverd_open *o)
{
	if (!o->claims || e->kind != SERVERD_DISK || --e->claims)
		return;
	close(e->claim_fd);
	e->claim_fd = -1;
}

/* ---- writers ------------------------------------------------------------------ */

static void writer_id(const struct serverd_export *e, struct ibnbd_identity *id)
{
	*id = e->identity;
	if (id->kind == IBNBD_ID_NONE)
		ibnbd_identity_number(e->kind == SERVERD_DISK ? 0 : e->ino, e->generation, e->dev,
				      id);
}

static void writer_note(struct serverd *d, struct serverd_export *e,
			const struct serverd_open *open)
{
	static const u8 several[16];
	struct ibnbd_identity id;
	u8 writer[16];
	bool known;
	u64 gen;

	writer_id(e, &id);
	known = serverd_record_writer(d, &id, &gen, writer);
	if (!ibnbd_access_writes(open->access)) {
		e->writer_gen = known ? gen : 0;
		return;
	}
	if (!known)
		gen = serverd_record_new_gen(d);
	else if (memcmp(writer, open->session->uuid, sizeof(writer)))
		gen = ibnbd_record_raise(gen);
	serverd_record_set_writer(d, &id, gen, e->writers ? several : open->session->uuid);
	e->writer_gen = gen;
}

/*
 * A writer has left. What the one that stays has kept may be older than what @gone has flushed: the
 * generation is raised, and its client told that there is something to hear. One that takes no
 * events is closed, if it knows what that means: it opens the disk again, and hears of it.
 */
static void writer_left(struct serverd *d, struct serverd_export *e,
			const struct serverd_open *gone)
{
	const struct serverd_open *last = place_last(d, e, gone);
	struct serverd_open *o, *next;
	struct ibnbd_identity id;

	if (!last)
		return;
	writer_id(e, &id);
	e->writer_gen = ibnbd_record_raise(e->writer_gen);
	serverd_record_set_writer(d, &id, e->writer_gen, last->session->uuid);
	for (o = e->opens; o; o = next) {
		next = o->of_export;
		if (ibnbd_access_writes(o->access) &&
		    !serverd_open_tell(d, o, IBNBD_EVENT_RESIZED) &&
		    serverd_session_knows_epochs(o->session))
			serverd_open_lose(d, o, "its client must learn that the other writer has left");
	}
}

/* ---- epochs ------------------------------------------------------------------- */

static void epoch_store(struct serverd *d, const struct serverd_export *e)
{
	serverd_record_set_epoch(d, &e->cache_id, e->boot, &e->cache);
}

/* The clients of all opens have to ask for the new epoch. */
static void epoch_begun(struct serverd *d, struct serverd_export *e)
{
	struct serverd_open *o, *next;

	epoch_store(d, e);
	for (o = e->opens; o; o = next) {
		next = o->of_export;
		if (serverd_session_knows_epochs(o->session))
			serverd_open_lose(d, o,
					  "its client must learn that the disk's cache was lost");
		else
			o->epoch = e->cache.epoch;
	}
}

static bool epoch_is_shared(struct serverd *d, const struct serverd_export *e)
{
	const struct serverd_export *other;

	for (other = d->exports; other; other = other->next)
		if (other != e && e->cache_id.kind != IBNBD_ID_NONE &&
		    other->cache_id.kind == e->cache_id.kind &&
		    !memcmp(other->cache_id.id, e->cache_id.id, sizeof(e->cache_id.id)))
			return true;
	return false;
}

/* @open is about to be granted; it has no place yet. */
static void epoch_note(struct serverd *d, struct serverd_export *e, const struct serverd_open *open)
{
	if (!e->opens) {
		serverd_record_epoch(d, &e->cache_id, e->boot, &e->cache);
		ibnbd_epoch_begin(&e->cache, serverd_random());
		if (epoch_is_shared(d, e))
			ibnbd_epoch_lost(&e->cache, serverd_random());
		e->cache_volatile = e->cache_seen = open->b.has_volatile;
	}
	if (!ibnbd_access_writes(open->access))
		return;
	if (e->cache.clean) {
		e->clean_epoch = e->cache.epoch;
		ibnbd_epoch_writer(&e->cache);
	}
	epoch_store(d, e);
}

void serverd_export_kept(struct serverd *d, struct serverd_export *e, bool kept)
{
	if (kept) {
		e->clean_epoch = 0;
	} else if (e->clean_epoch == e->cache.epoch) {
		ibnbd_epoch_lost(&e->cache, serverd_random());
		epoch_begun(d, e);
	}
}

static void epoch_lost(struct serverd *d, struct serverd_export *e, const char *name,
		       const char *why)
{
	ibnbd_epoch_lost(&e->cache, serverd_random());
	serverd_log("%s: %s: cache epoch %016llx begins", name, why,
		    (unsigned long long)e->cache.epoch);
	epoch_begun(d, e);
}

static const char *export_name(const struct serverd_export *e)
{
	return e->opens ? e->opens->name : "an export";
}

/* The disk may have dropped what was written through other exports of it, too. */
static void epoch_doubt_neighbours(struct serverd *d, struct serverd_export *e)
{
	struct serverd_export *other;

	for (other = d->exports; other; other = other->next)
		if (other != e && e->kind == SERVERD_DISK && other->kind == e->kind &&
		    other->disk_dev == e->disk_dev && other->cache_volatile && other->opens)
			epoch_lost(d, other, export_name(other),
				   "a flush of its disk has failed");
}

void serverd_export_doubt(struct serverd *d, struct serverd_export *e)
{
	if (e->cache_volatile)
		epoch_lost(d, e, export_name(e), "a flush has failed");
	epoch_doubt_neighbours(d, e);
}

/* ---- NBD ------------------------------------------------------------------------- */

static bool nbd_is_of(const struct serverd_nbd *n, const struct serverd_export *e)
{
	const struct serverd_open *o = e->opens;

	while (o && o->b.nbd != n)
		o = o->of_export;
	return o;
}

void serverd_export_cut(struct serverd *d, const struct serverd_nbd *n)
{
	struct serverd_export *e = d->exports;
	struct serverd_open *o, *next;

	while (e && !nbd_is_of(n, e))
		e = e->next;
	if (!e)
		return;
	epoch_lost(d, e, export_name(e), SERVERD_CUT);
	for (o = e->opens; o; o = next) {
		next = o->of_export;
		serverd_open_lose(d, o, SERVERD_CUT);
	}
}

/* Several connections to one NBD server show the same data only if it says so. */
static int nbd_take(struct serverd *d, const struct serverd_export *e, struct serverd_open *open,
		    const char **why)
{
	if (!open->b.nbd)
		return 0;
	if (e->opens && !serverd_nbd_can(open->b.nbd, SERVERD_NBD_MULTI)) {
		*why = "its NBD server can have one client only (no MULTI_CONN), and it is open here already";
		return -EBUSY;
	}
	return serverd_nbd_watch(d, open->b.nbd);
}

/* ---- attach and detach ---------------------------------------------------------- */

static struct serverd_export *export_find(struct serverd *d, const struct serverd_backing *b)
{
	struct serverd_export *e;

	for (e = d->exports; e; e = e->next)
		if (e->kind == b->kind && e->dev == b->dev && e->ino == b->ino)
			break;
	return e;
}

bool serverd_export_claimed(struct serverd *d, const struct serverd_backing *b)
{
	const struct serverd_export *e = export_find(d, b);

	return e && e->claim_fd >= 0;
}

static struct serverd_export *export_new(struct serverd *d, const struct serverd_backing *b)
{
	struct serverd_export *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->kind = b->kind;
	e->dev = b->dev;
	e->ino = b->ino;
	e->generation = b->generation;
	e->disk_dev = b->disk_dev;
	e->claim_fd = -1;
	e->identity = b->id;
	e->cache_id = b->cache_id;
	e->boot = b->boot;
	e->nsectors = serverd_backing_nsectors(b);
	e->waiting_end = &e->waiting;
	e->next = d->exports;
	d->exports = e;
	return e;
}

static void export_drop_unused(struct serverd *d, struct serverd_export *e)
{
	struct serverd_export **at = &d->exports;

	if (e->opens)
		return;
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	free(e);
}

/*
 * Give @open, whose object is open, a place. One that writes may be answered only after the records
 * are kept.
 */
int serverd_export_attach(struct serverd *d, struct serverd_open *open, const char **why)
{
	struct serverd_export *e = export_find(d, &open->b);
	struct serverd_open **end;
	int err;

	e = e ?: export_new(d, &open->b);
	if (!e)
		return -ENOMEM;
	err = place_ask(d, e, open, why);
	err = err ?: claim_take(e, open, why);
	err = err ?: nbd_take(d, e, open, why);
	if (err) {
		export_drop_unused(d, e);
		return err;
	}
	writer_note(d, e, open);
	epoch_note(d, e, open);
	open->export = e;
	open->copies = d->conf->copy == SERVERD_COPY_ALWAYS ||
		       (d->conf->copy == SERVERD_COPY_AUTO &&
			(e->kind == SERVERD_FILE || open->b.stable));
	if (ibnbd_access_writes(open->access))
		e->writers++;
	for (end = &e->opens; *end; end = &(*end)->of_export)
		;
	open->of_export = NULL;
	*end = open;
	return 0;
}

bool serverd_export_last_writer(const struct serverd_open *open)
{
	return ibnbd_access_writes(open->access) && open->export->writers == 1;
}

void serverd_export_detach(struct serverd *d, struct serverd_open *open)
{
	struct serverd_export *e = open->export;
	struct serverd_open **at = &e->opens;
	u64 old = e->cache.epoch;

	if (serverd_export_last_writer(open)) {
		ibnbd_epoch_end(&e->cache, open->flushed, serverd_random());
		if (!open->flushed)
			serverd_log("%s: the flush after its last writer failed: a new cache epoch begins",
				    open->name);
		if (!open->flushed)
			epoch_doubt_neighbours(d, e);
		if (e->cache.epoch != old)
			epoch_begun(d, e);
		else
			epoch_store(d, e);
	}
	while (*at != open)
		at = &(*at)->of_export;
	*at = open->of_export;
	claim_drop(e, open);
	if (open->b.nbd)
		serverd_nbd_unwatch(d, open->b.nbd);
	if (ibnbd_access_writes(open->access)) {
		e->writers--;
		writer_left(d, e, open);
	}
	open->export = NULL;
	export_drop_unused(d, e);
}

/* ---- what clients are told --------------------------------------------------------- */

void serverd_export_describe(struct serverd *d, struct serverd_open *open,
			     struct ibnbd_open_rsp *rsp)
{
	struct serverd_export *e = open->export;
	struct ibnbd_facts *f = &open->facts;

	serverd_backing_describe(&open->b, e->no_punch, open->copies, rsp);
	if (!(open->session->features & IBNBD_FEAT_ZEROES) && !d->conf->zeroes_for_all)
		rsp->max_write_zeroes_sectors = 0;
	memcpy(rsp->identity.id, e->identity.id, sizeof(rsp->identity.id));
	rsp->identity.kind = e->identity.kind;
	rsp->identity.writer_gen = e->writer_gen;
	if (!open->epoch)
		open->epoch = e->cache.epoch;
	rsp->durability.cache_epoch = e->cache.epoch;
	rsp->durability.flags = e->cache_volatile ? IBNBD_DUR_F_VOLATILE : 0;
	if (!rsp->writeback)
		e->cache_seen = false;
	if (rsp->nsectors)
		e->nsectors = rsp->nsectors;
	f->nsectors = rsp->nsectors;
	f->logical_block_size = rsp->logical_block_size;
	f->max_discard_sectors = rsp->max_discard_sectors;
	f->max_write_zeroes_sectors = rsp->max_write_zeroes_sectors;
	f->secure_erase = rsp->secure_discard;
}

static void export_look_size(struct serverd *d, struct serverd_export *e)
{
	u64 nsectors = serverd_backing_nsectors(&e->opens->b);
	struct serverd_open *o;

	if (!nsectors || nsectors == e->nsectors)
		return;
	serverd_log("%s: size changed from %llu to %llu sectors", export_name(e),
		    (unsigned long long)e->nsectors, (unsigned long long)nsectors);
	e->nsectors = nsectors;
	for (o = e->opens; o; o = o->of_export) {
		o->facts.nsectors = nsectors;
		serverd_open_tell(d, o, IBNBD_EVENT_RESIZED);
	}
}

/* Was the disk's write cache switched on? Its clients may not have tracked what is unflushed. */
static void export_look_cache(struct serverd *d, struct serverd_export *e)
{
	bool seen = e->cache_seen;

	e->cache_seen = serverd_backing_volatile(&e->opens->b);
	if (seen || !e->cache_seen)
		return;
	e->cache_volatile = true;
	if (e->nsectors)
		epoch_lost(d, e, export_name(e), "its write cache was switched on");
}

void serverd_exports_look(struct serverd *d)
{
	struct serverd_export *e;

	for (e = d->exports; e; e = e->next) {
		if (!e->opens)
			continue;
		export_look_size(d, e);
		if (e->kind == SERVERD_DISK)
			export_look_cache(d, e);
	}
}
