// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/ibtrs-client: what an administrator can see and change of sessions and paths.
 *
 *	<session>/		add_path last_error max_reconnect_attempts mpath_policy uuid
 *				dest_port hb_interval_ms hb_misses reconnect_delay_ms
 *				reconnect_max_ms auth
 *	  paths/<src@dst>/	state state_detail reconnect disconnect remove_path hca_name
 *				hca_port src_addr dst_addr cur_latency
 *	    stats/		rdma reconnects cpu_migration_from cpu_migration_to reset_all
 *
 * dirs.c creates the directories. All code here runs for a reader or a writer. Formats and error
 * numbers are an ABI: docs/sysfs.md.
 *
 * Locking: all data are constant, read by READ_ONCE(), or locked by the file that owns them.
 */
#include <linux/device.h>
#include <linux/kobject.h>
#include <ibtrs/admin.h>
#include "ibtrs/client/paths.h"
#include "ibtrs/client/session.h"
#include "ibtrs/logic/mpath.h"

/* Log one line about a refused value. @path: NULL = an attribute of the session. */
static void sysfs_refuse(const struct ibtrs_clt *clt, const struct ibtrs_clt_path *path,
			 const char *attr, const char *buf, size_t count, const char *why)
{
	IBTRS_ADMIN_REFUSE(buf, count, why, "ibtrs %s: %s%s%s", clt->name, path ? path->name : "",
			   path ? ": " : "", attr);
}

/* ---- session ------------------------------------------------------------ */

static struct ibtrs_clt *session_of(struct device *d)
{
	return dev_get_drvdata(d);
}

static ssize_t add_path_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "Usage: echo [<source>@]<destination> > %s\n"
			  "An address is ip:<IPv4>, ip:<IPv6>[%%<interface>] or gid:<GID>\n",
			  attr->attr.name);
}

static ssize_t add_path_store(struct device *dev, struct device_attribute *attr, const char *buf,
			      size_t count)
{
	struct ibtrs_clt *clt = dev_get_drvdata(dev);
	size_t len = count && buf[count - 1] == '\n' ? count - 1 : count;
	struct ibtrs_addr_pair addr;
	const char *why = "malformed";
	int err;

	if (ibtrs_addr_pair_parse(buf, len, &addr, &why)) {
		sysfs_refuse(clt, NULL, attr->attr.name, buf, len, why);
		return -EINVAL;
	}
	err = ibtrs_clt_paths_add(clt, &addr);
	return err ?: count;
}
IBTRS_ADMIN_ATTR_RW(add_path);

const struct device_attribute *const ibtrs_clt_sysfs_add_path = &dev_attr_add_path;

/* Why the last add_path failed. */
static ssize_t last_error_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct ibtrs_clt *clt = dev_get_drvdata(dev);

	guard(mutex)(&clt->lock);
	return sysfs_emit(buf, "%s\n", clt->last_error);
}

IBTRS_ADMIN_DEV_SHOW(max_reconnect_attempts, "%d",
		     READ_ONCE(session_of(d)->opts.max_reconnect_attempts))

static ssize_t max_reconnect_attempts_store(struct device *dev, struct device_attribute *attr,
					    const char *buf, size_t count)
{
	struct ibtrs_clt *clt = dev_get_drvdata(dev);
	int n;

	if (kstrtoint(buf, 10, &n) || n < -1 || n > 9999) {
		sysfs_refuse(clt, NULL, attr->attr.name, buf, count,
			     "a number from -1 to 9999 is expected");
		return -EINVAL;
	}
	WRITE_ONCE(clt->opts.max_reconnect_attempts, n);
	return count;
}
IBTRS_ADMIN_ATTR_RW(max_reconnect_attempts);

IBTRS_ADMIN_DEV_SHOW(mpath_policy, "%s", ibtrs_mpath_sysfs(READ_ONCE(session_of(d)->policy)))

static ssize_t mpath_policy_store(struct device *dev, struct device_attribute *attr,
				  const char *buf, size_t count)
{
	struct ibtrs_clt *clt = dev_get_drvdata(dev);
	int policy = ibtrs_mpath_parse(buf, count);

	if (policy < 0) {
		sysfs_refuse(
			clt, NULL, attr->attr.name, buf, count,
			"round-robin (rr, 0), min-inflight (mi, 1) or min-latency (ml, 2) is expected");
		return policy;
	}
	WRITE_ONCE(clt->policy, policy);
	return count;
}
IBTRS_ADMIN_ATTR_RW(mpath_policy);

IBTRS_ADMIN_DEV_SHOW(uuid, "%pUb", session_of(d)->uuid)
/* The value given when the session was opened, else the default. It never changes. */
IBTRS_ADMIN_DEV_SHOW(dest_port, "%u", session_of(d)->opts.dest_port)
IBTRS_ADMIN_DEV_SHOW(hb_interval_ms, "%u", session_of(d)->opts.hb_interval_ms)
IBTRS_ADMIN_DEV_SHOW(hb_misses, "%u", session_of(d)->opts.hb_misses)
IBTRS_ADMIN_DEV_SHOW(reconnect_delay_ms, "%u", session_of(d)->backoff.first_ms)
IBTRS_ADMIN_DEV_SHOW(reconnect_max_ms, "%u", session_of(d)->backoff.max_ms)
/* The name of a key is no secret. */
IBTRS_ADMIN_DEV_SHOW(auth, "%s", session_of(d)->opts.auth)

static struct attribute *session_attrs[] = {
	&dev_attr_add_path.attr,
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(last_error)),
	&dev_attr_max_reconnect_attempts.attr,
	&dev_attr_mpath_policy.attr,
	/* A process that knows the uuid can join the session and act in its name: root only. */
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO_MODE(uuid, 0400)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(dest_port)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(hb_interval_ms)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(hb_misses)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(reconnect_delay_ms)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(reconnect_max_ms)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(auth)),
	NULL,
};
static const struct attribute_group session_group = {
	.attrs = session_attrs,
};

const struct attribute_group *ibtrs_clt_sysfs_session_groups[] = {
	&session_group,
	NULL,
};

/* ---- path --------------------------------------------------------------- */

/*
 * While show or store runs, the path exists.
 *
 * Removing an attribute waits for its running store, so a store cannot simply remove its own
 * directory. So remove_path first closes the path (killable; if it is killed, the path is only
 * closed), then claims it: exactly one of several writers and the closing session removes it. The
 * claim keeps the path from being freed. The store then leaves the attribute
 * (sysfs_break_active_protection()) and removes path and directory. A closing session waits for
 * such stores.
 */

static struct ibtrs_clt_path *path_of(struct kobject *kobj)
{
	return container_of(kobj, struct ibtrs_clt_path_dir, kobj)->path;
}

static int path_want_one(const struct kobj_attribute *attr, struct ibtrs_clt_path *path,
			 const char *buf, size_t count)
{
	if (sysfs_streq(buf, "1"))
		return 0;
	sysfs_refuse(path->clt, path, attr->attr.name, buf, count, "1 is expected");
	return -EINVAL;
}

IBTRS_ADMIN_SHOW(state, "%s", ibtrs_clt_path_state(path_of(kobj)) == IBTRS_PATH_UP ?
			      "connected" : "disconnected")

/*
 * The state; "marginal" if the path is marginal; and if the path is marginal or not up: errno and
 * reason of the last failure, if there was one.
 */
static ssize_t state_detail_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct ibtrs_clt_path *path = path_of(kobj);
	enum ibtrs_path_state state = ibtrs_clt_path_state(path);
	char reason[IBTRS_CLT_REASON_LEN];
	int err = ibtrs_clt_path_reason(path, reason, sizeof(reason));
	const char *word = ibtrs_clt_path_ask(path, ibtrs_retry_marginal) ? " marginal" : "";

	if (!err || (state == IBTRS_PATH_UP && !*word))
		return sysfs_emit(buf, "%s%s\n", ibtrs_path_sm_state_name(state), word);
	return sysfs_emit(buf, "%s%s %d %s\n", ibtrs_path_sm_state_name(state), word, err, reason);
}

/* The ABI has one errno for failed attempts; the true one is in state_detail and in the log. */
static ssize_t reconnect_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			       size_t count)
{
	struct ibtrs_clt_path *path = path_of(kobj);
	int err = path_want_one(attr, path, buf, count);

	if (err)
		return err;
	err = ibtrs_clt_path_reconnect(path);
	if (!err)
		return count;
	return err == -EBUSY || err == -EINTR ? err : -ENOTCONN;
}

static ssize_t disconnect_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
				size_t count)
{
	struct ibtrs_clt_path *path = path_of(kobj);
	int err = path_want_one(attr, path, buf, count);

	err = err ?: ibtrs_clt_path_close(path, true);
	return err ?: count;
}

static ssize_t remove_path_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
				 size_t count)
{
	struct ibtrs_clt_path *path = path_of(kobj);
	struct kernfs_node *kn;
	int err;

	err = path_want_one(attr, path, buf, count);
	err = err ?: ibtrs_clt_path_close(path, true);
	err = err ?: ibtrs_clt_paths_claim(path, IBTRS_CLT_PATH_MEMBER);
	if (err)
		return err;
	kn = sysfs_break_active_protection(kobj, &attr->attr);
	ibtrs_clt_paths_remove(path);
	/* Nothing holds the module any more; its exit waits for tasks like this one. */
	if (kn)
		sysfs_unbreak_active_protection(kn);
	return count;
}

static ssize_t hca_name_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct ibtrs_clt_path_sysfs *s = &path_of(kobj)->sysfs;

	guard(spinlock)(&s->lock);
	return sysfs_emit(buf, "%s\n", s->hca[0] ? s->hca : "-");
}

IBTRS_ADMIN_SHOW(hca_port, "%u", READ_ONCE(path_of(kobj)->sysfs.port))

static ssize_t src_addr_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct ibtrs_clt_path_sysfs *s = &path_of(kobj)->sysfs;

	guard(spinlock)(&s->lock);
	return ibtrs_admin_show_addr(buf, &s->src);
}

static ssize_t dst_addr_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return ibtrs_admin_show_addr(buf, &path_of(kobj)->addr.dst);
}

IBTRS_ADMIN_SHOW(cur_latency, "%llu ns", READ_ONCE(path_of(kobj)->hb.latency_ns))

static struct attribute *path_attrs[] = {
	IBTRS_ADMIN_FILE(__ATTR_RO(state)),
	IBTRS_ADMIN_FILE(__ATTR_RO(state_detail)),
	IBTRS_ADMIN_FILE(__ATTR(reconnect, 0644, ibtrs_admin_usage_show, reconnect_store)),
	IBTRS_ADMIN_FILE(__ATTR(disconnect, 0644, ibtrs_admin_usage_show, disconnect_store)),
	IBTRS_ADMIN_FILE(__ATTR(remove_path, 0644, ibtrs_admin_usage_show, remove_path_store)),
	IBTRS_ADMIN_FILE(__ATTR_RO(hca_name)),
	IBTRS_ADMIN_FILE(__ATTR_RO(hca_port)),
	IBTRS_ADMIN_FILE(__ATTR_RO(src_addr)),
	IBTRS_ADMIN_FILE(__ATTR_RO(dst_addr)),
	IBTRS_ADMIN_FILE(__ATTR_RO(cur_latency)),
	NULL,
};

static const struct attribute_group path_group = {
	.attrs = path_attrs,
};

/* ---- path/stats --------------------------------------------------------- */

/* The shown values count from the last reset. */

static ssize_t rdma_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct ibtrs_clt_path *path = path_of(kobj);
	struct ibtrs_clt_stats *s = &path->stats;
	u64 n[IBTRS_CLT_COUNTS];
	unsigned int i;

	guard(spinlock)(&s->lock);
	ibtrs_clt_stats_sum(s, n);
	for (i = 0; i < IBTRS_CLT_COUNTS; i++)
		n[i] -= s->base[i];
	return sysfs_emit(buf, "%llu %llu %llu %llu %u %llu\n", n[IBTRS_CLT_REQUESTS + IBTRS_READ],
			  n[IBTRS_CLT_BYTES + IBTRS_READ], n[IBTRS_CLT_REQUESTS + IBTRS_WRITE],
			  n[IBTRS_CLT_BYTES + IBTRS_WRITE], ibtrs_clt_path_inflight(path),
			  n[IBTRS_CLT_FAILOVERS]);
}

static ssize_t reconnects_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct ibtrs_clt_stats *s = &path_of(kobj)->stats;

	guard(spinlock)(&s->lock);
	return sysfs_emit(buf, "%d %d\n", READ_ONCE(s->reconnects_ok) - s->ok_base,
			  READ_ONCE(s->reconnects_bad) - s->bad_base);
}

static u64 stats_migrated(const struct ibtrs_clt_stats *s, unsigned int cpu, bool to)
{
	return atomic64_read(&per_cpu_ptr(s->pcpu, cpu)->migrated[to]);
}

/*
 * How many requests that each CPU submitted were answered on another one; with @to, how many
 * requests of other CPUs were answered on it.
 */
static ssize_t stats_show_cpus(struct ibtrs_clt_stats *s, char *buf, bool to)
{
	char word[24];
	unsigned int cpu;
	int n, len = 0;

	guard(spinlock)(&s->lock);
	for_each_possible_cpu(cpu) {
		n = scnprintf(word, sizeof(word), "%s%llu", len ? " " : "",
			      stats_migrated(s, cpu, to) - s->migrated_base[cpu][to]);
		/*
		 * A page holds about 200 numbers of full length, and thousands of usual ones. Omit
		 * a number rather than cut it.
		 */
		if (len + n + 2 > PAGE_SIZE)
			break;
		len += sysfs_emit_at(buf, len, "%s", word);
	}
	len += sysfs_emit_at(buf, len, "\n");
	return len;
}

static ssize_t cpu_migration_from_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return stats_show_cpus(&path_of(kobj)->stats, buf, false);
}

static ssize_t cpu_migration_to_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return stats_show_cpus(&path_of(kobj)->stats, buf, true);
}

/* What a reset is for: bits. */
enum {
	STATS_TRAFFIC		= 1,
	STATS_RECONNECTS	= 2,
	STATS_MIGRATED_FROM	= 4,
	STATS_MIGRATED_TO	= 8,
	STATS_ALL		= 15,
};

/* A counter, or all of them: 1 resets it. */
struct stats_file {
	struct kobj_attribute file;
	unsigned int what;
};

/* The number in flight is not reset: those requests are still in flight. */
static ssize_t stats_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			   size_t count)
{
	unsigned int what = container_of(attr, struct stats_file, file)->what, cpu;
	struct ibtrs_clt_path *path = path_of(kobj);
	struct ibtrs_clt_stats *s = &path->stats;
	int err = path_want_one(attr, path, buf, count);

	if (err)
		return err;
	guard(spinlock)(&s->lock);
	if (what & STATS_TRAFFIC)
		ibtrs_clt_stats_sum(s, s->base);
	if (what & STATS_RECONNECTS) {
		/* The value stays -1 before the first connect, which is no reconnect. */
		s->ok_base = max(READ_ONCE(s->reconnects_ok), 0);
		s->bad_base = READ_ONCE(s->reconnects_bad);
	}
	for_each_possible_cpu(cpu) {
		if (what & STATS_MIGRATED_FROM)
			s->migrated_base[cpu][false] = stats_migrated(s, cpu, false);
		if (what & STATS_MIGRATED_TO)
			s->migrated_base[cpu][true] = stats_migrated(s, cpu, true);
	}
	return count;
}

#define STATS_FILE(_name, _show, _what)								\
	(&((struct stats_file){ __ATTR(_name, 0644, _show, stats_store),			\
				STATS_##_what }).file.attr)

static struct attribute *stats_attrs[] = {
	STATS_FILE(rdma, rdma_show, TRAFFIC),
	STATS_FILE(reconnects, reconnects_show, RECONNECTS),
	STATS_FILE(cpu_migration_from, cpu_migration_from_show, MIGRATED_FROM),
	STATS_FILE(cpu_migration_to, cpu_migration_to_show, MIGRATED_TO),
	STATS_FILE(reset_all, ibtrs_admin_usage_show, ALL),
	NULL,
};

static const struct attribute_group stats_group = {
	.name = "stats",
	.attrs = stats_attrs,
};

const struct attribute_group *ibtrs_clt_sysfs_path_groups[] = {
	&path_group,
	&stats_group,
	NULL,
};
