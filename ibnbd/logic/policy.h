/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who may do what with which export: the rules of /etc/ibnbd/policy.conf. One grammar for the
 * module, for the ibnbd command and for the tests; the manual is ibnbd-policy.conf(5).
 *
 *	EXPORT-PATTERN  [WHO]...  ro|rw|migration|deny  [exclusive]	# comment
 *
 * WHO is key:NAME, addr:ADDRESS[/PREFIX], gid:GID[/PREFIX] or session:GLOB, each at most once, and
 * all that are given must match. The first rule that matches decides. Where none does, everything
 * is as without a policy.
 */
#ifndef IBNBD_LOGIC_POLICY_H
#define IBNBD_LOGIC_POLICY_H

#include "ibnbd/logic/access.h"
#include "ibnbd/logic/export.h"

#define IBNBD_POLICY_TEXT	65536	/* bytes of a whole policy */
#define IBNBD_POLICY_RULES	1024

/* Each allows what those above it do. */
enum ibnbd_policy_may {
	IBNBD_POLICY_DENY,
	IBNBD_POLICY_RO,
	IBNBD_POLICY_RW,
	/* No rule says anything: as asked, migration beside one that migrates, too. */
	IBNBD_POLICY_UNSAID,
	IBNBD_POLICY_MIGRATION,		/* and beside one that writes alone */
};

/* Words of the grammar; UNSAID has "default", which is none of them. */
extern const char *const ibnbd_policy_may_names[];

/**
 * struct ibnbd_policy_rule - a line that decides
 * @line: its number, from 1
 * @export, @key, @session: offsets in the policy's text; of @key and @session 0 = not asked for
 * @addr: kind IBTRS_ADDR_NONE = not asked for
 * @may: enum ibnbd_policy_may, never UNSAID
 */
struct ibnbd_policy_rule {
	u32 line;
	u32 export;
	u32 key;
	u32 session;
	struct ibnbd_allow_item addr;
	u8 may;
	bool exclusive;
};

/**
 * struct ibnbd_policy_rules - a parsed policy, about 120 KB
 * @nr: rules
 * @line, @pos: of the parser, which reads a line at a time
 * @used: bytes of @text
 */
struct ibnbd_policy_rules {
	u32 nr;
	u32 line;
	u32 used;
	size_t pos;
	struct ibnbd_policy_rule rule[IBNBD_POLICY_RULES];
	char text[IBNBD_POLICY_TEXT + 4];
};

/**
 * struct ibnbd_policy_fault - a mistake
 * @line, @column: from 1; the column counts bytes. Line 0: of the whole text
 * @at, @len: the same as a piece of the text
 * @why, @mend: constant strings
 */
struct ibnbd_policy_fault {
	u32 line;
	u32 column;
	size_t at;
	size_t len;
	const char *why;
	const char *mend;
};

/* Before the first ibnbd_policy_next(). */
void ibnbd_policy_init(struct ibnbd_policy_rules *p);

/**
 * ibnbd_policy_next() - read the next line
 * @p: takes the rule
 * @s: the whole text, the same in each call
 * @len: its length
 * @f: the mistake
 *
 * Return: 1: go on; 0: the end; -EINVAL or -E2BIG: a mistake, and the next call goes on behind its
 * line. After -E2BIG of line 0 nothing more is read.
 */
int ibnbd_policy_next(struct ibnbd_policy_rules *p, const char *s, size_t len,
		      struct ibnbd_policy_fault *f);

/**
 * ibnbd_policy_parse() - read a whole policy
 *
 * Return: 0, or the error of the first mistake, and then @p is not to be used.
 */
int ibnbd_policy_parse(struct ibnbd_policy_rules *p, const char *s, size_t len,
		       struct ibnbd_policy_fault *f);

/**
 * struct ibnbd_policy_who - a peer
 * @key: name of the key with which it proved itself; NULL: it did not
 * @session: name of its session
 * @from: where it comes from: a rule for its address decides, and one for its GID
 */
struct ibnbd_policy_who {
	const char *key;
	const char *session;
	const struct ibtrs_origin *from;
};

/**
 * struct ibnbd_policy_verdict - what a peer may do with an export
 * @line: of the rule that says so; 0: none does
 * @exclusive: the disk is to be kept from the server's own use
 */
struct ibnbd_policy_verdict {
	enum ibnbd_policy_may may;
	u32 line;
	bool exclusive;
};

/* May this rule decide about this export, for some peer? @name: as in ibnbd_policy_decide(). */
bool ibnbd_policy_about(const struct ibnbd_policy_rules *p, const struct ibnbd_policy_rule *r,
			const char *name);

/**
 * ibnbd_policy_decide() - what may this peer do with this export?
 * @p: policy
 * @who: the peer, from one of its addresses
 * @name: what OPEN asks for, shorter than IBNBD_NAME_LEN; leading and doubled '/' do not count
 * @v: the answer
 */
void ibnbd_policy_decide(const struct ibnbd_policy_rules *p, const struct ibnbd_policy_who *who,
			 const char *name, struct ibnbd_policy_verdict *v);

/*
 * A peer that comes from several addresses may do what it may from each of them: @v becomes the
 * lesser of the two. The disk is exclusive if either says so.
 */
void ibnbd_policy_lesser(struct ibnbd_policy_verdict *v, const struct ibnbd_policy_verdict *other);

/**
 * ibnbd_policy_open() - does a verdict allow an OPEN?
 * @mode: that is asked for, or was granted
 * @why: of a refusal, a constant string
 *
 * Return: 0 or -EACCES.
 */
int ibnbd_policy_open(const struct ibnbd_policy_verdict *v, enum ibnbd_access mode,
		      const char **why);

#endif
