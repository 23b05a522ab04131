// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Where a server is, as text and as a socket: `ip:10.0.0.1` (RDMA), `tcp:10.0.0.1:1234`,
 * `unix:/run/name`. Addresses have the grammar of ibtrs/logic/addr.c; names of hosts are not
 * resolved, since that blocks.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "ibtrs/user/ctx.h"

#define PLACE_BACKLOG	128

static int place_port(const char *s, u16 *port)
{
	u32 n = 0;

	if (!*s || strlen(s) > 5)
		return -EINVAL;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return -EINVAL;
		n = n * 10 + (u32)(*s - '0');
	}
	if (n > U16_MAX)
		return -EINVAL;
	*port = (u16)n;
	return 0;
}

/* ADDRESS, V4:PORT or [V6]:PORT; a V6 address without brackets has no port. */
static int place_parse_ip(const char *text, struct ibtrs_place *p, const char **why)
{
	const char *end = text + strlen(text), *colon;
	char ip[IBTRS_ADDR_STR_MAX];
	int err, len;

	colon = *text == '[' ? strstr(text, "]:") : strchr(text, ':');
	if (*text == '[' && colon)
		colon++;
	else if (*text != '[' && colon && strchr(colon + 1, ':'))
		colon = NULL;
	p->port = IBTRS_DEFAULT_PORT;
	*why = "the port is no number from 0 to 65535";
	if (colon && place_port(colon + 1, &p->port))
		return -EINVAL;
	*why = "the address is too long";
	len = (int)((colon ?: end) - text);
	if (len + 4 > (int)sizeof(ip))
		return -EINVAL;
	len = scnprintf(ip, sizeof(ip), "ip:%.*s", len, text);
	err = ibtrs_addr_parse(ip, len, &p->addr, why);
	if (err)
		return err;
	p->family = p->addr.kind == IBTRS_ADDR_IP4 ? AF_INET : AF_INET6;
	return 0;
}

int ibtrs_place_parse(const char *text, struct ibtrs_place *p, const char **why)
{
	memset(p, 0, sizeof(*p));
	p->rdma = !strncmp(text, "ip:", 3);
	if (p->rdma || !strncmp(text, "tcp:", 4))
		return place_parse_ip(strchr(text, ':') + 1, p, why);
	*why = "it begins with none of ip:, tcp: and unix:/, the ways that this library has";
	if (strncmp(text, "unix:/", 6))
		return -EINVAL;
	*why = "the name of a Unix socket has at most 107 bytes";
	if (strlen(text + 5) >= sizeof(p->path))
		return -EINVAL;
	memcpy(p->path, text + 5, strlen(text + 5));
	p->family = AF_UNIX;
	*why = NULL;
	return 0;
}

socklen_t ibtrs_place_sockaddr(const struct ibtrs_place *p, struct sockaddr_storage *to)
{
	struct sockaddr_in6 *in6 = (void *)to;
	struct sockaddr_in *in = (void *)to;
	struct sockaddr_un *un = (void *)to;

	memset(to, 0, sizeof(*to));
	to->ss_family = p->family;
	if (p->family == AF_UNIX) {
		memcpy(un->sun_path, p->path, sizeof(un->sun_path));
		return sizeof(*un);
	}
	if (p->family == AF_INET) {
		in->sin_port = htons(p->port);
		memcpy(&in->sin_addr, p->addr.raw, sizeof(in->sin_addr));
		return sizeof(*in);
	}
	in6->sin6_port = htons(p->port);
	memcpy(&in6->sin6_addr, p->addr.raw, sizeof(in6->sin6_addr));
	if (p->addr.scope[0])
		in6->sin6_scope_id = if_nametoindex(p->addr.scope);
	return sizeof(*in6);
}

void ibtrs_place_peer(const struct sockaddr *from, char text[IBTRS_ADDR_STR_MAX])
{
	struct ibtrs_addr a = { .kind = IBTRS_ADDR_NONE };

	if (from->sa_family == AF_INET) {
		a.kind = IBTRS_ADDR_IP4;
		memcpy(a.raw, &((const struct sockaddr_in *)from)->sin_addr, 4);
	} else if (from->sa_family == AF_INET6) {
		a.kind = IBTRS_ADDR_IP6;
		memcpy(a.raw, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
	}
	if (a.kind != IBTRS_ADDR_NONE)
		ibtrs_addr_format(&a, text, IBTRS_ADDR_STR_MAX);
}

void ibtrs_place_gid(const struct sockaddr *at, u8 gid[IBTRS_GID_LEN])
{
	memset(gid, 0, IBTRS_GID_LEN);
	if (at->sa_family == AF_INET) {
		gid[10] = gid[11] = 0xff;
		memcpy(gid + 12, &((const struct sockaddr_in *)at)->sin_addr, 4);
	} else if (at->sa_family == AF_INET6) {
		memcpy(gid, &((const struct sockaddr_in6 *)at)->sin6_addr, IBTRS_GID_LEN);
	}
}

const char *ibtrs_place_words(int err, bool listens)
{
	switch (-err) {
	case ECONNREFUSED:
		return "nothing listens there";
	case ENOENT:
	case ENOTDIR:
		return listens ? "the folder of the socket does not exist" : "nothing listens there";
	case ECONNRESET:
	case EPIPE:
		return "the peer ended the connection";
	case EHOSTUNREACH:
	case ENETUNREACH:
		return "no route leads there, or the host does not answer";
	case ETIMEDOUT:
		return "what was sent is not acknowledged";
	case EADDRINUSE:
		return "somebody listens there already, or a server that has died left its socket: choose another place, or remove the socket";
	case EADDRNOTAVAIL:
		return listens ? "this host does not have that address" :
				 "this host has no address or port left for it";
	case EINVAL:
		return "a link-local address needs its interface: fe80::1%eth0";
	case EACCES:
	case EPERM:
		return listens ? "this user may not: ports below 1024 take root or CAP_NET_BIND_SERVICE, a Unix socket takes a folder to write to" :
				 "this user may not connect there: look at the mode of the socket, or at the firewall";
	case EMFILE:
	case ENFILE:
		return "too many files are open: raise LimitNOFILE= or ulimit -n";
	case ENOMEM:
		return "no memory";
	}
	return strerror(-err);
}

static int place_socket(const struct ibtrs_place *p)
{
	int fd = socket(p->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int ibtrs_place_connect(const struct ibtrs_place *p)
{
	struct sockaddr_storage to;
	socklen_t len = ibtrs_place_sockaddr(p, &to);
	int fd = place_socket(p), one = 1, err;

	if (fd < 0)
		return fd;
	/* An answer must not wait for the next one. */
	if (p->family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (struct sockaddr *)&to, len) && errno != EINPROGRESS) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int ibtrs_place_listen(const struct ibtrs_place *p, int *port)
{
	struct sockaddr_storage at;
	socklen_t len = ibtrs_place_sockaddr(p, &at);
	int fd = place_socket(p), one = 1, err;

	if (fd < 0)
		return fd;
	if (p->family != AF_UNIX)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&at, len) || listen(fd, PLACE_BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)&at, &len)) {
		err = -errno;
		close(fd);
		return err;
	}
	*port = p->family == AF_UNIX ? 0 :
		ntohs(p->family == AF_INET ? ((struct sockaddr_in *)&at)->sin_port :
					     ((struct sockaddr_in6 *)&at)->sin6_port);
	return fd;
}
