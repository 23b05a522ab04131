/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* The bytes of a stream: a connected socket, with TLS or without. Nothing here waits. */
#ifndef IBTRS_USER_SOCK_H
#define IBTRS_USER_SOCK_H

#include "ibtrs/user/tls.h"

/**
 * struct ibtrs_sock - a socket
 * @fd: -1: closed
 * @tls: NULL: none, or not known yet
 * @ask: of a server that does not know yet; the client decides by its first byte
 * @bare: what a server was sent may have been read and changed by others: TCP without TLS
 */
struct ibtrs_sock {
	int fd;
	struct ibtrs_tls *tls;
	ibtrs_tls_ask *ask;
	void *priv;
	bool bare;
};

/*
 * What is on its way must be acknowledged within the time in which heartbeats find a dead peer:
 * they go over another connection.
 */
void ibtrs_sock_patience(int fd, u32 hb_ms, u32 hb_misses);
/* Of a Unix socket both ends are in this host. */
bool ibtrs_sock_is_local(int fd);
/* May bytes be sent and received? Return: 1, 0: not yet, or an errno and @why. */
int ibtrs_sock_ready(struct ibtrs_sock *s, const char **why);
/* Return: how many bytes were sent, 0: there is no room, or an errno and @why. */
ssize_t ibtrs_sock_send(struct ibtrs_sock *s, const struct iovec *iov, size_t nr,
			const char **why);
/* Return: how many bytes came, 0: there are none, or an errno and @why; NULL: the peer ended. */
ssize_t ibtrs_sock_recv(struct ibtrs_sock *s, void *to, size_t len, const char **why);
void ibtrs_sock_close(struct ibtrs_sock *s);

#endif
