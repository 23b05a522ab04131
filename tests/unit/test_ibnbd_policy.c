// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy: its grammar with the place of each mistake, which rule decides, and what an OPEN may
 * have.
 */
#include "unit.h"
#include "ibnbd/logic/policy.h"

static struct ibnbd_policy_rules p;
static struct ibnbd_policy_fault f;
static const char *why;

static int parse(const char *text)
{
	memset(&f, 0, sizeof(f));
	return ibnbd_policy_parse(&p, text, strlen(text), &f);
}

static struct ibtrs_addr addr(const char *text)
{
	struct ibtrs_addr a;

	if (ibtrs_addr_parse(text, strlen(text), &a, &why))
		abort();
	return a;
}

static struct ibnbd_policy_verdict decide(const char *name, const char *key, const char *session,
					  const char *from)
{
	struct ibtrs_origin o = { .addr = addr(from) };
	struct ibnbd_policy_who who = { .key = key, .session = session, .from = &o };
	struct ibnbd_policy_verdict v;

	ibnbd_policy_decide(&p, &who, name, &v);
	return v;
}

UNIT_TEST(mistakes_have_a_place)
{
	static const struct {
		const char *text;
		int rc;
		u32 line, column, len;
		const char *why, *hint;
	} rows[] = {
		{ "db1", -EINVAL, 1, 4, 0, "does not say", "ro, rw, migration or deny" },
		{ "db1 addr:10.0.0.1\n", -EINVAL, 1, 18, 0, "does not say", "deny" },
		{ "* deny\n\n db1  wr\n", -EINVAL, 3, 7, 2, "neither a peer nor an access", "key:NAME" },
		{ "db1 10.0.0.1 rw", -EINVAL, 1, 5, 8, "neither", "addr:ADDRESS" },
		{ "db1 rw addr:10.0.0.1", -EINVAL, 1, 8, 13, "only \"exclusive\"", "before" },
		{ "db1 deny exclusive", -EINVAL, 1, 10, 9, "kept for it", "leave" },
		{ "db1 key: rw", -EINVAL, 1, 9, 0, "no key", "63" },
		{ "db1 key:a/b rw", -EINVAL, 1, 9, 3, "no key", "63" },
		{ "db1 key:a.next rw", -EINVAL, 1, 9, 6, "no key", "63" },
		{ "db1 key:a key:b rw", -EINVAL, 1, 15, 1, "a second key", "line of its own" },
		{ "db1 session: rw", -EINVAL, 1, 13, 0, "empty", "* and ?" },
		{ "db1 session:a session:b rw", -EINVAL, 1, 23, 1, "second session", "line of its own" },
		{ "db1 addr:10.0.0.0/33 rw", -EINVAL, 1, 10, 11, "prefix length", "addr:" },
		{ "db1 addr:host rw", -EINVAL, 1, 10, 4, "", "addr:" },
		{ "db1 addr:gid:fe80::1 rw", -EINVAL, 1, 10, 11, "GID", "gid:" },
		{ "db1 gid:10.0.0.1/40 rw", -EINVAL, 1, 5, 15, "", "gid:" },
		{ "db1 addr:10.0.0.1 addr:10.0.0.2 rw", -EINVAL, 1, 24, 8, "second address", "line of its own" },
		{ "db1 addr:10.0.0.1 gid:fe80::2 rw", -EINVAL, 1, 19, 11, "second address", "line of its own" },
		{ "/ rw", -EINVAL, 1, 1, 1, "slash alone", "*" },
		{ "a//b rw", -EINVAL, 1, 1, 4, "two slashes", "one" },
		/* what ibnbd_export_resolve() refuses matches nothing */
		{ "./db1 deny", -EINVAL, 1, 1, 5, "between slashes", "dev_search_path" },
		{ " /../db1 deny", -EINVAL, 1, 3, 6, "between slashes", "" },
		{ "db*/./x deny", -EINVAL, 1, 1, 7, "between slashes", "" },
		{ "db1/. deny", -EINVAL, 1, 1, 5, "between slashes", "" },
		{ ".. deny", -EINVAL, 1, 1, 2, "between slashes", "" },
		{ "db1/ deny", -EINVAL, 1, 1, 4, "ends with a slash", "* behind it" },
		{ "*/ deny", -EINVAL, 1, 1, 2, "ends with a slash", "" },
		{ "db1\x01 rw", -EINVAL, 1, 4, 1, "control", "delete" },
		{ "db1 rw\r\r\n", -EINVAL, 1, 7, 1, "control", "delete" },
		{ "DB1 RW", -EINVAL, 1, 5, 2, "neither", "" },
		/* what nobody sees makes another name of it */
		{ "db1\xe2\x80\x8b deny", -EINVAL, 1, 4, 3, "not seen", "separate words" },
		{ "* ro\ndb1\xc2\xa0rw", -EINVAL, 2, 4, 2, "not seen", "* for all" },
		{ "db1 deny\xc2\xa0", -EINVAL, 1, 9, 2, "not seen", "" },
		{ "db1\xe3\x80\x80""addr:10.0.0.1 deny", -EINVAL, 1, 4, 3, "not seen", "" },
		{ "db1 session:a\xe2\x81\xa0 deny", -EINVAL, 1, 14, 3, "not seen", "" },
		{ "\xe2\x80\x8b# db1 rw", -EINVAL, 1, 1, 3, "not seen", "" },
		{ "\xef\xbb\xbf\xef\xbb\xbf* rw", -EINVAL, 1, 2, 3, "not seen", "" },
		{ "\xd0\xb4\xd0\xb1""1 kei:x rw", -EINVAL, 1, 5, 5, "neither", "key:NAME" },
		{ "* ro # or\xe2\x80\xa8""db1 deny", -EINVAL, 1, 10, 3, "not seen", "" },
		{ "db1\xa0 deny", -EINVAL, 1, 4, 1, "not UTF-8", "?" },
		{ "db\xe2\x80", -EINVAL, 1, 3, 1, "not UTF-8", "?" },
		{ "db\xf0\x82\x80\x8b deny", -EINVAL, 1, 3, 1, "not UTF-8", "?" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%zu: %s", i, rows[i].text);
		CHECK_EQ(parse(rows[i].text), rows[i].rc);
		CHECK_EQ(f.line, rows[i].line);
		CHECK_EQ(f.column, rows[i].column);
		CHECK_EQ(f.len, rows[i].len);
		CHECK(f.why && strstr(f.why, rows[i].why));
		CHECK(f.hint && strstr(f.hint, rows[i].hint));
	}
}

/* Dots that are no component of their own, and a slash in front. */
UNIT_TEST(what_can_match)
{
	static const char *const rows[][2] = {
		{ "/db1", "db1" }, { "...", "..." }, { ".db/..a", ".db/..a" }, { ".?", ".x" },
		{ "*..", "x.." }, { "*.", "x/y." }, { "srv/db1", "srv/db1" }, { "?/*", "a/b/c" },
	};
	char text[32];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%s", rows[i][0]);
		snprintf(text, sizeof(text), "%s deny", rows[i][0]);
		CHECK_EQ(parse(text), 0);
		CHECK(ibnbd_policy_about(&p, &p.rule[0], rows[i][1]));
	}
}

UNIT_TEST(nul_and_length)
{
	static char big[IBNBD_POLICY_TEXT + 1];
	u32 i;

	memset(&f, 0, sizeof(f));
	CHECK_EQ(ibnbd_policy_parse(&p, "a rw\nb\0 rw\n", 11, &f), -EINVAL);
	CHECK_EQ(f.line, 2);
	CHECK_EQ(f.column, 2);
	memset(big, '#', sizeof(big));
	CHECK_EQ(ibnbd_policy_parse(&p, big, sizeof(big), &f), -E2BIG);
	CHECK_EQ(f.line, 0);
	CHECK_EQ(ibnbd_policy_parse(&p, big, sizeof(big) - 1, &f), 0);
	CHECK_EQ(p.nr, 0);
	for (i = 0; i < IBNBD_POLICY_RULES; i++)
		memcpy(big + 5 * i, "x rw\n", 5);
	CHECK_EQ(ibnbd_policy_parse(&p, big, 5 * i, &f), 0);
	CHECK_EQ(p.nr, IBNBD_POLICY_RULES);
	memcpy(big + 5 * i, "y rw\n", 5);
	CHECK_EQ(ibnbd_policy_parse(&p, big, 5 * (i + 1), &f), -E2BIG);
	CHECK_EQ(f.line, IBNBD_POLICY_RULES + 1);
	/* the longest words that there can be */
	memset(big, 'a', sizeof(big));
	for (i = 250; i + 8 < IBNBD_POLICY_TEXT; i += 258)
		memcpy(big + i, " deny\n\n", 7);
	CHECK_EQ(ibnbd_policy_parse(&p, big, i - 251, &f), 0);
	CHECK(p.nr > 200);
	CHECK(p.used <= sizeof(p.text));
}

UNIT_TEST(what_is_no_rule)
{
	CHECK_EQ(parse(""), 0);
	CHECK_EQ(p.nr, 0);
	CHECK_EQ(parse("\xef\xbb\xbf# a comment\r\n\r\n \t \n#x rw\n"), 0);
	CHECK_EQ(p.nr, 0);
	CHECK_EQ(decide("db1", NULL, "s", "10.0.0.1").may, IBNBD_POLICY_UNSAID);
	CHECK_EQ(parse("\xef\xbb\xbf""db1\trw exclusive # only here\r\ndb#2 ro#x"), -EINVAL);
	CHECK_EQ(f.line, 2);
	CHECK_EQ(parse("\xef\xbb\xbf""db1\trw exclusive # only here\r\ndb#2 ro"), 0);
	CHECK_EQ(p.nr, 2);
	CHECK_EQ(p.rule[1].line, 2);
	CHECK(p.rule[0].exclusive && !p.rule[1].exclusive);
	CHECK_EQ(decide("db#2", NULL, "s", "10.0.0.1").may, IBNBD_POLICY_RO);
	/* a comment is no word, and who wants to can match any name */
	CHECK_EQ(parse("#\xc2\xa0or \xe4\nd\xc3\xa4\xe6\x97\xa5 ro # voil\xc3\xa0\xc2\xa0!\n"
		       "a??b rw\n"), 0);
	CHECK_EQ(p.nr, 2);
	CHECK_EQ(decide("a\xc2\xa0""b", NULL, "s", "10.0.0.1").may, IBNBD_POLICY_RW);
}

UNIT_TEST(all_mistakes_in_one_pass)
{
	static const char text[] = "a rw\nb wrong\nc ro\nd key:x\n* deny\n";
	int rc, wrong = 0;

	ibnbd_policy_init(&p);
	while ((rc = ibnbd_policy_next(&p, text, sizeof(text) - 1, &f)))
		wrong += rc < 0;
	CHECK_EQ(wrong, 2);
	CHECK_EQ(p.nr, 3);
	CHECK_EQ(p.rule[2].line, 5);
}

/* The first rule that matches decides, and all that a rule asks for must be so. */
UNIT_TEST(which_rule_decides)
{
	static const struct {
		const char *name, *key, *session, *from;
		int may;
		u32 line;
		bool exclusive;
	} rows[] = {
		{ "db1", "web1", "s", "10.0.0.1", IBNBD_POLICY_RW, 1, true },
		{ "db1", "web2", "s", "10.0.0.1", IBNBD_POLICY_RO, 3, false },
		{ "db1", "web11", "s", "10.0.0.1", IBNBD_POLICY_RO, 3, false },
		{ "db1", NULL, "s", "10.0.0.1", IBNBD_POLICY_RO, 3, false },
		{ "db1", NULL, "hv7", "10.0.0.1", IBNBD_POLICY_MIGRATION, 2, false },
		{ "db1", NULL, "hv7", "10.0.1.1", IBNBD_POLICY_DENY, 5, false },
		{ "db1", NULL, "s", "::ffff:10.0.0.9", IBNBD_POLICY_RO, 3, false },
		{ "db1", NULL, "s", "gid:fe80::1", IBNBD_POLICY_RW, 4, false },
		{ "db1", NULL, "s", "fe80::1", IBNBD_POLICY_DENY, 5, false },
		{ "db2", "web1", "s", "10.0.0.1", IBNBD_POLICY_RO, 3, false },
		{ "/db1", "web1", "s", "10.0.0.1", IBNBD_POLICY_RW, 1, true },
		{ "//db1", "web1", "s", "10.9.0.1", IBNBD_POLICY_RW, 1, true },
		{ "dbx", NULL, "s", "10.9.0.1", IBNBD_POLICY_DENY, 5, false },
		{ "web//a///b", NULL, "s", "10.9.0.1", IBNBD_POLICY_RO, 6, false },
		{ "web/a/c", NULL, "s", "10.9.0.1", IBNBD_POLICY_UNSAID, 0, false },
		{ "other", NULL, "s", "10.9.0.1", IBNBD_POLICY_UNSAID, 0, false },
	};
	size_t i;

	CHECK_EQ(parse("/db1 key:web1 rw exclusive\n"
		       "db* session:hv? addr:10.0.0.0/24 migration\n"
		       "db? addr:10.0.0.0/24 ro\n"
		       "db1 gid:fe80::/10 rw\n"
		       "db* deny\n"
		       "web/?/b ro\n"), 0);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_policy_verdict v =
			decide(rows[i].name, rows[i].key, rows[i].session, rows[i].from);

		UNIT_ROW("%zu: %s", i, rows[i].name);
		CHECK_EQ(v.may, rows[i].may);
		CHECK_EQ(v.line, rows[i].line);
		CHECK_EQ(v.exclusive, rows[i].exclusive);
	}
	CHECK(ibnbd_policy_about(&p, &p.rule[0], "//db1"));
	CHECK(!ibnbd_policy_about(&p, &p.rule[0], "db2"));
}

UNIT_TEST(what_an_open_may_have)
{
	static const int rc[][3] = {	/* [may][RO, RW, MIGRATION] */
		[IBNBD_POLICY_DENY] = { -EACCES, -EACCES, -EACCES },
		[IBNBD_POLICY_RO] = { 0, -EACCES, -EACCES },
		[IBNBD_POLICY_RW] = { 0, 0, -EACCES },
		[IBNBD_POLICY_UNSAID] = { 0, 0, 0 },
		[IBNBD_POLICY_MIGRATION] = { 0, 0, 0 },
	};
	int may, mode;

	for (may = 0; may < (int)ARRAY_SIZE(rc); may++) {
		struct ibnbd_policy_verdict v = { .may = may };

		for (mode = 0; mode < 3; mode++) {
			UNIT_ROW("%s, mode %d", ibnbd_policy_may_names[may], mode);
			why = NULL;
			CHECK_EQ(ibnbd_policy_open(&v, mode, &why), rc[may][mode]);
			CHECK_EQ(!!why, !!rc[may][mode]);
		}
	}
}

/* From several addresses: the least of what each may, and kept from the server if any says so. */
UNIT_TEST(several_addresses)
{
	static const char text[] = "* addr:10.0.0.1 rw\n* addr:10.0.0.2 ro exclusive\n"
				   "* addr:10.0.0.3 migration exclusive\n* addr:10.0.0.4 deny\n";
	static const struct {
		const char *from;	/* last digit of each address, in this order */
		enum ibnbd_policy_may may;
		u32 line;
		bool exclusive;
	} rows[] = {
		{ "", IBNBD_POLICY_UNSAID, 0, false },
		{ "1", IBNBD_POLICY_RW, 1, false },
		{ "2", IBNBD_POLICY_RO, 2, true },
		{ "12", IBNBD_POLICY_RO, 2, true },
		{ "21", IBNBD_POLICY_RO, 2, true },
		{ "13", IBNBD_POLICY_RW, 1, true },
		{ "31", IBNBD_POLICY_RW, 1, true },
		{ "19", IBNBD_POLICY_RW, 1, false },
		{ "1324", IBNBD_POLICY_DENY, 4, true },
		{ "4231", IBNBD_POLICY_DENY, 4, true },
	};
	struct ibnbd_policy_fault f;
	const char *c;
	size_t i;

	CHECK_EQ(ibnbd_policy_parse(&p, text, sizeof(text) - 1, &f), 0);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_policy_question q = {
			.rules = &p, .who.session = "s", .name = "db1",
			.v.may = IBNBD_POLICY_UNSAID,
		};

		UNIT_ROW("from %s", rows[i].from);
		for (c = rows[i].from; *c; c++) {
			char text_of[] = "ip:10.0.0.0";
			struct ibtrs_origin o = { .gid = { .kind = IBTRS_ADDR_NONE } };

			text_of[sizeof(text_of) - 2] = *c;
			o.addr = addr(text_of);
			ibnbd_policy_ask(&q, &o);
		}
		CHECK_EQ(q.v.may, rows[i].may);
		CHECK_EQ(q.v.line, rows[i].line);
		CHECK_EQ(q.v.exclusive, rows[i].exclusive);
	}
}

/* InfiniBand: a path by IP has a GID too, and a rule for either decides about it. */
UNIT_TEST(address_or_gid)
{
	static const char text[] = "db1 gid:fe80::7 rw\ndb2 addr:10.0.0.7 ro\ndb3 gid:fe80::8 rw\n"
				   "* deny\n";
	struct ibtrs_origin o = { .addr = addr("ip:10.0.0.7"), .gid = addr("gid:fe80::7") };
	struct ibnbd_policy_who who = { .session = "s", .from = &o };
	static const enum ibnbd_policy_may want[] = { IBNBD_POLICY_RW, IBNBD_POLICY_RO,
						      IBNBD_POLICY_DENY };
	struct ibnbd_policy_verdict v;
	struct ibnbd_policy_fault f;

	CHECK_EQ(ibnbd_policy_parse(&p, text, strlen(text), &f), 0);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		const char name[] = { 'd', 'b', (char)('1' + i), 0 };

		ibnbd_policy_decide(&p, &who, name, &v);
		CHECK_EQ(v.may, want[i]);
	}
}
