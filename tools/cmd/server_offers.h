/* SPDX-License-Identifier: GPL-2.0-only */
/* Names that the search path offers, as far as they can be listed. */
#ifndef TOOLS_SERVER_OFFERS_H
#define TOOLS_SERVER_OFFERS_H

#include <stdbool.h>

struct state;

/**
 * struct server_offer - a name of the search path
 * @shown: from the search path on; with %SESSNAME% the first directory is a session's
 * @name: what a client asks for, to which the policy's rules apply; NULL: a session's directory
 * @path: where it is on this host
 * @is_dir: a directory, which is no export
 * @beyond: a directory with exports, or room for them, that is not listed
 */
struct server_offer {
	const char *shown;
	const char *name;
	const char *path;
	bool is_dir;
	bool beyond;
};

/*
 * Call @each for each name of @search, for those one directory below, and with %SESSNAME% for both
 * of each session, until it returns true. Calls nothing for / and /dev, which offer every disk of
 * the machine. Returns what @each has returned last.
 */
bool server_offers(const char *search, bool (*each)(const struct server_offer *o, void *arg),
		   void *arg);
/*
 * The first of these names that is a symbolic link to what is not there, with where it leads. NULL:
 * there is none. Allocated.
 */
char *server_offers_late(const char *search);
/*
 * dev_search_path of the server that runs: as the driver has it, or for ibnbd-serverd that of
 * server.conf. Allocated, or NULL.
 */
char *server_offers_search(const struct state *s);

#endif
