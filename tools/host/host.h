/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of hosts in path=. The driver takes addresses only; the command resolves names when it
 * maps.
 */
#ifndef TOOLS_HOST_H
#define TOOLS_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <ibtrs/addr.h>

/* Is `[src(, or @)]dst` not of addresses alone, but a name, or names and addresses? */
bool host_is_name(const char *s, size_t len);

/* Why such a text is neither: @why of the address parser, or what a name must not be. */
const char *host_wrong(const char *s, size_t len, const char *why);

struct maps;

/* Is it an address of this host? GIDs and what is not known count as such. */
bool host_is_local(const struct ibtrs_addr *a);
/*
 * The source of this path is no address of this host: in words, allocated; NULL = it is, or there
 * is none.
 */
char *host_wrong_source(const struct ibtrs_addr_pair *p);
/* Warn of the lines whose source is none: `path=A,B` may have been meant as two paths. */
void host_check_sources(struct maps *m);

/*
 * Resolve such a text. Returns 0, or -1 with @why allocated. Family of the source decides when
 * there is one.
 */
int host_resolve(const char *text, struct ibtrs_addr_pair *pair, char **why);

#endif
