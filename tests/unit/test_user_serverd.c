// SPDX-License-Identifier: GPL-2.0-only
/* ibnbd-serverd over a Unix socket: what it serves, what it refuses, what it remembers. */
#include "serverd.h"
#include <ibtrs/key.h>

#define SECTORS	(DISK_MIB * MIB / IBNBD_SECTOR_SIZE)

static void pattern(u8 *buf, u32 len, u8 seed)
{
	u32 i;

	for (i = 0; i < len; i++)
		buf[i] = (u8)(seed + i * 7 + (i >> 9));
}

/* What the file has, past the server. */
static bool file_has(const char *name, u64 sector, const u8 *want, u32 len)
{
	u8 *got = malloc(len);
	int fd = open(place(name), O_RDONLY);
	bool same = pread(fd, got, len, (off_t)(sector * IBNBD_SECTOR_SIZE)) == (ssize_t)len &&
		    !memcmp(got, want, len);

	close(fd);
	free(got);
	return same;
}

static void data_test(bool ring)
{
	static u8 out[126976], in[126976], zero[126976];
	struct ibnbd_open_rsp r;
	struct client c;
	u32 id;

	UNIT_ROW(ring ? "io_uring" : "threads");
	serverd_begin("# no rules\n");
	if (!ring) {
		put_file("root/no-ring", "");
		CHECK_EQ(server_end(SIGTERM), 0);
		server_start();
	}
	if (!client_open(&c, "data") ||
	    !CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &r), 0))
		abort();
	id = r.device_id;
	CHECK_EQ(r.nsectors, SECTORS);
	CHECK_EQ(r.logical_block_size, 512);
	CHECK(r.writeback && r.fua && r.has_identity && r.has_durability);
	CHECK(r.durability.cache_epoch && r.durability.flags == IBNBD_DUR_F_VOLATILE);
	CHECK(r.max_discard_sectors && r.max_write_zeroes_sectors);
	pattern(out, sizeof(out), 1);
	CHECK_EQ(client_io(&c, id, IBNBD_OP_WRITE, 0, 2048, out, sizeof(out)), 0);
	CHECK_EQ(client_io(&c, id, IBNBD_OP_READ, 0, 2048, in, sizeof(in)), 0);
	CHECK_MEM(in, out, sizeof(out));
	CHECK(file_has("disks/db1", 2048, out, sizeof(out)));
	/* Neighbours of one page, by the page cache and past it. */
	pattern(out, 4096, 9);
	CHECK_EQ(client_io(&c, id, IBNBD_OP_WRITE, 0, 8, out, 4096), 0);
	pattern(out + 1024, 512, 77);
	CHECK_EQ(client_io(&c, id, IBNBD_OP_WRITE, IBNBD_F_FUA, 10, out + 1024, 512), 0);
	CHECK_EQ(client_io(&c, id, IBNBD_OP_READ, 0, 8, in, 4096), 0);
	CHECK_MEM(in, out, 4096);
	CHECK_EQ(client_io(&c, id, IBNBD_OP_READ, 0, 11, in, 1024), 0);
	CHECK_MEM(in, out + 1536, 1024);
	CHECK_EQ(client_io(&c, id, IBNBD_OP_WRITE, IBNBD_F_PREFLUSH, SECTORS - 1, out, 512), 0);
	CHECK_EQ(client_io(&c, id, IBNBD_OP_FLUSH, 0, 0, NULL, 0), 0);
	CHECK(file_has("disks/db1", SECTORS - 1, out, 512));
	CHECK_EQ(client_io(&c, id, IBNBD_OP_DISCARD, 0, 2048, NULL, 65536), 0);
	CHECK_EQ(client_io(&c, id, IBNBD_OP_READ, 0, 2048, in, 65536), 0);
	CHECK_MEM(in, zero, 65536);
	CHECK_EQ(client_io(&c, id, IBNBD_OP_WRITE_ZEROES, 0, 8, NULL, 2048), 0);
	CHECK_EQ(client_io(&c, id, IBNBD_OP_WRITE_ZEROES, IBNBD_F_NOUNMAP, 12, NULL, 1024), 0);
	CHECK_EQ(client_io(&c, id, IBNBD_OP_READ, 0, 8, in, 4096), 0);
	CHECK_MEM(in, zero, 3072);
	CHECK_MEM(in + 3072, out + 3072, 1024);
	CHECK_EQ(client_unmap(&c, id, false), 0);
	CHECK_EQ(client_io(&c, id, IBNBD_OP_READ, 0, 0, in, 512), -ENOTCONN);
	client_close(&c);
	serverd_finish();
}

UNIT_TEST(serverd_data)
{
	data_test(true);
	data_test(false);
}

UNIT_TEST(serverd_refuses_io)
{
	struct ibnbd_open_rsp r, ro;
	struct client c;
	u8 buf[8192] = { 0 };
	static const struct {
		enum ibnbd_op op;
		u64 sector;
		u32 bytes;
		bool ro;
		int err;
	} rows[] = {
		{ IBNBD_OP_READ, SECTORS, 512, false, -EIO },
		{ IBNBD_OP_READ, SECTORS - 1, 1024, false, -EIO },
		{ IBNBD_OP_READ, ~0ull, 512, false, -EIO },
		{ IBNBD_OP_WRITE, 1ull << 55, 512, false, -EIO },
		{ IBNBD_OP_DISCARD, SECTORS - 1, 1024, false, -EIO },
		{ IBNBD_OP_WRITE_ZEROES, ~0ull - 1, 4096, false, -EIO },
		{ IBNBD_OP_WRITE, 0, 100, false, -EINVAL },
		{ IBNBD_OP_READ, 0, 513, false, -EINVAL },
		{ IBNBD_OP_DISCARD, 0, 0, false, -EINVAL },
		{ IBNBD_OP_SECURE_ERASE, 0, 512, false, -EOPNOTSUPP },
		{ IBNBD_OP_WRITE, 0, 512, true, -EROFS },
		{ IBNBD_OP_DISCARD, 0, 512, true, -EROFS },
		{ IBNBD_OP_WRITE_ZEROES, 0, 512, true, -EROFS },
		{ IBNBD_OP_READ, 0, 512, true, 0 },
		{ IBNBD_OP_FLUSH, 0, 0, true, 0 },
	};
	size_t i;

	serverd_begin("# no rules\n");
	if (!client_open(&c, "bad") ||
	    !CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &r), 0) ||
	    !CHECK_EQ(client_map(&c, "db2", IBNBD_ACCESS_RO, &ro), 0))
		abort();
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("row %zu", i);
		CHECK_EQ(client_io(&c, rows[i].ro ? ro.device_id : r.device_id, rows[i].op, 0,
				   rows[i].sector, buf, rows[i].bytes), rows[i].err);
	}
	UNIT_ROW("ids");
	CHECK_EQ(client_io(&c, r.device_id + 64, IBNBD_OP_READ, 0, 0, buf, 512), -ENOTCONN);
	CHECK_EQ(client_unmap(&c, r.device_id + 64, false), 0);
	/* What it refused has written nothing. */
	memset(buf, 0, sizeof(buf));
	CHECK(file_has("disks/db1", 0, buf, sizeof(buf)));
	client_close(&c);
	serverd_finish();
}

UNIT_TEST(serverd_access_modes)
{
	struct ibnbd_open_rsp r, again, other;
	struct client a, b;

	serverd_begin("# no rules\n");
	if (!client_open(&a, "a") || !client_open(&b, "b"))
		abort();
	CHECK_EQ(client_map(&a, "db1", IBNBD_ACCESS_RW, &r), 0);
	CHECK_EQ(client_map(&a, "db1", IBNBD_ACCESS_RO, &again), 0);
	CHECK_EQ(again.device_id, r.device_id);
	CHECK_EQ(client_map(&a, "/db1", IBNBD_ACCESS_RW, &again), -EEXIST);
	CHECK_EQ(client_map(&b, "db1", IBNBD_ACCESS_RW, &other), -EPERM);
	CHECK(strstr(b.words, "writ"));
	CHECK_EQ(client_map(&b, "db1", IBNBD_ACCESS_MIGRATION, &other), -EPERM);
	CHECK_EQ(client_map(&b, "db1", IBNBD_ACCESS_RO, &other), 0);
	CHECK_EQ(client_map(&b, "db1", IBNBD_ACCESS_RW, &other), -EPERM);
	CHECK_EQ(client_unmap(&b, other.device_id, true), 0);
	CHECK_EQ(client_unmap(&a, r.device_id, false), 0);
	CHECK_EQ(client_map_soon(&a, "db1", IBNBD_ACCESS_MIGRATION, &r), 0);
	CHECK_EQ(client_map(&b, "db1", IBNBD_ACCESS_MIGRATION, &other), 0);
	CHECK_EQ((u32)other.identity.writer_gen, (u32)r.identity.writer_gen + 1);
	/* Without WORDS a refusal is an errno. */
	CHECK_EQ(client_sess_info(&b, 0), 0);
	CHECK_EQ(client_map(&b, "db1", IBNBD_ACCESS_RW, &other), -EPERM);
	/* The session ends with what it had open, and without a CLOSE. */
	client_close(&b);
	client_close(&a);
	if (!client_open(&b, "b"))
		abort();
	CHECK_EQ(client_map_soon(&b, "db1", IBNBD_ACCESS_RW, &other), 0);
	client_close(&b);
	serverd_finish();
}

UNIT_TEST(serverd_names)
{
	static const struct { const char *name; int err; } rows[] = {
		{ "../secret", -EINVAL }, { "./db1", -EINVAL }, { "x/../db1", -EINVAL },
		{ "db1/", -EINVAL }, { "db\n1", -EINVAL }, { "nothing", -ENOENT },
		{ "db1/x", -ENOTDIR }, { "way/secret", -ELOOP }, { "link", 0 }, { "lost", -ENOENT },
		{ ".", -EINVAL }, { "sub", -ENOTBLK }, { "tiny", -EINVAL }, { "//db2", 0 },
	};
	struct ibnbd_wire_open w = { .hdr.type = IBNBD_MSG_OPEN };
	u8 reply[192];
	struct ibnbd_open_rsp r;
	struct client c;
	size_t i;

	serverd_begin("# no rules\n");
	put_file("disks/tiny", "x");
	if (mkdir(place("disks/sub"), 0700) || symlink(dir, place("disks/way")) ||
	    symlink(place("secret"), place("disks/link")) ||
	    symlink("/nowhere/at/all", place("disks/lost")) || !client_open(&c, "names"))
		abort();
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%s", rows[i].name);
		CHECK_EQ(client_map(&c, rows[i].name, IBNBD_ACCESS_RO, &r), rows[i].err);
		CHECK(!rows[i].err == !c.words[0]);
	}
	UNIT_ROW("not terminated");
	memset(w.name, 'a', sizeof(w.name));
	CHECK_EQ(ibtrs_clt_call(c.clt, &w, sizeof(w), reply, sizeof(reply), 5000), 0);
	CHECK_EQ(reply[0], IBNBD_MSG_OPEN_REFUSED);
	CHECK_EQ(ibtrs_clt_call(c.clt, &w, 100, reply, 56, 5000), -EINVAL);
	CHECK_EQ(ibtrs_clt_call(c.clt, &w, sizeof(w), reply, 8, 5000), -EINVAL);
	client_close(&c);
	serverd_finish();
}

UNIT_TEST(serverd_policy)
{
	static u8 buf[512];
	struct ibnbd_open_rsp r, ro;
	struct client a, b;
	unsigned int i;
	int err = 0;

	serverd_begin("db1 session:a* rw\ndb1 ro\n* deny\n");
	if (!client_open_as(&a, "a1", true) || !client_open(&b, "b1"))
		abort();
	CHECK_EQ(client_map(&a, "db1", IBNBD_ACCESS_RW, &r), 0);
	CHECK_EQ(client_map(&b, "db1", IBNBD_ACCESS_RW, &ro), -EACCES);
	CHECK_EQ(client_map(&b, "db1", IBNBD_ACCESS_RO, &ro), 0);
	/* Who is denied a name does not learn whether it exists. */
	CHECK_EQ(client_map(&b, "db2", IBNBD_ACCESS_RO, &ro), -EACCES);
	CHECK_EQ(client_map(&b, "nothing", IBNBD_ACCESS_RO, &ro), -EACCES);
	CHECK_EQ(client_io(&a, r.device_id, IBNBD_OP_WRITE, 0, 0, buf, 512), 0);
	/* A mistake: what is in force stays. */
	put_file("policy.conf", "db1 session:a* ro nonsense\n");
	kill(server, SIGHUP);
	pause_ms(300);
	CHECK_EQ(client_io(&a, r.device_id, IBNBD_OP_WRITE, 0, 0, buf, 512), 0);
	put_file("policy.conf", "db1 ro\n* deny\n");
	kill(server, SIGHUP);
	for (i = 0; i < 100 && !err; i++) {
		err = client_io(&a, r.device_id, IBNBD_OP_WRITE, 0, 0, buf, 512);
		pause_ms(20);
	}
	CHECK_EQ(err, -ENOTCONN);
	CHECK(client_hears(&a, IBNBD_EVENT_REVOKED, r.device_id));
	CHECK_EQ(client_map(&a, "db1", IBNBD_ACCESS_RW, &r), -EACCES);
	CHECK_EQ(client_map(&a, "db1", IBNBD_ACCESS_RO, &r), 0);
	client_close(&a);
	client_close(&b);
	serverd_finish();
}

UNIT_TEST(serverd_allow)
{
	const struct ibtrs_ctx_opts co = { .size = sizeof(co), .flags = IBTRS_CTX_THREAD };
	const struct ibtrs_clt_opts o = { .size = sizeof(o), .name = "b1" };
	char why[IBTRS_WHY_LEN] = "", at[160], conf[512];
	const char *paths[] = { at };
	struct ibtrs_ctx *ctx;
	struct ibtrs_clt *clt;
	struct client a;
	unsigned int i;

	serverd_begin("# no rules\n");
	snprintf(conf, sizeof(conf),
		 "dev_search_path = %s\nwriter_file = %s\nallow = session:a*\n", place("disks"),
		 place("writers"));
	put_file("server.conf", conf);
	CHECK_EQ(server_end(SIGTERM), 0);
	server_start();
	if (!client_open(&a, "a1"))
		abort();
	snprintf(at, sizeof(at), "unix:%s", place("sock"));
	CHECK_EQ(ibtrs_ctx_new(&ctx, &co), 0);
	CHECK_EQ(ibtrs_clt_open(ctx, paths, 1, &o, &clt, why), -EACCES);
	CHECK(strstr(why, "allow"));
	CHECK_EQ(ibtrs_ctx_free(ctx), 0);
	/* Who is in goes when the list has it no more. */
	for (i = 0; i < 300 && access(place("run/sessions/a1/paths/local"), F_OK); i++)
		pause_ms(10);
	CHECK(!access(place("run/sessions/a1/paths/local"), F_OK));
	*strrchr(conf, 'a') = 'c';
	put_file("server.conf", conf);
	kill(server, SIGHUP);
	for (i = 0; i < 300 && !access(place("run/sessions/a1/paths/local"), F_OK); i++)
		pause_ms(10);
	CHECK(access(place("run/sessions/a1/paths/local"), F_OK));
	client_close(&a);
	serverd_finish();
}

/* What it does not know, or not use, is said. */
UNIT_TEST(serverd_configuration)
{
	static const struct { const char *conf, *policy, *option; int code; const char *says; }
	rows[] = {
		{ "dev_search_path = /x\n", "* ro\n", "--check", 0, NULL },
		{ "dev_search_pth = /x\n", "* ro\n", "--check", 2, "unknown key" },
		{ "dev_search_path = /x\nauth = maybe\n", "* ro\n", "--check", 2, "optional" },
		{ "dev_search_path = /x\nstate_dir = /y\n", "* ro\n", "--check", 0,
		  "does not know state_dir" },
		{ "dev_search_path = /x\n", "* rx\n", "--check", 2, "rx" },
		{ "dev_search_path = /x\n", "", "--check", 2, "allows everything" },
		{ "dev_search_path = /x\npolicy = optional\n", "", "--check", 0, NULL },
		{ "auth = off\n", "* ro\n", "--check", 2, "nothing is exported" },
		{ "dev_search_path = /x\n", "* ro\n", "--chekc", 2, "usage" },
		{ "dev_search_path = /x\n", "* ro\n", "--queue-depth=x", 2, "65535" },
		{ "dev_search_path = /x\n", "* ro\n", "--max-sessions-per-key=0", 2, "1 to 65536" },
		{ "dev_search_path = /x\n", "* ro\n", "word", 2, "not an option" },
		{ "dev_search_path = /x\nwriter_file = /nonexistent/w\n", "* ro\n",
		  "--listen=unix:/nonexistent/s", 1, "directory does not exist" },
		{ "dev_search_path = /x\nwriter_file =\n", "* ro\n",
		  "--listen=unix:/nonexistent/s", 1, "cannot listen" },
		{ "dev_search_path = /x\nwriter_file =\n", "* ro\n", "--listen=ftp:x", 1,
		  "ftp:x" },
		{ "dev_search_path = /x\n", "* ro\n", "--help", 0, "--listen AT" },
	};
	char conf[128], policy[128], said[4096];
	size_t i;

	serverd_begin("# no rules\n");
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		char *argv[] = {
			"ibnbd-serverd", "-c", conf, "-p", policy, (char *)rows[i].option, NULL
		};

		UNIT_ROW("row %zu", i);
		put_file("other.conf", rows[i].conf);
		put_file("other-policy.conf", rows[i].policy);
		snprintf(conf, sizeof(conf), "%s", place("other.conf"));
		snprintf(policy, sizeof(policy), "%s", place("other-policy.conf"));
		CHECK_EQ(server_says(argv, said, sizeof(said)), rows[i].code);
		if (!CHECK(!rows[i].says || strstr(said, rows[i].says)))
			fprintf(stderr, "%s\n", said);
	}
	unlink(place("other.conf"));
	snprintf(conf, sizeof(conf), "%s", place("other.conf"));
	CHECK_EQ(server_says((char *[]){ "x", "-c", conf, "--check", NULL }, said, sizeof(said)),
		 2);
	CHECK(strstr(said, "no such file"));
	serverd_finish();
}

/* Keys are those of /etc/ibnbd/keys, which the command has made. */
UNIT_TEST(serverd_keys)
{
	const struct ibtrs_ctx_opts co = { .size = sizeof(co), .flags = IBTRS_CTX_THREAD };
	struct ibtrs_clt_opts o = { .size = sizeof(o), .name = "k1", .key_name = "web" };
	char why[IBTRS_WHY_LEN] = "", at[160], conf[512], text[IBTRS_KEY_TEXT_LEN];
	u8 key[IBTRS_SECRET_LEN], wrong[IBTRS_SECRET_LEN] = { 1 };
	const char *paths[] = { at };
	struct ibnbd_open_rsp r;
	struct client c = { 0 };

	serverd_begin("db1 key:web rw\n* deny\n");
	CHECK_EQ(server_end(SIGTERM), 0);
	snprintf(conf, sizeof(conf),
		 "dev_search_path = %s\nwriter_file = %s\nauth = required\n", place("disks"),
		 place("writers"));
	put_file("server.conf", conf);
	memset(key, 0x3c, sizeof(key));
	ibtrs_key_text(key, text);
	if (mkdir(place("root/etc"), 0700) || mkdir(place("root/etc/ibnbd"), 0700) ||
	    mkdir(place("root/etc/ibnbd/keys"), 0700))
		abort();
	put_file("root/etc/ibnbd/keys/web", text);
	server_start();
	snprintf(at, sizeof(at), "unix:%s", place("sock"));
	CHECK_EQ(ibtrs_ctx_new(&c.ctx, &co), 0);
	o.key = wrong;
	CHECK_EQ(ibtrs_clt_open(c.ctx, paths, 1, &o, &c.clt, why), -EKEYREJECTED);
	o.key = key;
	if (!CHECK_EQ(ibtrs_clt_open(c.ctx, paths, 1, &o, &c.clt, why), 0))
		abort();
	CHECK_EQ(client_sess_info(&c, ALL_FEATURES), 0);
	CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &r), 0);
	CHECK_EQ(client_map(&c, "db2", IBNBD_ACCESS_RO, &r), -EACCES);
	client_close(&c);
	serverd_finish();
}

UNIT_TEST(serverd_resize)
{
	struct ibnbd_open_rsp r, again;
	struct client c;
	u8 buf[512] = { 5 };
	unsigned int i;
	int err = -EIO;

	serverd_begin("# no rules\n");
	if (!client_open_as(&c, "size", true) ||
	    !CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &r), 0))
		abort();
	CHECK_EQ(client_io(&c, r.device_id, IBNBD_OP_WRITE, 0, SECTORS, buf, 512), -EIO);
	if (truncate(place("disks/db1"), 2 * DISK_MIB * MIB))
		abort();
	for (i = 0; i < 100 && err; i++) {
		err = client_io(&c, r.device_id, IBNBD_OP_WRITE, 0, SECTORS, buf, 512);
		pause_ms(50);
	}
	CHECK_EQ(err, 0);
	CHECK(client_hears(&c, IBNBD_EVENT_RESIZED, r.device_id));
	CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &again), 0);
	CHECK_EQ(again.nsectors, 2 * SECTORS);
	CHECK_EQ(again.device_id, r.device_id);
	client_close(&c);
	serverd_finish();
}

static bool told(int fd, const char *want)
{
	char text[256];
	unsigned int i;
	ssize_t n;

	for (i = 0; i < 20; i++) {
		n = recv(fd, text, sizeof(text) - 1, 0);
		text[n < 0 ? 0 : n] = 0;
		if (n < 0 || !strncmp(text, want, strlen(want)))
			break;
	}
	return CHECK(!strncmp(text, want, strlen(want)));
}

/* What systemd hears of it. */
UNIT_TEST(serverd_notify)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const struct timeval wait = { .tv_sec = 5 };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	serverd_begin("# no rules\n");
	CHECK_EQ(server_end(SIGINT), 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/notify", dir);
	CHECK_EQ(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)), 0);
	server_start();
	told(fd, "READY=1");
	told(fd, "WATCHDOG=1");
	told(fd, "WATCHDOG=1");
	kill(server, SIGHUP);
	told(fd, "RELOADING=1");
	told(fd, "READY=1");
	kill(server, SIGTERM);
	told(fd, "STOPPING=1");
	close(fd);
	serverd_finish();
}

/* A client dies while its disk hangs: the others get its other disk after a minute of @fast. */
UNIT_TEST(serverd_hangs)
{
	u8 data[4096] = { 0 };
	struct ibnbd_open_rsp r;
	struct client c;
	unsigned int i;
	pid_t pid;

	serverd_begin("# no rules\n");
	put_file("root/fast", "");
	pid = fork();
	if (!pid) {
		if (!client_open(&c, "dies") ||
		    client_map(&c, "db2", IBNBD_ACCESS_RW, &r) ||
		    client_map(&c, "db1", IBNBD_ACCESS_RW, &r))
			_exit(1);
		put_file("root/hang", "");
		client_io(&c, r.device_id, IBNBD_OP_WRITE, 0, 8, data, sizeof(data));
		_exit(1);
	}
	for (i = 0; i < 500 && access(place("root/hang"), F_OK); i++)
		pause_ms(10);
	pause_ms(300);
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	if (!client_open(&c, "other"))
		abort();
	CHECK_EQ(client_map(&c, "db2", IBNBD_ACCESS_RW, &r), -EBUSY);
	CHECK(strstr(c.words, "its writer is disconnected"));
	CHECK_EQ(client_map_soon(&c, "db2", IBNBD_ACCESS_RW, &r), 0);
	CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &r), -EBUSY);
	CHECK(strstr(c.words, "has not ended all its requests"));
	unlink(place("root/hang"));
	CHECK_EQ(client_map(&c, "db2", IBNBD_ACCESS_RW, &r), 0);
	CHECK_EQ(client_io(&c, r.device_id, IBNBD_OP_FLUSH, 0, 0, NULL, 0), 0);
	CHECK_EQ(client_map_soon(&c, "db1", IBNBD_ACCESS_RW, &r), 0);
	client_close(&c);
	serverd_finish();
}

/*
 * Another program has the file open for writing: only readers get it, or nobody where the rule says
 * exclusive.
 */
UNIT_TEST(serverd_claims)
{
	struct ibnbd_open_rsp r;
	struct client c;
	int fd, fd2;

	serverd_begin("db2 ro exclusive\n");
	fd = open(place("disks/db1"), O_RDWR);
	fd2 = open(place("disks/db2"), O_RDWR);
	if (fd < 0 || fd2 < 0 || !client_open(&c, "claims"))
		abort();
	CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &r), -EBUSY);
	CHECK(strstr(c.words, "or a program"));
	CHECK_EQ(client_map(&c, "db2", IBNBD_ACCESS_RO, &r), -EBUSY);
	close(fd2);
	CHECK_EQ(client_map(&c, "db2", IBNBD_ACCESS_RO, &r), 0);
	CHECK_EQ(client_unmap(&c, r.device_id, false), 0);
	CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RO, &r), 0);
	CHECK_EQ(client_unmap(&c, r.device_id, false), 0);
	close(fd);
	CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &r), 0);
	CHECK_EQ(client_unmap(&c, r.device_id, false), 0);
	CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &r), 0);
	client_close(&c);
	serverd_finish();
}

/* Headers of chance, and good ones with a byte changed: each is answered, and the server lives. */
UNIT_TEST(serverd_nonsense)
{
	static u8 data[8192], in[512];
	u64 seed = 42, r;
	struct ibnbd_open_rsp rsp;
	struct ibnbd_io m = { 0 };
	struct ibnbd_wire_io w;
	struct client c;
	unsigned int i, done = 0;
	u32 len, data_len;
	bool reads;

	serverd_begin("# no rules\n");
	if (!client_open(&c, "chance") ||
	    !CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &rsp), 0))
		abort();
	for (i = 0; i < 3000; i++) {
		u8 hdr[300];

		r = unit_random(&seed);
		len = 4 + (u32)(r >> 8) % 296;
		for (u32 k = 0; k < len; k++)
			hdr[k] = (u8)unit_random(&seed);
		if (r & 1) {
			hdr[0] = (u8)(r >> 1) % 8;
			hdr[1] = 0;
		}
		reads = r & 4;
		data_len = (u32)(r >> 20) % sizeof(data);
		if (r & 2) {
			m.device_id = rsp.device_id;
			m.sector = unit_random(&seed) >> ((r >> 32) % 64);
			m.op = (enum ibnbd_op)((r >> 40) % 6);
			m.bytes = (u32)(unit_random(&seed) % 17) * 512;
			if (m.op == IBNBD_OP_FLUSH)
				m.bytes = 0;
			reads = ibnbd_msg_op_reads(m.op);
			data_len = ibnbd_msg_io_data_len(m.op, m.bytes);
			data_len = data_len < sizeof(data) ? data_len : sizeof(data);
			len = ibnbd_msg_io_encode(&w, 2, &m);
			memcpy(hdr, &w, len);
			if (r & 8)
				hdr[(r >> 16) % len] ^= (u8)(r >> 24);
		}
		done += !client_raw(&c, reads ? IBTRS_IO_READ : IBTRS_IO_WRITE, hdr, len, data,
				    data_len);
	}
	CHECK(done > 100);
	/* Chance may have closed it. */
	CHECK_EQ(client_sess_info(&c, ALL_FEATURES), 0);
	CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RO, &rsp), 0);
	CHECK_EQ(client_io(&c, rsp.device_id, IBNBD_OP_READ, 0, 0, in, 512), 0);
	client_close(&c);
	serverd_finish();
}
