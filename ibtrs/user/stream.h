/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* Connections over a stream socket: verbs in software (protocol 12). */
#ifndef IBTRS_USER_STREAM_H
#define IBTRS_USER_STREAM_H

#include "ibtrs/user/verbs.h"

/* Takes over @fd, which becomes non-blocking. Return: NULL: no memory, and @fd is closed. */
struct ibtrs_qp *ibtrs_stream_new(int fd);

#endif
