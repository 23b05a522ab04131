// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * The policy: parser of its text, and the decision of its rules.
 *
 * The parser reads one line at a time. The caller decides whether to continue after a mistake: the
 * module refuses the whole policy at the first mistake, the command continues, to find all mistakes
 * in one pass. Strings of a rule are copied into the policy's own text, each ended by a NUL, so
 * nothing points into the caller's text.
 *
 * The name that a client asks for is compared without leading and doubled slashes, as
 * ibnbd_export_resolve() does it: otherwise a client could ask for `/db1` and evade a rule about
 * `db1`. Patterns are treated alike. Names that ibnbd_export_resolve() refuses (dots, a slash at
 * the end) stay refused, whatever the policy says.
 *
 * Called at each OPEN, when a path joins a session, and when a policy is written. Takes no locks
 * and uses only the caller's memory.
 */
#include <ibtrs/key.h>
#include <ibtrs/words.h>
#include "ibnbd/logic/policy.h"
#include "ibnbd/logic/text.h"

#define POLICY_PATTERN_MAX	(IBNBD_NAME_LEN - 1)

const char *const ibnbd_policy_may_names[] = {
	[IBNBD_POLICY_DENY] = "deny", [IBNBD_POLICY_RO] = "ro",
	[IBNBD_POLICY_RW] = "rw",     [IBNBD_POLICY_UNSAID] = "default",
	[IBNBD_POLICY_MIGRATION] = "migration",
};

/* ---- words of a line ----------------------------------------------------- */

/* The rest of a line; @word points into the text. */
struct policy_line {
	const char *s;
	size_t at;
	size_t end;
	const char *word;
	size_t len;
	struct ibnbd_policy_rules *p;	/* gets the rule */
	struct ibnbd_policy_fault *f;	/* or the mistake */
};

/* Reads the next word; false: there is none. A '#' at the start of a word begins a comment. */
static bool policy_word(struct policy_line *l)
{
	while (l->at < l->end && ibnbd_is_blank(l->s[l->at]))
		l->at++;
	if (l->at == l->end || l->s[l->at] == '#')
		return false;
	l->word = l->s + l->at;
	while (l->at < l->end && !ibnbd_is_blank(l->s[l->at]))
		l->at++;
	l->len = (size_t)(l->s + l->at - l->word);
	return true;
}

static bool policy_word_is(const struct policy_line *l, const char *name)
{
	return l->len == strlen(name) && !memcmp(l->word, name, l->len);
}

/* If the word begins with @prefix: removes the prefix from it and returns true. */
static bool policy_word_after(struct policy_line *l, const char *prefix)
{
	size_t n = strlen(prefix);

	if (l->len < n || memcmp(l->word, prefix, n))
		return false;
	l->word += n;
	l->len -= n;
	return true;
}

/* ---- one rule ------------------------------------------------------------ */

/* Reports the present word as the mistake. */
static int policy_wrong(const struct policy_line *l, const char *why, const char *hint)
{
	l->f->at = (size_t)(l->word - l->s);
	l->f->len = l->len;
	l->f->why = why;
	l->f->hint = hint;
	return -EINVAL;
}

/* Copies the present word into the text. It always fits: the NUL takes the place of a separator. */
static u32 policy_keep(const struct policy_line *l)
{
	struct ibnbd_policy_rules *p = l->p;
	u32 at = p->used;

	memcpy(p->text + at, l->word, l->len);
	p->text[at + l->len] = 0;
	p->used += (u32)l->len + 1;
	return at;
}

static int policy_export(struct policy_line *l, u32 *out)
{
	size_t i, n;

	while (l->len > 1 && l->word[0] == '/') {
		l->word++;
		l->len--;
	}
	if (policy_word_is(l, "/"))
		return policy_wrong(l, "a slash alone is the name of no export",
				    "write * for all exports");
	for (i = 0; i < l->len; i += n + 1) {
		for (n = 0; i + n < l->len && l->word[i + n] != '/'; n++)
			;
		if (!n)
			return policy_wrong(l, "no name of an export has two slashes in a row",
					    "write one");
		if (l->word[i] == '.' && (n == 1 || (n == 2 && l->word[i + 1] == '.')))
			return policy_wrong(l, "no name of an export has . or .. between slashes",
					    "write the name as a client maps it, from dev_search_path on");
	}
	if (l->len && l->word[l->len - 1] == '/')
		return policy_wrong(l, "no name of an export ends with a slash",
				    "leave it out, or write * behind it for all that is below");
	if (l->len > POLICY_PATTERN_MAX)
		return policy_wrong(l, "the pattern is longer than any name of an export",
				    "use * for a part of it");
	*out = policy_keep(l);
	return 0;
}

static int policy_key(struct policy_line *l, u32 *out)
{
	if (*out)
		return policy_wrong(l, "a second key, and a peer has one",
				    "write a line of its own for each key");
	if (!ibtrs_key_name_ok(l->word, l->len))
		return policy_wrong(l, "no key can have this name",
				    "a name is 1 to 63 of A-Z a-z 0-9 _ -");
	*out = policy_keep(l);
	return 0;
}

static int policy_session(struct policy_line *l, u32 *out)
{
	if (*out)
		return policy_wrong(l, "a second session pattern, and a peer has one session",
				    "write a line of its own for each pattern");
	if (!l->len || l->len > POLICY_PATTERN_MAX)
		return policy_wrong(l, "the pattern is empty, or longer than any session's name",
				    "a pattern is text with * and ?");
	*out = policy_keep(l);
	return 0;
}

static int policy_addr(struct policy_line *l, bool gid, struct ibnbd_allow_item *out)
{
	const char *why = "";

	if (out->kind != IBTRS_ADDR_NONE)
		return policy_wrong(l, "a second address, and a line has one",
				    "write a line of its own for each address");
	if (ibnbd_allow_item_parse(l->word, l->len, out, &why))
		return policy_wrong(l, why,
				    gid ? "gid:FE80::1 or gid:FE80::/10" :
					  "addr:10.0.0.1, addr:10.0.0.0/24 or addr:fd00::/64");
	if (!gid && out->kind == IBTRS_ADDR_GID)
		return policy_wrong(l, "a GID is no IP address", "write gid: in place of addr:");
	return 0;
}

/* Parses one WHO. -ENOENT: the word is no WHO. */
static int policy_who(struct policy_line *l, struct ibnbd_policy_rule *r)
{
	struct policy_line whole = *l;

	if (policy_word_after(l, "key:"))
		return policy_key(l, &r->key);
	if (policy_word_after(l, "session:"))
		return policy_session(l, &r->session);
	if (policy_word_after(l, "addr:"))
		return policy_addr(l, false, &r->addr);
	if (policy_word_after(l, "gid:"))
		return policy_addr(&whole, true, &r->addr);
	return -ENOENT;
}

static bool policy_may(const struct policy_line *l, u8 *out)
{
	u8 may;

	for (may = IBNBD_POLICY_DENY; may <= IBNBD_POLICY_MIGRATION; may++) {
		if (may == IBNBD_POLICY_UNSAID || !policy_word_is(l, ibnbd_policy_may_names[may]))
			continue;
		*out = may;
		return true;
	}
	return false;
}

/* Parses the words after the access. */
static int policy_rest(struct policy_line *l, struct ibnbd_policy_rule *r)
{
	while (policy_word(l)) {
		if (!policy_word_is(l, "exclusive"))
			return policy_wrong(l, "only \"exclusive\" may follow the access",
					    "put the client before ro, rw, migration or deny");
		if (r->may == IBNBD_POLICY_DENY)
			return policy_wrong(l, "what is denied to a peer cannot be kept for it",
					    "leave \"exclusive\" out");
		r->exclusive = true;
	}
	return 0;
}

static int policy_rule(struct policy_line *l, struct ibnbd_policy_rule *r)
{
	int err = policy_export(l, &r->export);

	while (!err) {
		if (!policy_word(l)) {
			l->word = l->s + l->end;
			l->len = 0;
			return policy_wrong(l, "the line does not say what may be done",
					    "end it with ro, rw, migration or deny");
		}
		if (policy_may(l, &r->may))
			return policy_rest(l, r);
		err = policy_who(l, r);
		if (err == -ENOENT)
			return policy_wrong(l, "neither a peer nor an access",
					    "a peer is key:NAME, addr:ADDRESS/PREFIX, gid:GID or session:GLOB; an access ro, rw, migration or deny");
	}
	return err;
}

/* ---- the text ------------------------------------------------------------ */

void ibnbd_policy_init(struct ibnbd_policy_rules *p)
{
	p->nr = 0;
	p->line = 0;
	p->pos = 0;
	p->text[0] = 0;		/* offset 0 means "no string" */
	p->used = 1;
}

/*
 * Checks the character at @s; @left bytes of the line follow. Returns its length in bytes. Sets
 * *@why and *@hint if the character is not allowed there.
 */
static size_t policy_char(const char *s, size_t left, bool comment, const char **why,
			  const char **hint)
{
	const char *name;
	size_t n;
	u32 code;

	*hint = "delete it";
	if (ibnbd_is_control(*s) && *s != '\t') {
		*why = *s ? "a control character" : "a NUL byte";
		return 1;
	}
	n = (comment ? ibnbd_unseen_line : ibnbd_unseen)(s, left, &code, &name);
	if (n) {
		*why = "a character that is not seen";
		*hint = "blanks and tabs separate words; in a pattern ? stands for a byte of it, * for all";
		return n;
	}
	n = ibtrs_utf8(s, left, &code);
	if (!n && !comment) {
		*why = "a byte that is not UTF-8";
		*hint = "write the file as UTF-8; in a pattern ? stands for one byte";
	}
	return n ? n : 1;
}

/*
 * Checks the bytes of a line, and drops a carriage return at its end. Invisible characters are
 * refused, because they silently change a name: a rule about `db1` followed by a zero-width space
 * would deny nothing to `db1`.
 */
static int policy_bytes(struct policy_line *l)
{
	const char *why = NULL, *hint;
	bool comment = false;
	size_t i;

	if (l->end > l->at && l->s[l->end - 1] == '\r')
		l->end--;
	for (i = l->at; i < l->end; i += l->len) {
		comment |= l->s[i] == '#' && (i == l->at || ibnbd_is_blank(l->s[i - 1]));
		l->word = l->s + i;
		l->len = policy_char(l->word, l->end - i, comment, &why, &hint);
		if (why)
			return policy_wrong(l, why, hint);
	}
	return 0;
}

static int policy_line(struct policy_line *l)
{
	struct ibnbd_policy_rules *p = l->p;
	struct ibnbd_policy_rule r = { .line = p->line };
	u32 used = p->used;
	int err = policy_bytes(l);

	if (err || !policy_word(l))
		return err;
	if (p->nr == IBNBD_POLICY_RULES) {
		policy_wrong(l, "more than 1024 rules", "use patterns that say more at once");
		return -E2BIG;
	}
	err = policy_rule(l, &r);
	if (err)
		p->used = used;
	else
		p->rule[p->nr++] = r;
	return err;
}

/* Counts characters, as editors do: the bytes that begin one. */
static u32 policy_column(const char *line, size_t at)
{
	u32 column = 1;
	size_t i;

	for (i = 0; i < at; i++)
		column += (line[i] & 0xc0) != 0x80;
	return column;
}

int ibnbd_policy_next(struct ibnbd_policy_rules *p, const char *s, size_t len,
		      struct ibnbd_policy_fault *f)
{
	struct policy_line l = { .s = s, .at = p->pos, .word = s, .p = p, .f = f };
	size_t start = p->pos;
	int err;

	if (p->pos >= len)
		return 0;
	if (len > IBNBD_POLICY_TEXT) {
		p->pos = len;
		*f = (struct ibnbd_policy_fault){
			.why = "a policy has at most 65536 bytes",
			.hint = "shorten its comments, and use patterns that say more at once",
		};
		return -E2BIG;
	}
	if (!p->pos && len >= 3 && !memcmp(s, "\xef\xbb\xbf", 3))
		l.at = 3;	/* a byte order mark */
	for (l.end = l.at; l.end < len && s[l.end] != '\n'; l.end++)
		;
	p->pos = l.end < len ? l.end + 1 : len;
	p->line++;
	err = policy_line(&l);
	if (!err)
		return 1;
	f->line = p->line;
	f->column = policy_column(s + start, f->at - start);
	return err;
}

int ibnbd_policy_parse(struct ibnbd_policy_rules *p, const char *s, size_t len,
		       struct ibnbd_policy_fault *f)
{
	int rc;

	ibnbd_policy_init(p);
	do {
		rc = ibnbd_policy_next(p, s, len, f);
	} while (rc > 0);
	return rc;
}

/* ---- what it says -------------------------------------------------------- */

/* Copies @name to @buf without leading and doubled slashes. @buf: IBNBD_NAME_LEN. */
static const char *policy_name(const char *name, char *buf)
{
	size_t n = 0;

	for (; *name && n < IBNBD_NAME_LEN - 1; name++)
		if (*name != '/' || (n && buf[n - 1] != '/'))
			buf[n++] = *name;
	buf[n] = 0;
	return buf;
}

bool ibnbd_policy_about(const struct ibnbd_policy_rules *p, const struct ibnbd_policy_rule *r,
			const char *name)
{
	char buf[IBNBD_NAME_LEN];

	return ibnbd_glob_match(p->text + r->export, policy_name(name, buf));
}

static bool policy_is_for(const struct ibnbd_policy_rules *p, const struct ibnbd_policy_rule *r,
			  const struct ibnbd_policy_who *who)
{
	if (r->key && (!who->key || strcmp(p->text + r->key, who->key)))
		return false;
	if (r->session && !ibnbd_glob_match(p->text + r->session, who->session))
		return false;
	return r->addr.kind == IBTRS_ADDR_NONE ||
	       ibnbd_allow_item_match_origin(&r->addr, who->from);
}

void ibnbd_policy_decide(const struct ibnbd_policy_rules *p, const struct ibnbd_policy_who *who,
			 const char *name, struct ibnbd_policy_verdict *v)
{
	char buf[IBNBD_NAME_LEN];
	const char *plain = policy_name(name, buf);
	u32 i;

	*v = (struct ibnbd_policy_verdict){ .may = IBNBD_POLICY_UNSAID };
	for (i = 0; i < p->nr; i++) {
		const struct ibnbd_policy_rule *r = &p->rule[i];

		if (!ibnbd_glob_match(p->text + r->export, plain) || !policy_is_for(p, r, who))
			continue;
		v->may = r->may;
		v->line = r->line;
		v->exclusive = r->exclusive;
		return;
	}
}

void ibnbd_policy_ask(struct ibnbd_policy_question *q, const struct ibtrs_origin *from)
{
	struct ibnbd_policy_verdict v;
	bool exclusive;

	q->who.from = from;
	ibnbd_policy_decide(q->rules, &q->who, q->name, &v);
	exclusive = v.exclusive || (q->answered && q->v.exclusive);
	if (!q->answered || v.may < q->v.may)
		q->v = v;
	q->v.exclusive = exclusive;
	q->answered = true;
}

int ibnbd_policy_open(const struct ibnbd_policy_verdict *v, enum ibnbd_access mode,
		      const char **why)
{
	switch (v->may) {
	case IBNBD_POLICY_UNSAID:
	case IBNBD_POLICY_MIGRATION:
		return 0;
	case IBNBD_POLICY_RW:
		if (mode != IBNBD_ACCESS_MIGRATION)
			return 0;
		return ibnbd_refuse(-EACCES, why,
				    "the server's policy lets this client write alone; map it with access_mode=rw, or say migration in policy.conf there");
	case IBNBD_POLICY_RO:
		if (!ibnbd_access_writes(mode))
			return 0;
		return ibnbd_refuse(-EACCES, why,
				    "the server's policy lets this client only read; map it with access_mode=ro, or say rw in policy.conf there");
	default:
		return ibnbd_refuse(-EACCES, why,
				    "the server's policy denies it to this client; see policy.conf there");
	}
}
