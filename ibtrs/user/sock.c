// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * The bytes of a stream: a connected socket, with TLS (tls.c) or without.
 *
 * A client that has been given TLS begins with its handshake. A server looks at the first byte and
 * takes it from there: a handshake record of TLS, or the length of a CM REQ.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include "ibtrs/user/ctx.h"
#include "ibtrs/user/sock.h"

bool ibtrs_sock_is_local(int fd)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);

	return !getsockname(fd, (struct sockaddr *)&at, &len) && at.ss_family == AF_UNIX;
}

void ibtrs_sock_patience(int fd, u32 hb_ms, u32 hb_misses)
{
	unsigned int ms = hb_ms * (hb_misses + 1);

	/* No TCP: nothing gets lost. */
	if (setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms)))
		return;
}

/* Return: 1: it is known, or who reads is told why not; 0: nothing has arrived; or an errno. */
static int sock_sniff(struct ibtrs_sock *s, const char **why)
{
	u8 first;
	ssize_t n = recv(s->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : 1;
	*why = "no memory for TLS";
	if (first == IBTRS_TLS_FIRST) {
		s->tls = ibtrs_tls_srv(s->fd, s->ask, s->priv);
		if (!s->tls)
			return -ENOMEM;
	}
	s->bare = !s->tls && !ibtrs_sock_is_local(s->fd);
	s->ask = NULL;
	return 1;
}

int ibtrs_sock_ready(struct ibtrs_sock *s, const char **why)
{
	int n = s->ask ? sock_sniff(s, why) : 1;

	if (n <= 0 || !s->tls || ibtrs_tls_up(s->tls))
		return n;
	n = ibtrs_tls_shake(s->tls, why);
	if (n < 0 && !*why)
		*why = ibtrs_place_words(n, false);
	return n;
}

/* @n is what the system call returned. */
static ssize_t sock_result(ssize_t n, const char **why)
{
	int err = errno;

	if (n >= 0 || err == EAGAIN || err == EINTR)
		return n < 0 ? 0 : n;
	*why = ibtrs_place_words(-err, false);
	return -err;
}

ssize_t ibtrs_sock_send(struct ibtrs_sock *s, const struct iovec *iov, size_t nr,
			const char **why)
{
	const struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = nr };
	ssize_t n;

	if (!s->tls)
		return sock_result(sendmsg(s->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT), why);
	n = ibtrs_tls_send(s->tls, iov, nr, why);
	if (n < 0 && !*why)
		*why = ibtrs_place_words((int)n, false);
	return n;
}

ssize_t ibtrs_sock_recv(struct ibtrs_sock *s, void *to, size_t len, const char **why)
{
	ssize_t n;

	*why = NULL;
	if (!s->tls) {
		n = recv(s->fd, to, len, MSG_DONTWAIT);
		return n ? sock_result(n, why) : -ECONNRESET;
	}
	n = ibtrs_tls_recv(s->tls, to, len, why);
	if (n < 0 && n != -ECONNRESET && !*why)
		*why = ibtrs_place_words((int)n, false);
	return n;
}

void ibtrs_sock_close(struct ibtrs_sock *s)
{
	/* There may be another descriptor of it; then close() alone does not tell the peer. */
	if (s->fd >= 0) {
		shutdown(s->fd, SHUT_RDWR);
		close(s->fd);
	}
	s->fd = -1;
}
