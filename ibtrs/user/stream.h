/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* Connections over a stream socket: verbs in software (protocol 12). */
#ifndef IBTRS_USER_STREAM_H
#define IBTRS_USER_STREAM_H

#include "ibtrs/user/tls.h"
#include "ibtrs/user/verbs.h"

/*
 * Takes over @fd, which becomes non-blocking, and @tls, if there is to be TLS. Return: NULL: no
 * memory, and both are gone.
 */
struct ibtrs_qp *ibtrs_stream_new(int fd, struct ibtrs_tls *tls);
/* The same for a server: the client decides by its first byte; @ask gives the keys of a name. */
struct ibtrs_qp *ibtrs_stream_take(int fd, ibtrs_tls_ask *ask, void *priv);

#endif
