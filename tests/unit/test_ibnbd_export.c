// SPDX-License-Identifier: GPL-2.0-only
/* Names of exports as text (decision 13, E-29), search paths, and the allow-list (E-50). */
#include "unit.h"
#include "ibnbd/logic/export.h"

#define X50	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X250	X50 X50 X50 X50 X50

static char buf[IBNBD_EXPORT_PATH_MAX];
static const char *why;

UNIT_TEST(resolve)
{
	static const struct {
		const char *search, *sess, *name;
		int rc;
		const char *root, *dir, *last;	/* or @dir = the reason */
		bool follow;
	} rows[] = {
		{ "/etc/ibnbd/exports", "s", "vol1", 0, "/etc/ibnbd/exports", "", "vol1", false },
		{ "/etc/ibnbd/exports", "s", "/vol1", 0, "/etc/ibnbd/exports", "", "vol1", false },
		{ "/etc/ibnbd/exports/", "s", "a/b/vol1", 0, "/etc/ibnbd/exports", "a/b",
		  "vol1", false },
		{ "//etc//ibnbd///exports//", "s", "//a///b//vol1", 0, "/etc/ibnbd/exports", "a/b",
		  "vol1", false },
		/* as an in-kernel server is used */
		{ "/", "s", "dev/ram0", 0, "/", "dev", "ram0", true },
		{ "/", "s", "/dev/ram0", 0, "/", "dev", "ram0", true },
		{ "/", "s", "ram0", 0, "/", "", "ram0", true },
		{ "/dev", "s", "ram0", 0, "/dev", "", "ram0", true },
		{ "/dev/", "s", "mapper/vg-lv", 0, "/dev", "mapper", "vg-lv", true },
		/* plain semantics: /dev/dev/ram0 */
		{ "/dev", "s", "/dev/ram0", 0, "/dev", "dev", "ram0", true },
		/* the session in the path */
		{ "/exports/%SESSNAME%", "store1", "vol1", 0, "/exports/store1", "",
		  "vol1", false },
		{ "/exports/%SESSNAME%/", "clt9@store1", "a/vol1", 0, "/exports/clt9@store1", "a",
		  "vol1", false },
		{ "/%SESSNAME%", "dev", "ram0", 0, "/dev", "", "ram0", false },
		{ "/exports/%SESSNAME%", "", "vol1", -EINVAL, NULL,
		  "the session name cannot stand in the search path", NULL, false },
		{ "/exports/%SESSNAME%", "..", "vol1", -EINVAL, NULL,
		  "the session name cannot stand in the search path", NULL, false },
		{ "/exports/%SESSNAME%", ".", "vol1", -EINVAL, NULL,
		  "the session name cannot stand in the search path", NULL, false },
		{ "/exports/%SESSNAME%", "a/b", "vol1", -EINVAL, NULL,
		  "the session name cannot stand in the search path", NULL, false },
		{ "/exports/%SESSNAME%", "a\nb", "vol1", -EINVAL, NULL,
		  "the session name cannot stand in the search path", NULL, false },
		{ "/exports/%SESSNAME%", "%SESSNAME%", "v", 0, "/exports/%SESSNAME%", "",
		  "v", false },
		/* not asked for, not looked at */
		{ "/exports", "../..", "vol1", 0, "/exports", "", "vol1", false },
		{ "/exports", "s", "%SESSNAME%", 0, "/exports", "", "%SESSNAME%", false },
		/* traversal */
		{ "/exports", "s", "..", -EINVAL, NULL,
		  "'.' or '..' in the device name", NULL, false },
		{ "/exports", "s", "../etc/shadow", -EINVAL, NULL,
		  "'.' or '..' in the device name", NULL, false },
		{ "/exports", "s", "/../etc/shadow", -EINVAL, NULL,
		  "'.' or '..' in the device name", NULL, false },
		{ "/exports", "s", "a/../../b", -EINVAL, NULL,
		  "'.' or '..' in the device name", NULL, false },
		{ "/exports", "s", "a//..//b", -EINVAL, NULL,
		  "'.' or '..' in the device name", NULL, false },
		{ "/exports", "s", "a/..", -EINVAL, NULL,
		  "'.' or '..' in the device name", NULL, false },
		{ "/exports", "s", "a/./b", -EINVAL, NULL,
		  "'.' or '..' in the device name", NULL, false },
		{ "/exports", "s", ".", -EINVAL, NULL,
		  "'.' or '..' in the device name", NULL, false },
		{ "/exports", "s", "./a", -EINVAL, NULL,
		  "'.' or '..' in the device name", NULL, false },
		{ "/", "s", "../x", -EINVAL, NULL, "'.' or '..' in the device name", NULL, false },
		/* dots that are only dots */
		{ "/exports", "s", "...", 0, "/exports", "", "...", false },
		{ "/exports", "s", "a..b/.hidden/c..", 0, "/exports", "a..b/.hidden",
		  "c..", false },
		{ "/exports", "s", "..a", 0, "/exports", "", "..a", false },
		/* shape */
		{ "/exports", "s", "", -EINVAL, NULL, "the device name is empty", NULL, false },
		{ "/exports", "s", "/", -EINVAL, NULL, "the device name is empty", NULL, false },
		{ "/exports", "s", "////", -EINVAL, NULL, "the device name is empty", NULL, false },
		{ "/exports", "s", "vol/", -EINVAL, NULL,
		  "the device name ends in '/'", NULL, false },
		{ "/exports", "s", "a\nb", -EINVAL, NULL,
		  "control character in the device name", NULL, false },
		{ "/exports", "s", "a\x7f", -EINVAL, NULL,
		  "control character in the device name", NULL, false },
		{ "/exports", "s", "pl\xc3\xa4tte 1", 0, "/exports", "", "pl\xc3\xa4tte 1", false },
		/* search paths that should not have come so far */
		{ "", "s", "vol1", -EACCES, NULL, "nothing is exported: the search path is empty",
		  NULL, false },
		{ "exports", "s", "vol1", -EINVAL, NULL,
		  "the search path must begin with '/'", NULL, false },
		{ "/a/../b", "s", "vol1", -EINVAL, NULL,
		  "the search path must not contain '.' or '..'", NULL, false },
	};
	struct ibnbd_export_path p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%s | %s | %s", rows[i].search, rows[i].sess, rows[i].name);
		memset(buf, 0xa5, sizeof(buf));
		if (!CHECK_EQ(ibnbd_export_resolve(rows[i].search, rows[i].sess, rows[i].name, buf,
						   sizeof(buf), &p, &why), rows[i].rc))
			continue;
		if (rows[i].rc) {
			CHECK_STR(why, rows[i].dir);
			continue;
		}
		CHECK_STR(p.root, rows[i].root);
		CHECK_STR(p.dir, rows[i].dir);
		CHECK_STR(p.last, rows[i].last);
		CHECK_EQ(p.follow, rows[i].follow);
	}
}

UNIT_TEST(same_name)
{
	static const struct {
		const char *a, *b;
		bool same;
	} rows[] = {
		{ "db1", "db1", true },		{ "db1", "/db1", true },
		{ "//db1", "/db1", true },	{ "a/b", "a//b", true },
		{ "/a///b", "a/b", true },	{ "", "/", true },
		{ "a/", "a//", true },		{ "a/", "a", false },
		{ "ab", "a/b", false },		{ "a", "ab", false },
		{ "a/b", "a/c", false },	{ "", "a", false },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%s | %s", rows[i].a, rows[i].b);
		CHECK_EQ(ibnbd_export_same(rows[i].a, rows[i].b), rows[i].same);
		CHECK_EQ(ibnbd_export_same(rows[i].b, rows[i].a), rows[i].same);
	}
}

UNIT_TEST(resolve_lengths)
{
	static char search[IBNBD_EXPORT_PATH_MAX + 8];
	struct ibnbd_export_path p;
	size_t len;

	/* root + '/' + name + NUL may have 4096 bytes, not one more. */
	for (len = 3800; len < 4095; len++) {
		memset(search, 'r', len);
		search[0] = '/';
		search[len] = 0;
		UNIT_ROW("search path of %zu", len);
		CHECK_EQ(ibnbd_export_resolve(search, "s", X250, buf, sizeof(buf), &p, &why),
			 len + 1 + 250 + 1 <= IBNBD_EXPORT_PATH_MAX ? 0 : -EINVAL);
		CHECK_EQ(ibnbd_export_resolve(search, "s", "a/b/c", buf, sizeof(buf), &p, &why),
			 len + 1 + 5 + 1 <= IBNBD_EXPORT_PATH_MAX ? 0 : -EINVAL);
	}
	/* Smaller buffers of the caller, to the byte. */
	for (len = 0; len < 20; len++) {
		char *small = unit_exact(buf, len);

		UNIT_ROW("buffer of %zu", len);
		CHECK_EQ(ibnbd_export_resolve("/exp", "s", "a/b", small, len, &p, &why),
			 len >= 9 ? 0 : -EINVAL);
		CHECK_EQ(ibnbd_export_resolve("/", "s", "ab", small, len, &p, &why),
			 len >= 5 ? 0 : -EINVAL);
		free(small);
	}
}

UNIT_TEST(search_path)
{
	static const struct { const char *path; int rc; const char *why; bool follows; } rows[] = {
		{ "", 0, NULL, false },
		{ "/", 0, NULL, true },
		{ "//", 0, NULL, true },
		{ "/dev", 0, NULL, true },
		{ "//dev//", 0, NULL, true },
		{ "/devices", 0, NULL, false },
		{ "/dev/mapper", 0, NULL, false },
		{ "/de", 0, NULL, false },
		{ "/srv/..x/.y", 0, NULL, false },
		{ "/exports/%SESSNAME%", 0, NULL, false },
		{ "/%SESSNAME%//", 0, NULL, false },
		{ "dev", -EINVAL, "the search path must begin with '/'", false },
		{ ".", -EINVAL, "the search path must begin with '/'", false },
		{ "/.", -EINVAL, "the search path must not contain '.' or '..'", false },
		{ "/a/..", -EINVAL, "the search path must not contain '.' or '..'", false },
		{ "/a/../b", -EINVAL, "the search path must not contain '.' or '..'", false },
		{ "/a\nb", -EINVAL, "control character in the search path", false },
		{ "/%SESSNAME%/x", -EINVAL,
		  "%SESSNAME% must be the last component of the search path", false },
		{ "/%SESSNAME%/%SESSNAME%", -EINVAL,
		  "%SESSNAME% must be the last component of the search path", false },
		{ "/x%SESSNAME%", -EINVAL, "%SESSNAME% must be a component of its own", false },
		{ "/%SESSNAME%x", -EINVAL, "%SESSNAME% must be a component of its own", false },
		{ "/%sessname%", 0, NULL, false },
	};
	static char longest[IBNBD_EXPORT_PATH_MAX + 1];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = strlen(rows[i].path);
		char *copy = unit_exact(rows[i].path, len);

		UNIT_ROW("%s", rows[i].path);
		why = NULL;
		CHECK_EQ(ibnbd_export_search_check(copy, len, &why), rows[i].rc);
		CHECK_STR(why, rows[i].why);
		CHECK_EQ(ibnbd_export_follows(rows[i].path), rows[i].follows);
		free(copy);
	}
	UNIT_ROW("lengths");
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	CHECK_EQ(ibnbd_export_search_check(longest, 4095, &why), 0);
	CHECK_EQ(ibnbd_export_search_check(longest, 4096, &why), -EINVAL);
}

UNIT_TEST(globs)
{
	static const struct { const char *glob, *s; bool want; } rows[] = {
		{ "", "", true }, { "", "a", false }, { "a", "", false },
		{ "a", "a", true }, { "a", "b", false },
		{ "*", "", true }, { "*", "abc", true }, { "**", "abc", true },
		{ "a*", "a", true }, { "a*", "abc", true },
		{ "a*", "ba", false }, { "*a", "ba", true },
		{ "*a", "ab", false }, { "a*b*c", "aXXbYYc", true },
		{ "a*b*c", "aXXbYY", false }, { "?", "a", true },
		{ "?", "", false }, { "?", "ab", false }, { "a?c", "abc", true },
		{ "*ab", "aab", true }, { "*aab", "aaab", true },
		{ "db*-prod", "db17-prod", true }, { "db*-prod", "db17-test", false },
		{ "a**b", "ab", true }, { "*?", "", false }, { "*?", "x", true },
		{ "[a]", "a", false }, { "[a]", "[a]", true },
		{ "*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%s on %s", rows[i].glob, rows[i].s);
		CHECK_EQ(ibnbd_glob_match(rows[i].glob, rows[i].s), rows[i].want);
	}
}

static struct ibnbd_allow allow;

UNIT_TEST(allow_matches)
{
	static const struct { const char *list, *client, *sess; bool want; } rows[] = {
		{ "", "ip:10.0.0.1", "s", true },
		{ " ,\n", "ip:10.0.0.1", "s", true },
		{ "10.0.0.1", "ip:10.0.0.1", "s", true },
		{ "10.0.0.1", "ip:10.0.0.2", "s", false },
		{ "ip:10.0.0.0/24", "ip:10.0.0.255", "s", true },
		{ "ip:10.0.0.0/24", "ip:10.0.1.0", "s", false },
		{ "10.0.0.77/24", "ip:10.0.0.1", "s", true },	/* host bits do not count */
		{ "10.0.0.0/25", "ip:10.0.0.127", "s", true },
		{ "10.0.0.0/25", "ip:10.0.0.128", "s", false },
		{ "10.0.0.0/31", "ip:10.0.0.1", "s", true },
		{ "10.0.0.0/31", "ip:10.0.0.2", "s", false },
		{ "0.0.0.0/0", "ip:203.0.113.9", "s", true },
		{ "0.0.0.0/0", "ip:fd00::1", "s", false },
		{ "::/0", "ip:fd00::1", "s", true },
		{ "::/0", "ip:10.0.0.1", "s", false },
		{ "fd00::/64", "ip:fd00::ffff", "s", true },
		{ "fd00::/64", "ip:fd00:0:0:1::1", "s", false },
		{ "fd00::/61", "ip:fd00:0:0:7::1", "s", true },
		{ "fd00::/61", "ip:fd00:0:0:8::1", "s", false },
		{ "fd00::1/128", "ip:fd00::1", "s", true },
		{ "gid:fe80::1", "gid:fe80::1", "s", true },
		{ "gid:fe80::1", "ip:fe80::1%eth0", "s", false },
		{ "gid:fe80::/10", "gid:fe80::2", "s", true },
		/* as a v6 listener sees it */
		{ "10.0.0.1", "ip:::ffff:10.0.0.1", "s", true },
		{ "10.0.0.1", "ip:::ffff:10.0.0.2", "s", false },
		{ "::ffff:10.0.0.0/120", "ip:10.0.0.9", "s", true },
		{ "::/0", "ip:::ffff:10.0.0.1", "s", false },
		{ "10.0.0.1,10.0.0.2", "ip:10.0.0.2", "s", true },
		{ "10.0.0.1 10.0.0.2\n", "ip:10.0.0.2", "s", true },
		{ "session:store*", "ip:1.2.3.4", "store1", true },
		{ "session:store*", "ip:1.2.3.4", "stall1", false },
		{ "session:a session:b", "ip:1.2.3.4", "b", true },
		{ "session:a,10.0.0.0/8", "ip:10.9.9.9", "a", true },
		/* both kinds given: both must match */
		{ "session:a,10.0.0.0/8", "ip:10.9.9.9", "b", false },
		{ "session:a,10.0.0.0/8", "ip:11.9.9.9", "a", false },
		{ "session:*", "ip:11.9.9.9", "anything", true },
	};
	size_t i, pos;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = strlen(rows[i].list);
		char *copy = unit_exact(rows[i].list, len);
		struct ibtrs_origin from = { 0 };

		UNIT_ROW("%s | %s | %s", rows[i].list, rows[i].client, rows[i].sess);
		CHECK_EQ(ibtrs_addr_parse(rows[i].client, strlen(rows[i].client), &from.addr, &why),
			 0);
		CHECK_EQ(ibnbd_allow_parse(copy, len, &allow, &pos, &why), 0);
		CHECK_EQ(ibnbd_allow_match(&allow, &from, rows[i].sess), rows[i].want);
		free(copy);
	}
}

/* InfiniBand: a path by IP has a GID too, and is asked for both, with its name and before. */
UNIT_TEST(allow_matches_address_or_gid)
{
	static const struct { const char *list, *sess; bool want; } rows[] = {
		{ "gid:fe80::7", "any", true },
		{ "gid:fe80::7", "", true },
		{ "gid:fe80::/10,session:a", "a", true },
		{ "gid:fe80::/10,session:a", "b", false },
		{ "10.0.0.7", "any", true },
		{ "gid:fe80::8", "any", false },
		{ "gid:fe80::8,10.0.0.8", "any", false },
		{ "fe80::7", "any", false },
	};
	struct ibtrs_origin from;
	size_t i, pos;

	CHECK_EQ(ibtrs_addr_parse("ip:10.0.0.7", 11, &from.addr, &why), 0);
	CHECK_EQ(ibtrs_addr_parse("gid:fe80::7", 11, &from.gid, &why), 0);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%s | %s", rows[i].list, rows[i].sess);
		CHECK_EQ(ibnbd_allow_parse(rows[i].list, strlen(rows[i].list), &allow, &pos, &why),
			 0);
		CHECK_EQ(ibnbd_allow_match(&allow, &from, rows[i].sess), rows[i].want);
	}
}

UNIT_TEST(allow_refuses)
{
	static const struct { const char *list; int rc; size_t pos; } rows[] = {
		{ "store1", -EINVAL, 0 },
		{ "*", -EINVAL, 0 },
		{ "10.0.0", -EINVAL, 0 },
		{ "10.0.0.1/33", -EINVAL, 0 },
		{ "10.0.0.1/", -EINVAL, 0 },
		{ "10.0.0.1/a", -EINVAL, 0 },
		{ "10.0.0.1/-1", -EINVAL, 0 },
		{ "10.0.0.1/24/24", -EINVAL, 0 },
		{ "10.0.0.1/0024", -EINVAL, 0 },
		{ "fd00::/129", -EINVAL, 0 },
		{ "gid:fe80::1/129", -EINVAL, 0 },
		{ "fe80::1%eth0", -EINVAL, 0 },
		{ "/24", -EINVAL, 0 },
		{ "session:", -EINVAL, 0 },
		{ "session:a\x01", -EINVAL, 0 },
		{ "10.0.0.1, nfs:1.2.3.4", -EINVAL, 10 },
		{ "10.0.0.1,session:a,10.0.0.256", -EINVAL, 19 },
	};
	static char list[8192];
	size_t i, n, pos;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%s", rows[i].list);
		why = NULL;
		CHECK_EQ(ibnbd_allow_parse(rows[i].list, strlen(rows[i].list), &allow, &pos, &why),
			 rows[i].rc);
		CHECK_EQ(pos, rows[i].pos);
		CHECK(why);
	}
	UNIT_ROW("too many");
	for (i = 0, n = 0; i < IBNBD_ALLOW_ITEMS; i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "10.0.0.%zu,", i);
	CHECK_EQ(ibnbd_allow_parse(list, n, &allow, &pos, &why), 0);
	CHECK_EQ(allow.nr, IBNBD_ALLOW_ITEMS);
	snprintf(list + n, sizeof(list) - n, "1.1.1.1");
	CHECK_EQ(ibnbd_allow_parse(list, strlen(list), &allow, &pos, &why), -E2BIG);
	CHECK_EQ(pos, n);
	UNIT_ROW("too much text");
	for (i = 0, n = 0; i < 10; i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "session:%s,", X250);
	CHECK_EQ(ibnbd_allow_parse(list, n, &allow, &pos, &why), -E2BIG);
}
