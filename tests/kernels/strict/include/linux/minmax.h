/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * min(), max() and clamp() as strict as any release from 5.10 on has them. Found before the
 * kernel's own header of that name (strict.mk).
 *
 *  - Both operands have one type: until 6.6 another one is a warning.
 *  - Both are signed, or both are not: from 6.6 to 6.10 anything else is an error.
 *  - The lower limit of clamp() is not above the upper one: checked since 6.6.
 *  - None is a constant expression: since 6.12 none can be an array's size or an initializer.
 *  - A constant of the _t forms fits the type that it is cast to: stricter than all releases.
 */
#ifndef IBNBD_STRICT_MINMAX_H
#define IBNBD_STRICT_MINMAX_H

#include_next <linux/minmax.h>

#ifndef __CHECKER__	/* sparse knows neither _Static_assert nor __builtin_choose_expr of these */

#undef min
#undef max
#undef min3
#undef max3
#undef min_t
#undef max_t
#undef clamp
#undef clamp_t
#undef clamp_val
#undef min_not_zero

/* Pointers to two types cannot be compared without a warning; enum and int are two. */
#define STRICT_TYPE(a, b)	((void)sizeof((__typeof__(a) *)NULL == (__typeof__(b) *)NULL))
/*
 * (type)-1 is positive for unsigned ones alone; a pointer's is no constant, and none is expected.
 */
#define STRICT_UNSIGNED(a)	((__typeof__((a) + 0))-1 > (__typeof__((a) + 0))1)
#define STRICT_SIGN(what, a, b)						\
	_Static_assert(STRICT_UNSIGNED(a) == STRICT_UNSIGNED(b),	\
		       what ": one of " #a " and " #b " is signed, the other one is not")
#define STRICT_FITS(type, a)						\
	_Static_assert(__builtin_choose_expr(__builtin_constant_p(a),	\
					     (type)(a) == (a), 1),	\
		       #a " does not fit " #type)

#define STRICT_PICK(what, op, a, b) ({		\
	__auto_type strict_a = (a);		\
	__auto_type strict_b = (b);		\
						\
	STRICT_TYPE(a, b);			\
	STRICT_SIGN(what, a, b);		\
	strict_a op strict_b ? strict_a : strict_b; })
#define STRICT_PICK3(what, op, a, b, c) ({				\
	__auto_type strict_ab = STRICT_PICK(what, op, a, b);		\
	__auto_type strict_c = (c);					\
									\
	STRICT_TYPE(a, c);						\
	STRICT_SIGN(what, a, c);					\
	strict_ab op strict_c ? strict_ab : strict_c; })
#define STRICT_PICK_T(type, op, a, b) ({	\
	type strict_ta = (type)(a);		\
	type strict_tb = (type)(b);		\
						\
	STRICT_FITS(type, a);			\
	STRICT_FITS(type, b);			\
	strict_ta op strict_tb ? strict_ta : strict_tb; })
#define STRICT_CLAMP(type, val, lo, hi) ({					\
	type strict_val = (type)(val);						\
	type strict_lo = (type)(lo);						\
	type strict_hi = (type)(hi);						\
										\
	BUILD_BUG_ON(__builtin_constant_p(strict_lo > strict_hi) &&		\
		     strict_lo > strict_hi);					\
	strict_val < strict_lo ? strict_lo :					\
				 strict_val > strict_hi ? strict_hi : strict_val; })

#define min(a, b)	STRICT_PICK("min()", <, a, b)
#define max(a, b)	STRICT_PICK("max()", >, a, b)
#define min3(a, b, c)	STRICT_PICK3("min3()", <, a, b, c)
#define max3(a, b, c)	STRICT_PICK3("max3()", >, a, b, c)
#define min_t(type, a, b)	STRICT_PICK_T(type, <, a, b)
#define max_t(type, a, b)	STRICT_PICK_T(type, >, a, b)
#define clamp(val, lo, hi) ({			\
	STRICT_TYPE(val, lo);			\
	STRICT_TYPE(val, hi);			\
	STRICT_SIGN("clamp()", val, lo);	\
	STRICT_SIGN("clamp()", val, hi);	\
	STRICT_CLAMP(__typeof__((val) + 0), val, lo, hi); })
#define clamp_t(type, val, lo, hi) ({		\
	STRICT_FITS(type, val);			\
	STRICT_FITS(type, lo);			\
	STRICT_FITS(type, hi);			\
	STRICT_CLAMP(type, val, lo, hi); })
#define clamp_val(val, lo, hi)	clamp_t(__typeof__((val) + 0), val, lo, hi)
#define min_not_zero(a, b) ({					\
	__auto_type strict_na = (a);				\
	__auto_type strict_nb = (b);				\
								\
	!strict_na ? strict_nb : !strict_nb ? strict_na :	\
		STRICT_PICK("min_not_zero()", <, strict_na, strict_nb); })

#endif /* __CHECKER__ */
#endif
