/* SPDX-License-Identifier: GPL-2.0-only */
/* Who may have a place in an export, and who was the last to write. Under the export lock. */
#ifndef IBNBD_SERVER_PLACE_H
#define IBNBD_SERVER_PLACE_H

#include "ibnbd/server/export.h"

/*
 * May @open, which has none yet, have a place in @e (protocol 10.4)? 0; -EPERM: somebody else
 * writes; -EBUSY: the client has to wait: a writer is not connected, but may come back, or the
 * requests of an earlier mapping have not ended.
 */
int ibnbd_srv_place_ask(const struct ibnbd_srv_export *e, const struct ibnbd_srv_open *open,
			const char **why);
/* Does @open migrate beside an open of mode rw, whose client has not agreed to a second writer? */
bool ibnbd_srv_place_is_beside(const struct ibnbd_srv_open *open);
/*
 * The writer @gone has left: which one of @gone and the other writers counts as the last to write?
 * NULL: no other writer is left.
 */
const struct ibnbd_srv_open *ibnbd_srv_place_last(const struct ibnbd_srv_export *e,
						  const struct ibnbd_srv_open *gone);

#endif
