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
#include <ibtrs/admin.h>
#include "ibtrs/client/paths.h"
#include "ibtrs/client/session.h"
#include "ibtrs/client/sysfs.h"
#include "ibtrs/logic/mpath.h"

#define SYSFS_SHOW_MAX	40	/* limit for a refused text in the log, in bytes */

void ibtrs_clt_sysfs_refuse(const struct ibtrs_clt *clt, const struct ibtrs_clt_path *path,
			    const char *attr, const char *buf, size_t count, const char *why)
{
	pr_err_ratelimited("ibtrs %s: %s%s%s: '%*pE' refused: %s\n", clt->name,
			   path ? path->name : "", path ? ": " : "", attr,
			   (int)min_t(size_t, count, SYSFS_SHOW_MAX), buf, why);
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
		ibtrs_clt_sysfs_refuse(clt, NULL, attr->attr.name, buf, len, why);
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
static DEVICE_ATTR_RO(last_error);

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
		ibtrs_clt_sysfs_refuse(clt, NULL, attr->attr.name, buf, count,
				       "a number from -1 to 9999 is expected");
		return -EINVAL;
	}
	WRITE_ONCE(clt->max_reconnects, n);
	return count;
}
IBTRS_ADMIN_ATTR_RW(max_reconnect_attempts);

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
		ibtrs_clt_sysfs_refuse(
			clt, NULL, attr->attr.name, buf, count,
			"round-robin (rr, 0), min-inflight (mi, 1) or min-latency (ml, 2) is expected");
		return policy;
	}
	WRITE_ONCE(clt->policy, policy);
	return count;
}
IBTRS_ADMIN_ATTR_RW(mpath_policy);

static ssize_t uuid_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct ibtrs_clt *clt = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%pUb\n", clt->uuid);
}
/* Whoever knows the uuid can add a path to the session, and act in its name: root only. */
static struct device_attribute dev_attr_uuid = __ATTR_RO_MODE(uuid, 0400);

/* The value given when the session was opened, else the default. It never changes. */
#define SESSION_NUMBER(name, member)								\
static ssize_t name##_show(struct device *dev, struct device_attribute *attr, char *buf)	\
{												\
	struct ibtrs_clt *clt = dev_get_drvdata(dev);						\
												\
	return sysfs_emit(buf, "%u\n", clt->member);						\
}												\
static DEVICE_ATTR_RO(name)

SESSION_NUMBER(dest_port, opts.port);
SESSION_NUMBER(hb_interval_ms, opts.hb_interval_ms);
SESSION_NUMBER(hb_misses, opts.hb_misses);
SESSION_NUMBER(reconnect_delay_ms, backoff.first_ms);
SESSION_NUMBER(reconnect_max_ms, backoff.held_max_ms);

/* The name of a key is no secret. */
static ssize_t auth_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct ibtrs_clt *clt = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%s\n", clt->opts.auth);
}
static DEVICE_ATTR_RO(auth);

static struct attribute *session_attrs[] = {
	&dev_attr_add_path.attr,
	&dev_attr_last_error.attr,
	&dev_attr_max_reconnect_attempts.attr,
	&dev_attr_mpath_policy.attr,
	&dev_attr_uuid.attr,
	&dev_attr_dest_port.attr,
	&dev_attr_hb_interval_ms.attr,
	&dev_attr_hb_misses.attr,
	&dev_attr_reconnect_delay_ms.attr,
	&dev_attr_reconnect_max_ms.attr,
	&dev_attr_auth.attr,
	NULL,
};
static const struct attribute_group session_group = {
	.attrs = session_attrs,
};

const struct attribute_group *ibtrs_clt_sysfs_session_groups[] = {
	&session_group,
	NULL,
};
