/* SPDX-License-Identifier: GPL-2.0-only */
/* The end of a mapped device. */
#ifndef IBNBD_CLIENT_REMOVE_H
#define IBNBD_CLIENT_REMOVE_H

struct work_struct;

/*
 * The work of dev->remove_work: drains, sends CLOSE, deletes the disk, takes the device off its
 * session and frees it.
 */
void ibnbd_clt_remove_work(struct work_struct *work);

#endif
