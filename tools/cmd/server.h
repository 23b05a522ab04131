/* SPDX-License-Identifier: GPL-2.0-only */
/* The server: how it is started and stopped, its policy, and what its search path offers. */
#ifndef TOOLS_SERVER_H
#define TOOLS_SERVER_H

#include "tools/cmd/cmd.h"
#include "tools/conf/policy_conf.h"
#include "tools/conf/server_conf.h"
#include "tools/host/state.h"
#include "tools/out/json.h"

#define SERVER_PARAMETERS	"module/ibnbd_server/parameters"

/*
 * Export what @c says, or have a server that runs do so. @ready: is called when all else is known
 * to be fine, and may end it with another exit status than SAY_DONE; NULL: it is not asked.
 * Returns the exit status.
 */
int server_run(struct cmd_args *a, struct server_conf *c, int (*ready)(void *), void *arg);
/* modprobe -r ibnbd-server, or say with --dry-run that it would be run. 0: it has succeeded. */
int server_unload(void);

/* ---- server_policy.c ---- */

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

/* ---- server_offers.c ---- */

/**
 * struct server_offer - a name of the search path
 * @shown: from the search path on; with %SESSNAME% the first directory is a session's
 * @name: what a client asks for, to which the policy's rules apply; NULL: a session's directory
 * @path: where it is on this host
 * @is_dir: a directory, which is no export
 * @beyond: a directory with exports, or room for them, that is not listed
 */
struct server_offer {
	const char *shown;
	const char *name;
	const char *path;
	bool is_dir;
	bool beyond;
};

/*
 * Call @each for each name of @search, for those one directory below, and with %SESSNAME% for both
 * of each session, until it returns true. Calls nothing for / and /dev, which offer every disk of
 * the machine. Returns what @each has returned last.
 */
bool server_offers(const char *search, bool (*each)(const struct server_offer *o, void *arg),
		   void *arg);
/*
 * The first of these names that is a symbolic link to what is not there, with where it leads. NULL:
 * there is none. Allocated.
 */
char *server_offers_late(const char *search);
/*
 * dev_search_path of the server that runs: as the driver has it, or for ibnbd-serverd that of
 * server.conf. Allocated, or NULL.
 */
char *server_offers_search(const struct state *s);

#endif
