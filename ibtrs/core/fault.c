// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults on demand.
 *
 * Built with TESTS=1 alone. Distributions build kernels without CONFIG_FAULT_INJECTION, so this is
 * our own: one debugfs file for each point where client and server can be made to fail. A file
 * holds one rule. The rule applies to all sessions and paths, or to those that it names. The code
 * at the point asks for a fault, the rule answers, and the code that asked carries the fault out.
 * Rules outlive paths, so a reconnect can be made to fail, too.
 *
 * The static key is on while any file holds a rule. A rule that has applied `times` times stays in
 * its file, but does not apply any more. fault_lock (any context) protects the rules.
 * fault_write_lock is held while a rule is changed and the key is switched, which sleeps.
 *
 * Failure: without debugfs there are no files. Nothing depends on them.
 */
#include <linux/debugfs.h>
#include <linux/log2.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <rdma/ib_verbs.h>
#include "ibtrs/core/fault.h"

#define FAULT_NAME	128
#define FAULT_LINE	512
#define FAULT_MS_MAX	600000
#define FAULT_ERRNO_MAX	4095

#define CAN(what)	(1u << IBTRS_FAULT_##what)

struct fault_rule {
	struct ibtrs_fault fault;
	u32 every;			/* applies to every n-th event that matches */
	u32 left;			/* how often it still applies; U32_MAX = for ever */
	char session[FAULT_NAME];	/* session, path: a part of the name; empty = all */
	char path[FAULT_NAME];
	u32 seen;
	u32 hits;
};

static const struct {
	const char *file;
	u32 can;
} fault_points[IBTRS_FAULT_POINTS] = {
	[IBTRS_FAULT_CLT_SUBMIT] = { "submit", CAN(ERROR) | CAN(DELAY) | CAN(DROP) | CAN(STUCK) },
	[IBTRS_FAULT_CLT_COMPLETION] = { "completion", CAN(ERROR) | CAN(DELAY) | CAN(DROP) },
	[IBTRS_FAULT_CLT_CM] = { "cm", CAN(ERROR) | CAN(DELAY) | CAN(DROP) },
	[IBTRS_FAULT_CLT_HEARTBEAT] = { "heartbeat", CAN(ERROR) | CAN(DROP) },
	[IBTRS_FAULT_CLT_MR] = { "mr", CAN(ERROR) | CAN(DELAY) },
	[IBTRS_FAULT_CLT_DRAIN] = { "drain", CAN(DELAY) },
	[IBTRS_FAULT_CLT_NEWS] = { "news", CAN(DELAY) },
	[IBTRS_FAULT_SRV_REQUEST] = { "request", CAN(ERROR) | CAN(DELAY) },
	[IBTRS_FAULT_SRV_REPLY] = { "reply", CAN(ERROR) | CAN(DELAY) | CAN(DROP) | CAN(STUCK) },
	[IBTRS_FAULT_SRV_CM] = { "cm", CAN(ERROR) | CAN(DELAY) | CAN(DROP) },
	[IBTRS_FAULT_SRV_HEARTBEAT] = { "heartbeat", CAN(ERROR) | CAN(DROP) },
	[IBTRS_FAULT_SRV_MR] = { "mr", CAN(ERROR) | CAN(DELAY) },
	[IBTRS_FAULT_SRV_DRAIN] = { "drain", CAN(DELAY) },
};

static const char * const fault_actions[] = {
	[IBTRS_FAULT_NONE]	= "off",
	[IBTRS_FAULT_ERROR]	= "error",
	[IBTRS_FAULT_DELAY]	= "delay",
	[IBTRS_FAULT_DROP]	= "drop",
	[IBTRS_FAULT_STUCK]	= "stuck",
};

DEFINE_STATIC_KEY_FALSE(ibtrs_fault_key);
EXPORT_SYMBOL_GPL(ibtrs_fault_key);

static DEFINE_MUTEX(fault_write_lock);
static DEFINE_SPINLOCK(fault_lock);
static struct fault_rule fault_rules[IBTRS_FAULT_POINTS];
static struct dentry *fault_dir;

/* ---- asking ------------------------------------------------------------- */

static bool fault_applies(struct fault_rule *r, const char *session, const char *path)
{
	if (!r->fault.action || !r->left)
		return false;
	if (r->session[0] && !strstr(session, r->session))
		return false;
	if (r->path[0] && !strstr(path, r->path))
		return false;
	return ++r->seen % r->every == 0;
}

struct ibtrs_fault ibtrs_fault_look(enum ibtrs_fault_point p, const char *session, const char *path)
{
	struct fault_rule *r = &fault_rules[p];
	struct ibtrs_fault f = {};

	scoped_guard(spinlock_irqsave, &fault_lock) {
		if (fault_applies(r, session, path)) {
			r->hits++;
			r->left -= r->left != U32_MAX;
			f = r->fault;
		}
	}
	if (f.action)
		pr_info_ratelimited("ibtrs %s: %s: fault on demand: %s %s\n", session, path,
				    fault_points[p].file, fault_actions[f.action]);
	return f;
}
EXPORT_SYMBOL_GPL(ibtrs_fault_look);

static u32 fault_sq_units;

bool ibtrs_fault_sq_fits(const struct ib_qp_cap *cap)
{
	u32 wr = ALIGN(32 + 16 * cap->max_send_sge, 64);

	return !fault_sq_units || roundup_pow_of_two(cap->max_send_wr * wr) / 64 <= fault_sq_units;
}

/* ---- files -------------------------------------------------------------- */

/* One word of a rule: "key=value". "error=5" and "delay=200" give an action and its number. */
static int fault_word(struct fault_rule *r, u32 can, char *value)
{
	const char *key = strsep(&value, "=");
	char *name = !strcmp(key, "session") ? r->session : !strcmp(key, "path") ? r->path : NULL;
	u32 n = 0;
	int a;

	if (value && name)
		return strscpy(name, value, FAULT_NAME) < 0 ? -EINVAL : 0;
	if (value && kstrtou32(value, 0, &n))
		return -EINVAL;
	if (value && !strcmp(key, "times")) {
		r->left = n;
		return 0;
	}
	if (value && !strcmp(key, "every")) {
		r->every = n;
		return n ? 0 : -EINVAL;
	}
	a = match_string(fault_actions, ARRAY_SIZE(fault_actions), key);
	if (a < 0 || (a && !(can & 1u << a)) || r->fault.action)
		return -EINVAL;
	r->fault.action = a;
	switch (a) {
	case IBTRS_FAULT_ERROR:
		r->fault.err = value ? -(int)n : -EIO;
		return r->fault.err && n <= FAULT_ERRNO_MAX ? 0 : -EINVAL;
	case IBTRS_FAULT_DELAY:
		r->fault.ms = n;
		return n && n <= FAULT_MS_MAX ? 0 : -EINVAL;
	default:
		return value ? -EINVAL : 0;
	}
}

static int fault_parse(char *line, u32 can, struct fault_rule *r)
{
	char *word;
	int err;

	*r = (struct fault_rule){ .every = 1, .left = U32_MAX };
	while ((word = strsep(&line, " \t\n"))) {
		if (!*word)
			continue;
		err = fault_word(r, can, word);
		if (err)
			return err;
	}
	return 0;
}

static void fault_arm(enum ibtrs_fault_point p, const struct fault_rule *r)
{
	bool was, is = r->fault.action;

	guard(mutex)(&fault_write_lock);
	spin_lock_irq(&fault_lock);
	was = fault_rules[p].fault.action;
	fault_rules[p] = *r;
	spin_unlock_irq(&fault_lock);
	if (is && !was)
		static_branch_inc(&ibtrs_fault_key);
	else if (was && !is)
		static_branch_dec(&ibtrs_fault_key);
}

static ssize_t fault_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	enum ibtrs_fault_point p = (uintptr_t)((struct seq_file *)file->private_data)->private;
	struct fault_rule *r;
	char *line;
	int err;

	if (len >= FAULT_LINE)
		return -EINVAL;
	line = memdup_user_nul(buf, len);
	if (IS_ERR(line))
		return PTR_ERR(line);
	r = kmalloc(sizeof(*r), GFP_KERNEL);
	err = r ? fault_parse(line, fault_points[p].can, r) : -ENOMEM;
	if (!err)
		fault_arm(p, r);
	kfree(r);
	kfree(line);
	return err ?: len;
}

static int fault_show(struct seq_file *m, void *unused)
{
	enum ibtrs_fault_point p = (uintptr_t)m->private;
	struct fault_rule r;
	u32 a;

	scoped_guard(spinlock_irq, &fault_lock)
		r = fault_rules[p];
	if (!r.fault.action) {
		seq_puts(m, "off; write one of:");
		for (a = IBTRS_FAULT_ERROR; a < ARRAY_SIZE(fault_actions); a++)
			if (fault_points[p].can & 1u << a)
				seq_printf(m, " %s%s", fault_actions[a],
					   a == IBTRS_FAULT_ERROR ? "=ERRNO" :
					   a == IBTRS_FAULT_DELAY ? "=MS" :
								    "");
		seq_puts(m, " off; then: times=N every=N session=PART path=PART\n");
		return 0;
	}
	seq_puts(m, fault_actions[r.fault.action]);
	if (r.fault.action == IBTRS_FAULT_ERROR)
		seq_printf(m, "=%d", -r.fault.err);
	if (r.fault.action == IBTRS_FAULT_DELAY)
		seq_printf(m, "=%u", r.fault.ms);
	if (r.left != U32_MAX)
		seq_printf(m, " times=%u", r.left);
	seq_printf(m, " every=%u session=%s path=%s seen=%u hits=%u\n", r.every, r.session, r.path,
		   r.seen, r.hits);
	return 0;
}

static int fault_open(struct inode *inode, struct file *file)
{
	return single_open(file, fault_show, inode->i_private);
}

static const struct file_operations fault_fops = {
	.owner		= THIS_MODULE,
	.open		= fault_open,
	.read		= seq_read,
	.write		= fault_write,
	.llseek		= seq_lseek,
	.release	= single_release,
};

void ibtrs_fault_init(void)
{
	struct dentry *client, *server;
	uintptr_t p;

	fault_dir = debugfs_create_dir("ibtrs", NULL);
	client = debugfs_create_dir("client", fault_dir);
	server = debugfs_create_dir("server", fault_dir);
	for (p = 0; p < IBTRS_FAULT_POINTS; p++)
		debugfs_create_file(fault_points[p].file, 0600,
				    p < IBTRS_FAULT_SRV_REQUEST ? client : server, (void *)p,
				    &fault_fops);
	debugfs_create_u32("sq_units", 0600, fault_dir, &fault_sq_units);
}

void ibtrs_fault_exit(void)
{
	debugfs_remove_recursive(fault_dir);
}
