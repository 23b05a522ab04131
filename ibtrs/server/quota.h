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
 * chunks, against max_memory_mb, and no longer as half-open. Its chunks, which it gets next, are
 * counted from now on, too. 0, or -ENOMEM and a reason.
 */
int ibtrs_srv_quota_let_in(struct ibtrs_srv_path *path, const char **why);
/*
 * Under ibtrs_srv.lock: true if the client is no stranger: it has proved @key, or a client without
 * a key was let in from @addr and is still here or may come back.
 */
bool ibtrs_srv_quota_is_known(const struct ibtrs_addr *addr, const char *key);
/* Close work: the queues of @path are freed. Takes ibtrs_srv.lock. */
void ibtrs_srv_quota_end(struct ibtrs_srv_path *path);

/* name.c: which session has a name, or may take it. */

/*
 * All under ibtrs_srv.lock, where nothing else is said.
 *
 * Gives the session of @path, which has no name yet, the name @name. Else -EEXIST (another client
 * has it, or it is kept for one) or -EBUSY (an earlier session of this client has it, or one that
 * is not up), and @why, whose text may be in @path.
 */
int ibtrs_srv_name_take(struct ibtrs_srv_path *path, const char *name, const char **why);
/* Keeps the name of @s, which ends or gives its name up although its client may come back. */
void ibtrs_srv_name_keep(struct ibtrs_srv_session *s);
/* @s has its name no more, and has not used it: if it was kept for @s, it is kept on. */
void ibtrs_srv_name_give_back(struct ibtrs_srv_session *s);
/* The name of @s is not kept any longer. */
void ibtrs_srv_name_let_go(struct ibtrs_srv_session *s);
/* Is a name kept for a client that was lost, came from there, and has proved no key? */
bool ibtrs_srv_name_kept_for(const struct ibtrs_addr *addr);
/*
 * Takes ibtrs_srv.lock: who asks to prove a key, names the session @uuid, and comes from @addr?
 * Nothing of it is proved yet.
 */
enum ibtrs_caller ibtrs_srv_name_caller(const u8 *uuid, const struct ibtrs_addr *addr);
/* The server closes: no name is kept any longer. */
void ibtrs_srv_name_forget_all(void);

#endif
