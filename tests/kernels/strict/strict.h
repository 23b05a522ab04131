/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Forced in behind compat.h by strict.mk: declares functions once more, as strictly as any release
 * does. typeof says the rest of the prototype, so that a kernel which has another one agrees.
 */
/* sparse takes __typeof__(fn) for another type */
#if !defined(IBNBD_STRICT_H) && !defined(__CHECKER__)
#define IBNBD_STRICT_H

#include <linux/bio.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/kobject.h>
#include <linux/kref.h>
#include <linux/module.h>
#include <linux/namei.h>
#include <linux/netdevice.h>
#include <linux/percpu-refcount.h>
#include <linux/refcount.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

/*
 * A result that says whether it was done. An inline function may be static: so is its declaration.
 */
#define STRICT_RESULT(fn)	extern __typeof__(fn) fn __attribute__((__warn_unused_result__))
#define STRICT_RESULT_INLINE(fn) static __typeof__(fn) fn __attribute__((__warn_unused_result__))

/* ---- __must_check in some release from 5.10 on --------------------------- */
STRICT_RESULT(device_add_disk);
STRICT_RESULT(bio_add_page);
STRICT_RESULT(kobject_add);
STRICT_RESULT(kobject_init_and_add);
STRICT_RESULT(kobject_create_and_add);
STRICT_RESULT(kobject_rename);
STRICT_RESULT(kobject_move);
STRICT_RESULT(kobject_get_unless_zero);
STRICT_RESULT(sysfs_create_file_ns);
STRICT_RESULT(sysfs_create_files);
STRICT_RESULT(sysfs_create_group);
STRICT_RESULT(sysfs_create_groups);
STRICT_RESULT(sysfs_create_link);
STRICT_RESULT(sysfs_create_mount_point);
STRICT_RESULT(device_create_file);
STRICT_RESULT(device_add);
STRICT_RESULT(device_register);
STRICT_RESULT(mutex_lock_interruptible);
STRICT_RESULT(mutex_lock_killable);
STRICT_RESULT(down_read_killable);
STRICT_RESULT(down_write_killable);
STRICT_RESULT(percpu_ref_init);
STRICT_RESULT(kstrtoint);
STRICT_RESULT(kstrtouint);
STRICT_RESULT(kstrtoull);
STRICT_RESULT(kstrtobool);
STRICT_RESULT(krealloc);
STRICT_RESULT_INLINE(kref_get_unless_zero);
STRICT_RESULT_INLINE(refcount_inc_not_zero);
STRICT_RESULT_INLINE(refcount_dec_and_test);
STRICT_RESULT_INLINE(copy_from_user);
STRICT_RESULT_INLINE(copy_to_user);
STRICT_RESULT_INLINE(copy_from_iter);
STRICT_RESULT_INLINE(copy_to_iter);

/* ---- in none, and worth it all the same ---------------------------------- */
STRICT_RESULT(blk_mq_alloc_tag_set);
STRICT_RESULT(try_module_get);
STRICT_RESULT(mutex_trylock);
STRICT_RESULT(wait_for_completion_killable);
STRICT_RESULT(wait_for_completion_killable_timeout);
STRICT_RESULT(ida_alloc_range);
STRICT_RESULT(register_netdevice_notifier);
STRICT_RESULT(ib_register_client);
STRICT_RESULT(ib_map_mr_sg);
STRICT_RESULT(rdma_create_qp);
STRICT_RESULT(rdma_bind_addr);
STRICT_RESULT(rdma_listen);
STRICT_RESULT(rdma_resolve_addr);
STRICT_RESULT(rdma_resolve_route);
STRICT_RESULT(rdma_accept);
STRICT_RESULT(rdma_connect_locked);
STRICT_RESULT(kern_path);
STRICT_RESULT(vfs_getattr);
STRICT_RESULT(vfs_fsync);
STRICT_RESULT(vfs_fallocate);
STRICT_RESULT(kernel_read);
STRICT_RESULT(kernel_write);

/* ---- formats: none of these may come from a variable ---------------------- */
#define STRICT_FORMAT(fn, at)							\
	extern __typeof__(fn) fn __attribute__((__format__(__printf__, at, (at) + 1)))
STRICT_FORMAT(kobject_add, 3);
STRICT_FORMAT(kobject_init_and_add, 4);
STRICT_FORMAT(kobject_set_name, 2);
STRICT_FORMAT(dev_set_name, 2);
STRICT_FORMAT(device_create, 5);
STRICT_FORMAT(kasprintf, 2);
STRICT_FORMAT(snprintf, 3);
STRICT_FORMAT(scnprintf, 3);
STRICT_FORMAT(seq_printf, 2);
STRICT_FORMAT(sysfs_emit, 2);
STRICT_FORMAT(sysfs_emit_at, 3);

#endif
