/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Used only if the kernel has no <linux/hex.h> (before 6.4): hex2bin() is then in kernel.h, where
 * newer kernels do not have it.
 */
#include <linux/kernel.h>
