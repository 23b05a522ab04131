/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * May this session open, may this request run? The server's rules of protocol 10.4, E-22, E-24,
 * E-26, E-27, E-30. Pure: the caller holds the export's lock around open/close and hands in the
 * facts of its backing store.
 */
#ifndef IBNBD_LOGIC_ACCESS_H
#define IBNBD_LOGIC_ACCESS_H

#include "ibnbd/proto/msg_io.h"

/*
 * The properties of the backing store that an OPEN promised to the client. A limit of zero means
 * that the operation is not supported.
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
 * @writers: W, the number of writable opens that the export has now, over all sessions
 * @alone: one of the writers asked for mode rw, so it wants to be the only writer
 * @mode: the mode that the session asks for
 *
 * ro is always allowed and does not count in W. rw is allowed only when there is no writer.
 * migration is allowed while there are fewer than two writers, and only if the present writer asked
 * for migration, too: otherwise any client could write to a mounted file system just by asking for
 * migration. Where the server's policy permits migration beside an rw writer, the caller passes
 * false for @alone.
 *
 * Return: 0, -EPERM (another one writes) or -EINVAL (no such mode).
 */
int ibnbd_access_open(u32 writers, bool alone, enum ibnbd_access mode, const char **why);

/* Does an open in this mode count in W? */
static inline bool ibnbd_access_writes(enum ibnbd_access mode)
{
	return mode != IBNBD_ACCESS_RO;
}

/**
 * ibnbd_access_cause() - why an OPEN failed: cause and remedy
 * @err: negative errno that came without a reason of its own
 */
const char *ibnbd_access_cause(int err);

/**
 * ibnbd_access_reopen() - a session repeats OPEN for a name it already holds (protocol 10.4, E-30)
 * @name: as it is open; @m may spell it with other slashes
 *
 * Such a name is refused. With the same id two devices of the client would share one mapping; with
 * an id of its own one disk could be opened under any number of names.
 *
 * A mode that allows more than the grant is refused: writing on a ro grant, or the exclusive rw on
 * a migration grant. A mode that allows the same or less is answered with the existing grant, which
 * does not change.
 *
 * Return: 0, -EEXIST (other slashes) or -EPERM.
 */
int ibnbd_access_reopen(const char *name, enum ibnbd_access granted, const struct ibnbd_open *m,
			const char **why);

/* Does a success of this request promise that data is on stable storage? */
static inline bool ibnbd_access_promises(const struct ibnbd_io *m)
{
	return m->op == IBNBD_OP_FLUSH || m->flags & (IBNBD_F_FUA | IBNBD_F_PREFLUSH);
}

/*
 * Does a success of this request tell what the disk holds? That of a plain write only says that the
 * data has reached the disk.
 */
static inline bool ibnbd_access_shows_disk(const struct ibnbd_io *m)
{
	return m->op == IBNBD_OP_READ || ibnbd_access_promises(m);
}

/**
 * ibnbd_access_io() - may this decoded request run?
 * @f: facts of the export
 * @granted: mode of the mapping that the request belongs to
 * @io: decoded by ibnbd_msg_io_decode(), so op, direction, D and size already agree
 *
 * Return: 0; -EROFS: write-class op on a read-only mapping (E-26; the client's block layer reports
 * an I/O error for -EROFS and -EPERM alike, but -EROFS tells more in a log); -EOPNOTSUPP: op not
 * supported by the backing store; -EINVAL: not aligned to the logical block, or larger than the
 * limit OPEN announced; -EIO: beyond the end (as the block layer itself answers).
 */
int ibnbd_access_io(const struct ibnbd_facts *f, enum ibnbd_access granted,
		    const struct ibnbd_io *io, const char **why);

#endif
