/* SPDX-License-Identifier: GPL-2.0-only */
/* The policy in the commands of the server: put in force, and shown. */
#ifndef TOOLS_SERVER_POLICY_H
#define TOOLS_SERVER_POLICY_H

#include "tools/conf/policy_conf.h"
#include "tools/conf/server_conf.h"
#include "tools/out/json.h"

/*
 * Put this policy in force in the module, which is loaded. Returns the exit status. Unless it is
 * SAY_DONE, the caller must not open any export.
 */
int server_policy_put(const struct policy_conf *c);
/*
 * The policy that `server exports` shows: the module's, or the file's if no module shows one. NULL:
 * it is not known.
 */
struct policy_conf *server_policy_shown(void);
/*
 * The first name below @search, a dev_search_path, that an unknown client may write to; with no
 * rules all names. NULL: no such name can be seen. Allocated.
 */
char *server_policy_open_name(const struct ibnbd_policy_rules *p, const char *search);
/*
 * Warn in @c if any host that reaches the port may write to something, by server.conf and this
 * policy.
 * @look: at what is exported, which may hang with its file system; if not, only a policy without
 * rules is warned of.
 */
void server_policy_warn(struct server_conf *c, const struct policy_conf *p, bool look);
/* The rules that may decide about this name. */
void server_policy_print(const struct policy_conf *c, const char *name);
/* The same for a name of each pattern, if names below @search cannot be listed, or not all. */
void server_policy_print_unlisted(const struct policy_conf *c, const char *search);
void server_policy_json(struct json *j, const struct policy_conf *c);

#endif
