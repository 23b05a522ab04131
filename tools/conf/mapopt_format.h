/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The canonical line of a mapping, for maps.conf and the kernel: logic/mapopt can parse every line
 * that it is.
 */
#ifndef TOOLS_MAPOPT_FORMAT_H
#define TOOLS_MAPOPT_FORMAT_H

#include "ibnbd/logic/mapopt.h"

/*
 * The canonical line of the given keys, without newline. Return its length, or -EMSGSIZE when @size
 * is too small.
 */
int mapopt_format(const struct ibnbd_map *m, char *buf, size_t size);

#endif
