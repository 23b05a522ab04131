// SPDX-License-Identifier: GPL-2.0-only
/*
 * auto: paths (protocol 12.2): RDMA is there, is not, or leads nowhere; the stream comes behind it,
 * and the server tells where else it has RDMA. RDMA is a second set of wires here.
 */
#include "ibtrs/user/clt.h"
#include "ibtrs/user/rdma.h"
#include "ibtrs/user/srv.h"
#include "ibtrs/user/stream.h"
#include "auth_vectors.h"
#include "raw.h"

#define STREAM	0		/* the wires of a world */
#define RDMA	1

/* ---- an adapter --------------------------------------------------------- */

enum leads {
	LEADS_THERE,
	LEADS_NOWHERE,		/* no answer comes */
	LEADS_NOT,		/* no adapter has that address */
};

static struct {
	struct world *w;
	enum leads own;		/* the address of the auto: path */
	enum leads told;	/* those that the server tells */
	unsigned int connects;
	int nowhere[64];
	u32 nr_nowhere;
	struct sockaddr_storage at[3];
	u32 nr_at;
} adapter;

static struct ibtrs_qp *fake_connect(const struct ibtrs_place *p, u32 depth, int *err,
				     const char **why)
{
	bool own = p->addr.kind == IBTRS_ADDR_IP4 && p->addr.raw[3] == 1;
	int fd[2];

	adapter.connects++;
	switch (own ? adapter.own : adapter.told) {
	case LEADS_THERE:
		return ibtrs_stream_new(world_dial(adapter.w, "B", 0), NULL);
	case LEADS_NOWHERE:
		if (adapter.nr_nowhere == ARRAY_SIZE(adapter.nowhere) ||
		    socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
			abort();
		adapter.nowhere[adapter.nr_nowhere++] = fd[1];
		return ibtrs_stream_new(fd[0], NULL);
	case LEADS_NOT:
		break;
	}
	*err = -ENODEV;
	*why = "no adapter";
	return NULL;
}

static struct ibtrs_rdma_listener *fake_listen(const struct ibtrs_place *p, int *port,
					       const char **why)
{
	*port = p->port ?: 4791;
	return (void *)&adapter;
}

static int fake_listen_fd(const struct ibtrs_rdma_listener *l)
{
	int fd[2];

	if (pipe(fd))
		abort();
	adapter.nowhere[adapter.nr_nowhere++] = fd[0];
	adapter.nowhere[adapter.nr_nowhere++] = fd[1];
	return fd[0];
}

static void fake_unlisten(struct ibtrs_rdma_listener *l)
{
}

static u32 fake_where(int family, u8 gid[][IBTRS_GID_LEN], u32 max)
{
	u32 i;

	for (i = 0; i < adapter.nr_at && i < max; i++)
		ibtrs_place_gid((struct sockaddr *)&adapter.at[i], gid[i]);
	return i;
}

static const struct ibtrs_transport fake = {
	.connect = fake_connect, .listen = fake_listen, .listen_fd = fake_listen_fd,
	.unlisten = fake_unlisten, .where = fake_where,
};

static int stream_dial(void *priv, const char *path, unsigned int cid)
{
	return world_dial(priv, "A", cid);
}

static void at(const char *text)
{
	struct ibtrs_place p;
	const char *why;

	CHECK_EQ(ibtrs_place_parse(text, &p, &why), 0);
	ibtrs_place_sockaddr(&p, &adapter.at[adapter.nr_at++]);
}

/* ---- the world ---------------------------------------------------------- */

static unsigned int keys_get(void *priv, const char *name,
			     uint8_t key[IBTRS_SECRETS][IBTRS_SECRET_LEN])
{
	memcpy(key[0], golden_key, IBTRS_SECRET_LEN);
	return !strcmp(name, "db-1");
}

static const struct ibtrs_clt_opts with_key = {
	.size = sizeof(with_key), .flags = IBTRS_CLT_TLS | IBTRS_CLT_NOWAIT, .name = "test",
	.key_name = "db-1", .key = golden_key,
};

/* A session of one auto: path; the world's own one goes before it has begun. */
static void begin(struct world *w, enum leads own, enum leads told)
{
	const struct ibtrs_srv_opts so = {
		.size = sizeof(so), .queue_depth = 32, .max_io_size = 8192,
		.auth = IBTRS_SRV_AUTH_REQUIRED, .key = keys_get,
	};
	static const char *const paths[] = { "auto:192.0.2.1" };
	char why[IBTRS_WHY_LEN] = "";

	world_open(w, &so, 1, &with_key);
	ibtrs_clt_close(w->clt);
	memset(&adapter, 0, sizeof(adapter));
	adapter.w = w;
	adapter.own = own;
	adapter.told = told;
	w->srv->rdma = &fake;
	CHECK_EQ(ibtrs_clt_open(w->ctx, paths, 1, &with_key, &w->clt, why), 0);
	w->clt->rdma = &fake;
	w->clt->opts.dial = stream_dial;
	w->clt->opts.priv = w;
}

static void end(struct world *w)
{
	world_end(w);
	while (adapter.nr_nowhere)
		close(adapter.nowhere[--adapter.nr_nowhere]);
}

static u32 rdma_up(struct world *w)
{
	struct ibtrs_clt_info i = { .size = sizeof(i) };

	ibtrs_clt_info(w->clt, &i);
	return i.rdma_up;
}

static u32 paths(struct world *w)
{
	struct ibtrs_clt_info i = { .size = sizeof(i) };

	ibtrs_clt_info(w->clt, &i);
	return i.paths;
}

static const char *state(struct world *w, unsigned int path)
{
	static char text[128];
	struct ibtrs_path_info i = { .size = sizeof(i) };

	if (ibtrs_clt_path_info(w->clt, path, &i))
		return "none";
	snprintf(text, sizeof(text), "%s %s %s", i.path, i.kind, i.state);
	return text;
}

/* Where does a request go? Bytes of heartbeats are few. */
static void goes_over(struct world *w, unsigned int wires)
{
	static uint8_t data[512];
	long before[2] = { w->moved[0], w->moved[1] };
	struct world_hdr h;
	struct ibtrs_io io = world_io(IBTRS_IO_WRITE, &h, 5, data, sizeof(data));
	unsigned int i;

	data[0]++;
	for (i = 0; i < 4; i++)
		CHECK_EQ(world_do(w, &io), 0);
	CHECK_MEM(w->disk[5], data, sizeof(data));
	CHECK(w->moved[wires] - before[wires] > 4 * 512);
	CHECK(w->moved[!wires] - before[!wires] < 512);
}

/* ---- the client --------------------------------------------------------- */

UNIT_TEST(rdma_is_there)
{
	struct world w;
	uint64_t from;

	begin(&w, LEADS_THERE, LEADS_NOT);
	CHECK_STR(state(&w, 0), "ip:192.0.2.1 rdma idle");
	CHECK_STR(state(&w, 1), "tcp:192.0.2.1 tls idle");
	CHECK_STR(state(&w, 2), "none");
	from = w.now;
	CHECK(world_until_up(&w, 1));
	CHECK_EQ(rdma_up(&w), 1);
	CHECK_EQ(w.dials[STREAM], 0);
	goes_over(&w, RDMA);
	CHECK(world_until_up(&w, 2));
	CHECK(w.now - from >= 250 && w.now - from < 350);
	CHECK_EQ(rdma_up(&w), 1);
	goes_over(&w, RDMA);

	UNIT_ROW("it goes");
	adapter.own = LEADS_NOWHERE;
	world_cut(&w, RDMA);
	world_turns(&w, 3);
	CHECK_EQ(rdma_up(&w), 0);
	CHECK_EQ(world_up(&w), 1);
	goes_over(&w, STREAM);

	UNIT_ROW("it comes back");
	adapter.own = LEADS_THERE;
	CHECK(world_until_up(&w, 2));
	goes_over(&w, RDMA);

	UNIT_ROW("the stream goes");
	world_cut(&w, STREAM);
	goes_over(&w, RDMA);
	CHECK(world_until_up(&w, 2));
	end(&w);
}

UNIT_TEST(rdma_leads_nowhere)
{
	struct world w;
	uint64_t from;

	begin(&w, LEADS_NOWHERE, LEADS_NOT);
	from = w.now;
	world_turns(&w, 245);
	CHECK_EQ(adapter.connects, 1);
	CHECK_EQ(w.dials[STREAM], 0);
	CHECK(world_until_up(&w, 1));
	CHECK(w.now - from < 350);
	CHECK_STR(state(&w, 0), "ip:192.0.2.1 rdma connecting");
	CHECK_STR(state(&w, 1), "tcp:192.0.2.1 tls up");
	goes_over(&w, STREAM);
	world_turns(&w, 30000);
	CHECK_EQ(rdma_up(&w), 0);
	CHECK(adapter.connects > 1);
	end(&w);
}

/* Its time comes in the close, which does not begin it any more. */
UNIT_TEST(closed_before_the_stream_begins)
{
	struct world w;

	begin(&w, LEADS_NOWHERE, LEADS_NOT);
	world_turns(&w, 100);
	w.now += 1000;
	end(&w);
	CHECK_EQ(w.dials[STREAM], 0);
}

UNIT_TEST(there_is_no_rdma)
{
	struct world w;
	uint64_t from;

	begin(&w, LEADS_NOT, LEADS_NOT);
	from = w.now;
	CHECK(world_until_up(&w, 1));
	CHECK(w.now - from < 100);
	CHECK_STR(state(&w, 1), "tcp:192.0.2.1 tls up");
	goes_over(&w, STREAM);
	end(&w);
}

/* The host's name leads to an address without RDMA; its adapters have others. */
UNIT_TEST(the_server_tells)
{
	struct world w;
	char why[IBTRS_WHY_LEN];

	begin(&w, LEADS_NOT, LEADS_THERE);
	at("ip:192.0.2.7");
	at("ip:[2001:db8::7]");
	at("ip:192.0.2.1");
	CHECK_EQ(ibtrs_srv_listen(w.srv, "ip:[::]:77", why), 77);
	CHECK_EQ(ibtrs_srv_listen(w.srv, "ip:192.0.2.8", why), 1234);
	CHECK_EQ(ibtrs_srv_listen(w.srv, "ip:192.0.2.1", why), 1234);	/* known already */
	CHECK(world_until_up(&w, 4));
	CHECK_EQ(paths(&w), 6);
	CHECK_STR(state(&w, 0), "ip:192.0.2.1 rdma waiting");
	CHECK_STR(state(&w, 2), "ip:192.0.2.8:1234 rdma up");
	CHECK_STR(state(&w, 3), "ip:192.0.2.7:77 rdma up");
	CHECK_STR(state(&w, 4), "ip:[2001:db8::7]:77 rdma up");
	CHECK_STR(state(&w, 5), "ip:192.0.2.1:77 rdma waiting");
	CHECK_EQ(rdma_up(&w), 3);
	goes_over(&w, RDMA);

	UNIT_ROW("once more");
	world_cut(&w, STREAM);
	world_turns(&w, 300);
	CHECK_EQ(paths(&w), 6);
	CHECK_EQ(world_up(&w), 4);
	end(&w);
}

/* Of the answer nothing is believed but addresses, of which there are few. */
UNIT_TEST(answers)
{
	const struct ibtrs_wire_where junk[] = {
		{ .gid = { [10] = 0xff, 0xff }, .port = cpu_to_le16(1) },	/* 0.0.0.0 */
		{ .gid = { [10] = 0xff, 0xff, 224, 0, 0, 1 }, .port = cpu_to_le16(1) },
		{ .gid = { 0 }, .port = cpu_to_le16(1) },
		{ .gid = { 0xfe, 0x80, [15] = 1 }, .port = cpu_to_le16(1) },
		{ .gid = { [10] = 0xff, 0xff, 192, 0, 2, 9 }, .port = 0 },
	};
	struct ibtrs_wire_where many[IBTRS_WHERE_MAX + 1] = { 0 };
	struct ibtrs_wc wc = { .op = IBTRS_FRAME_WHERE, .data = many };
	struct ibtrs_clt_path *stream;
	struct world w;
	u32 i, n;

	begin(&w, LEADS_NOT, LEADS_NOT);
	CHECK(world_until_up(&w, 1));
	stream = &w.clt->paths[1];
	for (wc.len = 1; wc.len < sizeof(many[0]); wc.len += 11)
		CHECK_STR(ibtrs_auto_told(stream, &wc), "a list of addresses that is no list");
	wc.len = sizeof(many);
	CHECK_STR(ibtrs_auto_told(stream, &wc), "a list of addresses that is no list");
	wc.len = sizeof(many[0]);
	CHECK_STR(ibtrs_auto_told(&w.clt->paths[0], &wc), "an answer to what was not asked");
	wc.len = sizeof(junk);
	wc.data = junk;
	CHECK(!ibtrs_auto_told(stream, &wc));
	CHECK_EQ(paths(&w), 2);
	wc.len = IBTRS_WHERE_MAX * sizeof(many[0]);
	wc.data = many;
	for (n = 0; n < 3; n++) {
		for (i = 0; i < IBTRS_WHERE_MAX; i++) {
			memcpy(many[i].gid, "\x20\x01\x0d\xb8", 4);
			many[i].gid[14] = (u8)n;
			many[i].gid[15] = (u8)(i + 1);
			many[i].port = cpu_to_le16(9);
		}
		CHECK(!ibtrs_auto_told(stream, &wc));
		CHECK_EQ(paths(&w), 2 + IBTRS_WHERE_MAX);
	}
	world_turns(&w, 2000);
	goes_over(&w, STREAM);
	w.clt->finds = false;
	CHECK_STR(ibtrs_auto_told(stream, &wc), "an answer to what was not asked");
	end(&w);
}

UNIT_TEST(options)
{
	static const struct {
		const char *path, *why;
		bool key;
	} *r, rows[] = {
		{ "auto:192.0.2.1", "auto:192.0.2.1: it may come to a stream, which would be plain text: give a key, or name ip: or tcp: yourself", false },
		{ "auto:db1", "ip:db1: not an address, and the driver resolves no names of hosts", true },
		{ "auto:192.0.2.1:x", "ip:192.0.2.1:x: the port is no number from 0 to 65535", true },
	};
	const char *many[IBTRS_MAX_PATHS] = { "auto:127.0.0.1:1" };
	struct ibtrs_clt_opts o = with_key;
	char why[IBTRS_WHY_LEN];
	struct ibtrs_ctx *ctx;
	struct ibtrs_clt *clt;
	u32 i;

	CHECK_EQ(ibtrs_ctx_new(&ctx, NULL), 0);
	o.flags = 0;
	CHECK_EQ(ibtrs_clt_open(ctx, many, 1, &o, &clt, why), -ECONNREFUSED);
	CHECK_STR(why, "tcp:127.0.0.1:1: nothing listens there");
	for (r = rows; r < rows + ARRAY_SIZE(rows); r++) {
		o = (struct ibtrs_clt_opts){ .size = sizeof(o), .name = "test" };
		CHECK_EQ(ibtrs_clt_open(ctx, &r->path, 1, r->key ? &with_key : &o, &clt, why),
			 -EINVAL);
		CHECK_STR(why, r->why);
	}
	for (i = 0; i < IBTRS_MAX_PATHS; i++)
		many[i] = "auto:192.0.2.1";
	CHECK_EQ(ibtrs_clt_open(ctx, many, IBTRS_MAX_PATHS / 2 + 1, &with_key, &clt, why), -EINVAL);
	CHECK_STR(why, "session: it has 1 to 128 paths, auto: is two");
	CHECK_EQ(ibtrs_clt_open(ctx, many, IBTRS_MAX_PATHS / 2, &with_key, &clt, why), 0);
	CHECK_EQ(clt->nr_paths, IBTRS_MAX_PATHS);
	CHECK_EQ(clt->max_paths, IBTRS_MAX_PATHS);
	ibtrs_clt_close(clt);
	CHECK_EQ(ibtrs_ctx_free(ctx), 0);
}

/* ---- the server --------------------------------------------------------- */

/* docs/protocol.md 12.2 */
static const uint8_t golden_answer[] = {
	0x30, 0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff,
	0xc0, 0x00, 0x02, 0x07, 0x4d, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x07, 0x4d, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};

UNIT_TEST(golden_bytes)
{
	struct ibtrs_srv_opts o = { .size = sizeof(o), .queue_depth = 16, .max_io_size = 8192 };
	struct ibtrs_srv *srv;
	char why[IBTRS_WHY_LEN];
	uint8_t got[256];
	struct raw_path p;

	memset(&adapter, 0, sizeof(adapter));
	at("ip:192.0.2.7");
	at("ip:[2001:db8::7]");
	CHECK_EQ(ibtrs_srv_new(&o, &srv, why), 0);
	srv->rdma = &fake;
	CHECK_EQ(ibtrs_srv_listen(srv, "ip:[::]:77", why), 77);
	if (raw_path_up(&p, srv, 0, 1)) {
		raw_send(&p.r, IBTRS_FRAME_WHERE, 0, 0, 0, NULL, 0);
		raw_poll(&p);
		CHECK_EQ(recv(p.r.fd, got, sizeof(got), 0), sizeof(golden_answer));
		CHECK_MEM(got, golden_answer, sizeof(golden_answer));
		/* Looking costs something: once. */
		raw_send(&p.r, IBTRS_FRAME_WHERE, 0, 0, 0, NULL, 0);
		raw_poll(&p);
		CHECK_EQ(raw_recv(&p.r), -1);
	}
	raw_path_end(&p);
	UNIT_ROW("with something behind it");
	if (raw_path_up(&p, srv, 0, 2)) {
		raw_send(&p.r, IBTRS_FRAME_WHERE, 0, 0, 0, "?", 1);
		raw_poll(&p);
		CHECK_EQ(raw_recv(&p.r), -1);
	}
	raw_path_end(&p);
	CHECK_EQ(ibtrs_srv_free(srv), 0);
	while (adapter.nr_nowhere)
		close(adapter.nowhere[--adapter.nr_nowhere]);
}
