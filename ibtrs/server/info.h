/* SPDX-License-Identifier: GPL-2.0-only */
/* INFO_REQ: a path that has all its connections becomes one that carries requests. */
#ifndef IBTRS_SERVER_INFO_H
#define IBTRS_SERVER_INFO_H

struct ibtrs_srv_path;

void ibtrs_srv_info_init(struct ibtrs_srv_path *path);
/* Post the buffer for INFO_REQ on cid 0, before it is accepted. 0 or an errno. Sleeps. */
int ibtrs_srv_info_expect(struct ibtrs_srv_path *path);
/* After the drain. Idempotent. */
void ibtrs_srv_info_free(struct ibtrs_srv_path *path);

#endif
