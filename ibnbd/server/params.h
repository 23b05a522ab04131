/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_PARAMS_H
#define IBNBD_SERVER_PARAMS_H

#include <linux/moduleparam.h>
#include <ibtrs/addr.h>
#include "ibnbd/server/export.h"

#define IBNBD_SRV_MAX_MAPS	65536u

/*
 * Made by main.c: closes the server, frees sessions and exports, and writes the writer file after
 * cache_lost. What may wait for a disk is in the queue of its session or export.
 */
extern struct workqueue_struct *ibnbd_srv_ctl_wq;

/* parameters that may be set at any time: READ_ONCE() */
extern bool ibnbd_srv_write_zeroes;
extern bool ibnbd_srv_claim;
extern int ibnbd_srv_copy;		/* enum ibnbd_srv_copy: of new exports */
extern int ibnbd_srv_io_mode;		/* enum ibnbd_srv_io_mode */

char *ibnbd_srv_search_path(void);
bool ibnbd_srv_session_allowed(const struct ibtrs_origin *from, const char *name);
u32 ibnbd_srv_file_block(void);
u32 ibnbd_srv_max_maps(void);
enum ibtrs_srv_auth ibnbd_srv_auth(void);
bool ibnbd_srv_peer_allowed(const struct ibtrs_origin *from);
bool ibnbd_srv_search_path_is_set(void);
void ibnbd_srv_search_path_set(const char *path, size_t len);
int ibnbd_srv_search_path_get(char *buf, const struct kernel_param *kp);
void ibnbd_srv_params_exit(void);

void ibnbd_srv_refuse(const char *session, const char *object, int err, const char *why);
int ibnbd_srv_last_error(char *page);

#endif
