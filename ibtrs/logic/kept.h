/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Names that a server keeps for sessions that were lost.
 *
 * A client that was lost while it had something open may hold I/O, and come back for it under its
 * name. So its name is kept for a while, among those of its key, or of those without one. During
 * that time only the same session (by uuid) or the same host (by an address that the session came
 * from: the host has rebooted) gets the name, and gets it at once. A client that is refused is told
 * the address of the owner: this alone is enough to find two machines with one name.
 *
 * If a host, or a key, loses more names than its share, its oldest ones are not kept. Pure: the
 * caller has the memory, the lock and the clock.
 */
#ifndef IBTRS_LOGIC_KEPT_H
#define IBTRS_LOGIC_KEPT_H

#include <ibtrs/addr.h>
#include <ibtrs/key.h>
#include "ibtrs/proto/msg.h"

#define IBTRS_KEPT_MAX		256
#define IBTRS_KEPT_PER_HOST	32	/* so that one host does not push out the others */
#define IBTRS_KEPT_PER_KEY	192	/* or without one, from however many addresses */

#define IBTRS_PEERS		8

/* The first IBTRS_PEERS different client addresses of a session's paths. */
struct ibtrs_peers {
	u32 nr;
	struct ibtrs_addr addr[IBTRS_PEERS];
};

void ibtrs_peers_add(struct ibtrs_peers *peers, const struct ibtrs_addr *addr);
void ibtrs_peers_join(struct ibtrs_peers *peers, const struct ibtrs_peers *more);
bool ibtrs_peers_have(const struct ibtrs_peers *peers, const struct ibtrs_addr *addr);

struct ibtrs_kept {
	struct ibtrs_kept *next;
	u64 since_s;			/* the client was lost */
	u8 uuid[IBTRS_UUID_LEN];
	struct ibtrs_peers peers;
	char key[IBTRS_KEY_NAME_LEN];
	char name[IBTRS_NAME_LEN];
};

/* @first: the latest; @keep_s: how long, in seconds */
struct ibtrs_keeper {
	struct ibtrs_kept *first;
	u64 keep_s;
};

enum ibtrs_kept_whose {
	IBTRS_KEPT_NOBODY,
	IBTRS_KEPT_OLD,			/* its time is over */
	IBTRS_KEPT_YOURS,
	IBTRS_KEPT_ANOTHER,
};

/* The nearest first: callers take the lesser of two. */
enum ibtrs_caller {
	IBTRS_CALLER_BACK,		/* names a session that is here, or may come back */
	IBTRS_CALLER_HOST,		/* comes from an address that such a session has */
	IBTRS_CALLER_STRANGER,
};

/**
 * ibtrs_kept_add() - keep a name
 * @new: everything is set but @next
 *
 * Return: those that are not kept any longer, for the caller to free.
 */
struct ibtrs_kept *ibtrs_kept_add(struct ibtrs_keeper *keeper, struct ibtrs_kept *new);

/**
 * ibtrs_kept_take() - whose is a name?
 * @key: of the client that asks for it; empty: none
 * @uuid: of its session
 * @k: the record, if there is one; a name has no second one. It belongs to the caller then, unless
 *     it is of another client
 *
 * Of a client's own record the caller joins the addresses to its session's: its other paths may
 * come back later, and until then are no strangers.
 */
enum ibtrs_kept_whose ibtrs_kept_take(struct ibtrs_keeper *keeper, u64 now_s, const char *name,
				      const char *key, const u8 *uuid,
				      const struct ibtrs_addr *addr, struct ibtrs_kept **k);

/**
 * ibtrs_kept_words() - why another client does not get the name
 * @why: of @size bytes
 */
void ibtrs_kept_words(const struct ibtrs_keeper *keeper, const struct ibtrs_kept *k, u64 now_s,
		      char *why, size_t size);

/**
 * ibtrs_kept_caller() - is a name kept for whoever comes from there?
 * @with_key: of a session of a key; else of one without
 * @uuid: that the caller says; NULL: none
 */
enum ibtrs_caller ibtrs_kept_caller(const struct ibtrs_keeper *keeper, u64 now_s, bool with_key,
				    const u8 *uuid, const struct ibtrs_addr *addr);

#endif
