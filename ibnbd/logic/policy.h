/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Which client may do what with which export: the rules of /etc/ibnbd/policy.conf. The module, the
 * ibnbd command and the tests share this grammar; the manual is ibnbd-policy.conf(5).
 *
 *	EXPORT-PATTERN  [WHO]...  ro|rw|migration|deny  [exclusive]	# comment
 *
 * WHO is key:NAME, addr:ADDRESS[/PREFIX], gid:GID[/PREFIX] or session:GLOB, each at most once. All
 * WHOs of a rule must match. The first rule that matches decides. If no rule matches, the export
 * behaves as if there were no policy.
 */
#ifndef IBNBD_LOGIC_POLICY_H
#define IBNBD_LOGIC_POLICY_H

#include "ibnbd/logic/access.h"
#include "ibnbd/logic/export.h"

#define IBNBD_POLICY_TEXT	65536	/* bytes of a whole policy */
#define IBNBD_POLICY_RULES	1024

/* Each value allows what the values above it allow, and more. */
enum ibnbd_policy_may {
	IBNBD_POLICY_DENY,
	IBNBD_POLICY_RO,
	IBNBD_POLICY_RW,
	/* no rule matches: any mode is allowed, but no migration beside an rw writer */
	IBNBD_POLICY_UNSAID,
	IBNBD_POLICY_MIGRATION,		/* the same, and migration beside an rw writer, too */
};

/* Words of the grammar. UNSAID is shown as "default", which is no word of the grammar. */
extern const char *const ibnbd_policy_may_names[];

/**
 * struct ibnbd_policy_rule - one rule
 * @line: number of its line, from 1
 * @export, @key, @session: offsets in the policy's text; @key and @session: 0 = the rule has none
 * @addr: kind IBTRS_ADDR_NONE = the rule has none
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
 * @line, @pos: state of the parser, which reads one line at a time
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
 * @line, @column: from 1; the column counts characters. Line 0: the mistake is in the text as a
 *	whole
 * @at, @len: the same place as offset and length in the text
 * @why, @hint: constant strings
 */
struct ibnbd_policy_fault {
	u32 line;
	u32 column;
	size_t at;
	size_t len;
	const char *why;
	const char *hint;
};

/* Call it before the first ibnbd_policy_next(). */
void ibnbd_policy_init(struct ibnbd_policy_rules *p);

/**
 * ibnbd_policy_next() - read the next line
 * @p: the rule is added here
 * @s: the whole text, the same in each call
 * @len: its length
 * @f: the mistake
 *
 * Return: 1: continue; 0: the end; -EINVAL or -E2BIG: a mistake, and the next call continues after
 * this line. After -E2BIG with line 0 nothing more is read.
 */
int ibnbd_policy_next(struct ibnbd_policy_rules *p, const char *s, size_t len,
		      struct ibnbd_policy_fault *f);

/**
 * ibnbd_policy_parse() - read a whole policy
 *
 * Return: 0, or the error of the first mistake; then @p must not be used.
 */
int ibnbd_policy_parse(struct ibnbd_policy_rules *p, const char *s, size_t len,
		       struct ibnbd_policy_fault *f);

/**
 * struct ibnbd_policy_who - a peer
 * @key: name of the key that the peer has proved to have; NULL: it has proved none
 * @session: name of its session
 * @from: the peer's addresses: a rule matches if its address is the peer's address or its GID
 */
struct ibnbd_policy_who {
	const char *key;
	const char *session;
	const struct ibtrs_origin *from;
};

/**
 * struct ibnbd_policy_verdict - what a peer may do with an export
 * @line: line of the rule that decided; 0: no rule matched
 * @exclusive: the server itself must not use the disk
 */
struct ibnbd_policy_verdict {
	enum ibnbd_policy_may may;
	u32 line;
	bool exclusive;
};

/*
 * Does the rule's pattern match this export, for any peer? @name: as in ibnbd_policy_decide().
 */
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

/**
 * struct ibnbd_policy_question - the same about a peer with several addresses
 * @rules, @who, @name: as of ibnbd_policy_decide(); ibnbd_policy_ask() sets @who.from
 * @v: the answer; what it is before the first address counts for a peer without one
 * @answered: it is from an address
 */
struct ibnbd_policy_question {
	const struct ibnbd_policy_rules *rules;
	struct ibnbd_policy_who who;
	const char *name;
	struct ibnbd_policy_verdict v;
	bool answered;
};

/*
 * The peer comes from this address, too: it may do only what every one of them allows. The disk is
 * exclusive if any of the verdicts says so.
 */
void ibnbd_policy_ask(struct ibnbd_policy_question *q, const struct ibtrs_origin *from);

/**
 * ibnbd_policy_open() - does a verdict allow an OPEN?
 * @mode: the mode that is asked for, or was granted
 * @why: reason of a refusal, a constant string
 *
 * Return: 0 or -EACCES.
 */
int ibnbd_policy_open(const struct ibnbd_policy_verdict *v, enum ibnbd_access mode,
		      const char **why);

#endif
