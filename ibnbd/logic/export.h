/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Which path a client's name means on this server, as far as the text alone decides it
 * (docs/design.md decision 13, protocol 10.4, E-8, E-29), and which clients are allowed (E-50).
 * Pure string logic; server/export.c walks through the file system.
 *
 * The name is always relative to the search path: leading and doubled '/' are dropped, nothing else
 * is changed. With search path `/` the name `/dev/ram0` is /dev/ram0; with search path `/dev` the
 * name `ram0` is /dev/ram0 and `/dev/ram0` is /dev/dev/ram0, which does not exist. The server does
 * not guess; neither does the in-kernel server.
 */
#ifndef IBNBD_LOGIC_EXPORT_H
#define IBNBD_LOGIC_EXPORT_H

#include <ibtrs/addr.h>
#include "ibnbd/proto/wire.h"

#define IBNBD_EXPORT_PATH_MAX	4096	/* root + '/' + name, with NUL */
#define IBNBD_EXPORT_TOKEN	"%SESSNAME%"

/**
 * struct ibnbd_export_path - where to look
 * @root: directory that contains all exports; %SESSNAME% is expanded. Its symlinks are followed,
 *	since the administrator chose it
 * @dir: directory part of the name below @root, "" = @root itself. Looked up below @root, without
 *	symlinks unless @follow
 * @last: last component, never empty. If it is a symlink, the link is followed: the administrator
 *	made it
 * @follow: the search path is `/` or `/dev`: symlinks are followed anywhere
 */
struct ibnbd_export_path {
	const char *root;
	const char *dir;
	const char *last;
	bool follow;
};

/**
 * ibnbd_export_resolve() - name of a client -> path to look up
 * @search: search path, accepted by ibnbd_export_search_check()
 * @sessname: session name; checked here, too, since it may become a path component
 * @name: what OPEN asked for
 * @buf: keeps the three strings; IBNBD_EXPORT_PATH_MAX bytes
 * @out: pointers into @buf
 *
 * Return: 0; -EINVAL: empty, '.' or '..' component, control character, trailing '/', too long,
 * %SESSNAME% without a usable session name; -EACCES: the search path is empty: nothing is exported.
 */
int ibnbd_export_resolve(const char *search, const char *sessname, const char *name, char *buf,
			 size_t size, struct ibnbd_export_path *out, const char **why);

/**
 * ibnbd_export_search_check() - is this a usable search path (module parameter, server.conf)?
 *
 * Empty is fine and means closed. Otherwise: absolute, shorter than 4096, no '.' or '..' component,
 * no control character, at most one %SESSNAME%, which must be the last component.
 *
 * Return: 0 or -EINVAL with a reason.
 */
int ibnbd_export_search_check(const char *search, size_t len, const char **why);

/* Do two names of clients mean the same path? Leading and doubled slashes do not count. */
bool ibnbd_export_same(const char *a, const char *b);

/* Is the search path `/` or `/dev`, with any number of slashes? */
bool ibnbd_export_follows(const char *search);

#define IBNBD_ALLOW_ITEMS	64
#define IBNBD_ALLOW_TEXT	2048

struct ibnbd_allow_item {
	enum ibtrs_addr_kind kind;	/* IBTRS_ADDR_NONE = a session pattern */
	u8 prefix;			/* bits of @addr that count */
	u8 addr[16];
	u16 glob;			/* offset in @text */
};

/**
 * struct ibnbd_allow - a parsed allow-list, about 4 KB
 * @nr: items; 0 = every client is allowed
 *
 * allow= is a list separated by ',' or blanks: `10.0.0.0/24`, `ip:fd00::/64`, `gid:fe80::1`,
 * `session:db*` ('*' any bytes, '?' one). If there are address items the client must match one; if
 * there are session items its session name must match one.
 */
struct ibnbd_allow {
	unsigned int nr;
	bool has_addr;
	bool has_session;
	struct ibnbd_allow_item item[IBNBD_ALLOW_ITEMS];
	char text[IBNBD_ALLOW_TEXT];
};

/*
 * Parse a list once. Returns 0, -EINVAL (@why and @pos of the bad item) or -E2BIG (too many items
 * or too much text).
 */
int ibnbd_allow_parse(const char *s, size_t len, struct ibnbd_allow *a, size_t *pos,
		      const char **why);
/* One address with an optional /prefix, as in an allow-list. 0 or -EINVAL and a reason. */
int ibnbd_allow_item_parse(const char *s, size_t len, struct ibnbd_allow_item *it,
			   const char **why);
/*
 * The IP address of a client or its GID must match. On InfiniBand the IP address alone is only what
 * the client claims. An IPv4 address mapped into IPv6 counts as IPv4.
 */
bool ibnbd_allow_item_match_origin(const struct ibnbd_allow_item *it,
				   const struct ibtrs_origin *from);
bool ibnbd_allow_match(const struct ibnbd_allow *a, const struct ibtrs_origin *from,
		       const char *sessname);
/* '*' any bytes, '?' one byte, everything else itself. */
bool ibnbd_glob_match(const char *glob, const char *s);

#endif
