// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Codec of the messages of authentication (protocol.md 8.6). Pure.
 *
 * A message of any other length is refused, because nothing pads these messages. The exception is
 * the private data of the connection manager, which may be padded.
 */
#include <ibtrs/key.h>
#include <ibtrs/words.h>
#include "ibtrs/proto/auth.h"

static const u8 auth_ext_magic[2] = { 'I', 'X' };

static bool auth_no(const char **why, const char *text)
{
	*why = text;
	return false;
}

/* Copies the message to @w. False if its length is not @size or its type is not @type. */
static bool auth_take(void *w, size_t size, const void *buf, size_t len, u16 type)
{
	__le16 t;

	if (len != size)
		return false;
	memcpy(w, buf, size);
	memcpy(&t, w, sizeof(t));
	return le16_to_cpu(t) == type;
}

bool ibtrs_auth_req_is(const void *buf, size_t len)
{
	struct ibtrs_wire_auth_req w;

	if (len < sizeof(w))
		return false;
	memcpy(&w, buf, sizeof(w));
	return le16_to_cpu(w.magic) == IBTRS_AUTH_MAGIC;
}

void ibtrs_auth_req_encode(struct ibtrs_wire_auth_req *w, const struct ibtrs_auth_req *m)
{
	memset(w, 0, sizeof(*w));
	w->magic = cpu_to_le16(IBTRS_AUTH_MAGIC);
	w->version = cpu_to_le16(IBTRS_AUTH_VER);
	w->recon_cnt = cpu_to_le16(m->recon_cnt);
	memcpy(w->path_uuid, m->path_uuid, sizeof(w->path_uuid));
	memcpy(w->session_uuid, m->session_uuid, sizeof(w->session_uuid));
	w->ext_features = m->ext & IBTRS_EXT_WORDS;
	memcpy(w->ext_magic, auth_ext_magic, sizeof(w->ext_magic));
}

bool ibtrs_auth_req_decode(const void *buf, size_t len, struct ibtrs_auth_req *m, const char **why)
{
	struct ibtrs_wire_auth_req w;

	memset(m, 0, sizeof(*m));
	if (!ibtrs_auth_req_is(buf, len))
		return auth_no(why, "no request for authentication");
	memcpy(&w, buf, sizeof(w));
	if (!memcmp(w.ext_magic, auth_ext_magic, sizeof(w.ext_magic)))
		m->ext = w.ext_features & IBTRS_EXT_WORDS;
	if (le16_to_cpu(w.version) >> 8 != IBTRS_AUTH_MAJOR)
		return auth_no(why, "the client authenticates by another version of the protocol");
	m->recon_cnt = le16_to_cpu(w.recon_cnt);
	memcpy(m->path_uuid, w.path_uuid, sizeof(m->path_uuid));
	memcpy(m->session_uuid, w.session_uuid, sizeof(m->session_uuid));
	return true;
}

void ibtrs_auth_rsp_encode(struct ibtrs_wire_auth_rsp *w)
{
	memset(w, 0, sizeof(*w));
	w->magic = cpu_to_le16(IBTRS_AUTH_MAGIC);
	w->version = cpu_to_le16(IBTRS_AUTH_VER);
}

bool ibtrs_auth_rsp_decode(const void *buf, size_t len, const char **why)
{
	struct ibtrs_wire_auth_rsp w;

	if (len < sizeof(w))
		return auth_no(why, "the server's answer is too short for authentication");
	memcpy(&w, buf, sizeof(w));
	if (le16_to_cpu(w.magic) != IBTRS_AUTH_MAGIC)
		return auth_no(why, "the server's answer is not one of authentication");
	if (le16_to_cpu(w.version) >> 8 != IBTRS_AUTH_MAJOR)
		return auth_no(why, "the server authenticates by another version of the protocol");
	return true;
}

void ibtrs_auth_hello_encode(struct ibtrs_wire_auth_hello *w, const char *name, const u8 *nonce)
{
	memset(w, 0, sizeof(*w));
	w->type = cpu_to_le16(IBTRS_MSG_AUTH_HELLO);
	memcpy(w->name, name, strlen(name));
	memcpy(w->nonce, nonce, sizeof(w->nonce));
}

bool ibtrs_auth_hello_decode(const void *buf, size_t len, struct ibtrs_wire_auth_hello *w,
			     const char **why)
{
	size_t n, i;

	if (!auth_take(w, sizeof(*w), buf, len, IBTRS_MSG_AUTH_HELLO))
		return auth_no(why, "the first message is no HELLO");
	n = strnlen((const char *)w->name, sizeof(w->name));
	for (i = n; i < sizeof(w->name); i++)
		if (w->name[i])
			return auth_no(why, "something follows the name of the key");
	if (!ibtrs_key_name_ok((const char *)w->name, n))
		return auth_no(why, "a key cannot have such a name");
	return true;
}

void ibtrs_auth_challenge_encode(struct ibtrs_wire_auth_challenge *w, const u8 *nonce,
				 const void *macs)
{
	memset(w, 0, sizeof(*w));
	w->type = cpu_to_le16(IBTRS_MSG_AUTH_CHALLENGE);
	memcpy(w->nonce, nonce, sizeof(w->nonce));
	memcpy(w->mac, macs, sizeof(w->mac));
}

bool ibtrs_auth_challenge_decode(const void *buf, size_t len, struct ibtrs_wire_auth_challenge *w,
				 const char **why)
{
	return auth_take(w, sizeof(*w), buf, len, IBTRS_MSG_AUTH_CHALLENGE) ||
	       auth_no(why, "the server's first message is no challenge");
}

void ibtrs_auth_proof_encode(struct ibtrs_wire_auth_proof *w, u16 which, const u8 *mac)
{
	memset(w, 0, sizeof(*w));
	w->type = cpu_to_le16(IBTRS_MSG_AUTH_PROOF);
	w->which = cpu_to_le16(which);
	memcpy(w->mac, mac, sizeof(w->mac));
}

bool ibtrs_auth_proof_decode(const void *buf, size_t len, struct ibtrs_wire_auth_proof *w,
			     const char **why)
{
	if (!auth_take(w, sizeof(*w), buf, len, IBTRS_MSG_AUTH_PROOF))
		return auth_no(why, "the second message is no proof");
	if (le16_to_cpu(w->which) >= IBTRS_KEYS_PER_NAME)
		return auth_no(why, "a proof with a key that there cannot be");
	return true;
}

bool ibtrs_auth_verdict_is(const void *buf, size_t len)
{
	struct ibtrs_wire_verdict w;

	return auth_take(&w, sizeof(w), buf, len, IBTRS_MSG_AUTH_VERDICT);
}

int ibtrs_auth_verdict_decode(const void *buf, size_t len, char *text)
{
	struct ibtrs_wire_verdict w;
	u16 n;

	text[0] = 0;
	if (!auth_take(&w, sizeof(w), buf, len, IBTRS_MSG_AUTH_VERDICT))
		return -EKEYREJECTED;
	ibtrs_words_copy(text, IBTRS_WORDS_LEN, w.text, sizeof(w.text) - 1);
	n = le16_to_cpu(w.err);
	return n <= IBTRS_ERRNO_MAX ? -(int)n : -EKEYREJECTED;
}
