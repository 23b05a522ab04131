// SPDX-License-Identifier: GPL-2.0-only
/* Refusals: a line in the log, and ctl/last_error. */
#include <linux/ratelimit.h>
#include <linux/spinlock.h>
#include <linux/sysfs.h>
#include <ibtrs/words.h>
#include "ibnbd/server/refuse.h"

#define REFUSE_NAME_LEN	320	/* a name fits if few of its bytes are escaped */

static DEFINE_SPINLOCK(refuse_lock);
static char refuse_text[768];

/**
 * ibnbd_srv_refuse() - log and remember what a client did not get
 * @session: of the client
 * @object: what it asked for, in its own words
 * @err: negative errno, which the client is told
 * @why: cause, and the remedy if there is one
 */
void ibnbd_srv_refuse(const char *session, const char *object, int err, const char *why)
{
	char name[REFUSE_NAME_LEN];

	ibtrs_words_escape(name, sizeof(name), object);
	pr_warn_ratelimited("session %s: %s refused: %s (%d)\n", session, name, why, err);
	spin_lock(&refuse_lock);
	scnprintf(refuse_text, sizeof(refuse_text), "session %s: %s refused: %s (%d)", session,
		  name, why, err);
	spin_unlock(&refuse_lock);
}

/* Write the last refusal into @page. Returns its length. */
int ibnbd_srv_last_error(char *page)
{
	int n;

	spin_lock(&refuse_lock);
	n = refuse_text[0] ? sysfs_emit(page, "%s\n", refuse_text) : 0;
	spin_unlock(&refuse_lock);
	return n;
}
