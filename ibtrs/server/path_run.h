/* SPDX-License-Identifier: GPL-2.0-only */
/* The works of a path, and its memory. */
#ifndef IBTRS_SERVER_PATH_RUN_H
#define IBTRS_SERVER_PATH_RUN_H

struct ibtrs_addr_pair;
struct ibtrs_conn_req;
struct ibtrs_srv_path;
struct ibtrs_srv_proof;
struct ibtrs_srv_session;

/* A path in state connecting, not yet on a list. NULL: no memory. */
struct ibtrs_srv_path *ibtrs_srv_path_alloc(struct ibtrs_srv_session *session,
					    const struct ibtrs_conn_req *req,
					    const struct ibtrs_addr_pair *addr,
					    const struct ibtrs_srv_proof *proof);
/* Frees a path that is not, or no longer, on a list. */
void ibtrs_srv_path_free(struct ibtrs_srv_path *path);

#endif
