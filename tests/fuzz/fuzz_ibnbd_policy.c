// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whatever a policy says, its rules are pieces of its own text, each mistake has its place in it,
 * and an answer is the answer of the first rule that matches. Input: a name, a session, a key and
 * an address, each ended by a NUL; what follows them is the policy.
 */
#include <stdlib.h>

#include <ibtrs/key.h>
#include "ibnbd/logic/policy.h"

#define MUST(x)	do { if (!(x)) abort(); } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ibnbd_policy_rules p, again;

static void check_fault(const struct ibnbd_policy_fault *f, const char *s, size_t len, int rc)
{
	size_t i, line = 1, column = 1;

	MUST((rc == -EINVAL || rc == -E2BIG) && f->why && f->hint);
	if (!f->line) {
		MUST(rc == -E2BIG && len > IBNBD_POLICY_TEXT);
		return;
	}
	MUST(f->at <= len && f->len <= len - f->at);
	for (i = 0; i < f->at; i++) {
		column = s[i] == '\n' ? 1 : column + ((s[i] & 0xc0) != 0x80);
		line += s[i] == '\n';
	}
	MUST(f->line == line && f->column == column);
}

static void check_rules(void)
{
	u32 i;

	MUST(p.nr <= IBNBD_POLICY_RULES && p.used <= sizeof(p.text) && !p.text[0]);
	for (i = 0; i < p.nr; i++) {
		const struct ibnbd_policy_rule *r = &p.rule[i];

		MUST(r->export && r->export < p.used && r->key < p.used && r->session < p.used);
		MUST(p.text[r->export] && strlen(p.text + r->export) < IBNBD_NAME_LEN);
		MUST(!r->key || ibtrs_key_name_ok(p.text + r->key, strlen(p.text + r->key)));
		MUST(!r->session || p.text[r->session]);
		MUST(r->may <= IBNBD_POLICY_MIGRATION && r->may != IBNBD_POLICY_UNSAID);
		MUST(!r->exclusive || r->may != IBNBD_POLICY_DENY);
		MUST(!i || r->line > r[-1].line);
	}
}

static void check_answer(const struct ibnbd_policy_who *who, const char *name)
{
	struct ibnbd_policy_verdict v, w;
	const char *why = NULL;
	char slashed[IBNBD_NAME_LEN + 2];
	u32 i;

	ibnbd_policy_decide(&p, who, name, &v);
	MUST(!v.line == (v.may == IBNBD_POLICY_UNSAID));
	for (i = 0; i < p.nr && p.rule[i].line != v.line; i++)
		;
	MUST(!v.line || (i < p.nr && p.rule[i].may == v.may));
	MUST(!v.line || ibnbd_policy_about(&p, &p.rule[i], name));
	MUST(!ibnbd_policy_open(&v, IBNBD_ACCESS_RO, &why) == (v.may != IBNBD_POLICY_DENY));
	/* A slash more is no way around it. */
	if (strlen(name) < IBNBD_NAME_LEN - 1) {
		snprintf(slashed, sizeof(slashed), "/%s", name);
		ibnbd_policy_decide(&p, who, slashed, &w);
		MUST(w.may == v.may && w.line == v.line);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1), *part[4];
	struct ibnbd_policy_fault f = {};
	struct ibnbd_policy_who who = {};
	const char *why = NULL;
	int rc, first = 0, next;
	struct ibtrs_origin a = { 0 };
	size_t at = 0, i;

	MUST(copy);
	if (size)
		memcpy(copy, data, size);
	copy[size] = 0;
	for (i = 0; i < 4; i++) {
		part[i] = copy + at;
		at += strlen(part[i]);
		if (at < size)
			at++;
	}
	rc = ibnbd_policy_parse(&p, copy + at, size - at, &f);
	if (rc)
		check_fault(&f, copy + at, size - at, rc);
	ibnbd_policy_init(&again);
	while ((next = ibnbd_policy_next(&again, copy + at, size - at, &f))) {
		if (next < 0)
			check_fault(&f, copy + at, size - at, next);
		if (!first && next < 0)
			first = next;
	}
	MUST(first == rc);
	p = again;
	check_rules();
	if (strlen(part[0]) < IBNBD_NAME_LEN &&
	    !ibtrs_addr_parse(part[3], strlen(part[3]), &a.addr, &why)) {
		who.session = part[1];
		who.key = *part[2] ? part[2] : NULL;
		who.from = &a;
		check_answer(&who, part[0]);
	}
	free(copy);
	return 0;
}
