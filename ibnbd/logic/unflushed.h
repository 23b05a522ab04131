/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The account of what no flush has covered: is there a write that completed since the last
 * successful flush was sent? And what follows from it when the server may have lost its cache.
 *
 * Flushes are numbered in the order in which they are sent. A write that completes needs the next
 * one: what was executed before a flush was sent is covered by it. So two numbers are enough, the
 * one that the last write needs and the greatest that succeeded. A flush that fails, or is never
 * answered, leaves no trace; one that is answered late covers no more than what completed before it
 * was sent, however many overlap.
 *
 * Callers: the client's queue, in any context and without a lock (wrote, sent, flushed), and who
 * judges the answer to a re-OPEN, when nothing is in flight. Each field only grows, by
 * compare-and-exchange: a writer that was held up never takes back what others have noted. A field
 * is written once per flush at most; for every other request the lines are only read.
 *
 * Numbers are of the machine's word. On 32 bits one that wraps would need 2^31 flushes without a
 * write between.
 */
#ifndef IBNBD_LOGIC_UNFLUSHED_H
#define IBNBD_LOGIC_UNFLUSHED_H

#include <ibtrs/pure.h>

struct ibnbd_unflushed {
	unsigned long sent;	/* flushes that were sent */
	unsigned long needs;	/* the last write is covered from this flush on */
	unsigned long covered;	/* the last flush of those that succeeded */
};

static inline bool ibnbd_unflushed_after(unsigned long a, unsigned long b)
{
	return (long)(a - b) > 0;
}

/* *@field becomes @to, unless it is beyond that. */
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

/* The flush from which on a write is covered that completes now. */
static inline unsigned long ibnbd_unflushed_needs(const struct ibnbd_unflushed *u)
{
	return READ_ONCE(u->sent) + 1;
}

/**
 * ibnbd_unflushed_wrote() - a write has completed that was no FUA
 *
 * Before anybody hears of it. Any context. A data race by design: the number that is read may be
 * the one before a flush that is being sent just now, which then covers the write, since its answer
 * is here already.
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
 * Before it is posted for the first time. One that is posted again keeps its number: what is
 * executed later covers no less. Any context. Return: its number.
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
 * Somebody takes the loss: nothing is owed any more, as after a flush that succeeded at once.
 * Nothing is in flight.
 */
static inline void ibnbd_unflushed_forgive(struct ibnbd_unflushed *u)
{
	ibnbd_unflushed_done(u, ibnbd_unflushed_send(u));
}

/*
 * What a server says of its cache, with an answer to OPEN: one that speaks DURABILITY names the
 * epoch. With others the link stands for it: what a server knows of a client goes with the last
 * path, and nobody can tell why.
 */
struct ibnbd_unflushed_epoch {
	bool told;		/* DURABILITY was negotiated */
	u64 epoch;		/* told: may change, and writes may be lost with that */
	u32 link;		/* number of the link on which it was said */
};

/* Between the two, may writes have been lost that were acknowledged and not flushed? */
bool ibnbd_unflushed_lost_between(const struct ibnbd_unflushed_epoch *old,
				  const struct ibnbd_unflushed_epoch *new);

/**
 * ibnbd_unflushed_counts() - is the account kept at all?
 * @ignore: the mapping says so
 * @asked: the mapping says so of the contrary
 * @told: the server speaks DURABILITY
 * @is_volatile: and says that its cache is lost with its power
 * @flushes: flushes are sent to it
 *
 * Of a server that says nothing of its cache nobody knows what it loses: there the administrator
 * has to ask for it.
 */
bool ibnbd_unflushed_counts(bool ignore, bool asked, bool told, bool is_volatile, bool flushes);

#endif
