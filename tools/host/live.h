/* SPDX-License-Identifier: GPL-2.0-only */
/* What is mapped now, as a line would ask for it: to be mapped again just so, or to be saved. */
#ifndef TOOLS_LIVE_H
#define TOOLS_LIVE_H

#include "ibnbd/logic/mapopt.h"
#include "tools/host/state.h"

/*
 * Into @map, which holds what stays where the driver does not tell: ibnbd_mapopt_init(), or a line
 * of maps.conf. All that it tells is given then, defaults too; paths that are up come first, and
 * there is room for six. 0, or @why, allocated.
 */
int live_map(struct ibnbd_map *map, struct state *s, const struct state_dev *d, char **why);
/* What it tells of the session, all given. 0, or an error. */
int live_session(struct ibnbd_map *map, const struct state_session *s);
/* Its paths alone, in place of those of @map. */
void live_paths(struct ibnbd_map *map, const struct state_session *s);

#endif
