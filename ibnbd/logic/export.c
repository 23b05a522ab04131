// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Names of exports and the allow-list, as text. Takes no locks and uses only the caller's memory.
 * After a refusal @buf is undefined and @why is set.
 */
#include "ibnbd/logic/export.h"
#include "ibnbd/logic/text.h"

#define EXPORT_SESSION_PREFIX	"session:"

bool ibnbd_export_same(const char *a, const char *b)
{
	bool slash = true;	/* as if there were one before the name */

	for (;; a++, b++) {
		while (slash && *a == '/')
			a++;
		while (slash && *b == '/')
			b++;
		if (*a != *b)
			return false;
		if (!*a)
			return true;
		slash = *a == '/';
	}
}

/* From the component of @n bytes at @i to the next one. False: there is none. */
static bool export_next(const char *s, size_t len, size_t *i, size_t *n)
{
	for (*i += *n; *i < len && s[*i] == '/'; ++*i)
		;
	for (*n = 0; *i + *n < len && s[*i + *n] != '/'; ++*n)
		;
	return *n;
}

static bool export_is_dots(const char *s, size_t n)
{
	return s[0] == '.' && (n == 1 || (n == 2 && s[1] == '.'));
}

static bool export_is_token(const char *s, size_t n)
{
	return n == sizeof(IBNBD_EXPORT_TOKEN) - 1 && !memcmp(s, IBNBD_EXPORT_TOKEN, n);
}

static bool export_has_token(const char *s, size_t n)
{
	size_t i, t = sizeof(IBNBD_EXPORT_TOKEN) - 1;

	for (i = 0; i + t <= n; i++)
		if (!memcmp(s + i, IBNBD_EXPORT_TOKEN, t))
			return true;
	return false;
}

int ibnbd_export_search_check(const char *search, size_t len, const char **why)
{
	size_t i, at = 0, n = 0;
	bool token = false;

	if (!len)
		return 0;
	if (len >= IBNBD_EXPORT_PATH_MAX)
		return ibnbd_refuse(-EINVAL, why, "the search path is longer than 4095 bytes");
	if (search[0] != '/')
		return ibnbd_refuse(-EINVAL, why, "the search path must begin with '/'");
	for (i = 0; i < len; i++)
		if (ibnbd_is_control(search[i]))
			return ibnbd_refuse(-EINVAL, why, "control character in the search path");
	while (export_next(search, len, &at, &n)) {
		if (token)
			return ibnbd_refuse(
				-EINVAL, why,
				"%SESSNAME% must be the last component of the search path");
		if (export_is_dots(search + at, n))
			return ibnbd_refuse(-EINVAL, why,
					    "the search path must not contain '.' or '..'");
		token = export_is_token(search + at, n);
		if (!token && export_has_token(search + at, n))
			return ibnbd_refuse(-EINVAL, why,
					    "%SESSNAME% must be a component of its own");
	}
	return 0;
}

bool ibnbd_export_follows(const char *search)
{
	return search[0] == '/' && (ibnbd_export_same(search, "/") ||
				    ibnbd_export_same(search, "/dev") ||
				    ibnbd_export_same(search, "/dev/"));
}

struct export_out {
	char *buf;
	size_t size;
	size_t n;
	bool full;			/* something did not fit */
};

/* Always leaves room for a NUL. */
static void export_put(struct export_out *o, const char *s, size_t n)
{
	o->full |= n >= o->size - o->n;
	if (o->full)
		return;
	memcpy(o->buf + o->n, s, n);
	o->n += n;
	o->buf[o->n] = 0;
}

static int export_session_check(const char *s, const char **why)
{
	size_t i, n = strlen(s);
	bool good = n && n < IBNBD_NAME_LEN && !export_is_dots(s, n);

	for (i = 0; i < n; i++)
		good &= s[i] != '/' && !ibnbd_is_control(s[i]);
	return good ? 0 : ibnbd_refuse(-EINVAL, why,
				       "the session name cannot stand in the search path");
}

static int export_root(struct export_out *o, const char *search, const char *sessname,
		       const char **why)
{
	size_t len = strlen(search), at = 0, n = 0;
	int err;

	while (export_next(search, len, &at, &n)) {
		export_put(o, "/", 1);
		if (!export_is_token(search + at, n)) {
			export_put(o, search + at, n);
			continue;
		}
		err = export_session_check(sessname, why);
		if (err)
			return err;
		export_put(o, sessname, strlen(sessname));
	}
	if (!o->n)
		export_put(o, "/", 1);
	return 0;
}

/* @last: offset of the last component in the buffer. */
static int export_name(struct export_out *o, const char *name, size_t *last, const char **why)
{
	size_t len = strlen(name), i, at = 0, n = 0;

	*last = 0;
	for (i = 0; i < len; i++)
		if (ibnbd_is_control(name[i]))
			return ibnbd_refuse(-EINVAL, why, "control character in the device name");
	while (export_next(name, len, &at, &n)) {
		if (export_is_dots(name + at, n))
			return ibnbd_refuse(-EINVAL, why, "'.' or '..' in the device name");
		if (*last)
			export_put(o, "/", 1);
		*last = o->n;
		export_put(o, name + at, n);
	}
	if (!*last)
		return ibnbd_refuse(-EINVAL, why, "the device name is empty");
	if (name[len - 1] == '/')
		return ibnbd_refuse(-EINVAL, why, "the device name ends in '/'");
	return 0;
}

int ibnbd_export_resolve(const char *search, const char *sessname, const char *name, char *buf,
			 size_t size, struct ibnbd_export_path *out, const char **why)
{
	struct export_out o = { .buf = buf,
				.size = size < IBNBD_EXPORT_PATH_MAX ? size :
								       IBNBD_EXPORT_PATH_MAX };
	size_t root_len, last;
	int err;

	err = ibnbd_export_search_check(search, strlen(search), why);
	if (err)
		return err;
	if (!*search)
		return ibnbd_refuse(-EACCES, why, "nothing is exported: the search path is empty");

	err = export_root(&o, search, sessname, why);
	if (err)
		return err;
	root_len = o.n;
	export_put(&o, "", 1);		/* keep the NUL of the root */
	err = export_name(&o, name, &last, why);
	if (err)
		return err;
	if (o.full)
		return ibnbd_refuse(-EINVAL, why, "the path is too long");

	out->root = buf;
	out->last = buf + last;
	out->follow = ibnbd_export_follows(search);
	out->dir = buf + root_len;	/* "" */
	if (last > root_len + 1) {
		buf[last - 1] = 0;
		out->dir = buf + root_len + 1;
	}
	return 0;
}

bool ibnbd_glob_match(const char *glob, const char *s)
{
	const char *star = NULL, *resume = NULL;

	while (*s) {
		if (*glob == '*') {
			star = ++glob;
			resume = s;
		} else if (*glob == '?' || *glob == *s) {
			glob++;
			s++;
		} else if (star) {
			glob = star;
			s = ++resume;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return !*glob;
}

static bool allow_is_separator(char c)
{
	return c == ',' || c == ' ' || c == '\t' || c == '\n';
}

static unsigned int allow_bits(enum ibtrs_addr_kind kind)
{
	return kind == IBTRS_ADDR_IP4 ? 32 : 128;
}

/* ::ffff:a.b.c.d: a listener on IPv6-any sees the addresses of IPv4 clients in this form. */
static bool allow_is_mapped(enum ibtrs_addr_kind kind, const u8 *raw)
{
	static const u8 prefix[12] = { [10] = 0xff, [11] = 0xff };

	return kind == IBTRS_ADDR_IP6 && !memcmp(raw, prefix, sizeof(prefix));
}

static int allow_prefix(const char *s, size_t len, unsigned int max, u8 *out)
{
	unsigned int v = 0;
	size_t i;

	if (!len || len > 3)
		return -EINVAL;
	for (i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -EINVAL;
		v = v * 10 + (unsigned int)(s[i] - '0');
	}
	if (v > max)
		return -EINVAL;
	*out = (u8)v;
	return 0;
}

int ibnbd_allow_item_parse(const char *s, size_t len, struct ibnbd_allow_item *it,
			   const char **why)
{
	struct ibtrs_addr a;
	const char *slash = memchr(s, '/', len);
	size_t n = slash ? (size_t)(slash - s) : len;

	if (ibtrs_addr_parse(s, n, &a, why))
		return -EINVAL;
	if (a.scope[0])
		return ibnbd_refuse(-EINVAL, why,
				    "an interface name has no place in an allow-list");
	it->kind = a.kind;
	memcpy(it->addr, a.raw, sizeof(it->addr));
	it->prefix = (u8)allow_bits(a.kind);
	if (n < len && allow_prefix(s + n + 1, len - n - 1, allow_bits(a.kind), &it->prefix))
		return ibnbd_refuse(
			-EINVAL, why,
			"the prefix length must be 0..32 for IPv4 and 0..128 for others");
	if (it->prefix >= 96 && allow_is_mapped(it->kind, it->addr)) {
		it->kind = IBTRS_ADDR_IP4;
		it->prefix -= 96;
		memmove(it->addr, it->addr + 12, 4);
	}
	return 0;
}

static int allow_session(const char *s, size_t len, struct ibnbd_allow *a, size_t *text,
			 struct ibnbd_allow_item *it, const char **why)
{
	size_t i;

	if (!len)
		return ibnbd_refuse(-EINVAL, why, "the session pattern is empty");
	for (i = 0; i < len; i++)
		if (ibnbd_is_control(s[i]))
			return ibnbd_refuse(-EINVAL, why,
					    "control character in the session pattern");
	if (len >= sizeof(a->text) - *text)
		return ibnbd_refuse(-E2BIG, why, "the session patterns are too long together");
	it->kind = IBTRS_ADDR_NONE;
	it->glob = (u16)*text;
	memcpy(a->text + *text, s, len);
	a->text[*text + len] = 0;
	*text += len + 1;
	return 0;
}

int ibnbd_allow_parse(const char *s, size_t len, struct ibnbd_allow *a, size_t *pos,
		      const char **why)
{
	const size_t prefix = sizeof(EXPORT_SESSION_PREFIX) - 1;
	size_t i = 0, n, text = 0;
	int err;

	memset(a, 0, sizeof(*a));
	for (;;) {
		struct ibnbd_allow_item *it;

		while (i < len && allow_is_separator(s[i]))
			i++;
		if (i == len)
			return 0;
		for (n = 0; i + n < len && !allow_is_separator(s[i + n]); n++)
			;
		*pos = i;
		if (a->nr == IBNBD_ALLOW_ITEMS)
			return ibnbd_refuse(-E2BIG, why, "more than 64 items in the allow-list");
		it = &a->item[a->nr];
		if (n >= prefix && !memcmp(s + i, EXPORT_SESSION_PREFIX, prefix)) {
			err = allow_session(s + i + prefix, n - prefix, a, &text, it, why);
			a->has_session = true;
		} else {
			err = ibnbd_allow_item_parse(s + i, n, it, why);
			a->has_addr = true;
		}
		if (err)
			return err;
		a->nr++;
		i += n;
	}
}

static bool allow_in_prefix(const u8 *a, const u8 *b, unsigned int bits)
{
	unsigned int bytes = bits / 8, rest = bits % 8;

	if (memcmp(a, b, bytes))
		return false;
	return !rest || !((a[bytes] ^ b[bytes]) >> (8 - rest));
}

static bool allow_match_one(const struct ibnbd_allow_item *it, const struct ibtrs_addr *client)
{
	enum ibtrs_addr_kind kind = client->kind;
	const u8 *raw = client->raw;

	if (allow_is_mapped(kind, raw)) {
		kind = IBTRS_ADDR_IP4;
		raw += 12;
	}
	return it->kind != IBTRS_ADDR_NONE && it->kind == kind &&
	       allow_in_prefix(it->addr, raw, it->prefix);
}

bool ibnbd_allow_item_match_origin(const struct ibnbd_allow_item *it,
				   const struct ibtrs_origin *from)
{
	return allow_match_one(it, &from->addr) || allow_match_one(it, &from->gid);
}

bool ibnbd_allow_match(const struct ibnbd_allow *a, const struct ibtrs_origin *from,
		       const char *sessname)
{
	bool addr = !a->has_addr, session = !a->has_session;
	const struct ibnbd_allow_item *it;

	for (it = a->item; it < a->item + a->nr; it++) {
		if (it->kind == IBTRS_ADDR_NONE)
			session |= ibnbd_glob_match(a->text + it->glob, sessname);
		else
			addr |= ibnbd_allow_item_match_origin(it, from);
	}
	return addr && session;
}
