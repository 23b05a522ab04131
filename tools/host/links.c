// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of links, for udev's helper and for the commands that show them.
 *
 * Characters that udev accepts in a SYMLINK are kept: letters, digits, #+-.:=@_ and valid UTF-8,
 * as in the links of labels. udev replaces all others by '_', but accepts \xNN (every udev since
 * 2008). So every other byte is escaped as \xNN, and so is UTF-8 that shows nothing. A backslash is
 * always escaped: reading \xNN back gives the name again, so the link is one-to-one. A character
 * that has a meaning in a link is escaped where it is only a part of a name:
 *
 *	'/'	where it separates no directory: first, last, and after another '/'; in by-path each
 *		'/' becomes ':'
 *	':'	in by-path, because ':' stands for '/' there
 *	'-'	in the session of by-path, because the first '-' ends the session there; and in
 *		-partN at the end, because that would be the link of partition N of another disk
 *	'.'	the first dot of a component "." or ".."
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/out/escape.h"
#include "tools/host/links.h"
#include "tools/out/say.h"

#define LINKS_PART_MAX	247	/* NAME_MAX without "-partNNN" */
/* udev's buffers have 1024 bytes, for "ibnbd/by-session/" and the rest */
#define LINKS_MAX	900

enum links_kind { LINKS_NAME, LINKS_SESSION, LINKS_TREE, LINKS_FLAT, LINKS_FLAT_SESSION };

/*
 * Is @s the end "-partN" of a partition's link? In a tree, the end of a directory's name counts
 * too.
 */
static bool links_partition(enum links_kind kind, const char *s)
{
	if (kind == LINKS_SESSION || strncmp(s, "-part", 5))
		return false;
	s += 5;
	if (!*s || strchr("/", *s))
		return false;
	s += strspn(s, "0123456789");
	return !*s || (*s == '/' && kind == LINKS_TREE);
}

/* Is the component at @s "." or ".."? */
static bool links_dots(const char *s)
{
	size_t n = strspn(s, ".");

	return (n == 1 || n == 2) && (!s[n] || s[n] == '/');
}

static char *links_image(enum links_kind kind, const char *text)
{
	char *out = say_alloc(4 * strlen(text) + 1), *p = out;
	const char *s, *end;
	bool begin = true;	/* of a component */
	unsigned int code;
	size_t n;

	for (s = text; *s;) {
		bool keep;

		n = escape_utf8(s, &code);
		end = s + (n ? n : 1);
		if (n == 1)
			keep = (code >= '0' && code <= '9') ||
			       ((code | 32) >= 'a' && (code | 32) <= 'z') ||
			       strchr("#+-.:=@_", (int)code);
		else
			keep = n && !escape_hidden(code);
		if (links_partition(kind, s) || (*s == '-' && kind == LINKS_FLAT_SESSION) ||
		    (*s == ':' && kind == LINKS_FLAT) ||
		    (begin && links_dots(s) && kind != LINKS_FLAT))
			keep = false;
		begin = *s == '/' && kind == LINKS_TREE && !begin && s[1];
		if (begin || (*s == '/' && kind == LINKS_FLAT)) {
			*p++ = begin ? '/' : ':';
			s++;
			continue;
		}
		if (keep) {
			memcpy(p, s, n);
			p += n;
			s = end;
		}
		while (s < end)
			p += sprintf(p, "\\x%02x", (unsigned char)*s++);
	}
	return out;
}

/*
 * Free @link and return NULL if it is too long: each component must fit into a file name with
 * "-partNNN" added, and the whole must fit into udev's buffers.
 */
static char *links_fit(char *link)
{
	const char *s, *slash;

	for (s = link; s; s = slash ? slash + 1 : NULL) {
		slash = strchr(s, '/');
		if ((slash ? (size_t)(slash - s) : strlen(s)) > LINKS_PART_MAX)
			break;
	}
	if (!s && strlen(link) <= LINKS_MAX)
		return link;
	free(link);
	return NULL;
}

char *links_by_name(const char *name)
{
	return links_fit(links_image(LINKS_NAME, name));
}

char *links_session(const char *session)
{
	return links_fit(links_image(LINKS_SESSION, session));
}

char *links_device(const char *device)
{
	return links_fit(links_image(LINKS_TREE, device));
}

char *links_by_path(const char *session, const char *device)
{
	char *s __free(free) = links_image(LINKS_FLAT_SESSION, session),
	     *d __free(free) = links_image(LINKS_FLAT, device);
	char *link = say_fmt("ibnbd-%s-%s", s, d);

	return links_fit(link);
}
