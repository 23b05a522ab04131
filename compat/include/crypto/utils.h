/* SPDX-License-Identifier: GPL-2.0-only */
/* Found only where the kernel has none of its own: before 6.4. */
#ifndef IBNBD_COMPAT_CRYPTO_UTILS_H
#define IBNBD_COMPAT_CRYPTO_UTILS_H

#include <crypto/algapi.h>	/* crypto_memneq() */

#endif
