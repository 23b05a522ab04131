// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who may have a place in an export: protocol 10.4, and what the server knows besides about the
 * opens that have one.
 *
 * Called by: export.c, under its lock.
 */
#include "ibnbd/server/client.h"
#include "ibnbd/server/place.h"
#include "ibnbd/server/session.h"

/*
 * Are writes of a mapping that was closed, or lost with its client, still under way to the disk?
 * They could overwrite those of a new mapping.
 */
static bool place_still_writes(const struct ibnbd_srv_export *e)
{
	const struct ibnbd_srv_open *other;

	list_for_each_entry(other, &e->opens, link)
		if (ibnbd_access_writes(other->access) &&
		    READ_ONCE(other->state) == IBNBD_SRV_OPEN_CLOSING)
			return true;
	return false;
}

/*
 * Does an open write to it whose client has not agreed to a second writer? The policy may still let
 * another open migrate beside it.
 */
static bool place_has_exclusive(const struct ibnbd_srv_export *e)
{
	const struct ibnbd_srv_open *other;

	list_for_each_entry(other, &e->opens, link)
		if (other->access == IBNBD_ACCESS_RW)
			return true;
	return false;
}

bool ibnbd_srv_place_is_beside(const struct ibnbd_srv_open *open)
{
	return open->access == IBNBD_ACCESS_MIGRATION && place_has_exclusive(open->export);
}

/* Does an open write to it whose client is not connected, and may come back? */
static bool place_writer_is_away(const struct ibnbd_srv_export *e)
{
	const struct ibnbd_srv_open *other;

	list_for_each_entry(other, &e->opens, link)
		if (ibnbd_access_writes(other->access) &&
		    !ibnbd_srv_client_connected(other->session))
			return true;
	return false;
}

int ibnbd_srv_place_ask(const struct ibnbd_srv_export *e, const struct ibnbd_srv_open *open,
			const char **why)
{
	int err;

	if (ibnbd_access_writes(open->access) && place_still_writes(e)) {
		*why = "an earlier mapping of it is not closed: the disk has not ended all its requests";
		return -EBUSY;
	}
	err = ibnbd_access_open(e->writers, !open->beside && place_has_exclusive(e), open->access,
				why);
	if (err == -EPERM && place_writer_is_away(e)) {
		*why = "its writer is not connected, and has not been given up yet";
		return -EBUSY;
	}
	return err;
}

/*
 * Of two writers @gone leaves: which one counts as the last to write? If the other one is not
 * connected and @gone is, @gone wrote last. In all other cases the other one may have written last,
 * or may still write.
 */
static const struct ibnbd_srv_open *place_last_of(const struct ibnbd_srv_open *gone,
						   const struct ibnbd_srv_open *stays)
{
	bool away = !ibnbd_srv_client_connected(stays->session);

	return away && ibnbd_srv_client_connected(gone->session) ? gone : stays;
}

const struct ibnbd_srv_open *ibnbd_srv_place_last(const struct ibnbd_srv_export *e,
						  const struct ibnbd_srv_open *gone)
{
	const struct ibnbd_srv_open *other, *last = NULL;

	list_for_each_entry(other, &e->opens, link)
		if (ibnbd_access_writes(other->access))
			last = place_last_of(gone, other);
	return last;
}
