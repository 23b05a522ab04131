/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * May this session open, may this request run? The server's rules of spec B.3 rule 4, E-22, E-24,
 * E-26, E-27, E-30. Pure: the caller holds the export's lock around open/close and hands in the
 * facts of its backing store.
 */
#ifndef IBNBD_LOGIC_ACCESS_H
#define IBNBD_LOGIC_ACCESS_H

#include "ibnbd/proto/msg_io.h"

/*
 * What an OPEN promised the client about the backing store; zero limits = the operation is not
 * supported.
 */
struct ibnbd_facts {
	u64 nsectors;			/* of 512 bytes */
	u32 logical_block_size;
	u32 max_discard_sectors;
	u32 max_write_zeroes_sectors;
	bool secure_erase;
};

/**
 * ibnbd_access_open() - may a session open an export in this mode?
 * @writers: W, the writable openers the export has now, over all sessions
 * @alone: one of them asked for mode rw, so for the disk alone
 * @mode: what is asked for
 *
 * ro: always, not counted. rw: only when nobody writes. migration: while fewer than two write, and
 * the one that writes has said migration too: else any stranger would write beside a mounted file
 * system by that word alone. The caller passes false for @alone where the server's policy permits
 * the migration all the same.
 *
 * Return: 0, -EPERM (somebody else writes) or -EINVAL (no such mode).
 */
int ibnbd_access_open(u32 writers, bool alone, enum ibnbd_access mode, const char **why);

/* Does an open in this mode count in W? */
static inline bool ibnbd_access_writes(enum ibnbd_access mode)
{
	return mode != IBNBD_ACCESS_RO;
}

/**
 * ibnbd_access_reopen() - a session repeats OPEN for a name it already holds (B.3 rule 1, E-30)
 *
 * More than was granted is refused: writing on a ro grant, or the exclusive rw on a migration
 * grant. Less or equal is answered with the existing grant, which stays what it was.
 *
 * Return: 0 or -EPERM.
 */
int ibnbd_access_reopen(enum ibnbd_access granted, enum ibnbd_access wanted, const char **why);

/**
 * ibnbd_access_io() - may this decoded request run?
 * @f: facts of the export
 * @granted: mode of the mapping it came for
 * @io: decoded by ibnbd_msg_io_decode(), so op, direction, D and size already agree
 *
 * Return: 0; -EROFS: write-class op on a read-only mapping (E-26; the client's block layer shows an
 * I/O error either way, and the word says more than -EPERM in a log); -EOPNOTSUPP: op not supported
 * by the backing store; -EINVAL: not aligned to the logical block, or larger than the limit OPEN
 * announced; -EIO: beyond the end (as the block layer itself answers).
 */
int ibnbd_access_io(const struct ibnbd_facts *f, enum ibnbd_access granted,
		    const struct ibnbd_io *io, const char **why);

#endif
