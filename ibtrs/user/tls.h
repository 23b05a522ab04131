/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* TLS of a stream (protocol 12.1): gnutls, with a key of AUTH and nothing else. */
#ifndef IBTRS_USER_TLS_H
#define IBTRS_USER_TLS_H

#include <sys/types.h>
#include <sys/uio.h>
#include "ibtrs/logic/auth.h"
#include "ibtrs/user/libibtrs.h"

#define IBTRS_TLS_FIRST		0x16	/* a handshake record; no CM REQ has that length */
#define IBTRS_TLS_MARK_LEN	8
#define IBTRS_TLS_NAME_LEN	(IBTRS_KEY_NAME_LEN + 1 + 2 * IBTRS_TLS_MARK_LEN)

struct ibtrs_tls;

/* The keys of a name, as struct ibtrs_srv_opts gives them; none has it: @keys->nr is 0. */
typedef int ibtrs_tls_ask(void *priv, const char *name, struct ibtrs_keys *keys);

/* What TLS has of a key: the secret of PSK, and the mark that tells two keys of a name apart. */
void ibtrs_tls_derive(const u8 *key, u8 psk[IBTRS_KEY_LEN], u8 mark[IBTRS_TLS_MARK_LEN]);
/* Over the connected or connecting socket @fd, which stays the caller's. NULL: no memory. */
struct ibtrs_tls *ibtrs_tls_clt(int fd, const char *name, const u8 *key);
struct ibtrs_tls *ibtrs_tls_srv(int fd, ibtrs_tls_ask *ask, void *priv);
void ibtrs_tls_free(struct ibtrs_tls *t);

/*
 * None of these waits. Return: what was done; 0: nothing can be done now; or a negative errno and
 * @why.
 */
int ibtrs_tls_shake(struct ibtrs_tls *t, const char **why);
ssize_t ibtrs_tls_recv(struct ibtrs_tls *t, void *to, size_t len, const char **why);
/* After 0 the same bytes, and maybe more behind them, must be sent next. */
ssize_t ibtrs_tls_send(struct ibtrs_tls *t, const struct iovec *iov, size_t nr, const char **why);

bool ibtrs_tls_up(const struct ibtrs_tls *t);
/* Does the handshake wait for room to send? */
bool ibtrs_tls_wants_out(const struct ibtrs_tls *t);
/* Are there bytes that have been read from the socket already? */
bool ibtrs_tls_pending(const struct ibtrs_tls *t);

#endif
