// SPDX-License-Identifier: GPL-2.0-only
/*
 * The escapes of tools/out/escape.c and the names of tools/host/links.c: what they look like, what
 * never comes out, and that everything can be read back, so that no two names become the same text.
 */
#include <ibtrs/pure.h>
#include "unit.h"
#include "tools/out/escape.h"
#include "tools/host/links.h"

#define UMLAUT	"d\303\244t"		/* in UTF-8 */
#define C1	"\302\233"
#define RLO	"\342\200\256"		/* right-to-left override */
#define ZWSP	"\342\200\213"
#define TAG	"\363\240\201\201"
#define HAN	"\347\243\201"
#define WIDE_EQ	"\357\274\235"

struct row {
	enum escape how;
	const char *text, *want;
};

static void rows_check(const struct row *rows, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		char *out = escape_text(rows[i].how, rows[i].text), *back = escape_undo(out);

		UNIT_ROW("%d: %s", rows[i].how, rows[i].want);
		CHECK_STR(out, rows[i].want);
		CHECK_STR(back, rows[i].text);
		free(out);
		free(back);
	}
}

/* Before escape_locale() and in the C locale nothing but ASCII is shown. */
UNIT_TEST(a_locale_that_is_not_known)
{
	static const struct row rows[] = {
		{ ESCAPE_LINE, "vol/1 x", "vol/1 x" },
		{ ESCAPE_LINE, UMLAUT, "d\\xc3\\xa4t" },
		{ ESCAPE_TEXT, UMLAUT, UMLAUT },
		{ ESCAPE_WORD, UMLAUT, UMLAUT },
	};

	rows_check(rows, ARRAY_SIZE(rows));
	setenv("LC_ALL", "C", 1);
	escape_locale();
	rows_check(rows, ARRAY_SIZE(rows));
}

UNIT_TEST(utf8)
{
	static const struct row rows[] = {
		{ ESCAPE_LINE, UMLAUT " " HAN, UMLAUT " " HAN },
		{ ESCAPE_LINE, "a\033[31mb\n\x7f", "a\\x1b[31mb\\x0a\\x7f" },
		{ ESCAPE_LINE, C1 "m", "\\xc2\\x9bm" },
		{ ESCAPE_LINE, RLO ZWSP TAG, "\\xe2\\x80\\xae\\xe2\\x80\\x8b\\xf3\\xa0\\x81\\x81" },
		{ ESCAPE_LINE, "\344\377\300\200\355\240\200",
		  "\\xe4\\xff\\xc0\\x80\\xed\\xa0\\x80" },
		{ ESCAPE_LINE, "a\\b \\xzz \\x2d \\x41", "a\\b \\xzz \\x2d \\x41" },
		{ ESCAPE_LINE, "\\xe4 \\x20 \\x5C \\x00", "\\x5cxe4 \\x5cx20 \\x5cx5C \\x00" },
		{ ESCAPE_LINE, "\\x2d", "\\x5cx2d" },		/* it is the first */
		{ ESCAPE_LINE, "\\\344", "\\\\xe4" },
		{ ESCAPE_TEXT, UMLAUT "\t\344", UMLAUT "\\x09\\xe4" },
		{ ESCAPE_JSON, UMLAUT C1 "\t\"\344\\xe4", UMLAUT C1 "\t\"\\xe4\\x5cxe4" },
		{ ESCAPE_WORD, "a b\\c", "a\\x20b\\x5cc" },
		{ ESCAPE_WORD, "-", "\\x2d" },
		{ ESCAPE_WORD, "--", "--" },
		{ ESCAPE_SHELL, "a b$(c)`d`\"\\", "a b\\x24(c)\\x60d\\x60\\x22\\x5c" },
		{ ESCAPE_CSV, "=cmd|' /C calc'!A0", "\\x3dcmd|' /C calc'!A0" },
		{ ESCAPE_CSV, "+1", "\\x2b1" },
		{ ESCAPE_CSV, "-1=", "\\x2d1=" },
		{ ESCAPE_CSV, "@x", "\\x40x" },
		{ ESCAPE_CSV, "\tx", "\\x09x" },
		{ ESCAPE_CSV, WIDE_EQ "1", "\\xef\\xbc\\x9d1" },
		{ ESCAPE_CSV, "a=b, \"c\"", "a=b, \"c\"" },
	};

	setenv("LC_ALL", "C.UTF-8", 1);
	escape_locale();
	rows_check(rows, ARRAY_SIZE(rows));
	CHECK_EQ(escape_columns("ab" UMLAUT), 5);
	CHECK_EQ(escape_columns(HAN), 2);
	CHECK(escape_means("d\\xc3\\xa4t", UMLAUT));
	CHECK(escape_means(UMLAUT, UMLAUT));
	CHECK(escape_means("\\xe4", "\\xe4"));		/* a name may be that very word */
	CHECK(!escape_means("a\\x2db", "a-b"));
}

UNIT_TEST(what_is_unseen)
{
	static const struct { const char *text, *want; } rows[] = {
		{ "\"a\\\\xe4\"\tb\n", "\"a\\\\xe4\"\tb\n" },
		{ UMLAUT " " HAN, UMLAUT " " HAN },
		{ "a\344" C1 "\r", "a\\xe4\\xc2\\x9b\\x0d" },
		{ RLO ZWSP, "\\xe2\\x80\\xae\\xe2\\x80\\x8b" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		char *shown = escape_unseen(rows[i].text);

		UNIT_ROW("row %zu", i);
		CHECK_STR(shown, rows[i].want);
		free(shown);
	}
}

/* ---- any text ---- */

static char random_byte(uint64_t *seed, bool line)
{
	static const char likely[] = "\\x25c3d0ae9-=+@'\"$` /:;,.!#~part1"
				     "\342\200\256\302\233\303\244\347\243\201\364\217";
	uint64_t r = unit_random(seed);
	char c = r % 4 ? likely[(r >> 8) % (sizeof(likely) - 1)] : (char)(r >> 8);

	return !c || (!line && (unsigned char)c < ' ') ? 'a' : c;
}

/* Nothing of it is a control, hidden, or no UTF-8. */
static bool harmless(const char *s)
{
	unsigned int code;
	size_t n;

	for (; *s; s += n) {
		n = escape_utf8(s, &code);
		if (!n || escape_hidden(code))
			return false;
	}
	return true;
}

UNIT_TEST(every_text_comes_back)
{
	uint64_t seed = 17;
	char text[64];
	int i, n, how;

	setenv("LC_ALL", "C.UTF-8", 1);
	escape_locale();
	for (i = 0; i < 20000; i++) {
		size_t len = unit_random(&seed) % (sizeof(text) - 1);

		for (n = 0; n < (int)len; n++)
			text[n] = random_byte(&seed, true);
		text[n] = 0;
		for (how = 0; how < ESCAPE_KINDS; how++) {
			char *out = escape_text((enum escape)how, text), *back = escape_undo(out);
			bool held;

			UNIT_ROW("round %d, kind %d: %s", i, how, out);
			held = CHECK_STR(back, text) & (how == ESCAPE_JSON || CHECK(harmless(out)));
			held &= how != ESCAPE_WORD || CHECK(!out[strcspn(out, " ")]);
			held &= how != ESCAPE_SHELL || CHECK(!out[strcspn(out, "\"$`")]);
			held &= how != ESCAPE_CSV || CHECK(!*out || !strchr("=+-@", *out));
			free(out);
			free(back);
			if (!held)
				return;
		}
	}
}

/* ---- links ---- */

static void link_check(char *got, const char *want)
{
	CHECK_STR(got, want);
	free(got);
}

UNIT_TEST(links_stay)
{
	link_check(links_by_name("vol-1_a.b"), "vol-1_a.b");
	link_check(links_session("db-1@10:0:0:1"), "db-1@10:0:0:1");
	link_check(links_session("a-part1"), "a-part1");
	link_check(links_device("vol/1"), "vol/1");
	link_check(links_device("pool.a/lv-1#+:=@x"), "pool.a/lv-1#+:=@x");
	link_check(links_by_path("store1", "vol/1"), "ibnbd-store1-vol:1");
	link_check(links_by_path("s1", "/dev/sd-a"), "ibnbd-s1-:dev:sd-a");
}

UNIT_TEST(links_differ)
{
	link_check(links_by_path("store1", "vol:1"), "ibnbd-store1-vol\\x3a1");
	link_check(links_by_path("a-b", "c"), "ibnbd-a\\x2db-c");
	link_check(links_by_path("a", "b-c"), "ibnbd-a-b-c");
	link_check(links_device(UMLAUT), UMLAUT);
	link_check(links_device("d" RLO "\344"), "d\\xe2\\x80\\xae\\xe4");
	link_check(links_device("/dev//sda/"), "\\x2fdev/\\x2fsda\\x2f");
	link_check(links_device("../x/./.../.."), "\\x2e./x/\\x2e/.../\\x2e.");
	link_check(links_device("a-part1"), "a\\x2dpart1");
	link_check(links_device("a-part1/b-part/c-part2"), "a\\x2dpart1/b-part/c\\x2dpart2");
	link_check(links_by_name("vol1-part12"), "vol1\\x2dpart12");
	link_check(links_by_name("-part"), "-part");
	link_check(links_session("a b"), "a\\x20b");
	link_check(links_device("a\\x2fb"), "a\\x5cx2fb");
}

/* \xNN is NN, whichever it is; '/' and ':' are what they stand for. */
static char *link_undo(const char *link, bool flat)
{
	char *out = calloc(1, strlen(link) + 1), *p = out;
	unsigned int byte;

	for (; *link; link++) {
		if (sscanf(link, "\\x%2x", &byte) == 1) {
			*p++ = (char)byte;
			link += 3;
		} else {
			*p++ = flat && *link == ':' ? '/' : *link;
		}
	}
	return out;
}

/* udev puts '_' in place of anything else, and a file system has no place for these names. */
static bool link_possible(const char *link)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789#+-.:=@_/";
	const char *s;

	for (s = link; *s; s++)
		if ((unsigned char)*s < 0x80 && !strchr(plain, *s) && !(*s == '\\' && s[1] == 'x'))
			return false;
	return harmless(link) && *link != '/' && !strstr(link, "//") && !strstr(link, "/./") &&
	       !strstr(link, "/../") && strcmp(link, ".") && strcmp(link, "..");
}

UNIT_TEST(every_link_is_read_back)
{
	uint64_t seed = 18;
	char session[16], device[32];
	int i, n;

	for (i = 0; i < 20000; i++) {
		char *links[3], *back, *dash;
		int ns = 1 + (int)(unit_random(&seed) % 12),
			nd = 1 + (int)(unit_random(&seed) % 30);
		bool held = true;

		for (n = 0; n < ns; n++)
			session[n] = random_byte(&seed, false);
		session[n] = 0;
		while (strpbrk(session, "/."))
			*strpbrk(session, "/.") = '-';
		for (n = 0; n < nd; n++)
			device[n] = random_byte(&seed, false);
		device[n] = 0;
		UNIT_ROW("round %d: %s of %s", i, device, session);

		links[0] = links_session(session);
		back = link_undo(links[0], false);
		held &= CHECK_STR(back, session) &
			CHECK(link_possible(links[0]) && !strchr(links[0], '/'));
		free(back);
		links[1] = links_device(device);
		back = link_undo(links[1], false);
		held &= CHECK_STR(back, device) & CHECK(link_possible(links[1]));
		free(back);
		links[2] = links_by_path(session, device);
		held &= CHECK(link_possible(links[2]) && !strchr(links[2], '/'));
		dash = strchr(links[2] + 6, '-');
		if (CHECK(dash && !strncmp(links[2], "ibnbd-", 6))) {
			*dash = 0;
			back = link_undo(links[2] + 6, false);
			held &= CHECK_STR(back, session);
			free(back);
			back = link_undo(dash + 1, true);
			held &= CHECK_STR(back, device);
			free(back);
		}
		for (n = 0; n < 3; n++)
			free(links[n]);
		if (!held)
			return;
	}
}

UNIT_TEST(links_too_long)
{
	char device[300];

	memset(device, 'a', sizeof(device));
	device[247] = 0;
	link_check(links_device(device), device);
	device[247] = 'a';
	device[248] = 0;
	link_check(links_device(device), NULL);
	device[100] = '/';
	link_check(links_device(device), device);
	link_check(links_by_path("s", device), NULL);
	memset(device, '~', 61);
	device[61] = '/';
	device[62] = 0;
	link_check(links_device(device), NULL);		/* 61 * 4 and \x2f */
}
