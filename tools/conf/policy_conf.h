/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /etc/ibnbd/policy.conf: who may do what with which export. The grammar is the module's
 * (ibnbd/logic/policy.h).
 */
#ifndef TOOLS_POLICY_CONF_H
#define TOOLS_POLICY_CONF_H

#include "ibnbd/logic/policy.h"
#include "tools/conf/maps_conf.h"

#define POLICY_CONF	"/etc/ibnbd/policy.conf"
#define POLICY_CTL	"class/ibnbd-server/ctl/policy"

/**
 * struct policy_conf - a policy, of a file or of the module
 * @m: the text, as its first file, and its mistakes; of the module's there are none
 * @rules: those that are right; none of a file that is refused
 * @there: something is, whether or not it can be used
 */
struct policy_conf {
	struct maps *m;
	struct ibnbd_policy_rules *rules;
	bool there;
};

/* @file, or with NULL policy.conf. Never NULL. */
struct policy_conf *policy_conf_load(const char *file);
/* What the module has in force; NULL with errno: not loaded, older, or the caller is not root. */
struct policy_conf *policy_conf_running(void);
void policy_conf_free(struct policy_conf *c);
/* Ask about names that begin with @search, the server's dev_search_path: they count from there. */
void policy_conf_below(struct policy_conf *c, const char *search);

/* Its text as the module wants it, with a last line "end". Allocated. */
char *policy_conf_text(const struct policy_conf *c);
/* Do they say the same, byte for byte, but for the end? */
bool policy_conf_same(const struct policy_conf *a, const struct policy_conf *b);

/* Whom a rule is for, as it could be written: "key:web1 addr:10.0.0.0/24"; "" = all. Allocated. */
char *policy_conf_who(const struct ibnbd_policy_rules *p, const struct ibnbd_policy_rule *r);
/* Is the rule for all, whoever they are? */
bool policy_conf_for_all(const struct ibnbd_policy_rule *r);
/*
 * May somebody of whom nothing is known write to @name? Whoever has no key can choose the name of
 * its session.
 */
bool policy_conf_anybody_writes(const struct ibnbd_policy_rules *p, const char *name);

#endif
