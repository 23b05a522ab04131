/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of hosts in path=. The driver takes addresses only; the command resolves names when it maps. */
#ifndef TOOLS_HOST_H
#define TOOLS_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <ibtrs/addr.h>

/* Is `[src(, or @)]dst` not of addresses alone, but a name, or names and addresses? */
bool host_is_name(const char *s, size_t len);

/* Resolve such a text. Returns 0, or -1 with @why allocated. Family of the source decides when there is one. */
int host_resolve(const char *text, struct ibtrs_addr_pair *pair, char **why);

#endif
