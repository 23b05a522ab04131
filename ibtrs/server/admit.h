/* SPDX-License-Identifier: GPL-2.0-only */
/* Admission: the server's decision about a CONN_REQ. */
#ifndef IBTRS_SERVER_ADMIT_H
#define IBTRS_SERVER_ADMIT_H

struct ibtrs_addr_pair;
struct ibtrs_conn_req;
struct ibtrs_srv_conn;

/**
 * ibtrs_srv_admit() - find, or make, the place of a connection
 * @req: decoded, but not trusted yet
 * @wire: its bytes, which a proof in it covers
 * @addr: where it comes from, and where to
 * @out: on success the connection, taken, with its lock held
 * @why: words for a refusal
 *
 * The first connection of a path makes the path; the first path of a session makes the session.
 *
 * Context: process; takes ibtrs_srv.lock. Return: 0; -EBUSY: try again, the old incarnation is
 * draining; -ENXIO, -ECONNRESET, -ENOMEM and the errnos of the caps: refused; -EACCES,
 * -EKEYREJECTED: a proof is missing, or wrong.
 */
int ibtrs_srv_admit(const struct ibtrs_conn_req *req, const void *wire,
		    const struct ibtrs_addr_pair *addr, struct ibtrs_srv_conn **out,
		    const char **why);

#endif
