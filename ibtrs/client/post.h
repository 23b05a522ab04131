/* SPDX-License-Identifier: GPL-2.0-only */
/* A request becomes work requests. */
#ifndef IBTRS_CLIENT_POST_H
#define IBTRS_CLIENT_POST_H

struct ibtrs_clt_conn;
struct ibtrs_clt_path;
struct ibtrs_clt_plug;
struct ibtrs_clt_req;

/*
 * Posts a mapped request with its token on @conn, or puts it in @plug (may be NULL). Return: 0; 1:
 * posted although there is a plug; -EAGAIN: no room, and nothing was posted; else something may
 * have been posted, and the caller must fail the path.
 */
int ibtrs_clt_post(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path,
		   struct ibtrs_clt_conn *conn, struct ibtrs_clt_plug *plug);

#endif
