/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scope guards for kernels that have none (before 6.5 without the backport).
 * Used only if the kernel has no <linux/cleanup.h>: its own directories come
 * first on the include path. Has only the forms that core.h and the drivers
 * use: DEFINE_FREE, __free, no_free_ptr, return_ptr, DEFINE_GUARD,
 * DEFINE_LOCK_GUARD_0, DEFINE_LOCK_GUARD_1, guard, scoped_guard.
 */
#ifndef IBNBD_COMPAT_CLEANUP_H
#define IBNBD_COMPAT_CLEANUP_H

#include <linux/compiler.h>

#define CX_CLEANUP(fn)		__attribute__((__cleanup__(fn), __unused__))

#define DEFINE_FREE(name, type, free)						\
	static __always_inline void cx_free_##name(void *p)			\
	{									\
		type _T = *(type *)p;						\
										\
		free;								\
	}
#define __free(name)		CX_CLEANUP(cx_free_##name)
#define no_free_ptr(p)		({ __auto_type cx_val = (p); (p) = NULL; cx_val; })
#define return_ptr(p)		return no_free_ptr(p)

/* a guard is a variable of struct cx_guard_NAME that unlocks when its scope ends */
#define DEFINE_GUARD(name, type, take, release)					\
	struct cx_guard_##name { type lock; };					\
	static __always_inline struct cx_guard_##name				\
	cx_guard_take_##name(type _T)						\
	{									\
		take;								\
		return (struct cx_guard_##name){ .lock = _T };			\
	}									\
	static __always_inline void cx_guard_end_##name(struct cx_guard_##name *g) \
	{									\
		type _T = g->lock;						\
										\
		release;							\
	}

#define DEFINE_LOCK_GUARD_1(name, type, take, release, members...)		\
	struct cx_guard_##name { type *lock; members; };			\
	static __always_inline struct cx_guard_##name				\
	cx_guard_take_##name(type *l)						\
	{									\
		struct cx_guard_##name guard = { .lock = l }, *_T = &guard;	\
										\
		take;								\
		return guard;							\
	}									\
	static __always_inline void cx_guard_end_##name(struct cx_guard_##name *_T) \
	{									\
		release;							\
	}

#define DEFINE_LOCK_GUARD_0(name, take, release)				\
	struct cx_guard_##name { char none; };					\
	static __always_inline struct cx_guard_##name cx_guard_take_##name(void) \
	{									\
		take;								\
		return (struct cx_guard_##name){};				\
	}									\
	static __always_inline void cx_guard_end_##name(struct cx_guard_##name *g) \
	{									\
		release;							\
	}

#define CX_GUARD(name, var)	\
	struct cx_guard_##name var CX_CLEANUP(cx_guard_end_##name) = cx_guard_take_##name
#define guard(name)		CX_GUARD(name, __UNIQUE_ID(guard))
#define scoped_guard(name, args...)						\
	for (CX_GUARD(name, cx_scope)(args), *cx_once = &cx_scope; cx_once; cx_once = NULL)

#endif
