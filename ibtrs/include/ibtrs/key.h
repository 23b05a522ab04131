/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Keys that two hosts share (protocol.md 8.6): their size and their valid names. The modules, the
 * parser of a mapping and the ibnbd command all use this file, so that they agree.
 *
 * In the kernel a key is a logon key "ibnbd:NAME" in the keyring ".ibnbd". The key that will
 * replace it is "ibnbd:NAME:next".
 */
#ifndef IBTRS_KEY_H
#define IBTRS_KEY_H

#include <ibtrs/pure.h>

#define IBTRS_KEY_LEN		32
#define IBTRS_KEY_NAME_LEN	64	/* with NUL */
#define IBTRS_KEYS_PER_NAME	2	/* the present one and the next */
#define IBTRS_KEYRING		".ibnbd"
#define IBTRS_KEY_PREFIX	"ibnbd:"
#define IBTRS_KEY_NEXT		":next"
#define IBTRS_KEY_DESC_LEN	(IBTRS_KEY_NAME_LEN + sizeof(IBTRS_KEY_PREFIX IBTRS_KEY_NEXT))

/**
 * ibtrs_key_name_ok() - is this a valid name of a key?
 * @name: need not be terminated
 * @len: its length
 *
 * Valid are 1 to 63 characters of A-Z a-z 0-9 _ -. With a dot the name could be that of another
 * file, with a colon that of another key. Any context.
 */
static inline bool ibtrs_key_name_ok(const char *name, size_t len)
{
	size_t i;

	if (!len || len >= IBTRS_KEY_NAME_LEN)
		return false;
	for (i = 0; i < len; i++) {
		char c = name[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-'))
			return false;
	}
	return true;
}

/*
 * A key as a line of text, for user space: "ibnbd-key:1:", then base64 of the key and its CRC-32.
 * The CRC shows a mistake in a key that was copied by hand before the key is used.
 */
#define IBTRS_KEY_TEXT_LEN	62	/* with newline and NUL */

/* Write the line of @key, IBTRS_KEY_LEN bytes, to @text, with its newline. */
void ibtrs_key_text(const u8 *key, char *text);
/* Read @key from the text of a file. NULL: @key is good; else why it is not. */
const char *ibtrs_key_parse(const char *text, size_t len, u8 *key);

#endif
