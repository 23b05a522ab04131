/* SPDX-License-Identifier: GPL-2.0-only */
/* What a client takes of what a server grants (E-34). Pure. */
#ifndef IBTRS_LOGIC_GRANT_H
#define IBTRS_LOGIC_GRANT_H

#include "ibtrs/proto/msg.h"

/* each slot costs the client 10 KiB and more, in each session */
#define IBTRS_GRANT_DEPTH	8192u
/*
 * Each connection has room for all slots in its queues: on soft-RoCE some 2 KiB for each of them.
 * The default depth of 512 is within this for 512 connections.
 */
#define IBTRS_GRANT_QUEUED	(1u << 18)

/**
 * ibtrs_grant_check() - can a client work with what a server grants?
 * @l: what it grants; proto/msg.c has checked the numbers against each other
 * @nr_conns: connections of the path
 * @page_size: of the client's memory: the block layer does not take requests below a page
 * @why: reason of a refusal
 *
 * Return: 0 or -EPROTO.
 */
int ibtrs_grant_check(const struct ibtrs_limits *l, u32 nr_conns, u32 page_size, const char **why);

#endif
