/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_EXPORT_LIST_H
#define IBNBD_SERVER_EXPORT_LIST_H

#include <linux/mutex.h>
#include "ibnbd/server/export.h"

extern struct mutex ibnbd_srv_export_lock;
extern struct list_head ibnbd_srv_export_list;	/* of exports, under the lock */

int ibnbd_srv_export_trylock(void);

#endif
