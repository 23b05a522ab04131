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

/*
 * Is `[src(, or @)]dst` a valid text with a name in it: a name, two names, or a name and an
 * address?
 */
bool host_is_name(const char *s);

/*
 * Where SOURCE ends in SOURCE,DESTINATION or SOURCE@DESTINATION; the length of @s without a SOURCE.
 */
size_t host_cut(const char *s);

/* The names in such a text, as words for a message. Allocated. */
char *host_names(const char *s);

/*
 * Why such a text is wrong: what is wrong with one of its parts. If each part alone is right, the
 * mistake is that they stand together, and @why is returned: the reason of the address parser. That
 * parser is the driver's and knows no names.
 */
const char *host_wrong(const char *s, const char *why);

struct maps;

/*
 * If the source of this path is no address of this host: a message that says so, allocated. NULL:
 * it is one, or the path has no source.
 */
char *host_wrong_source(const struct ibtrs_addr_pair *p);
/*
 * Do all paths of a session leave by one port of this host, or lead to one address of the server?
 * Then the second one is no help when that port fails. A message, with what to do as *@hint; NULL:
 * they do not, as far as can be seen before they are connected. A bond counts as two ports.
 */
#define HOST_SHARED	"when that port fails, the session has no path"
char *host_shared(const struct ibtrs_addr_pair *path, size_t nr, char **hint);
/* An address of another RDMA port from which @p->dst can be reached, too. Allocated, or NULL. */
char *host_other_source(const struct ibtrs_addr_pair *p);
bool host_is_bond(const char *interface);
/*
 * Warn of lines whose source is no address of this host: `path=A,B` may have been meant as two
 * paths; and of those whose paths share a port.
 */
void host_check_sources(struct maps *m);

/*
 * Resolve such a text to its paths, of which one is wanted: a name may have several addresses, and
 * they are to be tried in this order. Returns 0 with *@pairs allocated, or -1 with @why allocated.
 * If there is a source, the destination is resolved to its address family.
 */
int host_resolve(const char *text, struct ibtrs_addr_pair **pairs, size_t *nr, char **why);

#endif
