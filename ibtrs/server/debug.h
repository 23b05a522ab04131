/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Switches for tests: two take a protection away, to show what it is for. They are in
 * /sys/kernel/debug/ibtrs-server/, for root alone, and off by default.
 *
 *   no_fence	a repetition runs beside the earlier execution of its slot, and tokens are ignored
 *		(laws L6, L7)
 *   shared_chunks paths that come up from now on use the chunks of another path of the session, as
 *		if memory belonged to the session (decision 8)
 *   plain	for clients that connect from now on the server knows no extensions (protocol 8),
 *		like the in-kernel server, and says in the log when the in-kernel server might have
 *		made a session twice
 *
 * The first two can destroy disks, so the switches are there only in modules that are built with
 * TESTS=1.
 */
#ifndef IBTRS_SERVER_DEBUG_H
#define IBTRS_SERVER_DEBUG_H

#include <linux/jump_label.h>

#ifdef IBTRS_TESTS
DECLARE_STATIC_KEY_FALSE(ibtrs_srv_no_fence);
extern bool ibtrs_srv_debug_shared_chunks;
extern bool ibtrs_srv_debug_plain;

void ibtrs_srv_debug_init(void);
void ibtrs_srv_debug_exit(void);

#define ibtrs_srv_unfenced()		static_branch_unlikely(&ibtrs_srv_no_fence)
#define ibtrs_srv_shared_chunks()	unlikely(READ_ONCE(ibtrs_srv_debug_shared_chunks))
#define ibtrs_srv_plain()		unlikely(READ_ONCE(ibtrs_srv_debug_plain))
#else
#define ibtrs_srv_unfenced()		false
#define ibtrs_srv_shared_chunks()	false
#define ibtrs_srv_plain()		false

static inline void ibtrs_srv_debug_init(void) {}
static inline void ibtrs_srv_debug_exit(void) {}
#endif

#endif
