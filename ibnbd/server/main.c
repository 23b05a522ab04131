// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibnbd-server: block devices and files for the clients of ibtrs. This file loads and unloads the
 * module, and opens and closes the server.
 *
 * Nothing listens until dev_search_path says what may be exported (E-50): given at load, or written
 * later to /sys/module/ibnbd_server/parameters/dev_search_path; if it is set to empty, every
 * session is closed. All parameters can be set before init ran (modprobe) and, those that are
 * writable, while and after exit runs: setting one takes no module reference. So setting
 * dev_search_path only stores it while main_live is false.
 *
 * Locks: main_lock serializes opening and closing the server. A work holds it while
 * ibtrs_srv_close() waits for all ops. With a disk that hangs this takes for ever, and only
 * unloading waits so long. An OPEN needs the search path, which therefore has a lock of its own
 * (params.c).
 */
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <ibtrs/admin.h>
#include <ibtrs/srv.h>
#include <ibtrs/version.h>
#include "ibnbd/logic/export.h"
#include "ibnbd/server/export.h"
#include "ibnbd/server/io.h"
#include "ibnbd/server/msg.h"
#include "ibnbd/server/params.h"
#include "ibnbd/server/policy.h"
#include "ibnbd/server/session.h"
#include "ibnbd/server/sysfs.h"
#include "ibnbd/server/writer.h"

#define CREATE_TRACE_POINTS
#include "ibnbd/server/trace.h"

MODULE_DESCRIPTION("IBNBD server: exports block devices and files over RDMA");
MODULE_LICENSE("GPL");
MODULE_VERSION(IBNBD_VERSION);

#define MAIN_CLOSE_WAIT	(2 * HZ)	/* nearly always enough for closing */

struct workqueue_struct *ibnbd_srv_ctl_wq;

static DEFINE_MUTEX(main_lock);
static bool main_live;		/* under main_lock: between init and exit */
static bool main_listening;	/* under main_lock; READ_ONCE outside */
static DECLARE_WAIT_QUEUE_HEAD(main_closed);

static ushort port_nr = IBTRS_DEFAULT_PORT;
module_param(port_nr, ushort, 0444);
MODULE_PARM_DESC(port_nr, "port to listen on (1234)");

static const struct ibtrs_srv_ops main_ops = {
	.op_priv_size	= sizeof(union ibnbd_srv_priv),
	.peer_allowed	= ibnbd_srv_peer_allowed,
	.auth		= ibnbd_srv_auth,
	.name_allowed	= ibnbd_srv_session_name_allowed,
	.session_up	= ibnbd_srv_session_up,
	.peer_joins	= ibnbd_srv_policy_peer,
	.session_lost	= ibnbd_srv_session_lost,
	.session_down	= ibnbd_srv_session_down,
	.request	= ibnbd_srv_msg_request,
	.given_up	= ibnbd_srv_session_given_up,
	.give_up	= ibnbd_srv_session_give_up,
};

/*
 * Closing takes as long as the slowest disk. Only the task that unloads the module waits for it
 * without being killable.
 */
static void main_close(struct work_struct *work)
{
	guard(mutex)(&main_lock);
	if (!main_listening || ibnbd_srv_search_path_is_set())
		return;
	ibtrs_srv_close();
	WRITE_ONCE(main_listening, false);
	pr_info("closed: dev_search_path is empty\n");
	wake_up_all(&main_closed);
}

static DECLARE_WORK(main_close_work, main_close);

/* Listen or not, as the search path says. */
static int main_follow_path(bool open)
{
	int err;

	lockdep_assert_held(&main_lock);
	if (open == main_listening || !main_live)
		return 0;
	if (open) {
		/* Another server may have had the disks, and that file, since we last listened. */
		err = ibnbd_srv_writer_file_load();
		if (err)
			return err;
		ibnbd_srv_writer_forget();
		err = ibtrs_srv_open(&main_ops, port_nr);
		if (err) {
			pr_err("cannot listen on port %u: %s (%d)\n", port_nr,
			       err == -EADDRINUSE ?
				       "another server, perhaps the in-kernel rnbd-server, has it; load with another port_nr" :
				       "the transport refused",
			       err);
			return err;
		}
		pr_info("listening on port %u\n", port_nr);
		main_listening = true;
	} else {
		queue_work(ibnbd_srv_ctl_wq, &main_close_work);
	}
	return 0;
}

static int search_path_set(const char *val, const struct kernel_param *kp)
{
	size_t len = strlen(val);
	const char *why = "";
	bool was_open;
	int err;

	err = ibtrs_admin_param(kp);
	if (err)
		return err;
	if (len && val[len - 1] == '\n')
		len--;
	err = ibnbd_export_search_check(val, len, &why);
	if (err) {
		pr_err("dev_search_path=%.*s: %s\n", (int)len, val, why);
		return err;
	}
	/*
	 * The caller holds the lock of all parameters: a reader of any parameter must not wait for
	 * a disk.
	 */
	if (!mutex_trylock(&main_lock)) {
		pr_err("dev_search_path=%.*s: the server is still closing, a disk has not ended its requests\n",
		       (int)len, val);
		return -EBUSY;
	}
	was_open = ibnbd_srv_search_path_is_set();
	ibnbd_srv_search_path_set(val, len);
	err = main_follow_path(len);
	if (err && !was_open)
		ibnbd_srv_search_path_set("", 0);
	mutex_unlock(&main_lock);
	if (!err && !len)
		wait_event_killable_timeout(main_closed, !READ_ONCE(main_listening),
					    MAIN_CLOSE_WAIT);
	return err;
}

static const struct kernel_param_ops search_path_ops = {
	.set = search_path_set,
	.get = ibnbd_srv_search_path_get,
};
module_param_cb(dev_search_path, &search_path_ops, NULL, 0644);
MODULE_PARM_DESC(dev_search_path,
		 "directory whose devices, files and symlinks are exported; %SESSNAME% may be its last part; empty: closed. / or /dev export the whole machine");

static int __init main_start(void)
{
	bool open = ibnbd_srv_search_path_is_set();

	guard(mutex)(&main_lock);
	main_live = true;
	if (!open && ibnbd_srv_writer_file_is_given())
		return ibnbd_srv_writer_file_load();
	return main_follow_path(open);
}

/* Waits until every backing store is closed. */
static void main_stop(void)
{
	scoped_guard(mutex, &main_lock) {
		if (main_listening)
			ibtrs_srv_close();
		main_listening = false;
		main_live = false;
	}
	ibnbd_srv_dirs_wait_released();
}

static int __init ibnbd_srv_init(void)
{
	int err;

	err = ibnbd_srv_bounce_init();
	if (err)
		goto out_params;
	err = -ENOMEM;
	ibnbd_srv_ctl_wq = alloc_workqueue("ibnbd-server-ctl", WQ_UNBOUND, 0);
	if (!ibnbd_srv_ctl_wq)
		goto out_bounce;
	err = ibnbd_srv_sysfs_init();
	if (err)
		goto out_ctl_wq;
	err = main_start();
	if (err)
		goto out_stop;
	if (!main_listening)
		pr_info("loaded, closed: set dev_search_path to export something\n");
	return 0;

out_stop:
	main_stop();
	ibnbd_srv_writer_file_exit();
	ibnbd_srv_sysfs_exit();
out_ctl_wq:
	destroy_workqueue(ibnbd_srv_ctl_wq);
out_bounce:
	ibnbd_srv_bounce_exit();
out_params:
	ibnbd_srv_params_exit();
	return err;
}

/*
 * The last reply may still be returning through code of this module: synchronize_rcu() waits for
 * that.
 */
static void __exit ibnbd_srv_exit(void)
{
	main_stop();
	destroy_workqueue(ibnbd_srv_ctl_wq);
	synchronize_rcu();
	rcu_barrier();
	ibnbd_srv_facts_exit();
	ibnbd_srv_writer_exit();
	ibnbd_srv_writer_file_exit();
	ibnbd_srv_sysfs_exit();
	ibnbd_srv_bounce_exit();
	ibnbd_srv_params_exit();
}

module_init(ibnbd_srv_init);
module_exit(ibnbd_srv_exit);
