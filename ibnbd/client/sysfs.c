// SPDX-License-Identifier: GPL-2.0-only
/*
 * The directory ibnbd/ of each disk; docs/sysfs.md lists its files.
 *
 * The files exist from before device_add_disk() returns until the disk is deleted, so a store may
 * come in any state: each store but that of io_timeout checks the state under the device's lock.
 * The removal waits for running stores, so unmap_device steps out of its file before it waits for
 * the removal (L5). The device outlives its files.
 *
 * Refusals are written to the log and to ctl/last_error, in words. A read of a writable file shows
 * a usage line, but hold, failfast, in_sync and io_timeout show their value.
 */
#include <linux/blkdev.h>
#include <linux/device.h>
#include <linux/kernfs.h>
#include <linux/module.h>
#include <ibtrs/admin.h>
#include "ibnbd/client/dev_state.h"
#include "ibnbd/client/disk.h"
#include "ibnbd/client/link.h"
#include "ibnbd/client/open.h"
#include "ibnbd/client/recover.h"
#include "ibnbd/client/unflushed.h"
#include "ibnbd/logic/text.h"

static struct ibnbd_clt_dev *sysfs_dev(struct device *d)
{
	return ibnbd_clt_number_dev(dev_to_disk(d)->private_data);
}

#define SYSFS_GROUP	"ibnbd"

static const_ktype struct kobj_type sysfs_stand_in;

/*
 * sysfs_break_active_protection() looks for a file in the directory of a kobject. Our file is in
 * the directory of a group, which has no kobject, so a kobject on the stack stands in for it; it is
 * used during the call only. sysfs_unbreak_active_protection() drops a reference to the kobject
 * that the directory belongs to.
 */
static struct kernfs_node *sysfs_step_out(struct device *d, const struct attribute *attr)
{
	struct kobject group = {};
	struct kernfs_node *kn;

	kobject_init(&group, &sysfs_stand_in);
	group.sd = kernfs_find_and_get(d->kobj.sd, SYSFS_GROUP);
	if (!group.sd)
		return NULL;
	get_device(d);
	kn = sysfs_break_active_protection(&group, attr);
	kernfs_put(group.sd);
	if (!kn)
		put_device(d);
	return kn;
}

IBTRS_ADMIN_DEV_SHOW(unmap_device, "Usage: echo <normal|force> > %s", attr->attr.name)

/*
 * After the step out of the file the device may be freed at any time. The disk is not freed before
 * the step back in, so the wait for its number comes after that.
 */
static int sysfs_wait_unmapped(struct device *d, const struct attribute *attr,
			       struct ibnbd_clt_number *n)
{
	struct kernfs_node *kn = sysfs_step_out(d, attr);
	int err;

	if (!kn)
		return 0;
	err = ibnbd_clt_number_wait_deleted(n);
	sysfs_unbreak_active_protection(kn);
	return err ?: ibnbd_clt_number_wait_settled(n);
}

static ssize_t unmap_device_store(struct device *d, struct device_attribute *attr, const char *buf,
				  size_t count)
{
	struct ibnbd_clt_dev *dev = sysfs_dev(d);
	int err, index = dev->index;
	struct ibnbd_clt_number *n;
	bool force = sysfs_streq(buf, "force");

	if (!force && !sysfs_streq(buf, "normal"))
		return ibnbd_clt_refuse(-EINVAL, "ibnbd%d: unmap_device takes normal or force",
					index);
	/*
	 * The removal drops the device's reference to the module, and no task waits for a store
	 * that has stepped out: it needs its own.
	 */
	if (!try_module_get(THIS_MODULE))
		return ibnbd_clt_refuse(-EALREADY, "ibnbd%d is being unmapped already", index);
	n = ibnbd_clt_number_get(dev->number);
	err = ibnbd_clt_recover_unmap(dev, force);
	if (err == -EBUSY)
		ibnbd_clt_refuse(err, "ibnbd%d is in use: close its users, or unmap by force",
				 index);
	else if (err)
		ibnbd_clt_refuse(err, "ibnbd%d is being unmapped already", index);
	else
		err = sysfs_wait_unmapped(d, &attr->attr, n);
	ibnbd_clt_number_put(n);
	module_put(THIS_MODULE);
	return err ?: count;
}
IBTRS_ADMIN_ATTR_RW(unmap_device);

IBTRS_ADMIN_DEV_SHOW(remap_device, "Usage: echo <1> > %s", attr->attr.name)

static ssize_t remap_device_store(struct device *d, struct device_attribute *attr, const char *buf,
				  size_t count)
{
	struct ibnbd_clt_dev *dev = sysfs_dev(d);

	ibnbd_clt_refuse_forget();
	if (!sysfs_streq(buf, "1"))
		return ibnbd_clt_refuse(-EINVAL, "ibnbd%d: remap_device takes 1", dev->index);
	return ibnbd_clt_open_remap(dev) ?: count;
}
IBTRS_ADMIN_ATTR_RW(remap_device);

IBTRS_ADMIN_DEV_SHOW(resize, "Usage: echo <number of 512-byte sectors> > %s", attr->attr.name)

/* Sets the size on this host only. */
static ssize_t resize_store(struct device *d, struct device_attribute *attr, const char *buf,
			    size_t count)
{
	struct ibnbd_clt_dev *dev = sysfs_dev(d);
	u64 sectors;
	int err;

	ibnbd_clt_refuse_forget();
	err = kstrtou64(buf, 0, &sectors);
	if (err)
		return ibnbd_clt_refuse(err, "ibnbd%d: resize takes a number of 512-byte sectors",
					dev->index);
	guard(mutex)(&dev->lock);
	if (dev->state != IBNBD_DEV_OPEN || !dev->shown)
		return -ENOENT;
	if (!sectors || sectors >= IBNBD_MAX_SECTORS ||
	    sectors & ((dev->grant.lim.logical_block_size >> SECTOR_SHIFT) - 1))
		return ibnbd_clt_refuse(
			-EINVAL,
			"ibnbd%d: resize: not a number of whole logical blocks of %u bytes",
			dev->index, dev->grant.lim.logical_block_size);
	/* From now on the disk may hold data, so another disk must not take its place. */
	if (!dev->grant.rsp.nsectors)
		dev->grant.rsp.nsectors = sectors;
	guard(noio)();
	ibnbd_clt_disk_set_capacity(dev, sectors);
	return count;
}
IBTRS_ADMIN_ATTR_RW(resize);

/* A number of seconds, in the range of the option. @_takes: for a refusal. */
#define SYSFS_SECONDS(_name, _takes, _set)							\
IBTRS_ADMIN_DEV_SHOW(_name, "%d", READ_ONCE(sysfs_dev(d)->map._name))				\
												\
static ssize_t _name##_store(struct device *d, struct device_attribute *attr, const char *buf,	\
			     size_t count)							\
{												\
	const struct ibnbd_mapopt *o = &ibnbd_mapopts[IBNBD_OPT_##_name];			\
	struct ibnbd_clt_dev *dev = sysfs_dev(d);						\
	int seconds;										\
												\
	if (kstrtoint(buf, 0, &seconds) || seconds < o->min || seconds > o->max)		\
		return ibnbd_clt_refuse(-EINVAL, "ibnbd%d: " #_name " takes " _takes,		\
					dev->index);						\
	_set(dev, seconds);									\
	return count;										\
}												\
IBTRS_ADMIN_ATTR_RW(_name)

static void sysfs_set_hold(struct ibnbd_clt_dev *dev, int seconds)
{
	guard(mutex)(&dev->lock);
	WRITE_ONCE(dev->map.hold, seconds);
	if (ibnbd_dev_sm_waits(dev->state))
		ibnbd_clt_dev_arm(dev);
}
SYSFS_SECONDS(hold, "seconds, 0 = fail at once, -1 = for ever", sysfs_set_hold);

SYSFS_SECONDS(failfast, "1 to 3600 seconds", ibnbd_clt_recover_set_failfast);

static void sysfs_set_io_timeout(struct ibnbd_clt_dev *dev, int seconds)
{
	WRITE_ONCE(dev->map.io_timeout, seconds);
}
SYSFS_SECONDS(io_timeout, "seconds, 0 = never", sysfs_set_io_timeout);

IBTRS_ADMIN_DEV_SHOW(in_sync, "%d", READ_ONCE(sysfs_dev(d)->in_sync))

/* The mirror says whether this leg is in sync. */
static ssize_t in_sync_store(struct device *d, struct device_attribute *attr, const char *buf,
			     size_t count)
{
	struct ibnbd_clt_dev *dev = sysfs_dev(d);
	bool in_sync;

	if (kstrtobool(buf, &in_sync))
		return ibnbd_clt_refuse(-EINVAL, "ibnbd%d: in_sync takes 0 or 1", dev->index);
	if (in_sync && !dev->map.group[0])
		return ibnbd_clt_refuse(-EINVAL, "ibnbd%d: in_sync is for a disk mapped with group=",
					dev->index);
	guard(mutex)(&dev->lock);
	/* A leg that has let requests fail, and is not open again, is not in sync. */
	if (in_sync && dev->state != IBNBD_DEV_OPEN && dev->state != IBNBD_DEV_HELD)
		return ibnbd_clt_refuse(-EBUSY,
					"ibnbd%d: in_sync: the mirror goes on without this leg, which is not open",
					dev->index);
	if (dev->in_sync != in_sync) {
		WRITE_ONCE(dev->in_sync, in_sync);
		ibnbd_clt_group_changed(dev);
	}
	return count;
}
IBTRS_ADMIN_ATTR_RW(in_sync);

IBTRS_ADMIN_DEV_SHOW(state, "%s", ibnbd_dev_sm_word(READ_ONCE(sysfs_dev(d)->state)))
IBTRS_ADMIN_DEV_SHOW(state_detail, "%s", ibnbd_dev_sm_state_name(READ_ONCE(sysfs_dev(d)->state)))

/* Why it does not work, in words; an empty line when it does. */
static ssize_t reason_show(struct device *d, struct device_attribute *attr, char *buf)
{
	struct ibnbd_clt_dev *dev = sysfs_dev(d);
	char why[IBTRS_CLT_WHY_LEN] = "";
	int n;

	guard(mutex)(&dev->lock);
	/*
	 * The reason why the paths stay down may differ by now from the reason why they went down.
	 */
	if (dev->reason[0] && !ibnbd_clt_link_up(dev->sess))
		ibtrs_clt_why(dev->sess->clt, why, sizeof(why));
	n = sysfs_emit(buf, "%s%s%s", dev->reason, why[0] ? ": " : "", why);
	if (ibnbd_dev_sm_holds(dev->state))
		n += sysfs_emit_at(buf, n, "; I/O waits, for %lu s so far, hold=%d",
				   (jiffies - dev->held_since) / HZ, dev->map.hold);
	return n + sysfs_emit_at(buf, n, "\n");
}

IBTRS_ADMIN_DEV_SHOW(session, "%s", sysfs_dev(d)->map.sessname)
IBTRS_ADMIN_DEV_SHOW(mapping_path, "%s", sysfs_dev(d)->map.device_path)

/* The name= of the mapping, or an empty line. */
IBTRS_ADMIN_DEV_SHOW(name, "%s", sysfs_dev(d)->map.name)

/* The group= of the mapping, or an empty line. */
IBTRS_ADMIN_DEV_SHOW(group, "%s", sysfs_dev(d)->map.group)

/* An option of words, as the mapping has it. `features` shows what the server agreed to. */
#define SYSFS_WORD(_name)								\
static ssize_t _name##_show(struct device *d, struct device_attribute *attr, char *buf)	\
{											\
	int n = ibnbd_mapopt_word(IBNBD_OPT_##_name, sysfs_dev(d)->map._name, buf,	\
				  PAGE_SIZE - 1);					\
											\
	return n + sysfs_emit_at(buf, n, "\n");						\
}

SYSFS_WORD(access_mode)
SYSFS_WORD(write_zeroes)
SYSFS_WORD(write_cache)
SYSFS_WORD(unflushed)

IBTRS_ADMIN_DEV_SHOW(retain_mb, "%d", sysfs_dev(d)->map.retain_mb)

/* Bytes written, zeroed or discarded that no flush has covered; 0 if no account is kept of them. */
IBTRS_ADMIN_DEV_SHOW(unflushed_bytes, "%llu", ibnbd_clt_unflushed_bytes(sysfs_dev(d)))

/* Are all writes kept that no flush has covered, so that they can be sent again? */
static ssize_t kept_show(struct device *d, struct device_attribute *attr, char *buf)
{
	const struct ibnbd_clt_dev *dev = sysfs_dev(d);

	return sysfs_emit(buf, "%s\n", READ_ONCE(dev->keeps) != IBNBD_CLT_KEEPS_DATA ? "no" :
			  READ_ONCE(dev->kept.gap) ? "gap" : "whole");
}

/* How often the kept writes were sent again, and how many bytes. */
IBTRS_ADMIN_DEV_SHOW(replays, "%u %llu", READ_ONCE(sysfs_dev(d)->replays),
		     READ_ONCE(sysfs_dev(d)->resent_bytes))

/* How often remap_device accepted the loss of unflushed writes. */
IBTRS_ADMIN_DEV_SHOW(losses, "%u", READ_ONCE(sysfs_dev(d)->losses))

/* How often an answer to OPEN showed that another client had written since the one before. */
IBTRS_ADMIN_DEV_SHOW(other_writers, "%u", READ_ONCE(sysfs_dev(d)->other_writers))

/* The age of the oldest request that the server has not answered; 0: all are answered. */
static ssize_t oldest_ms_show(struct device *d, struct device_attribute *attr, char *buf)
{
	struct ibnbd_clt_dev *dev = sysfs_dev(d);

	guard(mutex)(&dev->lock);
	return sysfs_emit(buf, "%llu\n", ibnbd_clt_inflight_oldest_ms(dev));
}

IBTRS_ADMIN_DEV_SHOW(nr_poll_queues, "%u", sysfs_dev(d)->sess->attrs.nr_poll_conns)

/* `kind hash`, or an empty line when the server does not tell. */
static ssize_t identity_show(struct device *d, struct device_attribute *attr, char *buf)
{
	struct ibnbd_clt_dev *dev = sysfs_dev(d);
	const struct ibnbd_identity *id = &dev->grant.rsp.identity;

	guard(mutex)(&dev->lock);
	if (!dev->grant.rsp.has_identity || id->kind == IBNBD_ID_NONE)
		return sysfs_emit(buf, "\n");
	return sysfs_emit(buf, "%s %*phN\n", ibnbd_identity_word(id->kind), IBNBD_ID_LEN, id->id);
}

/* Negotiated with the server: words, or an empty line. */
static ssize_t features_show(struct device *d, struct device_attribute *attr, char *buf)
{
	static const struct {
		u64 bit;
		const char *word;
	} names[] = {
		{ IBNBD_FEAT_ZEROES,	"zeroes" },
		{ IBNBD_FEAT_IDENTITY,	"identity" },
		{ IBNBD_FEAT_DURABILITY, "durability" },
		{ IBNBD_FEAT_WORDS,	"words" },
	};
	u64 f = READ_ONCE(sysfs_dev(d)->grant.features);
	int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (f & names[i].bit)
			n += sysfs_emit_at(buf, n, "%s%s", n ? " " : "", names[i].word);
	return n + sysfs_emit_at(buf, n, "\n");
}

static struct attribute *sysfs_attrs[] = {
	&dev_attr_unmap_device.attr,
	&dev_attr_remap_device.attr,
	&dev_attr_resize.attr,
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(state)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(session)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(mapping_path)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(access_mode)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(nr_poll_queues)),
	&dev_attr_hold.attr,
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(group)),
	&dev_attr_failfast.attr,
	&dev_attr_in_sync.attr,
	&dev_attr_io_timeout.attr,
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(state_detail)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(reason)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(identity)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(features)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(name)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(write_zeroes)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(write_cache)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(unflushed)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(retain_mb)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(unflushed_bytes)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(kept)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(replays)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(losses)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(other_writers)),
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(oldest_ms)),
	NULL,
};

static const struct attribute_group sysfs_group = {
	.name	= SYSFS_GROUP,
	.attrs	= sysfs_attrs,
};

const struct attribute_group *ibnbd_clt_sysfs_groups[] = {
	&sysfs_group,
	NULL,
};
