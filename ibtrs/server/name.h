/* SPDX-License-Identifier: GPL-2.0-only */
/* Which session has a name, or may take it. */
#ifndef IBTRS_SERVER_NAME_H
#define IBTRS_SERVER_NAME_H

#include "ibtrs/server/session.h"

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
