// SPDX-License-Identifier: GPL-2.0-only
/*
 * Refusals with words (protocol 8.5): in the CM REJ, and in place of INFO_RSP. Pure.
 *
 * The last byte of a text is its terminator: decoders ignore what a peer put there. So a text that
 * was received fits unchanged into a message of the same kind.
 */
#include <ibtrs/words.h>
#include "ibtrs/proto/msg.h"

static const u8 refused_ext_magic[4] = { 'I', 'B', 'T', 'X' };

/**
 * ibtrs_msg_conn_refused_encode() - a refusal in the CM REJ (protocol 2.3, 8.5)
 * @w: to fill
 * @err: negative errno
 * @ext: what the client offered
 * @text: why, in words
 *
 * For a client that did not offer WORDS, every byte is as in RTRS 2.0 and @text is not sent.
 *
 * Return: length of the message.
 */
size_t ibtrs_msg_conn_refused_encode(struct ibtrs_wire_conn_refused *w, int err, u8 ext,
				     const char *text)
{
	const struct ibtrs_conn_rsp rsp = { .err = err };

	memset(w, 0, sizeof(*w));
	ibtrs_msg_conn_rsp_encode(&w->rsp, &rsp);
	if (!(ext & IBTRS_EXT_WORDS))
		return sizeof(w->rsp);
	w->rsp.ext_features = cpu_to_le32(IBTRS_EXT_WORDS);
	memcpy(w->rsp.ext_magic, refused_ext_magic, sizeof(w->rsp.ext_magic));
	ibtrs_words_copy((char *)w->text, sizeof(w->text), text, strlen(text));
	return sizeof(*w);
}

/**
 * ibtrs_msg_conn_refused_words() - the words of a refusal (E-51)
 * @buf: private data of a CM REJ that ibtrs_msg_conn_rsp_decode() understood
 * @len: its length
 * @text: result, %IBTRS_WORDS_LEN bytes, printable and terminated
 *
 * Return: true if the refusal has words.
 */
bool ibtrs_msg_conn_refused_words(const void *buf, size_t len, char *text)
{
	struct ibtrs_wire_conn_refused w;

	text[0] = 0;
	if (len < sizeof(w))
		return false;
	memcpy(&w, buf, sizeof(w));
	if (memcmp(w.rsp.ext_magic, refused_ext_magic, sizeof(w.rsp.ext_magic)) ||
	    !(le32_to_cpu(w.rsp.ext_features) & IBTRS_EXT_WORDS))
		return false;
	return ibtrs_words_copy(text, IBTRS_WORDS_LEN, w.text, sizeof(w.text) - 1) > 0;
}

/**
 * ibtrs_msg_info_refused_encode() - a refusal in place of INFO_RSP
 * @w: to fill
 * @err: negative errno
 * @text: why, in words
 */
void ibtrs_msg_info_refused_encode(struct ibtrs_wire_info_refused *w, int err, const char *text)
{
	memset(w, 0, sizeof(*w));
	w->type = cpu_to_le16(IBTRS_MSG_INFO_REFUSED);
	w->err = cpu_to_le16((u16)-ibtrs_errno_said(err));
	ibtrs_words_copy((char *)w->text, sizeof(w->text), text, strlen(text));
}

/**
 * ibtrs_msg_info_refused_decode() - decode a refusal in place of INFO_RSP (E-51)
 * @buf: answer, where WORDS was accepted
 * @len: its length
 * @err: result, always a negative errno, if true is returned
 * @text: result, %IBTRS_WORDS_LEN bytes, printable and terminated
 *
 * Return: true: the answer is a refusal. false: it is not, go on with ibtrs_msg_info_rsp_decode().
 */
bool ibtrs_msg_info_refused_decode(const void *buf, size_t len, int *err, char *text)
{
	struct ibtrs_wire_info_refused w;

	if (len < sizeof(w))
		return false;
	memcpy(&w, buf, sizeof(w));
	if (le16_to_cpu(w.type) != IBTRS_MSG_INFO_REFUSED)
		return false;
	*err = ibtrs_errno_said(-(int)le16_to_cpu(w.err));
	ibtrs_words_copy(text, IBTRS_WORDS_LEN, w.text, sizeof(w.text) - 1);
	return true;
}
