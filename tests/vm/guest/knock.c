// SPDX-License-Identifier: GPL-2.0-only
/*
 * knock ADDR [WORD=VALUE..]: a client that gets no further than CONN_REQ (docs/protocol.md, section
 * 2). It has no queue pair, sends what it is told to, and goes on holding what the server gave it:
 * for caps, timeouts and refusals that no honest client ever meets.
 *
 *   count=N        knock so often, one after the other (1)
 *   session=N      all attempts belong to session N; without it each opens one of its own
 *   path=N         likewise
 *   cid=N nr=N     connection id (0) and connections of the path (2)
 *   first=0|1      "you may create a session" (1)
 *   recon=N        incarnation (1)
 *   len=N          bytes of private data (56)
 *   patch=OFF:HEX  other bytes at that offset; may be repeated
 *   auth=1         AUTH_REQ in place of CONN_REQ
 *   flood=N        N attempts at once, each half second until SIGTERM, each with uuids of its own
 *   src=ADDR port=N hold=SECONDS
 *
 * Speaks to the kernel's rdma_ucm directly. Prints "accepted depth D flags F" or "refused ERRNO"
 * for each attempt, then waits for hold= seconds. With flood=: how many there were, at the end.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <rdma/rdma_user_cm.h>

enum { ADDR_RESOLVED, ADDR_ERROR, ROUTE_RESOLVED, ROUTE_ERROR, CONNECT_REQUEST, CONNECT_RESPONSE,
       CONNECT_ERROR, UNREACHABLE, REJECTED };

#define REQ_LEN		56
#define MS		5000
#define ROUND_MS	500	/* of a flood: then the next N attempts begin */

static int fd;
static uint8_t req[128];
static size_t req_len = REQ_LEN;
/* up to recon_cnt */
static const uint8_t auth_req[12] = { [2] = 0xba, 0x1b, 0x00, 0x01, [10] = 1 };

static int put(uint32_t cmd, void *in, size_t in_len, void *out, size_t out_len)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		uint8_t body[600];
	} m = { .hdr = { cmd, in_len, out_len } };

	if (out)
		*(uint64_t *)in = (uintptr_t)out;
	memcpy(m.body, in, in_len);
	return write(fd, &m, sizeof(m.hdr) + in_len) < 0 ? -1 : 0;
}

static void must(int rc, const char *what)
{
	if (rc) {
		perror(what);
		exit(2);
	}
}

static socklen_t parse(const char *s, int port, struct __kernel_sockaddr_storage *ss)
{
	struct sockaddr_in6 *six = (void *)ss;
	struct sockaddr_in *four = (void *)ss;

	memset(ss, 0, sizeof(*ss));
	if (inet_pton(AF_INET, s, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		return sizeof(*four);
	}
	if (inet_pton(AF_INET6, s, &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(port);
		return sizeof(*six);
	}
	fprintf(stderr, "knock: %s is no address\n", s);
	exit(2);
}

static void u16(size_t off, unsigned int v)
{
	req[off] = v;
	req[off + 1] = v >> 8;
}

static void patch(const char *text)
{
	unsigned int off, byte;
	int n;

	if (sscanf(text, "%u:%n", &off, &n) != 1)
		exit(2);
	for (text += n; sscanf(text, "%2x", &byte) == 1 && off < sizeof(req); text += 2)
		req[off++] = byte;
}

/* Next event of the connection manager; attempts come one after the other, so it is ours. */
static struct rdma_ucm_event_resp event(void)
{
	struct rdma_ucm_event_resp ev = { 0 };
	struct rdma_ucm_get_event get = { 0 };

	must(put(RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get), &ev, sizeof(ev)), "get_event");
	return ev;
}

static void need(unsigned int want, uint32_t id)
{
	struct rdma_ucm_event_resp ev;

	do
		ev = event();
	while (ev.id != id);
	if (ev.event != want) {
		fprintf(stderr, "knock: event %u with status %d in place of %u\n", ev.event,
			(int)ev.status, want);
		exit(2);
	}
}

/* Asks for the address of the server, and does not wait. */
static uint32_t begin(const char *dst, const char *src, int port)
{
	struct rdma_ucm_create_id create = { .ps = RDMA_PS_TCP, .qp_type = 2 /* RC */,
					     .uid = 1 /* 0 hears of nothing */ };
	struct rdma_ucm_resolve_addr addr = { .timeout_ms = MS };
	struct rdma_ucm_create_id_resp id;

	/* create_id's response field is its second one */
	create.response = (uintptr_t)&id;
	must(put(RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create), NULL, sizeof(id)),
	     "create_id");
	addr.id = id.id;
	addr.dst_size = parse(dst, port, &addr.dst_addr);
	if (src)
		addr.src_size = parse(src, 0, &addr.src_addr);
	must(put(RDMA_USER_CM_CMD_RESOLVE_ADDR, &addr, sizeof(addr), NULL, 0), "resolve_addr");
	return id.id;
}

static int resolve_route(uint32_t id)
{
	struct rdma_ucm_resolve_route route = { .id = id, .timeout_ms = MS };

	return put(RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), NULL, 0);
}

static int ask(uint32_t id)
{
	struct rdma_ucm_connect conn = { .id = id };

	/*
	 * Nobody looks for it before the first packet; the same one again would
	 * be a stale connection to the CM.
	 */
	conn.conn_param.qp_num = 0x100000 | (rand() & 0xfffff);
	conn.conn_param.retry_count = conn.conn_param.rnr_retry_count = 7;
	conn.conn_param.valid = 1;
	conn.conn_param.private_data_len = req_len;
	memcpy(conn.conn_param.private_data, req, req_len);
	return put(RDMA_USER_CM_CMD_CONNECT, &conn, sizeof(conn), NULL, 0);
}

static void ready(uint32_t id)
{
	struct rdma_ucm_accept rtu = { .id = id };

	put(RDMA_USER_CM_CMD_ACCEPT, &rtu, sizeof(rtu), NULL, 0);
}

/* The errno of a refusal, 0: none. */
static int refusal(const struct rdma_ucm_event_resp *ev)
{
	const uint8_t *rsp = ev->param.conn.private_data;

	return ev->event == REJECTED && ev->status == 28 &&
	       ev->param.conn.private_data_len >= REQ_LEN ?
		       -(int16_t)(rsp[4] | rsp[5] << 8) : 0;
}

static void knock(const char *dst, const char *src, int port)
{
	uint32_t id = begin(dst, src, port);
	struct rdma_ucm_event_resp ev;
	const uint8_t *rsp = ev.param.conn.private_data;

	need(ADDR_RESOLVED, id);
	must(resolve_route(id), "resolve_route");
	need(ROUTE_RESOLVED, id);
	must(ask(id), "connect");
	do
		ev = event();
	while (ev.id != id);
	if (ev.event == CONNECT_RESPONSE) {
		ready(id);
		printf("accepted depth %u flags %u\n", rsp[6] | rsp[7] << 8, rsp[16]);
	} else if (refusal(&ev)) {
		printf("refused %d\n", refusal(&ev));
	} else {
		printf("event %u status %d\n", ev.event, (int)ev.status);
	}
	fflush(stdout);
}

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static long ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void flood(const char *dst, const char *src, int port, unsigned int count)
{
	unsigned long asked = 0, accepted = 0, refused = 0;
	uint32_t *ids = calloc(count, sizeof(*ids));
	struct pollfd p = { .fd = fd, .events = POLLIN };
	long began = ms(), end;
	unsigned int i, done;

	signal(SIGTERM, on_term);
	while (!stop) {
		for (i = 0; i < count; i++)
			ids[i] = begin(dst, src, port);
		end = ms() + ROUND_MS;
		for (done = 0; done < count && !stop && ms() < end;) {
			struct rdma_ucm_event_resp ev;

			if (poll(&p, 1, 20) <= 0)
				continue;
			ev = event();
			if (ev.event == ADDR_RESOLVED) {
				resolve_route(ev.id);
				continue;
			}
			if (ev.event == ROUTE_RESOLVED) {
				for (i = 12; i < 44; i++)
					req[i] = rand();
				asked += !ask(ev.id);
				continue;
			}
			done++;
			refused += !!refusal(&ev);
			if (ev.event != CONNECT_RESPONSE)
				continue;
			accepted++;
			ready(ev.id);
		}
		for (; !stop && ms() < end;)
			poll(NULL, 0, 20);
		for (i = 0; i < count; i++) {
			struct rdma_ucm_destroy_id destroy = { .id = ids[i] };
			struct rdma_ucm_destroy_id_resp left;

			destroy.response = (uintptr_t)&left;
			put(RDMA_USER_CM_CMD_DESTROY_ID, &destroy, sizeof(destroy), NULL,
			    sizeof(left));
		}
	}
	printf("%lu asked, %lu accepted, %lu refused in %ld ms\n", asked, accepted, refused,
	       ms() - began);
}

static void fresh(uint8_t *uuid)
{
	int r = open("/dev/urandom", O_RDONLY);

	must(read(r, uuid, 16) != 16, "urandom");
	close(r);
}

int main(int argc, char **argv)
{
	unsigned int count = 1, hold = 0, port = 1234, i, session = 0, path = 0, at_once = 0;
	const char *src = NULL;

	if (argc < 2)
		return 2;
	u16(2, 0x1bbd);
	u16(4, 0x0200);
	u16(8, 2);
	u16(10, 1);
	req[44] = 1;
	for (i = 2; i < (unsigned int)argc; i++) {
		char *value = strchr(argv[i], '='), *word = argv[i];
		unsigned int n;

		if (!value)
			return 2;
		*value++ = '\0';
		n = atoi(value);
		if (!strcmp(word, "count"))
			count = n;
		else if (!strcmp(word, "flood"))
			at_once = n;
		else if (!strcmp(word, "auth"))
			memcpy(req, auth_req, sizeof(auth_req));
		else if (!strcmp(word, "hold"))
			hold = n;
		else if (!strcmp(word, "port"))
			port = n;
		else if (!strcmp(word, "src"))
			src = value;
		else if (!strcmp(word, "session"))
			memset(req + 28, session = n, 16);
		else if (!strcmp(word, "path"))
			memset(req + 12, path = n, 16);
		else if (!strcmp(word, "cid"))
			u16(6, n);
		else if (!strcmp(word, "nr"))
			u16(8, n);
		else if (!strcmp(word, "recon"))
			u16(10, n);
		else if (!strcmp(word, "first"))
			req[44] = n;
		else if (!strcmp(word, "len"))
			req_len = n;
		else if (!strcmp(word, "patch"))
			patch(value);
		else
			return 2;
	}
	srand(getpid());
	fd = open("/dev/infiniband/rdma_cm", O_RDWR);
	if (fd < 0) {
		perror("/dev/infiniband/rdma_cm");
		return 2;
	}
	if (at_once) {
		flood(argv[1], src, port, at_once);
		return 0;
	}
	for (i = 0; i < count; i++) {
		if (!session)
			fresh(req + 28);
		if (!path)
			fresh(req + 12);
		knock(argv[1], src, port);
	}
	sleep(hold);
	return 0;
}
