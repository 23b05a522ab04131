/* SPDX-License-Identifier: GPL-2.0-only */
/* The list of all sessions. */
#ifndef IBTRS_CLIENT_SESSIONS_H
#define IBTRS_CLIENT_SESSIONS_H

struct ibtrs_clt;
struct ibtrs_clt_path;

/* Put @clt on the list, with a directory in sysfs. 0, -EEXIST, or an errno from sysfs. */
int ibtrs_clt_sessions_add(struct ibtrs_clt *clt);
void ibtrs_clt_sessions_del(struct ibtrs_clt *clt);
/* For device and port events: call @fn for every path of every session. */
void ibtrs_clt_sessions_each_path(void (*fn)(struct ibtrs_clt_path *path, void *arg), void *arg);

#endif
