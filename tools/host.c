// SPDX-License-Identifier: GPL-2.0-only
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "tools/host.h"
#include "tools/say.h"

static int host_lookup(const char *s, size_t len, enum ibtrs_addr_kind want, struct ibtrs_addr *out, char **why)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *list = NULL;
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
	size_t cut = strcspn(text, ",");
	const char *dst = text;

	if (!text[cut])
		cut = strcspn(text, "@");
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
