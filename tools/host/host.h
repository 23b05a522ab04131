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

/* Where SOURCE ends in SOURCE,DESTINATION or SOURCE@DESTINATION; the length when there is one. */
size_t host_cut(const char *s);

/* Which names stand in such a text, in words. Allocated. */
char *host_names(const char *s);

/*
 * Why such a text is neither: what is wrong with one of the two, or @why of the address parser when
 * it is that they stand together. The parser is the driver's, which knows no names.
 */
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
