/* SPDX-License-Identifier: GPL-2.0-only */
/* The present mapping as the options of a line, to map it again in the same way, or to save it. */
#ifndef TOOLS_LIVE_H
#define TOOLS_LIVE_H

#include "ibnbd/logic/mapopt.h"
#include "tools/host/state.h"

/*
 * Read the mapping of @d into @map. The caller fills @map before, with ibnbd_mapopt_init() or with
 * a line of maps.conf; options that the driver does not show keep these values. Every option that
 * the driver shows is marked as given, also if it is a default. Paths that are up come first; there
 * is room for six. 0, or an error with @why, allocated.
 */
int live_map(struct ibnbd_map *map, struct state *s, const struct state_dev *d, char **why);
/* Read the options of the session, all marked as given. 0, or an error. */
int live_session(struct ibnbd_map *map, const struct state_session *s);
/*
 * As host_shared(), of paths that are connected. @server: they are a client's, and arrive here.
 * host_shared() does not know which of several ports a path has taken.
 */
char *live_shared(const struct state_session *s, bool server, char **hint);
/* Replace the paths of @map by those of the session. */
void live_paths(struct ibnbd_map *map, const struct state_session *s);
/*
 * Leave an option with its default value out of a line, unless the line said it before (@said):
 * [defaults] may give the option another value.
 */
void live_terse(struct ibnbd_map *map, uint32_t said);

#endif
