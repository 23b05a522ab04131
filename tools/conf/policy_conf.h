/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /etc/ibnbd/policy.conf: who may do what with which export. The grammar is the module's
 * (ibnbd/logic/policy.h).
 */
#ifndef TOOLS_POLICY_CONF_H
#define TOOLS_POLICY_CONF_H

#include "ibnbd/logic/policy.h"
#include "tools/conf/maps_conf.h"
#include "tools/conf/server_conf.h"

#define POLICY_CONF	"/etc/ibnbd/policy.conf"
/* What to do if there is none. */
#define POLICY_NONE	"if everything shall be allowed, say so: echo '# no rules' > " POLICY_CONF
#define POLICY_CTL	"class/ibnbd-server/ctl/policy"

/**
 * struct policy_conf - a policy, of a file or of the module
 * @m: the text, as its first file, and its mistakes; the module's policy has none
 * @rules: the rules without mistakes; none if the file is refused
 * @there: the file exists, whether or not it can be used
 */
struct policy_conf {
	struct maps *m;
	struct ibnbd_policy_rules *rules;
	bool there;
};

/* @file, or with NULL policy.conf. Never NULL. */
struct policy_conf *policy_conf_load(const char *file);
/*
 * The policy that the module has in force. NULL with errno: the module is not loaded, or too old,
 * or the caller is not root.
 */
struct policy_conf *policy_conf_running(void);
void policy_conf_free(struct policy_conf *c);
DEFINE_FREE(policy_conf_free, struct policy_conf *)
/*
 * A policy without rules allows everything, so it must be meant. If @c exports something, and @p is
 * missing, empty or, with policy = required, without a rule, that is a mistake of @p.
 */
void policy_conf_needed(struct policy_conf *p, const struct server_conf *c);
/*
 * Warn of rules whose names begin with @search, the server's dev_search_path: names are relative to
 * it.
 */
void policy_conf_below(struct policy_conf *c, const char *search);

/* Its text as the module wants it, with a last line "end". Allocated. */
char *policy_conf_text(const struct policy_conf *c);
/* Are both texts the same, byte for byte, apart from newlines at the end? */
bool policy_conf_same(const struct policy_conf *a, const struct policy_conf *b);

/*
 * Whom a rule is for, in the grammar of the file: "key:web1 addr:10.0.0.0/24"; "" = everybody.
 * Allocated.
 */
char *policy_conf_who(const struct ibnbd_policy_rules *p, const struct ibnbd_policy_rule *r);
/* Is the rule for everybody? */
bool policy_conf_for_all(const struct ibnbd_policy_rule *r);
/*
 * May an unknown client write to @name? A client without a key can choose the name of its session,
 * so rules for a session do not stop it.
 */
bool policy_conf_anybody_writes(const struct ibnbd_policy_rules *p, const char *name);

#endif
