/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /sys/class/ibtrs-server (docs/sysfs.md).
 *
 * Lifetime: sysfs and the driver core hold references only to memory of their own, never to the
 * session or the path. After ibtrs_srv_sysfs_path_del() / _session_del() no show or store runs any
 * more, even if a file is still open.
 */
#ifndef IBTRS_SERVER_SYSFS_H
#define IBTRS_SERVER_SYSFS_H

struct ibtrs_srv_path;
struct ibtrs_srv_session;

int ibtrs_srv_sysfs_init(void);
void ibtrs_srv_sysfs_exit(void);	/* waits until the last directory is freed */

int ibtrs_srv_sysfs_session_add(struct ibtrs_srv_session *s);
void ibtrs_srv_sysfs_session_del(struct ibtrs_srv_session *s);	/* idempotent; its paths are gone */
int ibtrs_srv_sysfs_path_add(struct ibtrs_srv_path *path);
/* idempotent; not from a show or store of it */
void ibtrs_srv_sysfs_path_del(struct ibtrs_srv_path *path);

#endif
