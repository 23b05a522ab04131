/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#ifndef IBNBD_LOGIC_ERRWORD_H
#define IBNBD_LOGIC_ERRWORD_H

#include <ibtrs/pure.h>

const char *ibnbd_errword_open(int err);
const char *ibnbd_errword_connect(int err);

#endif
