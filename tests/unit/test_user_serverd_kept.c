// SPDX-License-Identifier: GPL-2.0-only
/*
 * What ibnbd-serverd remembers: cache epochs and writers, over its death, its stop, another boot of
 * the machine, another writer, and a loss of its file.
 */
#include <sys/resource.h>
#include "serverd.h"

static struct ibnbd_record_slot slots[IBNBD_RECORD_ALL];

static void records_read(void)
{
	int fd = open(place("writers"), O_RDONLY);

	if (fd < 0 || read(fd, slots, sizeof(slots)) != sizeof(slots))
		abort();
	close(fd);
}

/* The disks of the table, and whether all is as the kernel's server writes it. */
static unsigned int records_check(void)
{
	struct ibnbd_record_slot header, zero = { 0 };
	unsigned int i, n = 0;
	int t;

	records_read();
	for (t = 0; t < IBNBD_RECORD_TABLES; t++) {
		ibnbd_record_header((enum ibnbd_record_table)t, &header);
		CHECK_MEM(&slots[t * IBNBD_RECORD_SLOTS], &header, sizeof(header));
		for (i = 1; i < IBNBD_RECORD_SLOTS; i++) {
			struct ibnbd_record_slot *s = &slots[t * IBNBD_RECORD_SLOTS + i];

			if (!memcmp(s, &zero, sizeof(zero)))
				continue;
			CHECK(s->sum == ibnbd_record_sum(s));
			n++;
		}
	}
	return n;
}

/* The machine has been started again: what the records say of this boot is of another one. */
static void records_of_other_boot(void)
{
	int fd = open(place("writers"), O_WRONLY);
	unsigned int i;

	records_read();
	for (i = IBNBD_RECORD_SLOTS + 1; i < IBNBD_RECORD_ALL; i++) {
		if (!slots[i].kind)
			continue;
		slots[i].boot ^= 1;
		slots[i].sum = ibnbd_record_sum(&slots[i]);
	}
	if (fd < 0 || write(fd, slots, sizeof(slots)) != sizeof(slots))
		abort();
	close(fd);
}

/* The same client, with the uuid of before, at a server that was started again. */
static void client_back(struct client *c)
{
	int err = -ENOTCONN;
	unsigned int i;

	for (i = 0; i < 200 && err; i++) {
		err = client_sess_info(c, ALL_FEATURES);
		if (err)
			pause_ms(50);
	}
	CHECK_EQ(err, 0);
}

UNIT_TEST(serverd_killed)
{
	struct ibnbd_open_rsp r, again;
	struct client c, other;
	u8 out[4096], in[4096];
	unsigned int i;

	serverd_begin("# no rules\n");
	if (!client_open(&c, "killed") ||
	    !CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &r), 0))
		abort();
	CHECK((u32)r.identity.writer_gen);
	CHECK_EQ(records_check(), 2);
	memset(out, 0x5a, sizeof(out));
	CHECK_EQ(client_io(&c, r.device_id, IBNBD_OP_WRITE, 0, 8, out, sizeof(out)), 0);
	CHECK_EQ(client_io(&c, r.device_id, IBNBD_OP_WRITE, 0, 25, out, 512), 0);

	UNIT_ROW("killed");
	CHECK_EQ(server_end(SIGKILL), -SIGKILL);
	server_start();
	client_back(&c);
	CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &again), 0);
	CHECK(again.durability.cache_epoch == r.durability.cache_epoch);
	CHECK(again.identity.writer_gen == r.identity.writer_gen);
	CHECK_EQ(client_io(&c, again.device_id, IBNBD_OP_READ, 0, 8, in, sizeof(in)), 0);
	CHECK_MEM(in, out, sizeof(out));
	CHECK_EQ(client_io(&c, again.device_id, IBNBD_OP_READ, 0, 25, in, 512), 0);
	CHECK_MEM(in, out, 512);

	UNIT_ROW("killed, and another boot");
	CHECK_EQ(server_end(SIGKILL), -SIGKILL);
	records_of_other_boot();
	server_start();
	client_back(&c);
	CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &again), 0);
	CHECK(again.durability.cache_epoch != r.durability.cache_epoch);
	CHECK(again.identity.writer_gen == r.identity.writer_gen);

	UNIT_ROW("stopped, and another boot");
	CHECK_EQ(server_end(SIGTERM), 0);
	records_of_other_boot();
	server_start();
	client_back(&c);
	CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &r), 0);
	CHECK(again.durability.cache_epoch == r.durability.cache_epoch);

	UNIT_ROW("another writer");
	CHECK_EQ(server_end(SIGKILL), -SIGKILL);
	server_start();
	if (!client_open(&other, "other"))
		abort();
	CHECK_EQ(client_map(&other, "db1", IBNBD_ACCESS_RW, &again), 0);
	CHECK_EQ(client_unmap(&other, again.device_id, false), 0);
	client_close(&other);
	client_back(&c);
	CHECK_EQ(client_map_soon(&c, "db1", IBNBD_ACCESS_RW, &again), 0);
	CHECK(again.identity.writer_gen == r.identity.writer_gen + 2);

	UNIT_ROW("its file is lost");
	CHECK_EQ(server_end(SIGKILL), -SIGKILL);
	unlink(place("writers"));
	server_start();
	client_back(&c);
	CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &r), 0);
	CHECK(r.identity.writer_gen >> 32 != again.identity.writer_gen >> 32);
	CHECK((u32)r.identity.writer_gen);
	CHECK(r.durability.cache_epoch != again.durability.cache_epoch);

	UNIT_ROW("its file is damaged");
	CHECK_EQ(server_end(SIGTERM), 0);
	records_read();
	for (i = 1; i < IBNBD_RECORD_ALL; i++)
		if (i != IBNBD_RECORD_SLOTS && slots[i].kind)
			slots[i].id[3] ^= 1;
	put_file("writers", "");
	i = (unsigned int)open(place("writers"), O_WRONLY);
	CHECK_EQ(write((int)i, slots, sizeof(slots)), sizeof(slots));
	close((int)i);
	server_start();
	client_back(&c);
	CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &again), 0);
	CHECK(r.identity.writer_gen >> 32 != again.identity.writer_gen >> 32);
	CHECK_EQ(records_check(), 2);
	client_close(&c);
	serverd_finish();
}

UNIT_TEST(serverd_flush_fails)
{
	struct ibnbd_open_rsp r, ro, again;
	struct client a, b;
	u8 buf[512] = { 7 };

	serverd_begin("# no rules\n");
	if (!client_open(&a, "a") || !client_open(&b, "b") ||
	    !CHECK_EQ(client_map(&a, "db1", IBNBD_ACCESS_RW, &r), 0) ||
	    !CHECK_EQ(client_map(&b, "db1", IBNBD_ACCESS_RO, &ro), 0))
		abort();
	CHECK(ro.durability.cache_epoch == r.durability.cache_epoch);
	CHECK_EQ(client_io(&a, r.device_id, IBNBD_OP_WRITE, 0, 0, buf, 512), 0);
	put_file("root/fail", "");
	CHECK_EQ(client_io(&a, r.device_id, IBNBD_OP_FLUSH, 0, 0, NULL, 0), -EIO);
	/* Recorded before it was answered: what is killed now comes back with the new epoch. */
	CHECK_EQ(server_end(SIGKILL), -SIGKILL);
	unlink(place("root/fail"));
	server_start();
	client_back(&a);
	client_back(&b);
	CHECK_EQ(client_map(&a, "db1", IBNBD_ACCESS_RW, &again), 0);
	CHECK(again.durability.cache_epoch != r.durability.cache_epoch);
	CHECK_EQ(client_map(&b, "db1", IBNBD_ACCESS_RO, &ro), 0);
	/* While it runs, the disk is closed to all who know epochs. */
	put_file("root/fail", "");
	CHECK_EQ(client_io(&a, again.device_id, IBNBD_OP_WRITE, IBNBD_F_PREFLUSH, 0, buf, 512),
		 -EIO);
	CHECK_EQ(client_io(&a, again.device_id, IBNBD_OP_FLUSH, 0, 0, NULL, 0), -ENOTCONN);
	CHECK_EQ(client_io(&b, ro.device_id, IBNBD_OP_READ, 0, 0, buf, 512), -ENOTCONN);
	unlink(place("root/fail"));
	CHECK_EQ(client_map_soon(&a, "db1", IBNBD_ACCESS_RW, &r), 0);
	CHECK_EQ(client_map(&b, "db1", IBNBD_ACCESS_RO, &ro), 0);
	CHECK(again.durability.cache_epoch != r.durability.cache_epoch);
	CHECK(ro.durability.cache_epoch == r.durability.cache_epoch);
	client_close(&a);
	client_close(&b);
	serverd_finish();
}

/* The file was named, so there is no writer that it does not have. */
UNIT_TEST(serverd_cannot_record)
{
	struct rlimit limit;
	struct ibnbd_open_rsp r, again;
	struct client a, b;

	signal(SIGXFSZ, SIG_IGN);	/* inherited by the server */
	serverd_begin("# no rules\n");
	if (!client_open(&a, "a") || !client_open(&b, "b") ||
	    !CHECK_EQ(client_map(&a, "db1", IBNBD_ACCESS_RW, &r), 0))
		abort();
	CHECK_EQ(prlimit(server, RLIMIT_FSIZE, NULL, &limit), 0);
	CHECK_EQ(prlimit(server, RLIMIT_FSIZE, &(struct rlimit){ 0, limit.rlim_max }, NULL), 0);
	CHECK_EQ(client_map(&b, "db2", IBNBD_ACCESS_RW, &again), -EIO);
	CHECK_EQ(client_map(&b, "db2", IBNBD_ACCESS_RO, &again), 0);
	CHECK_EQ(client_io(&a, r.device_id, IBNBD_OP_FLUSH, 0, 0, NULL, 0), 0);
	CHECK_EQ(prlimit(server, RLIMIT_FSIZE, &limit, NULL), 0);
	CHECK_EQ(client_map(&a, "db2", IBNBD_ACCESS_RW, &r), 0);
	CHECK_EQ(records_check(), 4);
	client_close(&a);
	client_close(&b);
	serverd_finish();
}

/* Of two writers one leaves: the other one must hear that it has not been alone. */
UNIT_TEST(serverd_migration)
{
	struct ibnbd_open_rsp from, to, again;
	struct client a, b;
	u8 buf[512] = { 7 };

	serverd_begin("* migration\n");
	if (!client_open(&a, "a") || !client_open_as(&b, "b", true) ||
	    !CHECK_EQ(client_map(&a, "db1", IBNBD_ACCESS_RW, &from), 0) ||
	    !CHECK_EQ(client_map(&b, "db1", IBNBD_ACCESS_MIGRATION, &to), 0))
		abort();
	CHECK_EQ(client_io(&a, from.device_id, IBNBD_OP_WRITE, 0, 0, buf, 512), 0);
	CHECK_EQ(client_io(&b, to.device_id, IBNBD_OP_WRITE, 0, 0, buf, 512), 0);
	CHECK_EQ(client_unmap(&a, from.device_id, false), 0);
	CHECK(client_hears(&b, IBNBD_EVENT_RESIZED, to.device_id));
	CHECK_EQ(client_io(&b, to.device_id, IBNBD_OP_READ, 0, 0, buf, 512), 0);
	CHECK_EQ(client_map_soon(&b, "db1", IBNBD_ACCESS_MIGRATION, &again), 0);
	CHECK(again.identity.writer_gen == to.identity.writer_gen + 1);
	CHECK_EQ(client_io(&b, again.device_id, IBNBD_OP_READ, 0, 0, buf, 512), 0);
	client_close(&a);
	client_close(&b);
	serverd_finish();
}

/* ---- what the command ibnbd sees ---------------------------------------------- */

/* A file of the exports' directory, or NULL. */
static const char *status_of(const char *disk, const char *file)
{
	static char text[256];
	char path[512];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/run/devices/!tmp!%s!disks!%s/%s", dir,
		 strrchr(dir, '/') + 1, disk, file);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return NULL;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	return text;
}

static bool status_is(const char *disk, const char *file, const char *want)
{
	const char *text = NULL;
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		text = status_of(disk, file);
		if (text ? want && !strcmp(text, want) : !want)
			return true;
		pause_ms(5);
	}
	printf("%s/%s: %s", disk, file, text ?: "none\n");
	return false;
}

/* As OPEN has told it; a file system without a UUID gives its files none. */
static const char *identity_text(const struct ibnbd_open_rsp *r)
{
	static char text[64];
	unsigned int i, n;

	if (r->identity.kind == IBNBD_ID_NONE)
		return "none\n";
	n = sprintf(text, "file:");
	for (i = 0; i < IBNBD_ID_LEN; i++)
		n += sprintf(text + n, "%02x", r->identity.id[i]);
	strcpy(text + n, "\n");
	return text;
}

UNIT_TEST(serverd_says_what_is_open)
{
	struct ibnbd_open_rsp r, r2;
	char path[160];
	struct client c, c2;
	struct stat st;

	serverd_begin("# no rules\n");
	if (!client_open(&c, "one") || !CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &r), 0) ||
	    !client_open(&c2, "two") || !CHECK_EQ(client_map(&c2, "db2", IBNBD_ACCESS_RO, &r2), 0))
		abort();
	CHECK(status_is("db1", "sessions/one/access_mode", "rw\n"));
	CHECK(status_is("db1", "sessions/one/read_only", "0\n"));
	CHECK(status_is("db1", "sessions/one/mapping_path", "db1\n"));
	CHECK(status_is("db1", "claimed", "0\n"));
	CHECK(status_is("db2", "sessions/two/access_mode", "ro\n"));
	CHECK(status_is("db1", "size", "32768\n"));
	CHECK(status_is("db1", "identity", identity_text(&r)));
	snprintf(path, sizeof(path), "%s/run/devices/", dir);
	CHECK(!stat(path, &st) && (st.st_mode & 0777) == 0755);
	CHECK_EQ(truncate(place("disks/db1"), 2 * DISK_MIB * MIB), 0);
	CHECK(status_is("db1", "size", "65536\n"));
	CHECK_EQ(client_map(&c2, "db1", IBNBD_ACCESS_RO, &r), 0);
	CHECK(status_is("db1", "sessions/two/access_mode", "ro\n"));
	CHECK_EQ(client_unmap(&c2, r2.device_id, false), 0);
	CHECK(status_is("db2", "size", NULL));
	client_close(&c);
	CHECK(status_is("db1", "sessions/one/access_mode", NULL));
	CHECK(status_is("db1", "sessions/two/access_mode", "ro\n"));
	client_close(&c2);
	CHECK(status_is("db1", "size", NULL));
	CHECK_EQ(server_end(SIGTERM), 0);
	snprintf(path, sizeof(path), "rmdir %s/run", dir);	/* nothing is left behind */
	CHECK_EQ(system(path), 0);
	CHECK_EQ(mkdir(place("run"), 0700), 0);
	server_start();
	serverd_finish();
}

/* ---- what it orders -------------------------------------------------------------- */

/* By the shell, as an administrator would. @glob: below the directory of what is open. */
static bool order(const char *glob, const char *text)
{
	char cmd[256];
	unsigned int i;

	snprintf(cmd, sizeof(cmd), "test -p %s/run/%s", dir, glob);
	for (i = 0; i < 1000 && system(cmd); i++)
		pause_ms(5);
	snprintf(cmd, sizeof(cmd), "echo %s > $(ls %s/run/%s)", text, dir, glob);
	return !system(cmd);
}

UNIT_TEST(serverd_takes_orders)
{
	struct ibnbd_open_rsp r, ro, again;
	struct client c, c2;
	u8 buf[512];

	serverd_begin("# no rules\n");
	if (!client_open_as(&c, "one", true) ||
	    !CHECK_EQ(client_map(&c, "db1", IBNBD_ACCESS_RW, &r), 0) || !client_open(&c2, "two") ||
	    !CHECK_EQ(client_map(&c2, "db1", IBNBD_ACCESS_RO, &ro), 0))
		abort();

	UNIT_ROW("what is no order");
	CHECK(order("devices/*/sessions/one/force_close", "2"));
	CHECK(order("devices/*/sessions/one/force_close", "12"));
	CHECK(order("devices/*/sessions/one/force_close", ""));
	CHECK_EQ(client_io(&c, r.device_id, IBNBD_OP_READ, 0, 0, buf, 512), 0);

	UNIT_ROW("force_close: of this client alone");
	CHECK(order("devices/*/sessions/one/force_close", "1"));
	CHECK(client_hears(&c, IBNBD_EVENT_REVOKED, r.device_id));
	CHECK(client_io(&c, r.device_id, IBNBD_OP_READ, 0, 0, buf, 512) != 0);
	CHECK_EQ(client_io(&c2, ro.device_id, IBNBD_OP_READ, 0, 0, buf, 512), 0);
	CHECK(status_is("db1", "sessions/one/access_mode", NULL));
	CHECK_EQ(client_map_soon(&c, "db1", IBNBD_ACCESS_RW, &again), 0);
	CHECK_EQ(client_io(&c, again.device_id, IBNBD_OP_WRITE, 0, 0, buf, 512), 0);

	UNIT_ROW("disconnect: its paths are lost, and it is back");
	CHECK(order("sessions/one/paths/*/disconnect", "1"));
	CHECK(status_is("db1", "sessions/one/access_mode", NULL));
	client_back(&c);
	CHECK_EQ(client_io(&c2, ro.device_id, IBNBD_OP_READ, 0, 0, buf, 512), 0);
	CHECK_EQ(client_map_soon(&c, "db1", IBNBD_ACCESS_RW, &again), 0);
	client_close(&c);
	client_close(&c2);
	serverd_finish();
}
