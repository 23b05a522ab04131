/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* The one place of the version; tests/lint compares dkms.conf and the packages with it. */
#ifndef IBTRS_VERSION_H
#define IBTRS_VERSION_H

#define IBNBD_VERSION "1.0.0"

#endif
