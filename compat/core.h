/* SPDX-License-Identifier: GPL-2.0-only */
/* Language, memory, time, work queues, driver model, trace. See compat.h. */
#ifndef IBNBD_COMPAT_CORE_H
#define IBNBD_COMPAT_CORE_H

#include <linux/module.h>
#include <linux/device.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#if HAVE_H_UNALIGNED
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif
#include <linux/cleanup.h>	/* kernels without it: compat/include */

/* ---- scope guards: cleanup.h was backported without the guards ---------- */
#if !HAVE_GUARD_MUTEX
DEFINE_GUARD(mutex, struct mutex *, mutex_lock(_T), mutex_unlock(_T))
#endif
#if !HAVE_GUARD_SPINLOCK
DEFINE_LOCK_GUARD_1(spinlock, spinlock_t, spin_lock(_T->lock), spin_unlock(_T->lock))
DEFINE_LOCK_GUARD_1(spinlock_irq, spinlock_t, spin_lock_irq(_T->lock),
		    spin_unlock_irq(_T->lock))
DEFINE_LOCK_GUARD_1(spinlock_irqsave, spinlock_t,
		    spin_lock_irqsave(_T->lock, _T->flags),
		    spin_unlock_irqrestore(_T->lock, _T->flags),
		    unsigned long flags)
#endif
#if !HAVE_GUARD_RCU
DEFINE_LOCK_GUARD_0(rcu, rcu_read_lock(), rcu_read_unlock())
#endif
#if !HAVE_FREE_KFREE
DEFINE_FREE(kfree, void *, kfree(_T))
#endif

/* ---- time --------------------------------------------------------------- */
#ifndef secs_to_jiffies		/* 6.13 */
#define secs_to_jiffies(s)	((unsigned long)(s) * HZ)
#endif

/* ---- work queues -------------------------------------------------------- */
#if !HAVE_SYSTEM_PERCPU_WQ
#define system_percpu_wq	system_wq
#endif

/* ---- memory ------------------------------------------------------------- */
#ifndef kzalloc_obj		/* 7.0, 6.12.y */
#define kzalloc_obj(v, gfp)	((typeof(v) *)kzalloc(sizeof(v), gfp))
#endif

/* ---- driver model ------------------------------------------------------- */
#if HAVE_CONST_KTYPE
#define const_ktype const
#else
#define const_ktype
#endif
#if HAVE_BIN_ATTR_CONST
#define const_bin_attr const
#else
#define const_bin_attr
#endif
#ifdef class_create		/* until 6.3 a macro that also takes the owner */
static inline struct class *compat_class_create(const char *name)
{
	return class_create(THIS_MODULE, name);
}
#undef class_create
#define class_create compat_class_create
#endif

/* ---- trace events: __assign_str() takes the source from __string() ------- */
#if HAVE_ASSIGN_STR_1ARG	/* 6.10 */
#define cx_assign_str(dst, src)	__assign_str(dst)
#else
#define cx_assign_str(dst, src)	__assign_str(dst, src)
#endif

#endif
