// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parameters of the module, except dev_search_path and port_nr, which open and close the server
 * (main.c). The text of dev_search_path is kept here.
 *
 * A writable parameter may be set before init has run (modprobe), and while or after exit runs:
 * setting it takes no module reference. So setting only stores the value; auth also tells the
 * transport.
 *
 * Locks: params_text_lock, held for moments only, since every OPEN needs the search path. The
 * allow-list is read in places that cannot sleep: RCU.
 */
#include <linux/mutex.h>
#include <linux/ratelimit.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/sysfs.h>
#include <ibtrs/admin.h>
#include <ibtrs/words.h>
#include "ibnbd/logic/export.h"
#include "ibnbd/server/params.h"

static DEFINE_MUTEX(params_text_lock);
static char params_search_path[IBNBD_EXPORT_PATH_MAX];

/* Refusals: a line in the log, and ctl/last_error. */

#define REFUSE_NAME_LEN	320	/* a name fits if few of its bytes are escaped */

static DEFINE_SPINLOCK(refuse_lock);
static char refuse_text[768];

/**
 * ibnbd_srv_refuse() - log and remember what a client did not get
 * @session: of the client
 * @object: what it asked for, in its own words
 * @err: negative errno, which the client is told
 * @why: cause, and the remedy if there is one
 */
void ibnbd_srv_refuse(const char *session, const char *object, int err, const char *why)
{
	char name[REFUSE_NAME_LEN];

	ibtrs_words_escape(name, sizeof(name), object);
	pr_warn_ratelimited("session %s: %s refused: %s (%d)\n", session, name, why, err);
	guard(spinlock)(&refuse_lock);
	scnprintf(refuse_text, sizeof(refuse_text), "session %s: %s refused: %s (%d)", session,
		  name, why, err);
}

/* Write the last refusal into @page. Returns its length. */
int ibnbd_srv_last_error(char *page)
{
	guard(spinlock)(&refuse_lock);
	return refuse_text[0] ? sysfs_emit(page, "%s\n", refuse_text) : 0;
}

struct params_allow {
	struct rcu_head rcu;
	struct ibnbd_allow all;
	struct ibnbd_allow peers;	/* the addresses of @all, without its session: items */
	char text[];
};

/* written under params_text_lock; NULL = everybody */
static struct params_allow __rcu *params_allow;

bool ibnbd_srv_write_zeroes;
IBTRS_ADMIN_PARAM(write_zeroes, ibnbd_srv_write_zeroes, bool, 0644);
MODULE_PARM_DESC(write_zeroes,
		 "announce write-zeroes to in-kernel clients too; for Linux 6.12 and newer, older ones take it for write-same (N)");

bool ibnbd_srv_claim = true;
IBTRS_ADMIN_PARAM(claim, ibnbd_srv_claim, bool, 0644);
MODULE_PARM_DESC(claim,
		 "refuse to have a disk written to that this machine uses itself, and keep it from using one that a client writes to; for new mappings (Y)");

static uint max_maps = 1024;
IBTRS_ADMIN_PARAM(max_maps, max_maps, uint, 0644);
MODULE_PARM_DESC(max_maps, "devices that one session may map, counts for new sessions (1024)");

int ibnbd_srv_copy = IBNBD_SRV_COPY_AUTO;
int ibnbd_srv_io_mode = IBNBD_SRV_IO_AUTO;
static int file_block;			/* 512 << file_block bytes */
static int auth_mode = IBTRS_SRV_AUTH_OFF;

const char *const ibnbd_srv_copy_names[] = { "auto", "always", "never", NULL };

static const char *const io_mode_names[] = { "auto", "blockio", "fileio", NULL };
static const char *const file_block_names[] = { "512", "1024", "2048", "4096", NULL };
static const char *const auth_names[] = { "off", "optional", "required", NULL };

enum ibtrs_srv_auth ibnbd_srv_auth(void)
{
	return READ_ONCE(auth_mode);
}

u32 ibnbd_srv_file_block(void)
{
	return SECTOR_SIZE << READ_ONCE(file_block);
}

u32 ibnbd_srv_max_maps(void)
{
	return clamp(READ_ONCE(max_maps), 1u, IBNBD_SRV_MAX_MAPS);
}

/* The search path of this moment; kfree() it. NULL without memory. */
char *ibnbd_srv_search_path(void)
{
	guard(mutex)(&params_text_lock);
	return kstrdup(params_search_path, GFP_KERNEL);
}

/*
 * May a session of this name connect from this address? @name NULL, before a session is known: may
 * any session from there?
 */
bool ibnbd_srv_session_allowed(const struct ibtrs_origin *from, const char *name)
{
	struct params_allow *a;

	guard(rcu)();
	a = rcu_dereference(params_allow);
	return !a || ibnbd_allow_match(name ? &a->all : &a->peers, from, name ?: "");
}

bool ibnbd_srv_peer_allowed(const struct ibtrs_origin *from)
{
	return ibnbd_srv_session_allowed(from, NULL);
}

static void allow_replace(struct params_allow *new)
{
	struct params_allow *old;

	guard(mutex)(&params_text_lock);
	old = rcu_replace_pointer(params_allow, new, lockdep_is_held(&params_text_lock));
	if (old)
		kfree_rcu(old, rcu);
}

/* Paths that are not allowed any more are closed at once, as opens are by a policy. */
static int allow_set(const char *val, const struct kernel_param *kp)
{
	size_t len = strlen(val), pos = 0;
	struct params_allow *new __free(kfree) = NULL;
	const char *why = "";
	int err;

	err = ibtrs_admin_param(kp);
	if (err)
		return err;
	if (len && val[len - 1] == '\n')
		len--;
	new = kzalloc(struct_size(new, text, len + 1), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	err = ibnbd_allow_parse(val, len, &new->all, &pos, &why);
	if (err) {
		pr_err("allow=%.*s: at position %zu: %s\n", (int)len, val, pos, why);
		return err;
	}
	memcpy(new->text, val, len);
	new->peers = new->all;
	new->peers.has_session = false;
	allow_replace(new->all.nr ? no_free_ptr(new) : NULL);
	ibtrs_srv_close_refused();
	return 0;
}

static int allow_get(char *buf, const struct kernel_param *kp)
{
	struct params_allow *a;

	guard(mutex)(&params_text_lock);
	a = rcu_dereference_protected(params_allow, lockdep_is_held(&params_text_lock));
	return sysfs_emit(buf, "%.*s\n", (int)PAGE_SIZE - 2, a ? a->text : "");
}

static const struct kernel_param_ops allow_ops = {
	.set = allow_set,
	.get = allow_get,
};
module_param_cb(allow, &allow_ops, NULL, 0644);
MODULE_PARM_DESC(allow,
		 "clients that may connect: addresses with /prefix and session:GLOB, separated by commas; closes the paths of all others; empty: all");

struct params_choice {
	const char *const *names;
	const char *words;		/* the names, for the log */
	int *value;
};

static int choice_set(const char *val, const struct kernel_param *kp)
{
	const struct params_choice *c = kp->arg;
	int i, err;

	err = ibtrs_admin_param(kp);
	if (err)
		return err;
	i = __sysfs_match_string(c->names, -1, val);
	if (i < 0) {
		pr_err("%s: must be one of %s\n", kp->name, c->words);
		return i;
	}
	WRITE_ONCE(*c->value, i);
	return 0;
}

static int choice_get(char *buf, const struct kernel_param *kp)
{
	const struct params_choice *c = kp->arg;

	return sysfs_emit(buf, "%s\n", c->names[READ_ONCE(*c->value)]);
}

static const struct kernel_param_ops choice_ops = {
	.set = choice_set,
	.get = choice_get,
};

static const struct params_choice copy_choice = {
	ibnbd_srv_copy_names, "auto, always, never", &ibnbd_srv_copy,
};
module_param_cb(copy, &choice_ops, (void *)&copy_choice, 0644);
MODULE_PARM_DESC(copy,
		 "private pages for data in transfer: auto (devices that need stable data, files), always, never; for new exports");

static const struct params_choice io_mode_choice = {
	io_mode_names, "auto, blockio, fileio", &ibnbd_srv_io_mode,
};
module_param_cb(io_mode, &choice_ops, (void *)&io_mode_choice, 0644);
MODULE_PARM_DESC(io_mode,
		 "kinds of exports: auto (both), blockio (block devices), fileio (regular files)");

static const struct params_choice file_block_choice = {
	file_block_names, "512, 1024, 2048, 4096", &file_block,
};
module_param_cb(file_block, &choice_ops, (void *)&file_block_choice, 0644);
MODULE_PARM_DESC(file_block,
		 "logical block size of exported files, 512 to 4096; for new mappings (512)");

/* Sessions that are not allowed any more are closed at once, as opens are by a policy. */
static int auth_set(const char *val, const struct kernel_param *kp)
{
	int err = choice_set(val, kp);

	if (!err)
		ibtrs_srv_close_refused();
	return err;
}

static const struct kernel_param_ops auth_ops = {
	.set = auth_set,
	.get = choice_get,
};

static const struct params_choice auth_choice = {
	auth_names, "off, optional, required", &auth_mode,
};
module_param_cb(auth, &auth_ops, (void *)&auth_choice, 0644);
MODULE_PARM_DESC(auth,
		 "client authentication: off, optional, required (closes unauthenticated sessions)");

void ibnbd_srv_params_exit(void)
{
	guard(mutex)(&params_text_lock);
	kfree(rcu_replace_pointer(params_allow, NULL, lockdep_is_held(&params_text_lock)));
}

void ibnbd_srv_search_path_set(const char *path, size_t len)
{
	guard(mutex)(&params_text_lock);
	memcpy(params_search_path, path, len);
	params_search_path[len] = 0;
}

/* Is anything exported? */
bool ibnbd_srv_search_path_is_set(void)
{
	return READ_ONCE(params_search_path[0]);
}

/* As a parameter of the module. */
int ibnbd_srv_search_path_get(char *buf, const struct kernel_param *kp)
{
	guard(mutex)(&params_text_lock);
	return sysfs_emit(buf, "%.*s\n", (int)PAGE_SIZE - 2, params_search_path);
}
