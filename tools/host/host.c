// SPDX-License-Identifier: GPL-2.0-only
/*
 * The addresses of path= on this host: names are resolved to addresses, and a source must be an
 * address of this host.
 */
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "tools/host/host.h"
#include "tools/conf/maps_conf.h"
#include "tools/out/say.h"

static int host_lookup(const char *s, size_t len, enum ibtrs_addr_kind want, struct ibtrs_addr *out,
		       char **why)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM },
			*list = NULL;
	const char *reason;
	char *name;
	int rc;

	if (!ibtrs_addr_parse(s, len, out, &reason))
		return 0;
	if (want == IBTRS_ADDR_IP4)
		hints.ai_family = AF_INET;
	else if (want == IBTRS_ADDR_IP6)
		hints.ai_family = AF_INET6;
	name = say_fmt("%.*s", (int)len, s);
	rc = getaddrinfo(name, NULL, &hints, &list);
	if (rc) {
		*why = say_fmt("the host %s cannot be resolved: %s", name, gai_strerror(rc));
		free(name);
		return -1;
	}
	free(name);
	memset(out, 0, sizeof(*out));
	if (list->ai_family == AF_INET) {
		out->kind = IBTRS_ADDR_IP4;
		memcpy(out->raw, &((struct sockaddr_in *)list->ai_addr)->sin_addr, 4);
	} else {
		out->kind = IBTRS_ADDR_IP6;
		memcpy(out->raw, &((struct sockaddr_in6 *)list->ai_addr)->sin6_addr, 16);
	}
	freeaddrinfo(list);
	return 0;
}

int host_resolve(const char *text, struct ibtrs_addr_pair *pair, char **why)
{
	size_t cut = host_cut(text);
	const char *dst = text;

	memset(pair, 0, sizeof(*pair));
	if (text[cut]) {
		dst = text + cut + 1;
		if (host_lookup(text, cut, IBTRS_ADDR_NONE, &pair->src, why))
			return -1;
	}
	if (host_lookup(dst, strlen(dst), pair->src.kind, &pair->dst, why))
		return -1;
	if (pair->src.kind != IBTRS_ADDR_NONE && pair->src.kind != pair->dst.kind) {
		*why = say_fmt("%s: source and destination are of different families", text);
		return -1;
	}
	return 0;
}

/* ---- sources ---- */

static bool host_same(const struct sockaddr *sa, const struct ibtrs_addr *a)
{
	if (!sa)
		return false;
	if (sa->sa_family == AF_INET)
		return a->kind == IBTRS_ADDR_IP4 &&
		       !memcmp(&((const struct sockaddr_in *)sa)->sin_addr, a->raw, 4);
	return sa->sa_family == AF_INET6 && a->kind == IBTRS_ADDR_IP6 &&
	       !memcmp(&((const struct sockaddr_in6 *)sa)->sin6_addr, a->raw, 16);
}

static bool host_unspecified(const struct ibtrs_addr *a)
{
	static const unsigned char zero[16];

	return !memcmp(a->raw, zero, a->kind == IBTRS_ADDR_IP4 ? 4 : 16);
}

bool host_is_local(const struct ibtrs_addr *a)
{
	struct ifaddrs *list, *i;
	bool found = false;

	if ((a->kind != IBTRS_ADDR_IP4 && a->kind != IBTRS_ADDR_IP6) || host_unspecified(a) ||
	    getifaddrs(&list))
		return true;
	for (i = list; i && !found; i = i->ifa_next)
		found = host_same(i->ifa_addr, a);
	freeifaddrs(list);
	return found;
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
	char *left;

	if (!text[cut] || (!ibtrs_addr_parse(text, cut, &src, &reason) && host_is_local(&src)))
		return;
	left = say_fmt("%.*s", (int)cut, text);
	maps_warn(m, at, host_not_ours(left), host_two_paths(left, text + cut + 1));
	free(left);
}

static void host_check_entry(struct maps *m, const struct maps_entry *e)
{
	char src[IBTRS_ADDR_STR_MAX], dst[IBTRS_ADDR_STR_MAX], *why;
	size_t i;

	for (i = 0; i < e->map.nr_paths; i++) {
		const struct ibtrs_addr_pair *p = &e->map.path[i];

		why = host_wrong_source(p);
		if (!why)
			continue;
		ibtrs_addr_format(&p->src, src, sizeof(src));
		ibtrs_addr_format(&p->dst, dst, sizeof(dst));
		maps_warn(m, e->addr_at[i], why, host_two_paths(src, dst));
	}
	for (i = 0; i < e->nr_hosts; i++)
		host_check_named(m, e->host_at[i], e->host[i]);
}

void host_check_sources(struct maps *m)
{
	size_t i;

	for (i = 0; i < m->nr; i++)
		if (!m->entries[i].bad)
			host_check_entry(m, &m->entries[i]);
	maps_sort(m);
}
