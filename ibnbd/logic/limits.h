/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * From the server's OPEN_RSP to the limits of the client's queue (protocol 10.1, hazards M9 and
 * M10), and the check at every re-OPEN: is this still the same disk (docs/design.md decision 12,
 * protocol 10.5)? Pure: it knows neither struct queue_limits nor request_queue.
 */
#ifndef IBNBD_LOGIC_LIMITS_H
#define IBNBD_LOGIC_LIMITS_H

#include "ibnbd/proto/msg.h"
#include "ibnbd/logic/mapopt.h"

/* Limits of the session and of the map options. */
struct ibnbd_limits_in {
	u32 max_io_bytes;		/* min(session max_io_size, transport segments * 4096) */
	u16 max_segments;		/* of the transport */
	u64 features;			/* IBNBD_FEAT_* accepted by the server */
	enum ibnbd_write_zeroes write_zeroes;
	enum ibnbd_write_cache write_cache;
};

/*
 * Names follow struct queue_limits; sectors are of 512 bytes, everything else is bytes. 0 = not
 * supported, not known.
 */
struct ibnbd_limits {
	u64 nsectors;			/* capacity, whole logical blocks */
	u32 logical_block_size;
	u32 physical_block_size;
	u32 io_min;
	u32 io_opt;
	u32 max_hw_sectors;
	u16 max_segments;
	u32 max_discard_sectors;
	u32 discard_granularity;
	u32 discard_alignment;
	u32 max_secure_erase_sectors;
	u32 max_write_zeroes_sectors;
	bool write_cache;		/* send flushes */
	bool fua;
	bool rotational;
	bool stable_pages;
	/* in words: what the server announced and the client did not believe; NULL: nothing */
	const char *capped;
};

/**
 * ibnbd_limits_build() - limits of the queue
 * @rsp: decoded by ibnbd_msg_open_rsp_decode()
 *
 * Return: 0, or -EPROTO with a reason when there are no usable limits (the session's I/O size is
 * below one logical block, or the capacity is below one logical block and not zero).
 */
int ibnbd_limits_build(const struct ibnbd_open_rsp *rsp, const struct ibnbd_limits_in *in,
		       struct ibnbd_limits *out, const char **why);

/* The most bytes that a request of @op, a change, may carry or name; 0: @op is not supported. */
u32 ibnbd_limits_most(const struct ibnbd_limits *lim, enum ibnbd_op op);

/**
 * ibnbd_limits_keep_block() - a mapped disk keeps its logical block size when that of the server's
 * disk has become smaller: its users count in blocks, and the server takes what is a multiple
 * @old: the answer that the device uses now; all zeroes: none
 * @new: the answer to the re-OPEN, changed accordingly
 */
void ibnbd_limits_keep_block(const struct ibnbd_open_rsp *old, struct ibnbd_open_rsp *new);

enum ibnbd_remap {
	IBNBD_REMAP_OK,		/* the same disk, as large or larger */
	IBNBD_REMAP_FENCE,	/* the disk must not be used any more: @why says why */
	IBNBD_REMAP_RETRY,	/* undecided: ask again later */
};

/**
 * ibnbd_remap_compare() - does the server's new answer still describe the disk that is mapped?
 * @old: the answer that the device uses now
 * @new: the answer to the re-OPEN
 * @access: mode of the mapping
 * @held_writes: the device holds unanswered writes, or may still get writes that were meant for the
 *	disk as it was
 * @why: a reason for FENCE and for RETRY
 *
 * A disk that had no size accepts any disk when it gets a size. RETRY: the disk has lost its size
 * (no medium, not set up since the server booted). FENCE: the identity has vanished or changed; the
 * disk is smaller; the logical block size has grown; it is mapped writable and the backing device
 * became read-only; another client has written since, or the server does not remember whether one
 * has (writer generation), while writes are held. An identity that appears where there was none
 * proves nothing and is accepted.
 */
enum ibnbd_remap ibnbd_remap_compare(const struct ibnbd_open_rsp *old,
				     const struct ibnbd_open_rsp *new, enum ibnbd_access access,
				     bool held_writes, const char **why);
/* Has another client written between the two answers, or may it have? */
bool ibnbd_remap_other_writer(const struct ibnbd_open_rsp *old, const struct ibnbd_open_rsp *new);
/*
 * The server refused the re-OPEN with @err, or did not answer: FENCE if the refusal is final
 * (-EPERM, -EACCES, -EROFS: somebody decided that we may not write) or the answer makes no sense
 * (-EPROTO), RETRY for all other errors. None of these says that the disk is another one: it may
 * appear, be let go, get its medium, or be exported again by somebody. @why: words for both.
 */
enum ibnbd_remap ibnbd_remap_refused(int err, const char **why);

#endif
