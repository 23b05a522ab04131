/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The account of writes that no flush has covered: has a write completed since the last successful
 * flush was sent? And what does this mean when the server may have lost its cache?
 *
 * Flushes are numbered in the order in which they are sent. A flush covers every write that was
 * executed before the flush was sent, so a write that completes needs the next flush. Two numbers
 * are therefore enough: the flush that the last write needs, and the greatest number that
 * succeeded. A flush that fails or is never answered changes nothing. A flush that is answered late
 * covers only the writes that completed before it was sent, however many flushes overlap.
 *
 * Callers: the client's queue, in any context and without a lock (wrote, send, done), and the code
 * that judges the answer to a re-OPEN, when nothing is in flight. Each field only grows, by
 * compare-and-exchange, so a delayed writer never undoes what others have noted. A field is written
 * at most once per flush; all other requests only read the cache lines.
 *
 * The numbers are machine words. On 32 bits a wrap would do harm only after 2^31 flushes without a
 * write between them.
 */
#ifndef IBNBD_LOGIC_UNFLUSHED_H
#define IBNBD_LOGIC_UNFLUSHED_H

#include "ibnbd/proto/msg.h"

struct ibnbd_unflushed {
	unsigned long sent;	/* flushes that were sent */
	unsigned long needs;	/* the first flush that covers the last write */
	unsigned long covered;	/* the greatest number of a flush that succeeded */
};

static inline bool ibnbd_unflushed_after(unsigned long a, unsigned long b)
{
	return (long)(a - b) > 0;
}

/* Sets *@field to @to, unless it is greater already. */
static inline void ibnbd_unflushed_raise(unsigned long *field, unsigned long to)
{
	unsigned long old = READ_ONCE(*field), seen;

	while (ibnbd_unflushed_after(to, old)) {
		seen = cmpxchg(field, old, to);
		if (seen == old)
			return;
		old = seen;
	}
}

/* The first flush that covers a write that completes now. */
static inline unsigned long ibnbd_unflushed_needs(const struct ibnbd_unflushed *u)
{
	return READ_ONCE(u->sent) + 1;
}

/**
 * ibnbd_unflushed_wrote() - a write without FUA has completed
 *
 * Call it before the completion is reported. Any context. There is a data race by
 * design: @sent may be read just before it counts a flush that another CPU sends now. That flush
 * covers the write, since the answer to the write has arrived already.
 */
static inline void ibnbd_unflushed_wrote(struct ibnbd_unflushed *u)
{
	unsigned long needs = ibnbd_unflushed_needs(u);

	if (READ_ONCE(u->needs) != needs)
		ibnbd_unflushed_raise(&u->needs, needs);
}

/**
 * ibnbd_unflushed_send() - a flush is about to be sent
 *
 * Call it before the flush is posted for the first time. A flush that is posted again keeps its
 * number: when it is executed later, it covers no less. Any context. Return: its number.
 */
static inline unsigned long ibnbd_unflushed_send(struct ibnbd_unflushed *u)
{
	unsigned long old = READ_ONCE(u->sent), seen;

	while ((seen = cmpxchg(&u->sent, old, old + 1)) != old)
		old = seen;
	return old + 1;
}

/* Flush @number has succeeded. Any context. */
static inline void ibnbd_unflushed_done(struct ibnbd_unflushed *u, unsigned long number)
{
	ibnbd_unflushed_raise(&u->covered, number);
}

/* Is there a write that no flush has covered? */
static inline bool ibnbd_unflushed_any(const struct ibnbd_unflushed *u)
{
	return ibnbd_unflushed_after(READ_ONCE(u->needs), READ_ONCE(u->covered));
}

/*
 * The administrator accepts the loss: no write counts as unflushed any more, as after a flush that
 * succeeded at once. Call it when nothing is in flight.
 */
static inline void ibnbd_unflushed_forgive(struct ibnbd_unflushed *u)
{
	ibnbd_unflushed_done(u, ibnbd_unflushed_send(u));
}

/**
 * ibnbd_unflushed_lost_between() - between two answers to OPEN, may acknowledged writes that were
 * not flushed have been lost?
 * @old_link, @new_link: number of the link on which the answer came
 *
 * A server that speaks DURABILITY sends the epoch of its cache. For other servers the link takes
 * its place: such a server forgets a client when the last path is lost, and the client cannot tell
 * why the path was lost.
 */
static inline bool ibnbd_unflushed_lost_between(const struct ibnbd_open_rsp *old, u32 old_link,
						const struct ibnbd_open_rsp *new, u32 new_link)
{
	/* The server was upgraded or replaced: the two answers cannot be compared. */
	if (old->has_durability != new->has_durability)
		return true;
	return old->has_durability ? old->durability.cache_epoch != new->durability.cache_epoch :
				     old_link != new_link;
}

/**
 * ibnbd_unflushed_counts() - is the account kept at all?
 * @ignore: the mapping asks for no account
 * @asked: the mapping asks for one (replay or fence)
 * @told: the server speaks DURABILITY
 * @is_volatile: the server's cache is lost with its power
 * @flushes: flushes are sent to the server
 *
 * If the server says nothing about its cache, it is not known what it may lose: then the
 * administrator has to ask for the account.
 */
static inline bool ibnbd_unflushed_counts(bool ignore, bool asked, bool told, bool is_volatile,
					  bool flushes)
{
	return !ignore && (told ? is_volatile : asked && flushes);
}

#endif
