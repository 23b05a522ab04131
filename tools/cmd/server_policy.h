/* SPDX-License-Identifier: GPL-2.0-only */
/* The policy in the commands of the server: put in force, and shown. */
#ifndef TOOLS_SERVER_POLICY_H
#define TOOLS_SERVER_POLICY_H

#include "tools/conf/policy_conf.h"
#include "tools/out/json.h"

/*
 * The module, which is loaded, takes this policy. Returns what to exit with; but for SAY_DONE
 * nothing must be opened.
 */
int server_policy_put(const struct policy_conf *c);
/* What `server exports` is to show: the module's policy, else the file's; NULL: nobody can tell. */
struct policy_conf *server_policy_shown(void);
/* The rules that may decide about this name. */
void server_policy_print(const struct policy_conf *c, const char *name);
void server_policy_json(struct json *j, const struct policy_conf *c);

#endif
