/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_OPEN_H
#define IBNBD_SERVER_OPEN_H

#include <linux/mutex.h>
#include "ibnbd/server/export.h"

extern struct mutex ibnbd_srv_export_lock;
extern struct list_head ibnbd_srv_export_list;	/* of exports, under the lock */

int ibnbd_srv_export_trylock(void);

struct ibnbd_srv_open *ibnbd_srv_open_new(struct ibnbd_srv_session *s, const char *name,
					  enum ibnbd_access access, work_func_t release);
bool ibnbd_srv_open_kill(struct ibnbd_srv_open *open);
void ibnbd_srv_open_lose(struct ibnbd_srv_open *open, const char *why);
void ibnbd_srv_open_tell(const struct ibnbd_srv_open *open, u32 kind);
bool ibnbd_srv_open_connected(const struct ibnbd_srv_open *open);
void ibnbd_srv_open_unclaimed(struct ibnbd_srv_open *open);

#endif
