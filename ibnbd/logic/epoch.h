/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The cache epoch of a disk (protocol.md, "What a flush covers"): does it stay, or is a new one
 * drawn? Pure.
 */
#ifndef IBNBD_LOGIC_EPOCH_H
#define IBNBD_LOGIC_EPOCH_H

#include <ibtrs/pure.h>

/**
 * struct ibnbd_epoch - what is known of a disk's cache
 * @epoch: the number that clients are told; 0: nothing is known
 * @clean: a flush has covered all acknowledged writes, and no client may write
 */
struct ibnbd_epoch {
	u64 epoch;
	bool clean;
};

bool ibnbd_epoch_begin(struct ibnbd_epoch *e, u64 fresh);
void ibnbd_epoch_writer(struct ibnbd_epoch *e);
void ibnbd_epoch_end(struct ibnbd_epoch *e, bool flushed, u64 fresh);
void ibnbd_epoch_lost(struct ibnbd_epoch *e, u64 fresh);

#endif
