/* SPDX-License-Identifier: GPL-2.0-only */
/* The server is started as a file says. */
#ifndef TOOLS_SERVER_RUN_H
#define TOOLS_SERVER_RUN_H

#include "tools/cmd/cmd.h"
#include "tools/conf/server_conf.h"

#define SERVER_PARAMETERS	"module/ibnbd_server/parameters"

/*
 * Export what @c says, or have a server that runs do so. @ready: is called when all else is known
 * to be fine, and may end it with another exit status than SAY_DONE; NULL: it is not asked.
 * Returns the exit status.
 */
int server_run(struct cmd_args *a, struct server_conf *c, int (*ready)(void *), void *arg);
/* modprobe -r ibnbd-server, or say with --dry-run that it would be run. 0: it has succeeded. */
int server_unload(void);

#endif
