/* SPDX-License-Identifier: GPL-2.0-only */
/* How much of this server clients use, counted for logic/quota. */
#ifndef IBTRS_SERVER_QUOTA_H
#define IBTRS_SERVER_QUOTA_H

#include "ibtrs/server/session.h"

/*
 * Under ibtrs_srv.lock: may a client that has proved @key (empty: nothing) at @addr begin another
 * path, whose first connection has queues of @bytes? @fresh: its session would be a new one. 0, or
 * -EBUSY, -ENOSPC, -ENOMEM and a reason.
 */
int ibtrs_srv_quota_path(const struct ibtrs_addr *addr, const char *key, u64 bytes, bool fresh,
			 const char **why);
/* Under ibtrs_srv.lock: may @path have another connection of @bytes? 0, or -ENOMEM and a reason. */
int ibtrs_srv_quota_conn(const struct ibtrs_srv_path *path, u64 bytes, const char **why);
/* Under ibtrs_srv.lock: may the session of @path have a name? 0, or -ENOSPC and a reason. */
int ibtrs_srv_quota_session(const struct ibtrs_srv_path *path, const char **why);
/*
 * INFO work: the client has named its session. From now on the path's queues are charged like its
 * chunks, against max_memory_mb, and no longer as half-open. 0, or -ENOMEM and a reason.
 */
int ibtrs_srv_quota_let_in(struct ibtrs_srv_path *path, const char **why);
/* INFO work: the path has the chunks that it was promised, or will not get them. */
void ibtrs_srv_quota_kept(struct ibtrs_srv_path *path);
/*
 * Under ibtrs_srv.lock: true if the client is no stranger: it has proved @key, or a client without
 * a key was let in from @addr and is still here or may come back.
 */
bool ibtrs_srv_quota_is_known(const struct ibtrs_addr *addr, const char *key);
/* Close work: the queues of @path are freed. */
void ibtrs_srv_quota_end(struct ibtrs_srv_path *path);

#endif
