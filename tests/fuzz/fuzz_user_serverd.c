// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibnbd-serverd behind its transport: messages of two clients, workers that end in any order,
 * sessions that end amid all that. Each op is answered once and by the end; nothing is left open.
 *
 * Each step is a byte that says which, and what it takes of the following ones (step()). The server
 * has two files and a directory; its workers, its clock and its transport are here.
 */
#include <assert.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>
#include "ibnbd/proto/msg_io.h"
#include "ibnbd/user/serverd/serverd.h"

#define SESSIONS	2u
#define IDS		8u
#define DATA_MAX	65536u
#define FILE_BYTES	(1 << 20)

static struct serverd d;
static struct serverd_conf conf = { .io_mode = SERVERD_IO_AUTO, .file_block = 512, .claim = true,
				    .max_maps = 4, .writer_file = "none" };
static char dir[] = "/tmp/fuzz-serverd.XXXXXX";
static char disks[64];

static const u8 *in;
static size_t left;

static struct serverd_job *jobs[4096];
static u32 nr_jobs, nr_ops;
static u64 clock_ms, dice;

struct client {
	u64 number;
	bool here;
	u64 features;
	u32 id[IDS];			/* that the server gave, the newest first */
};

static struct client clients[SESSIONS];

static u8 take(void)
{
	if (!left)
		return 0;
	left--;
	return *in++;
}

/* ---- in place of the transport, the workers and the clock -------------------- */

struct op {
	struct ibtrs_op op;		/* first */
	struct client *client;
	u8 room[] __attribute__((aligned(8)));	/* data, header */
};

void __wrap_ibtrs_op_may_forget(struct ibtrs_op *op);
void __wrap_ibtrs_op_may_forget(struct ibtrs_op *op)
{
	assert(((struct op *)op)->client);	/* it has not been answered */
}

bool __wrap_ibtrs_op_reply(struct ibtrs_op *op, int err);
bool __wrap_ibtrs_op_reply(struct ibtrs_op *op, int err)
{
	struct client *c = ((struct op *)op)->client;
	const struct ibnbd_wire_open_rsp *rsp = op->data;

	assert(err <= 0 && nr_ops);
	if (!err && op->dir == IBTRS_IO_READ && op->len >= sizeof(*rsp) &&
	    le16_to_cpu(rsp->hdr.type) == IBNBD_MSG_OPEN_RSP) {
		memmove(c->id + 1, c->id, sizeof(c->id) - sizeof(*c->id));
		c->id[0] = le32_to_cpu(rsp->device_id);
	}
	nr_ops--;
	free(op);
	return c->here;
}

int __wrap_ibtrs_srv_peers(struct ibtrs_srv *srv, u64 session,
			   void (*each)(void *priv, const char *peer), void *priv);
int __wrap_ibtrs_srv_peers(struct ibtrs_srv *srv, u64 session,
			   void (*each)(void *priv, const char *peer), void *priv)
{
	u32 i;

	for (i = 0; i < SESSIONS; i++)
		if (clients[i].number == session && clients[i].here) {
			if (each)
				each(priv, i ? "ip:192.0.2.1" : "unix:/run/client");
			return 1;
		}
	return 0;
}

int __wrap_ibtrs_srv_event(struct ibtrs_srv *srv, u64 session, u32 kind, u32 id);
int __wrap_ibtrs_srv_event(struct ibtrs_srv *srv, u64 session, u32 kind, u32 id)
{
	assert(kind <= IBTRS_EVENT_KIND_MAX && id <= IBTRS_EVENT_ID_MAX);
	return session & 1 ? 0 : -EOPNOTSUPP;
}

void __wrap_serverd_job(struct serverd *serverd, struct serverd_job *job);
void __wrap_serverd_job(struct serverd *serverd, struct serverd_job *job)
{
	assert(nr_jobs < ARRAY_SIZE(jobs));
	jobs[nr_jobs++] = job;
}

u64 __wrap_serverd_now_ms(void);
u64 __wrap_serverd_now_ms(void)
{
	return clock_ms;
}

u64 __wrap_serverd_random(void);
u64 __wrap_serverd_random(void)
{
	dice = dice * 6364136223846793005ull + 1442695040888963407ull;
	return dice ^ dice >> 29;
}

void __wrap_serverd_log(const char *fmt, ...);
void __wrap_serverd_log(const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
}

static void job_run(u32 i)
{
	struct serverd_job *job = jobs[i];

	jobs[i] = jobs[--nr_jobs];
	job->run(job);
	job->done(&d, job);
}

/* ---- steps ------------------------------------------------------------------- */

static void message(struct client *c, u8 dir_bit, const void *hdr, u32 hdr_len, u32 len)
{
	struct op *op = calloc(1, sizeof(*op) + hdr_len + len);

	op->client = c;
	op->op = (struct ibtrs_op){
		.dir = dir_bit ? IBTRS_IO_READ : IBTRS_IO_WRITE, .hdr = op->room + len,
		.hdr_len = (u16)hdr_len, .data = op->room, .len = len,
		.session = c->number, .name = c == clients ? "one" : "two", .key = "",
		.uuid = (const u8 *)(c == clients ? "0123456789abcdef" : "fedcba9876543210"),
	};
	memcpy(op->room + len, hdr, hdr_len);
	nr_ops++;
	serverd_msg(&d, &op->op);
}

static void say_info(struct client *c)
{
	struct ibnbd_sess_info m = { .version = take() & 1 ? 2 : 1, .features = take() & 15 };
	struct ibnbd_wire_sess_info w;

	ibnbd_msg_sess_info_encode(&w, IBNBD_MSG_SESS_INFO, &m);
	c->features = m.features;
	message(c, 1, &w, sizeof(w), sizeof(w));
}

static void say_open(struct client *c)
{
	static const char *const names[] = { "db1", "db2", "/db1", "db3", "../disks/db1", "link",
					     "sub/db4", "socket" };
	struct ibnbd_open m = { .access = take() % 3, .name = names[take() % ARRAY_SIZE(names)] };
	struct ibnbd_wire_open w;

	if (!ibnbd_msg_open_encode(&w, &m))
		message(c, 1, &w, sizeof(w), ibnbd_msg_open_room(c->features));
}

static void say_close(struct client *c)
{
	struct ibnbd_wire_close w;
	u8 how = take();

	ibnbd_msg_close_encode(&w, how & 8 ? how : c->id[how % IDS], how & 16);
	message(c, how & 32, &w, sizeof(w), how & 64 ? 16 : 0);
}

static void say_io(struct client *c)
{
	u8 how = take();
	struct ibnbd_io m = {
		.device_id = how & 8 ? how : c->id[how % IDS], .op = take() % 6,
		.flags = (u32)(take() & 15) << 8, .sector = (u64)take() * (how & 16 ? 8 : 9),
		.bytes = (u32)take() * (how & 32 ? 4096 : 512) & (DATA_MAX - 1),
	};
	u32 len = ibnbd_msg_io_data_len(m.op, m.bytes), hdr_len;
	struct ibnbd_wire_io w;

	hdr_len = ibnbd_msg_io_encode(&w, how & 64 ? 1 : 2, &m);
	message(c, ibnbd_msg_op_reads(m.op), &w, hdr_len, how & 128 ? len ^ 512 : len);
}

static void say_anything(struct client *c)
{
	u8 raw[300], how = take();
	u32 len = take(), i;

	for (i = 0; i < len; i++)
		raw[i] = take();
	if (len >= sizeof(struct ibnbd_wire_hdr))
		message(c, how & 1, raw, len, how & 2 ? 512 : how & 4 ? 192 : 0);
}

static void resize(void)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/db%u", disks, 1 + (take() & 1));
	if (truncate(path, (off_t)(take() % 5) * (FILE_BYTES / 4)))
		abort();
}

static void reload(void)
{
	conf.max_maps = 1 + take() % 4;
	conf.copy = take() % 3;
	serverd_sessions_judge(&d);
}

static void leave(struct client *c)
{
	c->here = false;
	serverd_session_gone(&d, c->number);
	serverd_sessions_reap(&d);
	c->number += SESSIONS;
	c->features = 0;
	memset(c->id, 0, sizeof(c->id));
	c->here = true;
}

static void step(u8 what)
{
	struct client *c = &clients[what >> 7];

	switch (what & 15) {
	case 0:
		say_info(c);
		break;
	case 1:
	case 2:
		say_open(c);
		break;
	case 3:
		say_close(c);
		break;
	case 4:
	case 5:
	case 6:
		say_io(c);
		break;
	case 7:
		say_anything(c);
		break;
	case 8:
		leave(c);
		break;
	case 9:
		c->here = !c->here;
		break;
	case 10:
		resize();
		break;
	case 11:
		reload();
		break;
	case 12:
		clock_ms += (u64)take() * 100;
		serverd_exports_look(&d);
		serverd_sessions_look(&d);
		break;
	default:
		if (nr_jobs)
			job_run(take() % nr_jobs);
	}
	serverd_sessions_reap(&d);
}

static int lowest_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

static void put(const char *name, off_t size)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", disks, name);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, size))
		abort();
	close(fd);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

static void clean(void)
{
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void prepare(void)
{
	char path[96];

	if (!mkdtemp(dir))
		abort();
	atexit(clean);
	snprintf(disks, sizeof(disks), "%s/disks", dir);
	snprintf(path, sizeof(path), "%s/sub", disks);
	if (mkdir(disks, 0700) || mkdir(path, 0700))
		abort();
	put("sub/db4", 4096);
	snprintf(path, sizeof(path), "%s/link", disks);
	if (symlink("db2", path))
		abort();
	conf.search = disks;
	d.conf = &conf;
	d.srv = (struct ibtrs_srv *)&d;		/* it is there */
	if (serverd_records_load(&d))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u32 i, turns;
	int fd;

	if (!d.conf)
		prepare();
	put("db1", FILE_BYTES);
	put("db2", FILE_BYTES);
	in = data;
	left = size;
	clock_ms = dice = 1;
	for (i = 0; i < SESSIONS; i++)
		clients[i] = (struct client){ .number = i + 1, .here = true };
	fd = lowest_fd();
	while (left)
		step(take());
	for (i = 0; i < SESSIONS; i++)
		leave(&clients[i]);
	for (turns = 0; (nr_jobs || d.sessions) && turns < 100000; turns++) {
		if (nr_jobs)
			job_run(0);
		serverd_sessions_reap(&d);
	}
	assert(!nr_ops && !nr_jobs && !d.sessions && !d.exports);
	assert(lowest_fd() == fd);
	return 0;
}
