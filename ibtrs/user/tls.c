// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * TLS of a stream: TLS 1.3 with a pre-shared key and an ephemeral Diffie-Hellman (protocol 12.1).
 *
 * A key of AUTH is never used itself: HKDF makes the secret of TLS from it, and the mark by which a
 * server finds it if its name has two. Of a key that it does not have a server makes one up, so
 * that strangers do not learn which names it has.
 *
 * Nothing waits here. The handshake is done in steps, whenever the socket has something; who sets
 * the deadline is the owner of the connection. Records are at most 16 KiB; what is to be sent is
 * put together in one buffer, since a record for each frame would cost more than the copy.
 */
#include <gnutls/gnutls.h>
#include <nettle/hkdf.h>
#include <nettle/hmac.h>
#include <stdlib.h>
#include <sys/socket.h>
#include "ibtrs/user/ctx.h"
#include "ibtrs/user/tls.h"

#define TLS_RECORD	16384
/* A handshake takes less than one record; gnutls would keep 32 MiB of a stranger's. */
#define TLS_UNHEARD	(2 * TLS_RECORD)
/*
 * A PSK goes with SHA-256. No system-wide list: both ends are this library. Nothing is signed, but
 * gnutls wants an algorithm.
 */
#define TLS_PRIORITY	"NONE:+VERS-TLS1.3:+AEAD:+AES-128-GCM:+CHACHA20-POLY1305:+ECDHE-PSK:" \
			"+GROUP-X25519:+GROUP-SECP256R1:+SIGN-ECDSA-SECP256R1-SHA256"

struct ibtrs_tls {
	gnutls_session_t session;
	gnutls_psk_client_credentials_t clt;
	gnutls_psk_server_credentials_t srv;
	ibtrs_tls_ask *ask;
	void *priv;
	int fd;
	int err;			/* of the socket; EMSGSIZE: it sent too much */
	size_t unheard;			/* bytes of the peer since the last ones for the stream */
	bool ended;			/* the peer's side of it */
	bool begun;
	bool up;
	bool sending;			/* a record that the socket has not taken yet */
	u8 out[TLS_RECORD];
};

/* ---- keys --------------------------------------------------------------- */

static void tls_hmac_update(void *ctx, size_t len, const uint8_t *data)
{
	hmac_sha256_update(ctx, len, data);
}

static void tls_hmac_digest(void *ctx, size_t len, uint8_t *mac)
{
	hmac_sha256_digest(ctx, len, mac);
}

static void tls_expand(struct hmac_sha256_ctx *h, const char *info, u8 *to, size_t len)
{
	hkdf_expand(h, tls_hmac_update, tls_hmac_digest, IBTRS_MAC_LEN, strlen(info),
		    (const u8 *)info, len, to);
}

void ibtrs_tls_derive(const u8 *key, u8 psk[IBTRS_KEY_LEN], u8 mark[IBTRS_TLS_MARK_LEN])
{
	static const char salt[] = "ibtrs stream";
	struct hmac_sha256_ctx h;
	u8 prk[IBTRS_MAC_LEN];

	hmac_sha256_set_key(&h, sizeof(salt) - 1, (const u8 *)salt);
	hkdf_extract(&h, tls_hmac_update, tls_hmac_digest, IBTRS_MAC_LEN, IBTRS_KEY_LEN, key, prk);
	hmac_sha256_set_key(&h, IBTRS_MAC_LEN, prk);
	tls_expand(&h, "tls psk", psk, IBTRS_KEY_LEN);
	tls_expand(&h, "tls mark", mark, IBTRS_TLS_MARK_LEN);
	explicit_bzero(&h, sizeof(h));
	explicit_bzero(prk, sizeof(prk));
}

/* NAME.MARK */
static void tls_identity(char text[IBTRS_TLS_NAME_LEN], const char *name, const u8 *mark)
{
	int n = snprintf(text, IBTRS_TLS_NAME_LEN, "%s.", name), i;

	for (i = 0; i < IBTRS_TLS_MARK_LEN; i++)
		snprintf(text + n + 2 * i, 3, "%02x", mark[i]);
}

/* The secret that @identity names; of one that is not there, or makes no sense, a random one. */
static int tls_find(struct ibtrs_tls *t, const char *identity, u8 psk[IBTRS_KEY_LEN])
{
	char name[IBTRS_KEY_NAME_LEN] = "", text[IBTRS_TLS_NAME_LEN];
	const char *dot = strchr(identity, '.');
	u8 mark[IBTRS_TLS_MARK_LEN];
	struct ibtrs_keys keys;
	bool found = false;
	u32 i;

	if (dot && dot - identity < (int)sizeof(name))
		memcpy(name, identity, dot - identity);
	if (!ibtrs_key_name_ok(name, strlen(name)))
		return ibtrs_user_random(psk, IBTRS_KEY_LEN);
	if (t->ask(t->priv, name, &keys))
		return -EIO;
	for (i = 0; i < keys.nr && !found; i++) {
		ibtrs_tls_derive(keys.key[i], psk, mark);
		tls_identity(text, name, mark);
		found = !strcmp(text, identity);
	}
	explicit_bzero(&keys, sizeof(keys));
	return found ? 0 : ibtrs_user_random(psk, IBTRS_KEY_LEN);
}

static int tls_asked(gnutls_session_t session, const char *identity, gnutls_datum_t *key)
{
	u8 *psk = gnutls_malloc(IBTRS_KEY_LEN);

	if (!psk)
		return -1;
	if (tls_find(gnutls_session_get_ptr(session), identity, psk)) {
		gnutls_free(psk);
		return -1;
	}
	key->data = psk;
	key->size = IBTRS_KEY_LEN;
	return 0;
}

/* ---- the socket --------------------------------------------------------- */

/* What gnutls makes of an end depends on where it comes. */
static ssize_t tls_result(struct ibtrs_tls *t, ssize_t n)
{
	if (n < 0) {
		t->err = errno;
		gnutls_transport_set_errno(t->session, errno);
	}
	t->ended |= n < 0 && (errno == ECONNRESET || errno == EPIPE);
	return n;
}

static ssize_t tls_push(gnutls_transport_ptr_t ptr, const void *data, size_t len)
{
	struct ibtrs_tls *t = ptr;

	return tls_result(t, send(t->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT));
}

static ssize_t tls_pull(gnutls_transport_ptr_t ptr, void *to, size_t len)
{
	struct ibtrs_tls *t = ptr;
	ssize_t n;

	if (t->unheard > TLS_UNHEARD) {
		errno = EMSGSIZE;
		return tls_result(t, -1);
	}
	n = recv(t->fd, to, len, MSG_DONTWAIT);
	t->ended |= len && !n;
	t->unheard += n > 0 ? n : 0;
	return tls_result(t, n);
}

/* ---- making and unmaking ------------------------------------------------ */

void ibtrs_tls_free(struct ibtrs_tls *t)
{
	if (!t)
		return;
	if (t->session)
		gnutls_deinit(t->session);
	if (t->clt)
		gnutls_psk_free_client_credentials(t->clt);
	if (t->srv)
		gnutls_psk_free_server_credentials(t->srv);
	explicit_bzero(t, sizeof(*t));
	free(t);
}

static struct ibtrs_tls *tls_new(int fd, unsigned int end)
{
	struct ibtrs_tls *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->fd = fd;
	/* Tickets would be a second key, which outlives the first one. */
	if (gnutls_init(&t->session, end | GNUTLS_NONBLOCK | GNUTLS_NO_TICKETS |
			GNUTLS_NO_SIGNAL) < 0 ||
	    gnutls_priority_set_direct(t->session, TLS_PRIORITY, NULL) < 0) {
		ibtrs_tls_free(t);
		return NULL;
	}
	gnutls_handshake_set_max_packet_length(t->session, TLS_RECORD);
	gnutls_session_set_ptr(t->session, t);
	gnutls_transport_set_ptr(t->session, t);
	gnutls_transport_set_push_function(t->session, tls_push);
	gnutls_transport_set_pull_function(t->session, tls_pull);
	return t;
}

struct ibtrs_tls *ibtrs_tls_clt(int fd, const char *name, const u8 *key)
{
	u8 psk[IBTRS_KEY_LEN], mark[IBTRS_TLS_MARK_LEN];
	const gnutls_datum_t secret = { .data = psk, .size = sizeof(psk) };
	struct ibtrs_tls *t = tls_new(fd, GNUTLS_CLIENT);
	char identity[IBTRS_TLS_NAME_LEN];

	if (!t)
		return NULL;
	ibtrs_tls_derive(key, psk, mark);
	tls_identity(identity, name, mark);
	if (gnutls_psk_allocate_client_credentials(&t->clt) < 0 ||
	    gnutls_psk_set_client_credentials(t->clt, identity, &secret, GNUTLS_PSK_KEY_RAW) < 0 ||
	    gnutls_credentials_set(t->session, GNUTLS_CRD_PSK, t->clt) < 0) {
		ibtrs_tls_free(t);
		t = NULL;
	}
	explicit_bzero(psk, sizeof(psk));
	return t;
}

struct ibtrs_tls *ibtrs_tls_srv(int fd, ibtrs_tls_ask *ask, void *priv)
{
	struct ibtrs_tls *t = tls_new(fd, GNUTLS_SERVER);

	if (!t)
		return NULL;
	t->ask = ask;
	t->priv = priv;
	if (gnutls_psk_allocate_server_credentials(&t->srv) < 0 ||
	    gnutls_credentials_set(t->session, GNUTLS_CRD_PSK, t->srv) < 0) {
		ibtrs_tls_free(t);
		return NULL;
	}
	gnutls_psk_set_server_credentials_function(t->srv, tls_asked);
	return t;
}

/* ---- both ends ---------------------------------------------------------- */

static int tls_socket_error(const struct ibtrs_tls *t, const char **why)
{
	*why = NULL;			/* the stream has words for it */
	if (t->err == EMSGSIZE)
		*why = "the peer sends a TLS message that is longer than any of libibtrs";
	return t->err ? -t->err : -EIO;
}

static int tls_shake_error(const struct ibtrs_tls *t, int n, const char **why)
{
	switch (n) {
	case GNUTLS_E_PUSH_ERROR:
	case GNUTLS_E_PULL_ERROR:
		if (!t->ended)
			return tls_socket_error(t, why);
		break;
	case GNUTLS_E_MEMORY_ERROR:
		*why = "no memory for TLS";
		return -ENOMEM;
	case GNUTLS_E_FATAL_ALERT_RECEIVED:
	case GNUTLS_E_INSUFFICIENT_CREDENTIALS:
		*why = "the server does not take this key: it has none of that name loaded, or another one, or takes no keys";
		return -EKEYREJECTED;
	}
	*why = "the peer ended the connection within the TLS handshake";
	if (t->ended)
		return -ECONNRESET;
	*why = "the peer's part of the TLS handshake makes no sense: it is no libibtrs, or somebody is between";
	return -EPROTO;
}

static int tls_error(const struct ibtrs_tls *t, ssize_t n, const char **why)
{
	switch (n) {
	case GNUTLS_E_AGAIN:
	case GNUTLS_E_INTERRUPTED:
		if (!t->ended)
			return 0;
		break;
	case GNUTLS_E_PUSH_ERROR:
	case GNUTLS_E_PULL_ERROR:
		return tls_socket_error(t, why);
	}
	*why = NULL;
	if (!n || t->ended)
		return -ECONNRESET;
	*why = "what arrived was not sent by the peer, or was changed on the way";
	return -EBADMSG;
}

int ibtrs_tls_shake(struct ibtrs_tls *t, const char **why)
{
	int n, err;

	t->begun = true;
	n = gnutls_handshake(t->session);
	if (!n) {
		t->up = true;
		return 1;
	}
	/* gnutls may ask for more even then. */
	if ((n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED) && !t->ended)
		return 0;
	err = tls_shake_error(t, n, why);
	gnutls_alert_send_appropriate(t->session, n);
	return err;
}

ssize_t ibtrs_tls_recv(struct ibtrs_tls *t, void *to, size_t len, const char **why)
{
	ssize_t n = gnutls_record_recv(t->session, to, len);

	if (n <= 0)
		return tls_error(t, n, why);
	t->unheard = 0;
	return n;
}

/* Up to a record of @iov, in one piece. */
static const void *tls_gather(struct ibtrs_tls *t, const struct iovec *iov, size_t nr, size_t *len)
{
	size_t i, n;

	*len = iov->iov_len < TLS_RECORD ? iov->iov_len : TLS_RECORD;
	if (*len == TLS_RECORD || nr == 1)
		return iov->iov_base;
	for (*len = 0, i = 0; i < nr && *len < TLS_RECORD; i++, *len += n) {
		n = TLS_RECORD - *len;
		if (n > iov[i].iov_len)
			n = iov[i].iov_len;
		memcpy(t->out + *len, iov[i].iov_base, n);
	}
	return t->out;
}

ssize_t ibtrs_tls_send(struct ibtrs_tls *t, const struct iovec *iov, size_t nr, const char **why)
{
	const void *data;
	size_t len;
	ssize_t n;

	if (t->sending) {
		n = gnutls_record_send(t->session, NULL, 0);
	} else {
		data = tls_gather(t, iov, nr, &len);
		n = gnutls_record_send(t->session, data, len);
	}
	t->sending = n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED;
	return n > 0 ? n : tls_error(t, n, why);
}

bool ibtrs_tls_up(const struct ibtrs_tls *t)
{
	return t->up;
}

bool ibtrs_tls_wants_out(const struct ibtrs_tls *t)
{
	return !t->begun || gnutls_record_get_direction(t->session);
}

bool ibtrs_tls_pending(const struct ibtrs_tls *t)
{
	return gnutls_record_check_pending(t->session);
}
