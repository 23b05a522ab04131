/* SPDX-License-Identifier: GPL-2.0-only */
/* Findings of `ibnbd doctor`: what was checked, its state, and what to do about it. */
#ifndef TOOLS_DOCTOR_H
#define TOOLS_DOCTOR_H

#include "tools/cmd/cmd.h"
#include "tools/conf/maps_conf.h"
#include "tools/host/state.h"

enum doctor_level { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_ERROR };

struct doctor_finding {
	const char *check;		/* stable name */
	enum doctor_level level;
	char *text;
	char *hint;			/* or NULL */
};

struct doctor {
	struct state *s;
	struct maps *m;
	bool client;			/* this host is a client, as far as can be seen */
	struct doctor_finding *list;
	size_t nr;
};

/* @hint: what to do about it, which is freed; NULL: nothing. @fmt: what was found. */
void doctor_find(struct doctor *d, const char *check, enum doctor_level level, char *hint,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* doctor_secure.c, for doctor_modules() */
bool secure_boot(void);
/* Did the kernel refuse a module, as far as its log says? Its own line, allocated. */
char *secure_refusal(void);
/* The kernel's demand on modules and its reason: a text for "the kernel ..."; NULL: none. */
const char *secure_only(const char **hint);
/*
 * With Secure Boot on: what must be done so that the firmware knows the key of DKMS, if anything.
 * @refusal: of the kernel, or NULL; @rebuild: a command. False: Secure Boot is off.
 */
bool secure_finds(struct doctor *d, const char *refusal, const char *rebuild);

void doctor_modules(struct doctor *d);
void doctor_rdma(struct doctor *d);
void doctor_servers(struct doctor *d);
void doctor_mirrors(struct doctor *d);
void doctor_keys(struct doctor *d);
void doctor_exports(struct doctor *d);

#endif
