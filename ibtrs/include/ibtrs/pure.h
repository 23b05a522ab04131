/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The environment of pure code: proto/ and logic/ include system headers only through this file. In
 * the kernel it includes a handful of <linux/...> headers; in user space (unit tests, fuzzers, the
 * ibnbd command) it defines the same names on top of libc. Pure code allocates nothing, takes no
 * lock and reads no clock.
 */
#ifndef IBTRS_PURE_H
#define IBTRS_PURE_H

#ifdef __KERNEL__

#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/overflow.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/byteorder.h>

#else

#include <errno.h>
#include <endian.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int64_t s64;

#define U16_MAX		UINT16_MAX
#define U32_MAX		UINT32_MAX
#define U64_MAX		UINT64_MAX

#define cpu_to_le16(x)	((__le16)htole16(x))
#define cpu_to_le32(x)	((__le32)htole32(x))
#define cpu_to_le64(x)	((__le64)htole64(x))
#define le16_to_cpu(x)	le16toh((uint16_t)(x))
#define le32_to_cpu(x)	le32toh((uint32_t)(x))
#define le64_to_cpu(x)	le64toh((uint64_t)(x))
#define static_assert	_Static_assert
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define check_add_overflow(a, b, d)	__builtin_add_overflow(a, b, d)
#define scnprintf	ibtrs_scnprintf
#define READ_ONCE(x)	__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define cmpxchg(p, o, n)	__sync_val_compare_and_swap(p, o, n)
#ifndef __always_inline
#define __always_inline	inline __attribute__((__always_inline__))
#endif
#ifndef __printf
#define __printf(f, a)	__attribute__((__format__(printf, f, a)))
#endif

/* As scnprintf() of the kernel: returns the number of bytes written, without the NUL. */
__printf(3, 4)
static inline int ibtrs_scnprintf(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, size, fmt, ap);
	va_end(ap);
	if (n < 0 || !size)
		return 0;
	return (size_t)n < size ? n : (int)size - 1;
}

#endif /* __KERNEL__ */

/* Bits needed to represent 0 .. n-1 (protocol, conventions): bits(1) = 0, bits(512) = 9. */
static inline unsigned int ibtrs_bits(u64 n)
{
	unsigned int b = 0;

	while (b < 64 && ((u64)1 << b) < n)
		b++;
	return b;
}

/* The value of a hexadecimal digit, or -1. */
static inline int ibtrs_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
