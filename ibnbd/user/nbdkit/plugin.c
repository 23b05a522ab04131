// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * nbdkit-ibnbd-plugin: a disk of an IBNBD server for whatever speaks NBD (docs/libibnbd.md).
 *
 * One disk for all connections to nbdkit, opened after it has forked: sockets, threads and verbs
 * do not survive a fork. A flush of one connection covers what all of them have written, so there
 * may be several. Threads of nbdkit share the queues; each waits for its own request.
 */
#include <errno.h>
#include <inttypes.h>
#include <libibnbd.h>
#include <stdlib.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#define PLUGIN_PATHS	128
#define PLUGIN_QUEUES	4

static struct {
	struct ibtrs_clt_opts session;
	struct ibnbd_disk_opts disk;
	const char *name;
	const char *paths[PLUGIN_PATHS];
	unsigned int nr_paths;
	char *key_file;			/* session.key_name points into it */
	uint8_t key[IBTRS_SECRET_LEN];
	int hold;			/* seconds, as the option of the kernel's client */
} conf = {
	.session = { .size = sizeof(conf.session), .queues = PLUGIN_QUEUES },
	.disk = { .size = sizeof(conf.disk) },
	.hold = 100,
};

static struct ibtrs_ctx *ctx;
static struct ibnbd_disk *disk;
static unsigned int turn;

/* ---- options ------------------------------------------------------------ */

static int plugin_key(const char *value)
{
	char why[IBTRS_WHY_LEN];

	conf.key_file = nbdkit_realpath(value);
	if (!conf.key_file)
		return -1;
	conf.session.key = conf.key;
	if (!ibtrs_key_read(conf.key_file, conf.key, &conf.session.key_name, why))
		return 0;
	nbdkit_error("key=%s: %s", value, why);
	return -1;
}

static const char *const access_words[] = {
	[IBNBD_DISK_RW] = "rw", [IBNBD_DISK_RO] = "ro", [IBNBD_DISK_MIGRATION] = "migration", NULL,
};

static const char *const unflushed_words[] = {
	[IBNBD_DISK_UNFLUSHED_AUTO] = "auto", [IBNBD_DISK_UNFLUSHED_FENCE] = "fence",
	[IBNBD_DISK_UNFLUSHED_IGNORE] = "ignore", [IBNBD_DISK_UNFLUSHED_REPLAY] = "replay", NULL,
};

static int plugin_word(const char *key, const char *value, const char *const *words,
		       const char *all, uint32_t *number)
{
	for (*number = 0; words[*number]; ++*number)
		if (!strcmp(value, words[*number]))
			return 0;
	nbdkit_error("%s=%s: %s", key, value, all);
	return -1;
}

static int plugin_config(const char *key, const char *value)
{
	if (!strcmp(key, "session") || !strcmp(key, "sessname")) {
		conf.session.name = value;
	} else if (!strcmp(key, "device") || !strcmp(key, "device_path")) {
		conf.name = value;
	} else if (!strcmp(key, "path")) {
		if (conf.nr_paths == PLUGIN_PATHS) {
			nbdkit_error("path=%s: at most %u paths", value, PLUGIN_PATHS);
			return -1;
		}
		conf.paths[conf.nr_paths++] = value;
	} else if (!strcmp(key, "key")) {
		return plugin_key(value);
	} else if (!strcmp(key, "access_mode")) {
		return plugin_word(key, value, access_words, "rw, ro or migration",
				   &conf.disk.access);
	} else if (!strcmp(key, "policy")) {
		conf.session.policy = value;
	} else if (!strcmp(key, "queues")) {
		return nbdkit_parse_uint32_t("queues", value, &conf.session.queues);
	} else if (!strcmp(key, "unflushed")) {
		return plugin_word(key, value, unflushed_words, "auto, replay, fence or ignore",
				   &conf.disk.unflushed);
	} else if (!strcmp(key, "retain_mb")) {
		return nbdkit_parse_uint32_t("retain_mb", value, &conf.disk.retain_mb);
	} else if (!strcmp(key, "hold")) {
		if (nbdkit_parse_int("hold", value, &conf.hold))
			return -1;
		if (conf.hold < -1 || conf.hold > 2147483) {
			nbdkit_error("hold=%s: seconds, 0 to 2147483, or -1 for ever", value);
			return -1;
		}
	} else {
		nbdkit_error("%s: the ibnbd plugin has no such option", key);
		return -1;
	}
	return 0;
}

static int plugin_config_complete(void)
{
	const char *missing = !conf.session.name ? "session=NAME" : !conf.name ? "device=NAME" :
			      !conf.nr_paths ? "path=ip:10.0.0.1, tcp:10.0.0.1:1234 or unix:/run/name" :
			      NULL;

	if (missing) {
		nbdkit_error("%s is missing", missing);
		return -1;
	}
	conf.disk.hold_ms = conf.hold < 0 ? IBNBD_HOLD_FOREVER : !conf.hold ? IBNBD_HOLD_NONE :
			    conf.hold * 1000;
	return 0;
}

#define plugin_config_help \
	"session=<NAME>     (required) Name of the session, as the server will know it.\n" \
	"path=<ADDRESS>     (required) A path to the server, for each one once:\n" \
	"                   ip:10.0.0.1 (RDMA), tcp:10.0.0.1:1234, unix:/run/name.\n" \
	"device=<NAME>      (required) The disk, as the server exports it.\n" \
	"access_mode=<MODE> rw (default), ro or migration.\n" \
	"key=<FILE>         32 bytes; the name of the file is the name of the key.\n" \
	"hold=<SECONDS>     How long requests wait without the server; default 100.\n" \
	"unflushed=<WHAT>   If the server may have lost writes that no flush has covered: auto\n" \
	"                   (default), replay, fence or ignore.\n" \
	"retain_mb=<MIB>    Memory for the copies that replay sends again; default 64.\n" \
	"policy=<WORD>      Which path a request goes to: min-inflight (default),\n" \
	"                   round-robin or min-latency.\n" \
	"queues=<N>         Connections per path; default 4."

/* ---- the disk ----------------------------------------------------------- */

static int plugin_after_fork(void)
{
	const struct ibtrs_ctx_opts o = { .size = sizeof(o), .flags = IBTRS_CTX_THREAD };
	char why[IBTRS_WHY_LEN] = "";
	int err;

	err = ibtrs_ctx_new(&ctx, &o);
	if (!err)
		err = ibnbd_disk_open(ctx, conf.name, conf.paths, conf.nr_paths, &conf.session,
				      &conf.disk, &disk, why);
	if (!err)
		return 0;
	errno = -err;
	nbdkit_error("%s", why[0] ? why : strerror(-err));
	return -1;
}

static void plugin_cleanup(void)
{
	ibnbd_disk_close(disk);
	disk = NULL;
	ibtrs_ctx_free(ctx);
	ctx = NULL;
}

static void plugin_unload(void)
{
	explicit_bzero(conf.key, sizeof(conf.key));
	free(conf.key_file);
}

static struct ibnbd_disk_info plugin_info(void)
{
	struct ibnbd_disk_info info = { .size = sizeof(info) };

	ibnbd_disk_info(disk, &info);
	return info;
}

static void *plugin_open(int readonly)
{
	return disk;
}

static int64_t plugin_get_size(void *handle)
{
	return (int64_t)plugin_info().bytes;
}

static uint32_t pow2_below(uint32_t n)
{
	return n ? 1u << (31 - __builtin_clz(n)) : 0;
}

static int plugin_block_size(void *handle, uint32_t *minimum, uint32_t *preferred,
			     uint32_t *maximum)
{
	struct ibnbd_disk_info i = plugin_info();

	*minimum = i.block_size;
	*preferred = pow2_below(i.io_min > i.physical_block_size ? i.io_min :
							       i.physical_block_size);
	if (*preferred < 4096)
		*preferred = 4096;
	*maximum = 0xffffffff;		/* split here */
	return 0;
}

static int plugin_can_write(void *handle)
{
	return !plugin_info().read_only;
}

static int plugin_can_trim(void *handle)
{
	return plugin_info().max_discard != 0;
}

static int plugin_can_fua(void *handle)
{
	return NBDKIT_FUA_NATIVE;
}

static int plugin_is_rotational(void *handle)
{
	return plugin_info().rotational;
}

static int plugin_true(void *handle)
{
	return 1;
}

/* ---- requests ----------------------------------------------------------- */

static struct ibnbd_q *plugin_q(void)
{
	unsigned int n = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED);

	return ibnbd_disk_q(disk, n % (conf.session.queues ?: 1));
}

/* NBD has few errors: *@why says the rest, or what has become of the disk. */
static int plugin_end(int err, const char *what, uint64_t offset, const char *const *why)
{
	struct ibnbd_disk_info i;

	if (!err)
		return 0;
	i = plugin_info();
	if (strcmp(i.state, "open"))
		nbdkit_error("%s: %s at %" PRIu64 ": the disk is %s: %s", conf.name, what, offset,
			     i.state_detail, i.reason);
	else
		nbdkit_error("%s: %s at %" PRIu64 ": %s: %s", conf.name, what, offset,
			     strerror(-err), *why ?: "");
	nbdkit_set_error(-err);
	return -1;
}

static int plugin_pread(void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
	const char *why = NULL;

	return plugin_end(ibnbd_read(plugin_q(), buf, count, offset, &why), "read", offset, &why);
}

static unsigned int plugin_fua(uint32_t flags)
{
	return flags & NBDKIT_FLAG_FUA ? IBNBD_REQ_FUA : 0;
}

static int plugin_pwrite(void *handle, const void *buf, uint32_t count, uint64_t offset,
			 uint32_t flags)
{
	const char *why = NULL;

	return plugin_end(ibnbd_write(plugin_q(), buf, count, offset, plugin_fua(flags), &why),
			  "write", offset, &why);
}

static int plugin_flush(void *handle, uint32_t flags)
{
	const char *why = NULL;

	return plugin_end(ibnbd_flush(plugin_q(), &why), "flush", 0, &why);
}

/* Operations without data have no FUA: a flush follows. */
static int plugin_safe(int err, uint32_t flags, const char **why)
{
	return !err && flags & NBDKIT_FLAG_FUA ? ibnbd_flush(plugin_q(), why) : err;
}

static int plugin_trim(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	const char *why = NULL;
	int err = ibnbd_discard(plugin_q(), count, offset, &why);

	return plugin_end(plugin_safe(err, flags, &why), "trim", offset, &why);
}

/* nbdkit writes zeroes itself where the disk cannot. */
static int plugin_zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	const char *why = NULL;
	int err;

	err = ibnbd_zeroes(plugin_q(), count, offset,
			   flags & NBDKIT_FLAG_MAY_TRIM ? 0 : IBNBD_REQ_NOUNMAP, &why);
	if (err == -EOPNOTSUPP) {
		nbdkit_set_error(EOPNOTSUPP);
		return -1;
	}
	return plugin_end(plugin_safe(err, flags, &why), "zero", offset, &why);
}

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

static struct nbdkit_plugin plugin = {
	.name			= "ibnbd",
	.longname		= "IBNBD disk",
	.description		= "a disk of an IBNBD server, over RDMA or streams",
	.config			= plugin_config,
	.config_complete	= plugin_config_complete,
	.config_help		= plugin_config_help,
	.after_fork		= plugin_after_fork,
	.cleanup		= plugin_cleanup,
	.unload			= plugin_unload,
	.open			= plugin_open,
	.get_size		= plugin_get_size,
	.block_size		= plugin_block_size,
	.can_write		= plugin_can_write,
	.can_flush		= plugin_true,
	.can_trim		= plugin_can_trim,
	.can_fua		= plugin_can_fua,
	.can_multi_conn		= plugin_true,
	.can_fast_zero		= plugin_true,
	.is_rotational		= plugin_is_rotational,
	.pread			= plugin_pread,
	.pwrite			= plugin_pwrite,
	.flush			= plugin_flush,
	.trim			= plugin_trim,
	.zero			= plugin_zero,
	.errno_is_preserved	= 0,
};

NBDKIT_REGISTER_PLUGIN(plugin)
