// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/ibtrs-client: what an administrator sees of sessions and paths, and where he orders.
 *
 *	<session>/		add_path max_reconnect_attempts mpath_policy uuid
 *	  paths/<src@dst>/	state state_detail reconnect disconnect remove_path hca_name hca_port
 *				src_addr dst_addr cur_latency
 *	    stats/		rdma reconnects cpu_migration_from cpu_migration_to reset_all
 *
 * Called by session.c and path.c when their objects come and go, and by cm.c when a route is known; everything else is started by a reader
 * or a writer. Formats and error numbers are an ABI: spec C.3, docs/sysfs.md.
 *
 * Lifetime. The driver core and sysfs may hold on to a device or a kobject for as long as they like, so none is part of a session or a path:
 * the session's device and paths/ belong to the driver core, a path's directory is a small object with a pointer. Removing a directory waits
 * for show and store that run in it; after that the pointer is never followed again, and the owner frees his object. Our directory objects
 * are counted, and module exit waits for the last.
 *
 * An attribute can not wait for its own end. So remove_path first closes the path (killable, nothing is lost when it is killed), then claims
 * it: exactly one of several writers and of session close becomes its remover. From then on the path is pinned by the claim, the store steps out
 * of the attribute (sysfs_break_active_protection) and removes path and directory. session_del waits for such stores.
 *
 * Names. A directory is always called src@dst. Without a given source that is the unspecified address (ip:0.0.0.0@ip:10.0.0.2, a form that
 * add_path reads back) until the first route is resolved, then, once and for good, the source found. Names are unique; making and
 * renaming is serialized by names_lock, since a collision inside sysfs would be reported with a stack dump.
 *
 * Locking: names_lock for names; path->sysfs.lock for what a route told; everything else is constant, READ_ONCE() or another room's.
 */
#include <linux/kobject.h>
#include <linux/netdevice.h>
#include <linux/sched/mm.h>
#include <linux/wait_bit.h>
#include <rdma/ib.h>
#include <rdma/rdma_cm.h>
#include "ibtrs/client/session.h"
#include "ibtrs/client/sysfs.h"
#include "ibtrs/logic/mpath.h"

#define SYSFS_SHOW_MAX	40	/* bytes of a refused text that the log repeats */

/**
 * struct ibtrs_clt_path_dir - paths/<src@dst>/
 * @kobj: owns this memory
 * @path: valid while show or store runs
 */
struct ibtrs_clt_path_dir {
	struct kobject kobj;
	struct ibtrs_clt_path *path;
};

static DEFINE_MUTEX(names_lock);
static atomic_t path_dirs;

static struct class *sysfs_class;

/* @path: NULL = an attribute of the session */
static void sysfs_refuse(const struct ibtrs_clt *clt, const struct ibtrs_clt_path *path,
			 const char *attr, const char *buf, size_t count, const char *why)
{
	pr_err_ratelimited("ibtrs %s: %s%s%s: '%*pE' refused: %s\n", clt->name,
			   path ? path->name : "", path ? ": " : "", attr,
			   (int)min_t(size_t, count, SYSFS_SHOW_MAX), buf, why);
}

static bool sysfs_is_one(const char *buf, size_t count)
{
	return buf[0] == '1' && (count == 1 || (count == 2 && buf[1] == '\n'));
}

/* ---- session ------------------------------------------------------------ */

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
	err = ibtrs_clt_session_add_path(clt, &addr);
	return err ?: count;
}
static DEVICE_ATTR_RW(add_path);

static ssize_t max_reconnect_attempts_show(struct device *dev, struct device_attribute *attr,
					   char *buf)
{
	struct ibtrs_clt *clt = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%d\n", READ_ONCE(clt->max_reconnects));
}

static ssize_t max_reconnect_attempts_store(struct device *dev, struct device_attribute *attr,
					    const char *buf, size_t count)
{
	struct ibtrs_clt *clt = dev_get_drvdata(dev);
	int n;

	if (kstrtoint(buf, 10, &n) || n < -1 || n > 9999) {
		sysfs_refuse(clt, NULL, attr->attr.name, buf, count, "a number from -1 to 9999 is expected");
		return -EINVAL;
	}
	WRITE_ONCE(clt->max_reconnects, n);
	return count;
}
static DEVICE_ATTR_RW(max_reconnect_attempts);

static ssize_t mpath_policy_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct ibtrs_clt *clt = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%s\n", ibtrs_mpath_sysfs(READ_ONCE(clt->policy)));
}

static ssize_t mpath_policy_store(struct device *dev, struct device_attribute *attr,
				  const char *buf, size_t count)
{
	struct ibtrs_clt *clt = dev_get_drvdata(dev);
	int policy = ibtrs_mpath_parse(buf, count);

	if (policy < 0) {
		sysfs_refuse(clt, NULL, attr->attr.name, buf, count,
			     "round-robin (rr, 0), min-inflight (mi, 1) or min-latency (ml, 2) is expected");
		return policy;
	}
	WRITE_ONCE(clt->policy, policy);
	return count;
}
static DEVICE_ATTR_RW(mpath_policy);

static ssize_t uuid_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct ibtrs_clt *clt = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%pUb\n", clt->uuid);
}
static DEVICE_ATTR_RO(uuid);

static struct attribute *session_attrs[] = {
	&dev_attr_add_path.attr,
	&dev_attr_max_reconnect_attempts.attr,
	&dev_attr_mpath_policy.attr,
	&dev_attr_uuid.attr,
	NULL,
};
ATTRIBUTE_GROUPS(session);

int ibtrs_clt_sysfs_session_add(struct ibtrs_clt *clt)
{
	struct ibtrs_clt_sysfs *s = &clt->sysfs;
	struct device *dev;
	int err = 0;

	atomic_set(&s->removing, 0);
	mutex_lock(&names_lock);
	dev = class_find_device_by_name(sysfs_class, clt->name);
	if (dev) {
		put_device(dev);
		err = -EEXIST;
	} else {
		dev = device_create_with_groups(sysfs_class, NULL, MKDEV(0, 0), clt, session_groups,
						"%s", clt->name);
		err = PTR_ERR_OR_ZERO(dev);
	}
	mutex_unlock(&names_lock);
	if (err)
		return err;
	s->paths = kobject_create_and_add("paths", &dev->kobj);
	if (!s->paths) {
		device_unregister(dev);
		return -ENOMEM;
	}
	s->dev = dev;
	return 0;
}

void ibtrs_clt_sysfs_session_shut(struct ibtrs_clt *clt)
{
	if (clt->sysfs.dev)
		device_remove_file(clt->sysfs.dev, &dev_attr_add_path);
}

void ibtrs_clt_sysfs_session_del(struct ibtrs_clt *clt)
{
	struct ibtrs_clt_sysfs *s = &clt->sysfs;

	if (!s->dev)
		return;
	wait_var_event(&s->removing, !atomic_read_acquire(&s->removing));
	kobject_del(s->paths);
	kobject_put(s->paths);
	s->paths = NULL;
	device_unregister(s->dev);
	s->dev = NULL;
}

/* ---- path --------------------------------------------------------------- */

static struct ibtrs_clt_path *path_of(struct kobject *kobj)
{
	return container_of(kobj, struct ibtrs_clt_path_dir, kobj)->path;
}

static ssize_t usage_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "Usage: echo 1 > %s\n", attr->attr.name);
}

static int path_want_one(const struct kobj_attribute *attr, struct ibtrs_clt_path *path,
			 const char *buf, size_t count)
{
	if (sysfs_is_one(buf, count))
		return 0;
	sysfs_refuse(path->clt, path, attr->attr.name, buf, count, "1 is expected");
	return -EINVAL;
}

static ssize_t state_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	bool up = ibtrs_clt_path_state(path_of(kobj)) == IBTRS_PATH_UP;

	return sysfs_emit(buf, "%s\n", up ? "connected" : "disconnected");
}
static struct kobj_attribute path_state = __ATTR_RO(state);

/* State, and when it is not up: errno and words of what happened last, if anything did. */
static ssize_t state_detail_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct ibtrs_clt_path *path = path_of(kobj);
	enum ibtrs_path_state state = ibtrs_clt_path_state(path);
	char reason[IBTRS_CLT_REASON_LEN];
	unsigned long flags;
	int err;

	spin_lock_irqsave(&path->reason_lock, flags);
	err = path->err;
	strscpy(reason, path->reason, sizeof(reason));
	spin_unlock_irqrestore(&path->reason_lock, flags);
	if (state == IBTRS_PATH_UP || !err)
		return sysfs_emit(buf, "%s\n", ibtrs_path_sm_state_name(state));
	return sysfs_emit(buf, "%s %d %s\n", ibtrs_path_sm_state_name(state), err, reason);
}
static struct kobj_attribute path_state_detail = __ATTR_RO(state_detail);

/* The ABI knows one errno for all failures; the true one stands in state_detail and in the log. */
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
static struct kobj_attribute path_reconnect = __ATTR(reconnect, 0644, usage_show, reconnect_store);

static ssize_t disconnect_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
				size_t count)
{
	struct ibtrs_clt_path *path = path_of(kobj);
	int err = path_want_one(attr, path, buf, count);

	err = err ?: ibtrs_clt_path_close(path, true);
	return err ?: count;
}
static struct kobj_attribute path_disconnect = __ATTR(disconnect, 0644, usage_show, disconnect_store);

static ssize_t remove_path_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
				 size_t count)
{
	struct ibtrs_clt_path *path = path_of(kobj);
	atomic_t *removing = &path->clt->sysfs.removing;
	struct kernfs_node *kn = NULL;
	int err;

	err = path_want_one(attr, path, buf, count);
	err = err ?: ibtrs_clt_path_close(path, true);
	if (err)
		return err;
	/* Before the claim: who closes the session waits for us as soon as a path is missing from his list. */
	atomic_inc(removing);
	err = ibtrs_clt_session_claim_path(path);
	if (!err) {
		kn = sysfs_break_active_protection(kobj, &attr->attr);
		ibtrs_clt_session_remove_path(path);
	}
	/* The session may be gone with the decrement; the waker needs its address only. */
	if (atomic_dec_and_test(removing))
		wake_up_var(removing);
	if (kn)
		sysfs_unbreak_active_protection(kn);
	return err ?: count;
}
static struct kobj_attribute path_remove_path = __ATTR(remove_path, 0644, usage_show, remove_path_store);

static ssize_t hca_name_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct ibtrs_clt_path_sysfs *s = &path_of(kobj)->sysfs;
	ssize_t len;

	spin_lock(&s->lock);
	len = sysfs_emit(buf, "%s\n", s->hca[0] ? s->hca : "-");
	spin_unlock(&s->lock);
	return len;
}
static struct kobj_attribute path_hca_name = __ATTR_RO(hca_name);

static ssize_t hca_port_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(path_of(kobj)->sysfs.port));
}
static struct kobj_attribute path_hca_port = __ATTR_RO(hca_port);

static ssize_t path_show_addr(const struct ibtrs_addr *addr, char *buf)
{
	char text[IBTRS_ADDR_STR_MAX];

	ibtrs_addr_format(addr, text, sizeof(text));
	return sysfs_emit(buf, "%s\n", text);
}

static ssize_t src_addr_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct ibtrs_clt_path_sysfs *s = &path_of(kobj)->sysfs;
	struct ibtrs_addr src;

	spin_lock(&s->lock);
	src = s->src;
	spin_unlock(&s->lock);
	return path_show_addr(&src, buf);
}
static struct kobj_attribute path_src_addr = __ATTR_RO(src_addr);

static ssize_t dst_addr_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return path_show_addr(&path_of(kobj)->addr.dst, buf);
}
static struct kobj_attribute path_dst_addr = __ATTR_RO(dst_addr);

static ssize_t cur_latency_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu ns\n", READ_ONCE(path_of(kobj)->hb.latency_ns));
}
static struct kobj_attribute path_cur_latency = __ATTR_RO(cur_latency);

static struct attribute *path_attrs[] = {
	&path_state.attr,
	&path_state_detail.attr,
	&path_reconnect.attr,
	&path_disconnect.attr,
	&path_remove_path.attr,
	&path_hca_name.attr,
	&path_hca_port.attr,
	&path_src_addr.attr,
	&path_dst_addr.attr,
	&path_cur_latency.attr,
	NULL,
};

static const struct attribute_group path_group = {
	.attrs = path_attrs,
};

/* ---- path/stats --------------------------------------------------------- */

static ssize_t rdma_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct ibtrs_clt_stats *s = &path_of(kobj)->stats;
	struct ibtrs_clt_traffic t;

	ibtrs_clt_stats_traffic(s, &t);
	return sysfs_emit(buf, "%llu %llu %llu %llu %u %llu\n", t.cnt[IBTRS_READ], t.bytes[IBTRS_READ],
			  t.cnt[IBTRS_WRITE], t.bytes[IBTRS_WRITE], ibtrs_clt_stats_inflight(s),
			  t.failovers);
}

static ssize_t reconnects_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	int ok, bad;

	ibtrs_clt_stats_reconnects(&path_of(kobj)->stats, &ok, &bad);
	return sysfs_emit(buf, "%d %d\n", ok, bad);
}

static ssize_t stats_show_cpus(struct ibtrs_clt_stats *s, char *buf,
			       u64 (*get)(struct ibtrs_clt_stats *s, unsigned int cpu))
{
	char word[24];
	unsigned int cpu;
	int n, len = 0;

	for_each_possible_cpu(cpu) {
		n = scnprintf(word, sizeof(word), "%s%llu", len ? " " : "", get(s, cpu));
		/* A page holds 200 numbers of any size, thousands of usual ones: better none than half of one. */
		if (len + n + 2 > PAGE_SIZE)
			break;
		len += sysfs_emit_at(buf, len, "%s", word);
	}
	len += sysfs_emit_at(buf, len, "\n");
	return len;
}

static ssize_t cpu_migration_from_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return stats_show_cpus(&path_of(kobj)->stats, buf, ibtrs_clt_stats_migr_from);
}

static ssize_t cpu_migration_to_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return stats_show_cpus(&path_of(kobj)->stats, buf, ibtrs_clt_stats_migr_to);
}

static void stats_reset_all(struct ibtrs_clt_stats *s)
{
	ibtrs_clt_stats_reset_traffic(s);
	ibtrs_clt_stats_reset_reconnects(s);
	ibtrs_clt_stats_reset_migr_from(s);
	ibtrs_clt_stats_reset_migr_to(s);
}

static ssize_t stats_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			   size_t count, void (*reset)(struct ibtrs_clt_stats *s))
{
	struct ibtrs_clt_path *path = path_of(kobj);
	int err = path_want_one(attr, path, buf, count);

	if (err)
		return err;
	reset(&path->stats);
	return count;
}

static ssize_t rdma_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			  size_t count)
{
	return stats_store(kobj, attr, buf, count, ibtrs_clt_stats_reset_traffic);
}
static struct kobj_attribute stats_rdma = __ATTR_RW(rdma);

static ssize_t reconnects_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
				size_t count)
{
	return stats_store(kobj, attr, buf, count, ibtrs_clt_stats_reset_reconnects);
}
static struct kobj_attribute stats_reconnects = __ATTR_RW(reconnects);

static ssize_t cpu_migration_from_store(struct kobject *kobj, struct kobj_attribute *attr,
					const char *buf, size_t count)
{
	return stats_store(kobj, attr, buf, count, ibtrs_clt_stats_reset_migr_from);
}
static struct kobj_attribute stats_cpu_migration_from = __ATTR_RW(cpu_migration_from);

static ssize_t cpu_migration_to_store(struct kobject *kobj, struct kobj_attribute *attr,
				      const char *buf, size_t count)
{
	return stats_store(kobj, attr, buf, count, ibtrs_clt_stats_reset_migr_to);
}
static struct kobj_attribute stats_cpu_migration_to = __ATTR_RW(cpu_migration_to);

static ssize_t reset_all_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			       size_t count)
{
	return stats_store(kobj, attr, buf, count, stats_reset_all);
}
static struct kobj_attribute stats_reset_all_attr = __ATTR(reset_all, 0644, usage_show, reset_all_store);

static struct attribute *stats_attrs[] = {
	&stats_rdma.attr,
	&stats_reconnects.attr,
	&stats_cpu_migration_from.attr,
	&stats_cpu_migration_to.attr,
	&stats_reset_all_attr.attr,
	NULL,
};

static const struct attribute_group stats_group = {
	.name = "stats",
	.attrs = stats_attrs,
};

static const struct attribute_group *path_groups[] = {
	&path_group,
	&stats_group,
	NULL,
};

/* ---- directories of paths ----------------------------------------------- */

static void path_dir_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct ibtrs_clt_path_dir, kobj));
	if (atomic_dec_and_test(&path_dirs))
		wake_up_var(&path_dirs);
}

static const_ktype struct kobj_type path_ktype = {
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = path_groups,
	.release = path_dir_release,
};

static bool path_name_taken(struct kobject *paths, const char *name)
{
	struct kernfs_node *kn = sysfs_get_dirent(paths->sd, name);

	sysfs_put(kn);
	return kn != NULL;
}

/* No I/O from allocations under names_lock: the name of a path that connects may be what the I/O waits for. */
int ibtrs_clt_sysfs_path_add(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_path_sysfs *s = &path->sysfs;
	struct kobject *paths = path->clt->sysfs.paths;
	struct ibtrs_addr_pair addr = path->addr;
	struct ibtrs_clt_path_dir *dir;
	char name[IBTRS_PATH_STR_MAX];
	unsigned int noio;
	int err;

	spin_lock_init(&s->lock);
	s->named = memchr_inv(addr.src.raw, 0, sizeof(addr.src.raw));
	addr.src.kind = addr.dst.kind;
	s->src = addr.src;
	ibtrs_addr_pair_format(&addr, name, sizeof(name));

	dir = kzalloc_obj(*dir, GFP_KERNEL);
	if (!dir)
		return -ENOMEM;
	dir->path = path;
	atomic_inc(&path_dirs);
	kobject_init(&dir->kobj, &path_ktype);
	s->dir = dir;

	mutex_lock(&names_lock);
	noio = memalloc_noio_save();
	if (path_name_taken(paths, name))
		err = -EEXIST;
	else
		err = kobject_add(&dir->kobj, paths, "%s", name);
	memalloc_noio_restore(noio);
	mutex_unlock(&names_lock);
	if (err) {
		s->dir = NULL;
		kobject_put(&dir->kobj);
	}
	return err;
}

void ibtrs_clt_sysfs_path_del(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_path_dir *dir = path->sysfs.dir;

	if (!dir)
		return;
	path->sysfs.dir = NULL;
	kobject_del(&dir->kobj);
	kobject_put(&dir->kobj);
}

static void addr_from_sockaddr(struct ibtrs_addr *a, const struct sockaddr_storage *ss,
			       const struct rdma_dev_addr *where)
{
	const struct sockaddr_in6 *in6 = (const void *)ss;
	struct net_device *dev;

	memset(a, 0, sizeof(*a));
	switch (ss->ss_family) {
	case AF_INET:
		a->kind = IBTRS_ADDR_IP4;
		memcpy(a->raw, &((const struct sockaddr_in *)ss)->sin_addr, 4);
		break;
	case AF_INET6:
		a->kind = IBTRS_ADDR_IP6;
		memcpy(a->raw, &in6->sin6_addr, sizeof(a->raw));
		if (!in6->sin6_scope_id)
			break;
		dev = dev_get_by_index(where->net, in6->sin6_scope_id);
		if (dev) {
			strscpy(a->scope, dev->name, sizeof(a->scope));
			dev_put(dev);
		}
		break;
	case AF_IB:
		a->kind = IBTRS_ADDR_GID;
		memcpy(a->raw, &((const struct sockaddr_ib *)ss)->sib_addr, sizeof(a->raw));
		break;
	}
}

static void path_rename(struct ibtrs_clt_path *path, const struct ibtrs_addr *src)
{
	struct ibtrs_addr_pair addr = { .src = *src, .dst = path->addr.dst };
	char name[IBTRS_PATH_STR_MAX];
	unsigned int noio;
	int err;

	ibtrs_addr_pair_format(&addr, name, sizeof(name));
	mutex_lock(&names_lock);
	noio = memalloc_noio_save();
	err = kobject_rename(&path->sysfs.dir->kobj, name);
	memalloc_noio_restore(noio);
	mutex_unlock(&names_lock);
	if (err == -EEXIST)
		pr_warn("ibtrs %s: %s goes the same way as path %s\n", path->clt->name, path->name, name);
}

/**
 * ibtrs_clt_sysfs_path_route() - remember where a path goes
 * @path: connecting, on the list of its session
 * @id: of cid 0, its route just resolved
 *
 * What hca_name, hca_port and src_addr show stays after the connection is gone, until another route is resolved. A path that was given no
 * source gets the name of its directory here, once. CM handler: never at the same time as itself or as ibtrs_clt_sysfs_path_del(), which comes
 * after the id was destroyed.
 */
void ibtrs_clt_sysfs_path_route(struct ibtrs_clt_path *path, const struct rdma_cm_id *id)
{
	struct ibtrs_clt_path_sysfs *s = &path->sysfs;
	struct ibtrs_addr src;

	addr_from_sockaddr(&src, &id->route.addr.src_addr, &id->route.addr.dev_addr);
	spin_lock(&s->lock);
	s->src = src;
	strscpy(s->hca, dev_name(&id->device->dev), sizeof(s->hca));
	spin_unlock(&s->lock);
	WRITE_ONCE(s->port, id->port_num);
	if (!s->named && s->dir) {
		path_rename(path, &src);
		s->named = true;
	}
}

int ibtrs_clt_sysfs_init(void)
{
	sysfs_class = class_create("ibtrs-client");
	return PTR_ERR_OR_ZERO(sysfs_class);
}

void ibtrs_clt_sysfs_exit(void)
{
	wait_var_event(&path_dirs, !atomic_read(&path_dirs));
	class_destroy(sysfs_class);
}
