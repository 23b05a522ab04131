/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ibnbd-serverd as a process of its own, under sanitizers, and clients of it: the test's program
 * starts itself once more, and is the server then.
 */
#ifndef TEST_SERVERD_H
#define TEST_SERVERD_H

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "ibnbd/proto/msg_io.h"
#include "ibnbd/user/serverd/serverd.h"
#include "unit.h"

#define MIB		(1u << 20)
#define DISK_MIB	16u
#define ALL_FEATURES	IBNBD_FEAT_KNOWN

static char dir[64];		/* of this run */
static pid_t server;

__attribute__((constructor))
static void server_program(int argc, char **argv)
{
	if (getenv("TEST_SERVERD"))
		exit(serverd_main(argc, argv));
}

/*
 * What the server's process does otherwise, by files in its IBNBD_ROOT: "fail" is a disk whose
 * flushes fail, "hang" one that keeps its writes, "no-ring" a kernel without io_uring, and with
 * "fast" its sessions see a clock that is fifty times as fast.
 */
static bool server_told(const char *name)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", getenv("IBNBD_ROOT") ?: "", name);
	return !access(path, F_OK);
}

void __real_serverd_ring(struct serverd *d, struct serverd_ring_job *r);
void __wrap_serverd_ring(struct serverd *d, struct serverd_ring_job *r);
void __wrap_serverd_ring(struct serverd *d, struct serverd_ring_job *r)
{
	static struct serverd_ring_job *held;

	if (r->op == SERVERD_WRITE && !held && server_told("hang")) {
		held = r;
		return;
	}
	if (held && !server_told("hang")) {
		__real_serverd_ring(d, held);
		held = NULL;
	}
	if (r->op != SERVERD_FSYNC || !server_told("fail")) {
		__real_serverd_ring(d, r);
		return;
	}
	r->res = -EIO;
	r->done(d, r);
}

void __real_serverd_ring_start(struct serverd *d);
void __wrap_serverd_ring_start(struct serverd *d);
void __wrap_serverd_ring_start(struct serverd *d)
{
	if (!server_told("no-ring"))
		__real_serverd_ring_start(d);
}

u64 __real_serverd_now_ms(void);
u64 __wrap_serverd_now_ms(void);
u64 __wrap_serverd_now_ms(void)
{
	return __real_serverd_now_ms() * (server_told("fast") ? 50 : 1);
}

static const char *place(const char *name)
{
	static char path[8][128];
	static unsigned int n;
	char *p = path[n++ % 8];

	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

static void put_file(const char *name, const char *text)
{
	int fd = open(place(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd))
		abort();
}

static void pause_ms(unsigned int ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

/* Runs it with these arguments until it ends. Return: its exit code; what it said is in @said. */
__attribute__((unused))
static int server_says(char *const *argv, char *said, size_t size)
{
	char *env[] = { "TEST_SERVERD=1", "IBNBD_ROOT=/nonexistent", NULL };
	posix_spawn_file_actions_t to;
	int status, fd;
	ssize_t n;
	pid_t pid;

	posix_spawn_file_actions_init(&to);
	posix_spawn_file_actions_addopen(&to, 2, place("said"), O_WRONLY | O_CREAT | O_TRUNC,
					 0600);
	posix_spawn_file_actions_adddup2(&to, 2, 1);
	if (posix_spawn(&pid, "/proc/self/exe", &to, NULL, argv, env) ||
	    waitpid(pid, &status, 0) != pid)
		abort();
	posix_spawn_file_actions_destroy(&to);
	fd = open(place("said"), O_RDONLY);
	n = read(fd, said, size - 1);
	said[n < 0 ? 0 : n] = 0;
	close(fd);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The socket of one that was killed is there, too. */
static bool server_listens(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	bool listens;

	snprintf(to.sun_path, sizeof(to.sun_path), "%s/sock", dir);
	listens = !connect(fd, (struct sockaddr *)&to, sizeof(to));
	close(fd);
	return listens;
}

static void server_start(void)
{
	static char conf[128], policy[128], at[160];
	char *argv[] = {
		"ibnbd-serverd", "-c", conf, "-p", policy, "-l", at, NULL
	};
	static char root[160], notify[160], run[160];
	char *env[] = { "TEST_SERVERD=1", root, notify, run, "ASAN_OPTIONS=exitcode=99", NULL };
	unsigned int i;

	snprintf(conf, sizeof(conf), "%s", place("server.conf"));
	snprintf(policy, sizeof(policy), "%s", place("policy.conf"));
	snprintf(at, sizeof(at), "unix:%s", place("sock"));
	snprintf(root, sizeof(root), "IBNBD_ROOT=%s", place("root"));
	snprintf(notify, sizeof(notify), "NOTIFY_SOCKET=%s", place("notify"));
	snprintf(run, sizeof(run), "RUNTIME_DIRECTORY=%s", place("run"));
	if (posix_spawn(&server, "/proc/self/exe", NULL, NULL, argv, env))
		abort();
	for (i = 0; i < 2000 && !server_listens(); i++)
		pause_ms(5);
}

/* Return: its exit code, or minus the signal. */
static int server_end(int signal)
{
	int status;

	kill(server, signal);
	if (waitpid(server, &status, 0) != server)
		abort();
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void serverd_begin(const char *policy)
{
	char conf[512];

	snprintf(dir, sizeof(dir), "/tmp/serverd.XXXXXX");
	if (!mkdtemp(dir) || mkdir(place("disks"), 0700) || mkdir(place("root"), 0700) ||
	    mkdir(place("run"), 0700))
		abort();
	put_file("disks/db1", "");
	put_file("disks/db2", "");
	put_file("secret", "");
	if (truncate(place("disks/db1"), DISK_MIB * MIB) ||
	    truncate(place("disks/db2"), DISK_MIB * MIB) || truncate(place("secret"), MIB))
		abort();
	snprintf(conf, sizeof(conf), "dev_search_path = %s\nwriter_file = %s\n", place("disks"),
		 place("writers"));
	put_file("server.conf", conf);
	put_file("policy.conf", policy);
	server_start();
}

static void serverd_finish(void)
{
	char cmd[128];

	CHECK_EQ(server_end(SIGTERM), 0);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	CHECK_EQ(system(cmd), 0);
}

/* ---- a client ---------------------------------------------------------------- */

struct client {
	struct ibtrs_ctx *ctx;
	struct ibtrs_clt *clt;
	struct ibtrs_q *q;
	u64 features;
	u32 events[4];			/* how many of each kind, by the thread of @ctx */
	u32 event_id;
	char words[IBNBD_WORDS_LEN];	/* of the last refusal */
};

static int client_sess_info(struct client *c, u64 features)
{
	const struct ibnbd_sess_info m = { .version = 2, .features = features };
	struct ibnbd_wire_sess_info w, reply;
	struct ibnbd_sess_info got = { 0 };
	const char *why = "";
	int err;

	ibnbd_msg_sess_info_encode(&w, IBNBD_MSG_SESS_INFO, &m);
	err = ibtrs_clt_call(c->clt, &w, sizeof(w), &reply, sizeof(reply), 5000);
	err = err ?: ibnbd_msg_sess_info_rsp_decode(&reply, sizeof(reply), features, &got, &why);
	c->features = got.features;
	return err;
}

static void client_event(void *priv, uint32_t kind, uint32_t id)
{
	struct client *c = priv;

	__atomic_store_n(&c->event_id, id, __ATOMIC_RELAXED);
	__atomic_add_fetch(&c->events[kind % 4], 1, __ATOMIC_RELEASE);
}

__attribute__((unused))
static bool client_hears(struct client *c, u32 kind, u32 id)
{
	unsigned int i;

	for (i = 0; i < 300 && !__atomic_load_n(&c->events[kind], __ATOMIC_ACQUIRE); i++)
		pause_ms(10);
	return __atomic_load_n(&c->events[kind], __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&c->event_id, __ATOMIC_RELAXED) == (id & IBNBD_EVENT_ID_MASK);
}

static bool client_open_as(struct client *c, const char *name, bool events)
{
	const struct ibtrs_ctx_opts co = { .size = sizeof(co), .flags = IBTRS_CTX_THREAD };
	const struct ibtrs_clt_opts o = {
		.size = sizeof(o), .name = name, .event = events ? client_event : NULL, .priv = c,
	};
	char why[IBTRS_WHY_LEN] = "", at[160];
	const char *paths[] = { at, at };

	memset(c, 0, sizeof(*c));
	snprintf(at, sizeof(at), "unix:%s", place("sock"));
	if (!CHECK_EQ(ibtrs_ctx_new(&c->ctx, &co), 0))
		return false;
	if (!CHECK_EQ(ibtrs_clt_open(c->ctx, paths, 1, &o, &c->clt, why), 0)) {
		fprintf(stderr, "%s\n", why);
		return false;
	}
	c->q = ibtrs_clt_q(c->clt, 0);
	return CHECK_EQ(client_sess_info(c, ALL_FEATURES), 0);
}

static bool client_open(struct client *c, const char *name)
{
	return client_open_as(c, name, false);
}

static void client_close(struct client *c)
{
	ibtrs_clt_close(c->clt);
	CHECK_EQ(ibtrs_ctx_free(c->ctx), 0);
}

/* OPEN. Return: 0 or a negative errno, with the server's words in @c. */
static int client_map(struct client *c, const char *name, enum ibnbd_access access,
		      struct ibnbd_open_rsp *rsp)
{
	const struct ibnbd_open m = { .access = access, .name = name };
	u8 reply[sizeof(struct ibnbd_wire_open_refused)];
	struct ibnbd_open_refused refused;
	struct ibnbd_wire_open w;
	const char *why = "";
	int err;

	c->words[0] = 0;
	if (ibnbd_msg_open_encode(&w, &m))
		return -ENAMETOOLONG;
	err = ibtrs_clt_call(c->clt, &w, sizeof(w), reply, ibnbd_msg_open_room(c->features), 5000);
	if (err)
		return err;
	if (ibnbd_msg_open_refused_decode(reply, sizeof(reply), &refused)) {
		snprintf(c->words, sizeof(c->words), "%s", refused.text);
		return refused.err;
	}
	return ibnbd_msg_open_rsp_decode(reply, sizeof(reply), c->features, 4096, rsp, &why);
}

/* The same, as long as the server says that the client has to wait. */
static int client_map_soon(struct client *c, const char *name, enum ibnbd_access access,
			   struct ibnbd_open_rsp *rsp)
{
	unsigned int i;
	int err = -EBUSY;

	for (i = 0; i < 200 && (err == -EBUSY || err == -EPERM); i++) {
		err = client_map(c, name, access, rsp);
		if (err)
			pause_ms(20);
	}
	return err;
}

static int client_unmap(struct client *c, u32 id, bool nowait)
{
	struct ibnbd_wire_close w;

	ibnbd_msg_close_encode(&w, id, nowait);
	return ibtrs_clt_call(c->clt, &w, sizeof(w), NULL, 0, 5000);
}

/* Any header, any data. */
static int client_raw(struct client *c, enum ibtrs_io_dir dir, const void *hdr, u32 hdr_len,
		      void *data, u32 len)
{
	struct ibtrs_io io = {
		.dir = dir, .hdr = hdr, .hdr_len = (u16)hdr_len, .data = data, .len = len,
	};
	struct ibtrs_io *p = &io, *done;
	unsigned int i;

	if (ibtrs_q_submit(c->q, &p, 1) != 1)
		return -EXDEV;
	for (i = 0; i < 100; i++)
		if (ibtrs_q_poll(c->q, &done, 1, 100) == 1)
			return io.err;
	abort();		/* @io is still the library's */
}

static int client_io(struct client *c, u32 id, enum ibnbd_op op, u32 flags, u64 sector, void *data,
		     u32 bytes)
{
	const struct ibnbd_io m = {
		.device_id = id, .sector = sector, .op = op, .flags = flags, .bytes = bytes,
	};
	struct ibnbd_wire_io w;
	u32 len = ibnbd_msg_io_encode(&w, 2, &m);

	return client_raw(c, ibnbd_msg_op_reads(op) ? IBTRS_IO_READ : IBTRS_IO_WRITE, &w, len,
			  data, ibnbd_msg_io_data_len(op, bytes));
}

#endif
