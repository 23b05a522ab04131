// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names on their way out. Law: what any escape made of a name is undone to that name and, but for
 * JSON, which escapes once more, shows nothing that it should not; a link is undone to what it
 * names.
 */
#include <stdlib.h>
#include <string.h>
#include "ibnbd/logic/text.h"
#include "tools/out/escape.h"
#include "tools/host/links.h"

#define REQUIRE(cond)	do { if (!(cond)) __builtin_trap(); } while (0)

static void shown(const char *s, bool controls)
{
	unsigned int code;
	size_t n;

	for (; *s; s += n) {
		n = escape_utf8(s, &code);
		REQUIRE(n && (controls || !escape_hidden(code)));
	}
}

/* \xNN of a link is NN, whichever it is. */
static void link_means(char *link, const char *name, bool flat)
{
	const char *s = link;
	unsigned int byte;

	for (; s && *s; name++) {
		if (sscanf(s, "\\x%2x", &byte) == 1) {
			REQUIRE((unsigned char)*name == byte);
			s += 4;
		} else {
			REQUIRE(*name == (flat && *s == ':' ? '/' : *s));
			s++;
		}
	}
	REQUIRE(!s || !*name);
	if (s)
		shown(link, false);
	free(link);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[IBNBD_NAME_LEN] = "", link[IBNBD_LINKNAME_MAX], *by_path;
	int how;

	if (size >= sizeof(name) || memchr(data, 0, size))
		return 0;
	memcpy(name, data, size);
	escape_locale();
	for (how = 0; how < ESCAPE_KINDS; how++) {
		char *out = escape_text((enum escape)how, name), *back = escape_undo(out);

		REQUIRE(!strcmp(back, name));
		REQUIRE(escape_means(out, name));
		shown(out, how == ESCAPE_JSON);
		free(out);
		free(back);
	}
	link_means(links_by_name(name), name, false);
	link_means(links_device(name), name, false);
	by_path = links_by_path("s-1", name);
	if (by_path) {
		REQUIRE(!strncmp(by_path, "ibnbd-s\\x2d1-", 13));
		memmove(by_path, by_path + 13, strlen(by_path + 13) + 1);
	}
	link_means(by_path, name, true);
	REQUIRE(ibnbd_linkname_dev(name, "s", link, sizeof(link)) == strlen(link));
	REQUIRE(!strchr(link, '/') && !strcmp(strchr(link, '@'), "@s"));
	return 0;
}
