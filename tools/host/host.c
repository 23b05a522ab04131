// SPDX-License-Identifier: GPL-2.0-only
/*
 * The addresses of path= on this host: names are resolved to addresses, and a source must be an
 * address of this host.
 */
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "tools/host/host.h"
#include "tools/host/sysfs.h"
#include "tools/conf/maps_conf.h"
#include "tools/out/say.h"

/* AF_UNSPEC: it is a GID, or none. */
static int host_family(enum ibtrs_addr_kind kind)
{
	return kind == IBTRS_ADDR_IP4 ? AF_INET : kind == IBTRS_ADDR_IP6 ? AF_INET6 : AF_UNSPEC;
}

DEFINE_FREE(freeifaddrs, struct ifaddrs *)

/* Without its scope. NONE: it is of another family. */
static struct ibtrs_addr host_addr(const struct sockaddr *sa)
{
	struct ibtrs_addr a = { .kind = IBTRS_ADDR_NONE };

	if (sa && sa->sa_family == AF_INET) {
		a.kind = IBTRS_ADDR_IP4;
		memcpy(a.raw, &((const struct sockaddr_in *)sa)->sin_addr, 4);
	} else if (sa && sa->sa_family == AF_INET6) {
		a.kind = IBTRS_ADDR_IP6;
		memcpy(a.raw, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
	}
	return a;
}

/* All addresses of @s, of one kind if @want is not NONE, in the order to try them. Allocated. */
static int host_lookup(const char *s, size_t len, enum ibtrs_addr_kind want,
		       struct ibtrs_addr **out, size_t *nr, char **why)
{
	struct addrinfo hints = { .ai_family = host_family(want), .ai_socktype = SOCK_STREAM },
			*list = NULL, *i;
	struct ibtrs_addr one;
	const char *reason;
	char *name __free(free) = NULL;
	int rc;

	*out = NULL;
	*nr = 0;
	if (!ibtrs_addr_parse(s, len, &one, &reason)) {
		*out = say_alloc(sizeof(**out));
		(*out)[(*nr)++] = one;
		return 0;
	}
	name = say_fmt("%.*s", (int)len, s);
	rc = getaddrinfo(name, NULL, &hints, &list);
	if (rc) {
		*why = say_fmt("the host %s cannot be resolved: %s", name, gai_strerror(rc));
		return -1;
	}
	for (i = list; i; i = i->ai_next) {
		*out = say_grow(*out, (*nr + 1) * sizeof(**out));
		(*out)[(*nr)++] = host_addr(i->ai_addr);
	}
	freeaddrinfo(list);
	return 0;
}

int host_resolve(const char *text, struct ibtrs_addr_pair **pairs, size_t *nr, char **why)
{
	struct ibtrs_addr *src __free(free) = NULL, *dst __free(free) = NULL;
	size_t cut = host_cut(text), nr_src = 0, nr_dst = 0, i;
	const char *to = text[cut] ? text + cut + 1 : text;
	int rc = 0;

	*pairs = NULL;
	*nr = 0;
	if (text[cut])
		rc = host_lookup(text, cut, IBTRS_ADDR_NONE, &src, &nr_src, why);
	if (!rc)
		rc = host_lookup(to, strlen(to), src ? src->kind : IBTRS_ADDR_NONE, &dst, &nr_dst,
				 why);
	if (!rc && src && src->kind != dst->kind) {
		*why = say_fmt("%s: source and destination are of different families", text);
		rc = -1;
	}
	if (!rc)
		*pairs = say_alloc(nr_dst * sizeof(**pairs));
	for (i = 0; !rc && i < nr_dst; i++) {
		if (src)
			(*pairs)[i].src = *src;
		(*pairs)[(*nr)++].dst = dst[i];
	}
	return rc;
}

/* ---- sources ---- */

static bool host_same(const struct sockaddr *sa, const struct ibtrs_addr *a)
{
	struct ibtrs_addr is = host_addr(sa);

	return is.kind != IBTRS_ADDR_NONE && is.kind == a->kind &&
	       !memcmp(is.raw, a->raw, sizeof(is.raw));
}

/* Is it an address of this host? GIDs count as such, and so do addresses that cannot be checked. */
static bool host_is_local(const struct ibtrs_addr *a)
{
	static const struct ibtrs_addr any;
	struct ifaddrs *list __free(freeifaddrs) = NULL, *i;

	if (!host_family(a->kind) || !memcmp(a->raw, any.raw, sizeof(any.raw)) || getifaddrs(&list))
		return true;
	for (i = list; i && !host_same(i->ifa_addr, a);)
		i = i->ifa_next;
	return i;
}

static char *host_not_ours(const char *src)
{
	return say_fmt("the path leaves this host by %s, and this host has no such address", src);
}

char *host_wrong_source(const struct ibtrs_addr_pair *p)
{
	char text[IBTRS_ADDR_STR_MAX];

	if (p->src.kind == IBTRS_ADDR_NONE || ibtrs_addr_equal(&p->src, &p->dst) ||
	    host_is_local(&p->src))
		return NULL;
	ibtrs_addr_format(&p->src, text, sizeof(text));
	return host_not_ours(text);
}

static char *host_two_paths(const char *src, const char *dst)
{
	return say_fmt("SOURCE,DESTINATION is one path; two paths are path=%s path=%s", src, dst);
}

static void host_check_named(struct maps *m, struct maps_at at, const char *text)
{
	size_t cut = host_cut(text);
	struct ibtrs_addr src;
	const char *reason;
	char *left __free(free) = NULL;

	if (!text[cut] || (!ibtrs_addr_parse(text, cut, &src, &reason) && host_is_local(&src)))
		return;
	left = say_fmt("%.*s", (int)cut, text);
	maps_warn(m, at, host_not_ours(left), host_two_paths(left, text + cut + 1));
}

/* ---- paths that share a port ---- */

/* Is @a in the network of this address, so that no router is between them? */
static bool host_beside(const struct ifaddrs *i, const struct ibtrs_addr *a)
{
	struct ibtrs_addr mine = host_addr(i->ifa_addr), mask = host_addr(i->ifa_netmask);
	bool beside = mine.kind != IBTRS_ADDR_NONE && mine.kind == a->kind &&
		      mask.kind == mine.kind && i->ifa_flags & IFF_UP &&
		      !(i->ifa_flags & IFF_LOOPBACK) &&
		      (!a->scope[0] || !strcmp(a->scope, i->ifa_name));

	for (size_t k = 0; k < sizeof(mask.raw); k++)
		beside &= !((mine.raw[k] ^ a->raw[k]) & mask.raw[k]);
	return beside;
}

/* The address from which the kernel's table of routes would send to @dst; NONE: it says none. */
static struct ibtrs_addr host_route(const struct ibtrs_addr *dst)
{
	struct sockaddr_storage src;
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(9) };
	bool v4 = dst->kind == IBTRS_ADDR_IP4;
	socklen_t len = sizeof(src);
	int fd __free(say_close) = socket(host_family(dst->kind), SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(v4 ? (void *)&four.sin_addr : (void *)&six.sin6_addr, dst->raw, v4 ? 4 : 16);
	if (fd < 0 ||
	    connect(fd, v4 ? (void *)&four : (void *)&six, v4 ? sizeof(four) : sizeof(six)) ||
	    getsockname(fd, (struct sockaddr *)&src, &len))
		return (struct ibtrs_addr){ .kind = IBTRS_ADDR_NONE };
	return host_addr((struct sockaddr *)&src);
}

/* The address of this host that the path leaves by; NULL: it goes through a router, or none is. */
static const struct ifaddrs *host_leaves_by(const struct ifaddrs *list,
					    const struct ibtrs_addr_pair *p)
{
	const struct ifaddrs *i, *first = NULL;
	struct ibtrs_addr src = p->src;

	if (p->src.kind != IBTRS_ADDR_NONE) {
		for (i = list; i && !host_same(i->ifa_addr, &p->src);)
			i = i->ifa_next;
		return i;
	}
	if (p->dst.kind != IBTRS_ADDR_GID)
		src = host_route(&p->dst);
	for (i = list; i; i = i->ifa_next) {
		if (!host_beside(i, &p->dst))
			continue;
		if (!first)
			first = i;
		if (host_same(i->ifa_addr, &src))
			return i;
	}
	return first;
}

bool host_is_bond(const char *interface)
{
	char *dir __free(free) = sysfs_path("class/net/%s/bonding", interface);

	return sysfs_exists(dir);
}

static bool host_has_rdma(const char *interface)
{
	char *class __free(free) = sysfs_path("class/infiniband"),
	     **devs __free(sysfs_list_free) = sysfs_list(class, NULL),
	     *own __free(free) = sysfs_path("class/net/%s/device/infiniband", interface);
	bool found = sysfs_exists(own);

	for (size_t i = 0; devs[i] && !found; i++) {
		char *dir __free(free) = say_fmt("%s/%s", class, devs[i]),
		     *parent __free(free) = sysfs_attr(dir, "parent");	/* of a soft one */

		if (!parent)
			parent = sysfs_attr(dir, "ports/1/gid_attrs/ndevs/0");
		found = parent && !strcmp(parent, interface);
	}
	return found;
}

static char *host_text(const struct sockaddr *sa)
{
	char text[NI_MAXHOST] = "?";

	getnameinfo(sa, sa->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
						   sizeof(struct sockaddr_in6),
		    text, sizeof(text), NULL, 0, NI_NUMERICHOST);
	return say_dup(text);
}

static char *host_other_of(const struct ifaddrs *list, const struct ibtrs_addr *dst,
			   const char *interface)
{
	const struct ifaddrs *i;

	for (i = list; i; i = i->ifa_next)
		if (host_beside(i, dst) && strcmp(i->ifa_name, interface) &&
		    host_has_rdma(i->ifa_name))
			return host_text(i->ifa_addr);
	return NULL;
}

char *host_other_source(const struct ibtrs_addr_pair *p)
{
	struct ifaddrs *list __free(freeifaddrs) = NULL;
	const struct ifaddrs *by = getifaddrs(&list) ? NULL : host_leaves_by(list, p);

	return by ? host_other_of(list, &p->dst, by->ifa_name) : NULL;
}

/* How the paths can be written so that not all of them leave by @by. */
static char *host_two_ports(const struct ifaddrs *list, const struct ibtrs_addr_pair *path,
			    size_t nr, const struct ifaddrs *by)
{
	char *all __free(free) = say_dup("name the source of each path:"), dst[IBTRS_ADDR_STR_MAX];
	bool found = false;

	for (size_t i = 0; i < nr; i++) {
		char *src __free(free) = i ? host_other_of(list, &path[i].dst, by->ifa_name) : NULL;

		found |= src != NULL;
		if (!src)
			src = host_text(by->ifa_addr);
		ibtrs_addr_format(&path[i].dst, dst, sizeof(dst));
		say_append(&all, " %s,%s", src, dst + (strncmp(dst, "ip:", 3) ? 0 : 3));
	}
	return say_dup(found ? all :
			       "SOURCE,DESTINATION, where SOURCE is an address of another port of this host");
}

char *host_shared(const struct ibtrs_addr_pair *path, size_t nr, char **hint)
{
	struct ifaddrs *list __free(freeifaddrs) = NULL;
	const struct ifaddrs *by, *other;
	char dst[IBTRS_ADDR_STR_MAX], *why = NULL;
	bool same = nr > 1;

	*hint = NULL;
	if (nr < 2 || getifaddrs(&list))
		return NULL;
	by = host_leaves_by(list, &path[0]);
	for (size_t i = 1; i < nr; i++) {
		same &= ibtrs_addr_equal(&path[i].dst, &path[0].dst);
		other = by ? host_leaves_by(list, &path[i]) : NULL;
		if (!other || strcmp(other->ifa_name, by->ifa_name))
			by = NULL;
	}
	if (by && !host_is_bond(by->ifa_name)) {
		why = say_fmt("all %zu paths leave this host by %s: " HOST_SHARED, nr, by->ifa_name);
		*hint = host_two_ports(list, path, nr, by);
	} else if (same) {
		ibtrs_addr_format(&path[0].dst, dst, sizeof(dst));
		why = say_fmt("all %zu paths lead to %s: " HOST_SHARED, nr, dst);
		*hint = say_dup("a path to an address of another port of the server");
	}
	return why;
}

static void host_check_entry(struct maps *m, const struct maps_entry *e)
{
	char src[IBTRS_ADDR_STR_MAX], dst[IBTRS_ADDR_STR_MAX], *why, *hint;

	for (size_t i = 0; i < e->map.nr_paths; i++) {
		const struct ibtrs_addr_pair *p = &e->map.path[i];

		why = host_wrong_source(p);
		if (!why)
			continue;
		ibtrs_addr_format(&p->src, src, sizeof(src));
		ibtrs_addr_format(&p->dst, dst, sizeof(dst));
		maps_warn(m, e->addr_at[i], why, host_two_paths(src, dst));
	}
	for (size_t i = 0; i < e->nr_hosts; i++)
		host_check_named(m, e->host_at[i], e->host[i]);
	why = e->nr_hosts ? NULL : host_shared(e->map.path, e->map.nr_paths, &hint);
	if (why)
		maps_warn(m, e->path_at, why, hint);
}

void host_check_sources(struct maps *m)
{
	for (size_t i = 0; i < m->nr; i++)
		if (!m->entries[i].bad)
			host_check_entry(m, &m->entries[i]);
	maps_sort(m);
}
