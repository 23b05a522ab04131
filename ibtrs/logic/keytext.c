// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* A key as a line of text, for the library and the ibnbd command. */
#include <ibtrs/key.h>

#define TEXT_PREFIX	"ibnbd-key:1:"
#define TEXT_RAW_LEN	(IBTRS_KEY_LEN + 4)	/* the CRC-32 follows the key, little endian */
#define TEXT_BASE64_LEN	(TEXT_RAW_LEN / 3 * 4)

static_assert(TEXT_RAW_LEN % 3 == 0, "base64 without padding");
static_assert(sizeof(TEXT_PREFIX) + TEXT_BASE64_LEN + 1 == IBTRS_KEY_TEXT_LEN, "a line");

static const char text_digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static u32 text_crc(const u8 *data, size_t len)
{
	u32 crc = ~0u;
	int bit;

	while (len--) {
		crc ^= *data++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

void ibtrs_key_text(const u8 *key, char *text)
{
	u8 raw[TEXT_RAW_LEN];
	u32 crc = text_crc(key, IBTRS_KEY_LEN), v;
	char *to = text + sizeof(TEXT_PREFIX) - 1;
	size_t i;

	memcpy(raw, key, IBTRS_KEY_LEN);
	for (i = 0; i < 4; i++)
		raw[IBTRS_KEY_LEN + i] = (u8)(crc >> 8 * i);
	memcpy(text, TEXT_PREFIX, sizeof(TEXT_PREFIX) - 1);
	for (i = 0; i < TEXT_RAW_LEN; i += 3) {
		v = (u32)raw[i] << 16 | raw[i + 1] << 8 | raw[i + 2];
		*to++ = text_digits[v >> 18];
		*to++ = text_digits[v >> 12 & 63];
		*to++ = text_digits[v >> 6 & 63];
		*to++ = text_digits[v & 63];
	}
	strcpy(to, "\n");
	explicit_bzero(raw, sizeof(raw));
}

const char *ibtrs_key_parse(const char *text, size_t len, u8 *key)
{
	u8 raw[TEXT_RAW_LEN];
	const char *digit, *why = NULL;
	u32 v = 0, crc = 0;
	size_t i;

	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	if (len < sizeof(TEXT_PREFIX) - 1 || memcmp(text, TEXT_PREFIX, sizeof(TEXT_PREFIX) - 1))
		return "it is no key: it does not begin with " TEXT_PREFIX;
	text += sizeof(TEXT_PREFIX) - 1;
	len -= sizeof(TEXT_PREFIX) - 1;
	if (len != TEXT_BASE64_LEN)
		return "the key has another length: was it cut, or copied with something behind it?";
	for (i = 0; i < len && !why; i++) {
		digit = text[i] ? strchr(text_digits, text[i]) : NULL;
		if (!digit) {
			why = "the key has a character that is no base64";
			break;
		}
		v = v << 6 | (u32)(digit - text_digits);
		if (i % 4 == 3) {
			raw[i / 4 * 3] = (u8)(v >> 16);
			raw[i / 4 * 3 + 1] = (u8)(v >> 8);
			raw[i / 4 * 3 + 2] = (u8)v;
		}
	}
	for (i = 0; i < 4 && !why; i++)
		crc |= (u32)raw[IBTRS_KEY_LEN + i] << 8 * i;
	if (!why && crc != text_crc(raw, IBTRS_KEY_LEN))
		why = "the checksum of the key is wrong: copy it again";
	if (!why)
		memcpy(key, raw, IBTRS_KEY_LEN);
	explicit_bzero(raw, sizeof(raw));
	return why;
}
