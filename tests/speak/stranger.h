/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of ibnbd-stranger share: stranger.c knocks, guess.c too, wild.c goes on. */
#ifndef STRANGER_STRANGER_H
#define STRANGER_STRANGER_H

#include <linux/mutex.h>
#include <ibtrs/key.h>
#include "ibtrs/logic/auth.h"
#include "tests/speak/peer.h"

struct stranger_words {
	char name[IBTRS_KEY_NAME_LEN], conn[8], next[8], spoil[8];
	u8 secret[IBTRS_KEY_LEN], uuid[IBTRS_UUID_LEN];
	unsigned int session, path, recon, replay, pause;
	__be32 claim;
};

extern struct mutex stranger_lock;	/* one visit at a time */
extern char *stranger_to, *stranger_near;
extern struct stranger_words me;	/* `whom` */

__printf(1, 2) void stranger_say(const char *fmt, ...);
void stranger_say_refused(const struct stranger_conn *s, int err);
/* NAME=VALUE .. over what stands in @w. */
int stranger_words_read(const char *text, struct stranger_words *w);
/* The exchange. a->ks is what a stranger would go on with, right or wrong. */
void stranger_auth(const struct stranger_words *w, struct ibtrs_auth *a);
void stranger_silence(void);		/* forget what was said, leave what was connected */
void wild_leave_all(void);

#endif
