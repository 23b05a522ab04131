/* SPDX-License-Identifier: GPL-2.0-only */
/* The tree of `list --tree`: mirrors, legs, sessions, paths. */
#ifndef TOOLS_TREE_H
#define TOOLS_TREE_H

#include "tools/cmd/cmd.h"
#include "tools/cmd/mirror.h"
#include "tools/out/json.h"

/* A mirror and its legs; @sessions: also the session and the paths of each leg. */
void tree_mirror(const struct mirror *m, bool sessions);
void tree_mirror_json(struct json *j, const struct mirror *m, bool sessions);
/*
 * All mirrors and sessions, with the disks that are wanted, a flag for each of @s. What has none of
 * these is left out if anything was asked for by its name.
 */
void tree_all(const struct cmd_args *a, struct state *s, const bool *wanted);
/* The array "mirrors", and the array "sessions", in which each has its paths. */
void tree_all_json(struct json *j, const struct cmd_args *a, struct state *s, const bool *wanted);

#endif
