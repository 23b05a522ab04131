// SPDX-License-Identifier: GPL-2.0-only
/* What one client of a server of libibtrs may use, and what strangers leave to the others. */
#include <sys/resource.h>
#include "user.h"

#define SAYS "the server says: "

/* The path is the address to come from; without a listener of the server's. */
static int from(const char *at, struct world *w)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = inet_addr(at) };
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("127.0.0.1"),
	};
	int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0), s;
	socklen_t len = sizeof(to);

	if (bind(l, (void *)&to, len) || listen(l, 1) || getsockname(l, (void *)&to, &len) ||
	    bind(c, (void *)&own, len) || connect(c, (void *)&to, len))
		abort();
	s = accept4(l, NULL, NULL, SOCK_NONBLOCK);
	fcntl(c, F_SETFL, O_NONBLOCK);
	close(l);
	ibtrs_srv_take(w->srv, s);
	return c;
}

static int dial(void *priv, const char *path, unsigned int cid)
{
	return from(path, priv);
}

static struct ibtrs_clt *client(struct world *w, const char *at, const char *name)
{
	const struct ibtrs_clt_opts o = {
		.size = sizeof(o), .flags = IBTRS_CLT_NOWAIT, .name = name, .dial = dial, .priv = w,
	};
	char why[IBTRS_WHY_LEN];
	struct ibtrs_clt *clt;

	if (ibtrs_clt_open(w->ctx, &at, 1, &o, &clt, why))
		abort();
	return clt;
}

/* "" when it is let in, else why it is not. */
static const char *answer(struct world *w, struct ibtrs_clt *clt, unsigned int turns)
{
	static struct ibtrs_path_info info;

	info.size = sizeof(info);
	while (turns--) {
		world_turn(w);
		if (ibtrs_clt_path_info(clt, 0, &info))
			abort();
		if (!strcmp(info.state, "up"))
			return "";
	}
	return info.why;
}

UNIT_TEST(sessions_of_a_client)
{
	static const struct ibtrs_srv_opts so = {
		.queue_depth = 8, .max_io_size = 4096,
		.max_sessions = 5, .max_sessions_per_peer = 2,
	};
	static const struct {
		const char *from, *name, *why;
	} rows[] = {
		{ "127.0.0.2", "a", "" },
		{ "127.0.0.2", "b", "" },
		{ "127.0.0.2", "c",
		  SAYS "as many sessions of this client as max_sessions_per_peer allows" },
		{ "127.0.0.3", "d", "" },
		{ "127.0.0.4", "e", "" },
		{ "127.0.0.5", "f", SAYS "as many sessions as max_sessions allows" },
	};
	struct ibtrs_clt *clt[sizeof(rows) / sizeof(rows[0])];
	struct world w;
	unsigned int i;

	world_start(&w, &so, 1, 1, 0);		/* the first of five */
	CHECK(world_until_up(&w, 1));
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		UNIT_ROW("%s", rows[i].name);
		clt[i] = client(&w, rows[i].from, rows[i].name);
		CHECK_STR(answer(&w, clt[i], 200), rows[i].why);
	}
	UNIT_ROW("one has gone");
	ibtrs_clt_close(clt[5]);
	ibtrs_clt_close(clt[0]);
	CHECK_STR(answer(&w, clt[2], 20000), "");
	for (i = 1; i < 5; i++)
		ibtrs_clt_close(clt[i]);
	world_end(&w);
}

/* A chunk has 8 KiB. */
UNIT_TEST(memory_of_a_client)
{
	static const struct ibtrs_srv_opts so = {
		.queue_depth = 32, .max_io_size = 4096, .max_memory_mb = 1,
		.max_memory_per_peer_mb = 1,
	}, both = {
		.queue_depth = 128, .max_io_size = 4096, .max_memory_mb = 3,
		.max_memory_per_peer_mb = 1,
	};
	struct ibtrs_clt *clt[6];
	char name[] = "a";
	struct world w;
	unsigned int i;

	UNIT_ROW("of all");			/* 256 KiB each */
	world_start(&w, &so, 1, 1, 0);
	CHECK(world_until_up(&w, 1));
	for (i = 0; i < 4; i++, name[0]++) {
		clt[i] = client(&w, i & 1 ? "127.0.0.2" : "127.0.0.3", name);
		CHECK_STR(answer(&w, clt[i], 200),
			  i < 3 ? "" : SAYS "as much memory in use as max_memory_mb allows");
	}
	ibtrs_clt_close(clt[0]);
	CHECK_STR(answer(&w, clt[3], 20000), "");
	for (i = 1; i < 4; i++)
		ibtrs_clt_close(clt[i]);
	world_end(&w);

	UNIT_ROW("of one");			/* 1 MiB each */
	world_start(&w, &both, 1, 1, 0);
	CHECK(world_until_up(&w, 1));
	clt[0] = client(&w, "127.0.0.2", "x");
	CHECK_STR(answer(&w, clt[0], 200), "");
	clt[1] = client(&w, "127.0.0.2", "y");
	CHECK_STR(answer(&w, clt[1], 200),
		  SAYS "as much memory in use of this client as max_memory_per_peer_mb allows");
	clt[2] = client(&w, "127.0.0.3", "z");
	CHECK_STR(answer(&w, clt[2], 200), "");
	for (i = 0; i < 3; i++)
		ibtrs_clt_close(clt[i]);
	world_end(&w);
}

/* Is the connection still there? */
static bool open_still(struct world *w, int fd)
{
	uint8_t byte;

	ibtrs_srv_poll(w->srv, NULL, 0, 0);
	return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

#define STRANGERS 1024
#define ONE_STRANGER 256

/* Connections that say nothing: one address gets a quarter, and who was in is not kept out. */
UNIT_TEST(strangers_leave_room)
{
	static int fd[STRANGERS];
	struct ibtrs_clt *in, *other;
	struct rlimit had, files;
	unsigned int i, n = 0;
	char at[16];
	struct world w;
	int more;

	getrlimit(RLIMIT_NOFILE, &had);
	files = (struct rlimit){ .rlim_cur = 3 * STRANGERS, .rlim_max = had.rlim_max };
	if (!CHECK_EQ(setrlimit(RLIMIT_NOFILE, &files), 0))
		return;
	world_start(&w, NULL, 1, 1, 0);
	CHECK(world_until_up(&w, 1));
	in = client(&w, "127.0.0.9", "in");
	CHECK_STR(answer(&w, in, 200), "");
	while (n < STRANGERS) {
		snprintf(at, sizeof(at), "127.0.0.%u", 10 + n / ONE_STRANGER);
		UNIT_ROW("%s", at);
		for (i = 0; i < ONE_STRANGER; i++)
			fd[n++] = from(at, &w);
		CHECK(open_still(&w, fd[n - 1]));
		more = from(at, &w);
		CHECK(!open_still(&w, more));
		close(more);
	}
	UNIT_ROW("all places of strangers are taken");
	other = client(&w, "127.0.0.99", "other");
	CHECK(*answer(&w, other, 100));
	ibtrs_clt_close(other);
	UNIT_ROW("but not those of an address that a client is in from");
	other = client(&w, "127.0.0.9", "too");
	CHECK_STR(answer(&w, other, 200), "");
	ibtrs_clt_close(other);
	ibtrs_clt_close(in);
	for (i = 0; i < STRANGERS; i++)
		close(fd[i]);
	world_end(&w);
	setrlimit(RLIMIT_NOFILE, &had);
}

/* ---- names of clients that were lost ---------------------------------------- */

static enum ibtrs_srv_left left;

static enum ibtrs_srv_left gone(void *priv, uint64_t session)
{
	return left;
}

/* The client is lost, and says nothing. */
static void lose(struct world *w, struct ibtrs_clt *clt)
{
	unsigned int i;

	ibtrs_clt_close(clt);
	for (i = 0; i < 20; i++)
		world_turn(w);
}

/* A client of the name is let in, and lost. */
static void come_and_go(struct world *w, const char *at, enum ibtrs_srv_left as)
{
	struct ibtrs_clt *clt = client(w, at, "db");

	left = as;
	CHECK_STR(answer(w, clt, 200), "");
	lose(w, clt);
}

UNIT_TEST(kept_names)
{
	static const struct ibtrs_srv_opts so = {
		.queue_depth = 8, .max_io_size = 4096, .max_sessions = 4, .name_keep_s = 60,
		.gone = gone, .max_paths_half_open = 1,
	};
	const char *kept = SAYS "the session name is kept for ip:127.0.0.2, lost ", *said;
	struct ibtrs_clt *other;
	struct world w;

	world_start(&w, &so, 1, 1, 0);
	CHECK(world_until_up(&w, 1));
	UNIT_ROW("closed");
	come_and_go(&w, "127.0.0.2", IBTRS_SRV_LEFT_CLOSED);
	come_and_go(&w, "127.0.0.3", IBTRS_SRV_LEFT_CLOSED);

	UNIT_ROW("left open");
	come_and_go(&w, "127.0.0.2", IBTRS_SRV_LEFT_OPEN);
	other = client(&w, "127.0.0.3", "db");
	said = answer(&w, other, 200);
	if (!CHECK(!strncmp(said, kept, strlen(kept))))
		fprintf(stderr, "%s\n", said);
	CHECK(strstr(said, " s more: wait, or use another name here"));

	UNIT_ROW("back, and lost again before it has opened anything");
	come_and_go(&w, "127.0.0.2", IBTRS_SRV_LEFT_UNUSED);
	w.now += 30000;
	said = answer(&w, other, 4000);
	CHECK(!strncmp(said, kept, strlen(kept)));

	UNIT_ROW("its time is over");
	w.now += 30000;
	CHECK_STR(answer(&w, other, 20000), "");
	ibtrs_clt_close(other);
	left = IBTRS_SRV_LEFT_CLOSED;
	world_end(&w);
}
