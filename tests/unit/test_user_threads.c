// SPDX-License-Identifier: GPL-2.0-only
/* libibtrs over 127.0.0.1 and a Unix socket, with threads, clocks and sleeping as they are. */
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include "user.h"

#define QUEUES	3
#define ROUNDS	150
#define INFLIGHT 8
#define BLOCK	3000

static uint8_t disk[QUEUES * INFLIGHT][BLOCK];
static bool stop;

/* Replies come from another thread than polls. */
static void *serve(void *arg)
{
	struct ibtrs_srv *srv = arg;
	struct ibtrs_op *op[16];
	uint32_t block;
	int n, i;

	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		n = ibtrs_srv_poll(srv, op, 16, 20);
		for (i = 0; i < n; i++) {
			memcpy(&block, op[i]->hdr, sizeof(block));
			if (op[i]->service) {
				memset(op[i]->data, 0x42, op[i]->len);
				ibtrs_op_reply(op[i], block == 1 ? -EXDEV : 0);
				continue;
			}
			if (op[i]->dir == IBTRS_IO_WRITE)
				memcpy(disk[block], op[i]->data, op[i]->len);
			else
				memcpy(op[i]->data, disk[block], op[i]->len);
			ibtrs_op_reply(op[i], 0);
		}
	}
	return NULL;
}

struct user {
	pthread_t thread;
	struct ibtrs_q *q;
	unsigned int nr;
	unsigned int bad;
	bool sleeps;
};

static unsigned int collect(struct user *u, unsigned int want)
{
	struct pollfd fd = { .fd = ibtrs_q_fd(u->q), .events = POLLIN };
	struct ibtrs_io *done[INFLIGHT];
	unsigned int got = 0, idle = 0;
	int n;

	while (got < want && idle < 500) {
		n = ibtrs_q_poll(u->q, done, INFLIGHT, u->sleeps ? 0 : 20);
		if (!n && u->sleeps)
			poll(&fd, 1, 20);
		idle = n ? 0 : idle + 1;
		got += (unsigned int)n;
		while (n-- > 0)
			u->bad += done[n]->err != 0;
	}
	return got;
}

static bool more;		/* than ROUNDS: not all has happened yet */

static void *use(void *arg)
{
	uint8_t data[INFLIGHT][BLOCK], want[BLOCK];
	struct ibtrs_io io[INFLIGHT], *p[INFLIGHT];
	uint32_t block[INFLIGHT];
	struct user *u = arg;
	unsigned int round, i, dir;

	for (round = 0; (round < ROUNDS || __atomic_load_n(&more, __ATOMIC_ACQUIRE)) && !u->bad;
	     round++) {
		for (dir = 0; dir < 2; dir++) {
			for (i = 0; i < INFLIGHT; i++) {
				block[i] = u->nr * INFLIGHT + i;
				memset(data[i], dir ? 0 : (int)(round + block[i]), BLOCK);
				io[i] = (struct ibtrs_io){
					.dir = dir ? IBTRS_IO_READ : IBTRS_IO_WRITE,
					.hdr = &block[i], .hdr_len = 4,
					.data = data[i], .len = BLOCK,
				};
				p[i] = &io[i];
			}
			u->bad += ibtrs_q_submit(u->q, p, INFLIGHT) != INFLIGHT;
			u->bad += collect(u, INFLIGHT) != INFLIGHT;
		}
		for (i = 0; i < INFLIGHT; i++) {
			memset(want, (int)(round + block[i]), BLOCK);
			u->bad += memcmp(data[i], want, BLOCK) != 0;
		}
	}
	return NULL;
}

/* Sockets of the client, by path, for a thread that ends them. */
#define CHAOS	256

static struct {
	pthread_mutex_t lock;
	int fd[2][CHAOS];
	unsigned int nr[2];
	struct ibtrs_srv *srv;
	bool stop;
} chaos = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int chaos_dial(void *priv, const char *path, unsigned int cid)
{
	unsigned int p = path[0] == 'B';
	int fd[2], err;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		return -errno;
	pthread_mutex_lock(&chaos.lock);
	if (chaos.nr[p] < CHAOS)
		chaos.fd[p][chaos.nr[p]++] = dup(fd[0]);
	pthread_mutex_unlock(&chaos.lock);
	err = ibtrs_srv_take(chaos.srv, fd[1]);
	if (err)
		close(fd[0]);
	return err ?: fd[0];
}

static void chaos_cut(unsigned int p)
{
	pthread_mutex_lock(&chaos.lock);
	while (chaos.nr[p]) {
		shutdown(chaos.fd[p][--chaos.nr[p]], SHUT_RDWR);
		close(chaos.fd[p][chaos.nr[p]]);
	}
	pthread_mutex_unlock(&chaos.lock);
}

static void *chaos_run(void *arg)
{
	unsigned int i;

	for (i = 0; !__atomic_load_n(&chaos.stop, __ATOMIC_ACQUIRE); i++) {
		usleep(15000);
		chaos_cut(i & 1);
	}
	return NULL;
}

static void users_start(struct user *users, struct ibtrs_clt *clt)
{
	unsigned int i;

	for (i = 0; i < QUEUES; i++) {
		users[i].q = ibtrs_clt_q(clt, i);
		users[i].nr = i;
		users[i].sleeps = i & 1;
		pthread_create(&users[i].thread, NULL, use, &users[i]);
	}
}

static void users_end(struct user *users)
{
	unsigned int i;

	for (i = 0; i < QUEUES; i++) {
		pthread_join(users[i].thread, NULL);
		CHECK_EQ(users[i].bad, 0);
	}
}

/* Threads use their queues while one path after the other is cut, and everything is right. */
UNIT_TEST(paths_are_cut_under_threads)
{
	static const char *const paths[] = { "A", "B" };
	struct ibtrs_ctx_opts co = { .size = sizeof(co), .flags = IBTRS_CTX_THREAD };
	struct ibtrs_clt_opts o = {
		.size = sizeof(o), .name = "chaos", .queues = QUEUES, .dial = chaos_dial,
	};
	struct ibtrs_path_info a = { .size = sizeof(a) }, b = a;
	struct user users[QUEUES] = { 0 };
	char why[IBTRS_WHY_LEN] = "";
	pthread_t server, cutter;
	struct ibtrs_ctx *ctx;
	struct ibtrs_clt *clt;
	unsigned int i;

	__atomic_store_n(&stop, false, __ATOMIC_RELEASE);
	__atomic_store_n(&more, true, __ATOMIC_RELEASE);
	CHECK_EQ(ibtrs_srv_new(NULL, &chaos.srv, why), 0);
	pthread_create(&server, NULL, serve, chaos.srv);
	CHECK_EQ(ibtrs_ctx_new(&ctx, &co), 0);
	if (!CHECK_EQ(ibtrs_clt_open(ctx, paths, 2, &o, &clt, why), 0)) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	users_start(users, clt);
	pthread_create(&cutter, NULL, chaos_run, NULL);
	for (i = 0; i < 4000 && a.established + b.established <= 2; i++) {
		usleep(5000);
		CHECK_EQ(ibtrs_clt_path_info(clt, 0, &a), 0);
		CHECK_EQ(ibtrs_clt_path_info(clt, 1, &b), 0);
	}
	__atomic_store_n(&more, false, __ATOMIC_RELEASE);
	users_end(users);
	__atomic_store_n(&chaos.stop, true, __ATOMIC_RELEASE);
	pthread_join(cutter, NULL);
	CHECK(a.established + b.established > 2);
	ibtrs_clt_close(clt);
	CHECK_EQ(ibtrs_ctx_free(ctx), 0);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(server, NULL);
	CHECK_EQ(ibtrs_srv_free(chaos.srv), 0);
	chaos_cut(0);
	chaos_cut(1);
}

static void whole(const char *at, const char *const *paths, unsigned int nr, bool threaded)
{
	struct ibtrs_ctx_opts co = { .size = sizeof(co), .flags = IBTRS_CTX_THREAD };
	struct ibtrs_clt_opts o = { .size = sizeof(o), .name = "threads", .queues = QUEUES };
	struct user users[QUEUES] = { 0 };
	char why[IBTRS_WHY_LEN] = "", tcp[2][64];
	const char *real[2] = { paths[0], paths[nr - 1] };
	struct ibtrs_srv *srv;
	struct ibtrs_ctx *ctx;
	struct ibtrs_clt *clt;
	pthread_t server;
	uint8_t reply[100];
	uint32_t hdr = 0;
	unsigned int i;
	int port;

	__atomic_store_n(&stop, false, __ATOMIC_RELEASE);
	CHECK_EQ(ibtrs_srv_new(NULL, &srv, why), 0);
	port = ibtrs_srv_listen(srv, at, why);
	if (!CHECK(port >= 0))
		abort();
	for (i = 0; port && i < nr; i++) {
		snprintf(tcp[i], sizeof(tcp[i]), paths[i], port);
		real[i] = tcp[i];
	}
	pthread_create(&server, NULL, serve, srv);
	CHECK_EQ(ibtrs_ctx_new(&ctx, threaded ? &co : NULL), 0);
	if (!CHECK_EQ(ibtrs_clt_open(ctx, real, nr, &o, &clt, why), 0)) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	users_start(users, clt);
	/* calls meanwhile; without a thread they drive the context */
	for (i = 0; i < 50; i++) {
		memset(reply, 0, sizeof(reply));
		hdr = 0;
		CHECK_EQ(ibtrs_clt_call(clt, &hdr, sizeof(hdr), reply, sizeof(reply), 5000), 0);
		CHECK_EQ(reply[0], 0x42);
		CHECK_EQ(reply[99], 0x42);
		hdr = 1;
		CHECK_EQ(ibtrs_clt_call(clt, &hdr, sizeof(hdr), NULL, 0, 5000), -EXDEV);
	}
	users_end(users);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(server, NULL);
	/* nobody answers: the call ends, its memory stays until the session does */
	CHECK_EQ(ibtrs_clt_call(clt, &hdr, sizeof(hdr), reply, sizeof(reply), 20), -ETIMEDOUT);
	ibtrs_clt_close(clt);
	CHECK_EQ(ibtrs_ctx_free(ctx), 0);
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}

UNIT_TEST(tcp_with_a_control_thread)
{
	static const char *const paths[] = { "tcp:127.0.0.1:%d", "tcp:127.0.0.1:%d" };

	whole("tcp:127.0.0.1:0", paths, 2, true);
}

UNIT_TEST(unix_without_a_control_thread)
{
	char path[64], *paths[1] = { path };

	snprintf(path, sizeof(path), "unix:/tmp/ibtrs-test-%d", getpid());
	whole(path, (const char *const *)paths, 1, false);
	CHECK_EQ(access(path + 5, F_OK), -1);
}

UNIT_TEST(nobody_listens)
{
	const char *paths[] = { "unix:/tmp/ibtrs-nobody" };
	struct ibtrs_clt_opts o = { .size = sizeof(o), .name = "x" };
	char why[IBTRS_WHY_LEN];
	struct ibtrs_ctx *ctx;
	struct ibtrs_clt *clt;

	CHECK_EQ(ibtrs_ctx_new(&ctx, NULL), 0);
	CHECK_EQ(ibtrs_clt_open(ctx, paths, 1, &o, &clt, why), -ENOENT);
	CHECK_STR(why, "unix:/tmp/ibtrs-nobody: nothing listens there");
	paths[0] = "tcp:127.0.0.1:1";
	CHECK_EQ(ibtrs_clt_open(ctx, paths, 1, &o, &clt, why), -ECONNREFUSED);
	CHECK_STR(why, "tcp:127.0.0.1:1: nothing listens there");
	CHECK_EQ(ibtrs_ctx_free(ctx), 0);
}

UNIT_TEST(a_place_to_listen_at)
{
	static const char taken[] =
		"cannot listen there: somebody listens there already, or a server that has died left its socket: choose another place, or remove the socket";
	char at[48], why[IBTRS_WHY_LEN], want[IBTRS_WHY_LEN];
	struct rlimit files, few;
	struct ibtrs_srv *srv;
	int port;

	CHECK_EQ(ibtrs_srv_new(NULL, &srv, why), 0);
	port = ibtrs_srv_listen(srv, "tcp:127.0.0.1:0", why);
	CHECK(port > 0);
	snprintf(at, sizeof(at), "tcp:127.0.0.1:%d", port);
	snprintf(want, sizeof(want), "%s: %s", at, taken);
	CHECK_EQ(ibtrs_srv_listen(srv, at, why), -EADDRINUSE);
	CHECK_STR(why, want);
	snprintf(at, sizeof(at), "unix:/tmp/ibtrs-test-%d", getpid());
	snprintf(want, sizeof(want), "%s: %s", at, taken);
	CHECK_EQ(ibtrs_srv_listen(srv, at, why), 0);
	CHECK_EQ(ibtrs_srv_listen(srv, at, why), -EADDRINUSE);
	CHECK_STR(why, want);
	CHECK_EQ(ibtrs_srv_listen(srv, "unix:/tmp/ibtrs-nowhere/x", why), -ENOENT);
	CHECK_STR(why, "unix:/tmp/ibtrs-nowhere/x: cannot listen there: the folder of the socket does not exist");
	CHECK_EQ(ibtrs_srv_listen(srv, "tcp:192.0.2.1:0", why), -EADDRNOTAVAIL);
	CHECK_STR(why, "tcp:192.0.2.1:0: cannot listen there: this host does not have that address");
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
	few = (struct rlimit){ .rlim_cur = 3, .rlim_max = files.rlim_max };
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	CHECK_EQ(ibtrs_srv_listen(srv, "tcp:127.0.0.1:0", why), -EMFILE);
	CHECK_STR(why, "tcp:127.0.0.1:0: cannot listen there: too many files are open: raise LimitNOFILE= or ulimit -n");
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}
