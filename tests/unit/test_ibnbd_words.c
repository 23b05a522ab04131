// SPDX-License-Identifier: GPL-2.0-only
/* The words of a refused OPEN: golden bytes, and what a hostile server may put there (E-51). */
#include "unit.h"
#include "ibnbd/proto/msg.h"

UNIT_TEST(open_refused_bytes)
{
	static const u8 golden[192] = { 6, 0, 0, 0, 123, 0, 0, 0, 'n', 'o', ' ', 's',
					'i', 'z', 'e' };
	struct ibnbd_wire_open_refused w;
	struct ibnbd_open_refused m;
	char longest[300];

	memset(&w, 0xa5, sizeof(w));
	ibnbd_msg_open_refused_encode(&w, -123, "no size");
	CHECK_MEM(&w, golden, sizeof(w));
	CHECK(ibnbd_msg_open_refused_decode(&w, sizeof(w), &m));
	CHECK_EQ(m.err, -123);
	CHECK_STR(m.text, "no size");

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	ibnbd_msg_open_refused_encode(&w, -1, longest);
	CHECK_EQ(w.text[182], 'x');
	CHECK_EQ(w.text[183], 0);
	ibnbd_msg_open_refused_encode(&w, -1, "");
	CHECK(ibnbd_msg_open_refused_decode(&w, sizeof(w), &m));
	CHECK_STR(m.text, "");
}

UNIT_TEST(open_refused_hostile)
{
	static const struct {
		const char *label;
		u16 type;
		u32 err;
		const char *text;
		size_t len;
		bool is;
		int want_err;
		const char *want;
	} rows[] = {
		{ "good", 6, 2, "gone", 192, true, -2, "gone" },
		{ "longer than it must be", 6, 2, "gone", 4096, true, -2, "gone" },
		{ "one byte short", 6, 2, "gone", 191, false, 0, NULL },
		{ "empty", 6, 2, "gone", 0, false, 0, NULL },
		{ "an OPEN_RSP", 3, 2, "gone", 192, false, 0, NULL },
		{ "no error", 6, 0, "gone", 192, true, -EPROTO, "gone" },
		{ "the largest errno", 6, 511, "gone", 192, true, -511, "gone" },
		{ "no errno", 6, 512, "gone", 192, true, -EPROTO, "gone" },
		{ "a negative one", 6, (u32)-2, "gone", 192, true, -EPROTO, "gone" },
		{ "escape, newline, DEL", 6, 2, "a\x1b[2J\nb\x7f", 192, true, -2, "a?[2J?b?" },
		{ "UTF-8, C1, bidi", 6, 2, "\xc3\xa4\x9b\xe2\x80\xae", 192, true, -2, "??????" },
		{ "a format", 6, 2, "%s%n%d", 192, true, -2, "%s%n%d" },
	};
	struct ibnbd_wire_open_refused w;
	struct ibnbd_open_refused m;
	u8 room[4096];
	void *buf;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%s", rows[i].label);
		memset(&w, 0, sizeof(w));
		w.hdr.type = cpu_to_le16(rows[i].type);
		w.err = cpu_to_le32(rows[i].err);
		memcpy(w.text, rows[i].text, strlen(rows[i].text));
		memset(room, 'z', sizeof(room));
		memcpy(room, &w, sizeof(w));
		buf = unit_exact(room, rows[i].len);
		if (CHECK_EQ(ibnbd_msg_open_refused_decode(buf, rows[i].len, &m), rows[i].is) &&
		    rows[i].is) {
			CHECK_EQ(m.err, rows[i].want_err);
			CHECK_STR(m.text, rows[i].want);
		}
		free(buf);
	}
	UNIT_ROW("text without an end");
	memset(&w, 'x', sizeof(w));
	w.hdr.type = cpu_to_le16(6);
	buf = unit_exact(&w, sizeof(w));
	CHECK(ibnbd_msg_open_refused_decode(buf, sizeof(w), &m));
	CHECK_EQ(strlen(m.text), IBNBD_WORDS_LEN - 1);
	free(buf);
}
