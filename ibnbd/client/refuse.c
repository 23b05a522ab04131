// SPDX-License-Identifier: GPL-2.0-only
/* Refusals of what an administrator wrote: a line in the log, and ctl/last_error. */
#include <linux/mutex.h>
#include <linux/sysfs.h>
#include "ibnbd/client/dev.h"

#define REFUSE_MAX	1024

static DEFINE_MUTEX(refuse_lock);
static char refuse_text[REFUSE_MAX];

int ibnbd_clt_refuse(int err, const char *fmt, ...)
{
	va_list args;

	guard(mutex)(&refuse_lock);
	va_start(args, fmt);
	vscnprintf(refuse_text, sizeof(refuse_text), fmt, args);
	va_end(args);
	pr_err("%s\n", refuse_text);
	return err;
}

void ibnbd_clt_refuse_forget(void)
{
	guard(mutex)(&refuse_lock);
	refuse_text[0] = '\0';
}

int ibnbd_clt_refuse_show(char *page)
{
	guard(mutex)(&refuse_lock);
	return sysfs_emit(page, "%s\n", refuse_text);
}
