// SPDX-License-Identifier: GPL-2.0-only
/*
 * Refusals of the transport: golden bytes with and without WORDS, and what a
 * hostile server may send (E-51).
 */
#include <locale.h>
#include <wchar.h>
#include <ibtrs/words.h>
#include "ibtrs/proto/msg.h"
#include "unit.h"

/* EEXIST (17) */
static const u8 golden_plain[56] = { 0xbd, 0x1b, 0x00, 0x02, 0xef, 0xff };
static const u8 golden_words[148] = {
	0xbd, 0x1b, 0x00, 0x02, 0xef, 0xff, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 'I', 'B', 'T', 'X', 0x10, 0, 0, 0,
	[56] = 't', 'a', 'k', 'e', 'n',
};
static const u8 golden_info[192] = { 8, 0, 17, 0, 0, 0, 0, 0, 't', 'a', 'k', 'e', 'n' };

UNIT_TEST(words_copy)
{
	char text[8];

	memset(text, 0xa5, sizeof(text));
	CHECK_EQ(ibtrs_words_copy(text, sizeof(text), "ab\0cd", 5), 2);
	CHECK_MEM(text, "ab\0\0\0\0\0\0", 8);
	CHECK_EQ(ibtrs_words_copy(text, sizeof(text), "0123456789", 10), 7);
	CHECK_STR(text, "0123456");
	CHECK_EQ(ibtrs_words_copy(text, sizeof(text), "abc", 2), 2);
	CHECK_STR(text, "ab");
	CHECK_EQ(ibtrs_words_copy(text, sizeof(text), "\x1b\n\x7f\x9b\xff ~", 7), 7);
	CHECK_STR(text, "????? ~");
	CHECK_EQ(ibtrs_words_copy(text, 1, "abc", 3), 0);
	CHECK_STR(text, "");
}

/* libc decodes as well, and knows nothing of ours; it goes on behind the last code point. */
UNIT_TEST(utf8)
{
	static const unsigned char tails[] = { 0, 0x7f, 0x80, 0x9f, 0xa0, 0xbf, 0xc0, 0xff };
	unsigned char s[4];
	unsigned int i, left, bad = 0;

	CHECK(setlocale(LC_CTYPE, "C.UTF-8"));
	for (i = 0; i < 0x10000 * 64; i++) {
		s[0] = (unsigned char)(i >> 14);
		s[1] = (unsigned char)(i >> 6);
		s[2] = tails[i >> 3 & 7];
		s[3] = tails[i & 7];
		for (left = 1; left <= 4; left++) {
			mbstate_t state = { 0 };
			wchar_t wide = 0;
			size_t want = mbrtowc(&wide, (const char *)s, left, &state), n;
			u32 code = 0;

			want = want == 0 ? 1 : want > 4 || wide > 0x10ffff ? 0 : want;
			wide = want ? wide : 0;
			n = ibtrs_utf8(s, left, &code);
			bad += n != want || code != (u32)wide;
		}
	}
	CHECK_EQ(bad, 0);
}

UNIT_TEST(words_escape)
{
	static const struct {
		const char *name, *said;
	} rows[] = {
		{ "", "" }, { "vol/1", "vol/1" }, { "a\\x9b", "a\\x9b" },
		{ "d\xc3\xa4t\xc3\x9c", "d\xc3\xa4t\xc3\x9c" },
		{ "\xf0\x9f\x92\xbe", "\xf0\x9f\x92\xbe" },
		{ "\xc2\x9b" "31m", "\\xc2\\x9b31m" }, { "\x9b" "1", "\\x9b1" },
		{ "x\xe2\x80\xaegpj", "x\\xe2\\x80\\xaegpj" }, { "lat\xe4n", "lat\\xe4n" },
		{ "\x1b[2J\n", "\\x1b[2J\\x0a" }, { "cut\xe7\xa3", "cut\\xe7\\xa3" },
	};
	char text[8];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char all[64];

		UNIT_ROW("row %zu", i);
		CHECK_STR(ibtrs_words_escape(all, sizeof(all), rows[i].name), rows[i].said);
	}
	UNIT_ROW("what does not fit is cut, between characters");
	CHECK_STR(ibtrs_words_escape(text, sizeof(text), "0123456789"), "0123456");
	CHECK_STR(ibtrs_words_escape(text, sizeof(text), "012\x80" "456"), "012\\x80");
	CHECK_STR(ibtrs_words_escape(text, sizeof(text), "0123\x80" "4"), "0123");
	CHECK_STR(ibtrs_words_escape(text, sizeof(text), "012345\xc3\xa4"), "012345");
	CHECK_STR(ibtrs_words_escape(text, 1, "abc"), "");
}

UNIT_TEST(conn_refused)
{
	struct ibtrs_wire_conn_refused w;
	char text[IBTRS_WORDS_LEN], longest[200];
	struct ibtrs_conn_rsp m;
	const char *why;
	u8 raw[148];

	UNIT_ROW("who offered nothing gets the bytes of RTRS 2.0");
	memset(&w, 0xa5, sizeof(w));
	CHECK_EQ(ibtrs_msg_conn_refused_encode(&w, -17, 0, "taken"), 56);
	CHECK_MEM(&w, golden_plain, 56);
	CHECK_EQ(ibtrs_msg_conn_refused_encode(&w, -17, IBTRS_EXT_KNOWN & ~IBTRS_EXT_WORDS,
					       "taken"), 56);
	CHECK_MEM(&w, golden_plain, 56);

	UNIT_ROW("with words");
	memset(&w, 0xa5, sizeof(w));
	CHECK_EQ(ibtrs_msg_conn_refused_encode(&w, -17, IBTRS_EXT_KNOWN, "taken"), 148);
	CHECK_MEM(&w, golden_words, 148);
	CHECK_EQ(ibtrs_msg_conn_rsp_decode(&w, sizeof(w), true, true, &m, &why), 0);
	CHECK_EQ(m.err, -17);
	CHECK(ibtrs_msg_conn_refused_words(&w, sizeof(w), text));
	CHECK_STR(text, "taken");

	UNIT_ROW("a long one is cut");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	ibtrs_msg_conn_refused_encode(&w, -17, IBTRS_EXT_WORDS, longest);
	CHECK(ibtrs_msg_conn_refused_words(&w, sizeof(w), text));
	CHECK_EQ(strlen(text), IBTRS_REJ_WORDS_LEN - 1);

	UNIT_ROW("no words: padding, another magic, no bit, none in it");
	memset(raw, 0, sizeof(raw));
	memcpy(raw, golden_plain, 56);
	CHECK(!ibtrs_msg_conn_refused_words(raw, 148, text) && !*text);
	CHECK(!ibtrs_msg_conn_refused_words(golden_words, 147, text) && !*text);
	memcpy(raw, golden_words, 148);
	raw[23] = 'Y';
	CHECK(!ibtrs_msg_conn_refused_words(raw, 148, text) && !*text);
	raw[23] = 'X';
	raw[24] = 0xf;
	CHECK(!ibtrs_msg_conn_refused_words(raw, 148, text) && !*text);
	raw[24] = 0x10;
	raw[56] = 0;
	CHECK(!ibtrs_msg_conn_refused_words(raw, 148, text) && !*text);
	UNIT_ROW("no end, and nothing printable");
	memset(raw + 56, 0x9b, 92);
	CHECK(ibtrs_msg_conn_refused_words(raw, 148, text));
	CHECK_EQ(strlen(text), IBTRS_REJ_WORDS_LEN - 1);
	CHECK_EQ(strspn(text, "?"), IBTRS_REJ_WORDS_LEN - 1);
}

UNIT_TEST(info_refused)
{
	struct ibtrs_wire_verdict w;
	char text[IBTRS_WORDS_LEN];
	int err = 1;

	memset(&w, 0xa5, sizeof(w));
	ibtrs_msg_verdict_encode(&w, IBTRS_MSG_INFO_REFUSED, -17, "taken");
	CHECK_MEM(&w, golden_info, 192);
	CHECK(ibtrs_msg_info_refused_decode(&w, sizeof(w), &err, text));
	CHECK_EQ(err, -17);
	CHECK_STR(text, "taken");
	CHECK(!ibtrs_msg_info_refused_decode(&w, sizeof(w) - 1, &err, text));
	w.err = 0;
	CHECK(ibtrs_msg_info_refused_decode(&w, sizeof(w), &err, text) && err == -ECONNRESET);
	w.err = cpu_to_le16(0xffff);
	CHECK(ibtrs_msg_info_refused_decode(&w, sizeof(w), &err, text) && err == -ECONNRESET);
	ibtrs_msg_verdict_encode(&w, IBTRS_MSG_INFO_REFUSED, -524, "the kernel's own");
	CHECK(ibtrs_msg_info_refused_decode(&w, sizeof(w), &err, text) && err == -ECONNRESET);
	w.err = cpu_to_le16(511);
	CHECK(ibtrs_msg_info_refused_decode(&w, sizeof(w), &err, text) && err == -511);
	w.err = cpu_to_le16(512);	/* from here on they are the kernel's own */
	CHECK(ibtrs_msg_info_refused_decode(&w, sizeof(w), &err, text) && err == -ECONNRESET);
	memset(w.text, '\n', sizeof(w.text));
	CHECK(ibtrs_msg_info_refused_decode(&w, sizeof(w), &err, text));
	CHECK_EQ(strspn(text, "?"), IBTRS_WORDS_LEN - 1);
	w.type = cpu_to_le16(IBTRS_MSG_INFO_RSP);
	CHECK(!ibtrs_msg_info_refused_decode(&w, sizeof(w), &err, text));
}

UNIT_TEST(cut)
{
	static const char text[20] = "short", umlaut[20] = "a\xc3\xa4z";

	CHECK_EQ(ibtrs_words_cut(text, sizeof(text)), 5);
	CHECK_EQ(ibtrs_words_cut(text, 4), 4);
	UNIT_ROW("no half character");
	CHECK_EQ(ibtrs_words_cut(umlaut, 2), 1);
	CHECK_EQ(ibtrs_words_cut(umlaut, 3), 3);
}
