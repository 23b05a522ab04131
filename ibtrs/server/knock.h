/* SPDX-License-Identifier: GPL-2.0-only */
/* A connection that is used only for authentication. */
#ifndef IBTRS_SERVER_KNOCK_H
#define IBTRS_SERVER_KNOCK_H

#include <rdma/rdma_cm.h>
#include "ibtrs/proto/auth.h"

struct ibtrs_addr;
struct ibtrs_srv_knock;

/**
 * ibtrs_srv_knock() - a client wants to prove that it has a key
 * @id: its connection
 * @req: what it said, decoded
 * @wire: its bytes
 * @peer: where it comes from
 * @out: set when @id belongs to the new knock, which can be so after an error, too: the caller then
 *	rejects @id and calls ibtrs_srv_knock_end()
 * @why: words for a refusal
 *
 * CM event. Return: 0; -EKEYREJECTED: no client authenticates here; -ECONNRESET, -ENOSPC, -ENOMEM
 * and what the device says.
 */
int ibtrs_srv_knock(struct rdma_cm_id *id, const struct ibtrs_auth_req *req, const void *wire,
		    const struct ibtrs_addr *peer, struct ibtrs_srv_knock **out, const char **why);
/* Begins the end of @k; does not wait. Any context. */
void ibtrs_srv_knock_end(struct ibtrs_srv_knock *k);
/* The listeners are gone: ends all knocks and waits for them. */
void ibtrs_srv_knock_end_all(void);

#endif
