// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names below ctl/devices: what they look like, and that each can be read back,
 * so that none is another's. And the words that sysfs and ibnbd-serverd's files
 * have for a mode and an identity.
 */
#include "unit.h"
#include "ibnbd/logic/mapopt.h"
#include "ibnbd/logic/text.h"

/* What docs/sysfs.md says, the other way round. */
static void undo(const char *link, char separator, char *out)
{
	static const char *const escapes[] = { "\\x21", "\\x40", "\\x23", "\\x5c" };
	static const char meant[] = "!@#\\";
	size_t i;

	while (*link && *link != separator) {
		for (i = 0; i < 4 && strncmp(link, escapes[i], 4); i++)
			;
		if (i < 4) {
			*out++ = meant[i];
			link += 4;
		} else {
			*out++ = *link == '!' ? '/' : *link;
			link++;
		}
	}
	*out = 0;
}

UNIT_TEST(looks)
{
	static const struct { const char *device, *session, *link; } rows[] = {
		{ "vol1", "s1", "vol1@s1" },
		{ "dir/disk", "s1", "dir!disk@s1" },
		{ "/dev/sda", "host@10:0:0:1", "!dev!sda@host@10:0:0:1" },
		{ "a!b", "s1", "a\\x21b@s1" },
		{ "a@b", "c", "a\\x40b@c" },
		{ "a", "b@c", "a@b@c" },
		{ "dev-disk\\x2did", "s", "dev-disk\\x5cx2did@s" },
		{ "a\\b", "s\\x21!", "a\\b@s\\x21!" },
		{ "d\303\244t#1", "s", "d\303\244t#1@s" },
	};
	char buf[IBNBD_LINKNAME_MAX];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%s of %s", rows[i].device, rows[i].session);
		CHECK_EQ(ibnbd_linkname_dev(rows[i].device, rows[i].session, buf, sizeof(buf)),
			 strlen(rows[i].link));
		CHECK_STR(buf, rows[i].link);
	}
	CHECK_EQ(ibnbd_linkname("/srv/a#2!@", '#', buf, sizeof(buf)), 16);
	CHECK_STR(buf, "!srv!a\\x232\\x21@");
}

UNIT_TEST(cut)
{
	char buf[8];

	CHECK_EQ(ibnbd_linkname_dev("abcdefghijk", "s", buf, sizeof(buf)), 7);
	CHECK_STR(buf, "abcdefg");
	CHECK_EQ(ibnbd_linkname_dev("abcdef!", "s", buf, sizeof(buf)), 7);
	CHECK_STR(buf, "abcdef\\");
	CHECK_EQ(ibnbd_linkname("ab", '#', buf, 1), 0);
	CHECK_STR(buf, "");
}

UNIT_TEST(one_to_one)
{
	static const char letters[] = "ab!/@#\\x25x21x40x23x5c\303\244 ";
	char device[IBNBD_NAME_LEN], link[IBNBD_LINKNAME_MAX], back[IBNBD_LINKNAME_MAX];
	uint64_t seed = 16;
	unsigned int i, n;

	for (i = 0; i < 20000; i++) {
		size_t len = 1 + unit_random(&seed) % (i % 100 ? 12 : IBNBD_NAME_LEN - 1);

		for (n = 0; n < len; n++)
			device[n] = letters[unit_random(&seed) % (sizeof(letters) - 1)];
		device[n] = 0;
		UNIT_ROW("%s", device);
		n = ibnbd_linkname_dev(device, "s@1", link, sizeof(link));
		if (!CHECK_EQ(n, strlen(link)) || !CHECK(!strchr(link, '/')))
			return;
		undo(link, '@', back);
		if (!CHECK_STR(back, device) || !CHECK_STR(strchr(link, '@'), "@s@1"))
			return;
		ibnbd_linkname(device, '#', link, sizeof(link));
		undo(link, '#', back);
		if (!CHECK_STR(back, device) || !CHECK(!strchr(link, '#')))
			return;
	}
}

UNIT_TEST(access_words_are_those_of_the_option)
{
	char word[32];
	int mode;

	for (mode = IBNBD_ACCESS_RO; mode <= IBNBD_ACCESS_MIGRATION; mode++) {
		ibnbd_mapopt_word(IBNBD_OPT_access_mode, mode, word, sizeof(word));
		CHECK_STR(ibnbd_access_word((enum ibnbd_access)mode), word);
	}
}

UNIT_TEST(identity_words)
{
	CHECK_STR(ibnbd_identity_word(IBNBD_ID_NONE), "none");
	CHECK_STR(ibnbd_identity_word(IBNBD_ID_HARDWARE), "hardware");
	CHECK_STR(ibnbd_identity_word(IBNBD_ID_UUID), "uuid");
	CHECK_STR(ibnbd_identity_word(IBNBD_ID_FILE), "file");
	CHECK_STR(ibnbd_identity_word(4), "other");
	CHECK_STR(ibnbd_identity_word(255), "other");
}
