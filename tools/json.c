// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>
#include "tools/json.h"
#include "tools/sysfs.h"

#define JSON_SCHEMA	"ibnbd/1"

/* Length of the well-formed UTF-8 sequence at @s, 0 when there is none (RFC 3629: no surrogates, no overlong forms). */
static size_t json_utf8(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
	size_t i;

	for (i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

static void json_string(FILE *f, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n;

	putc('"', f);
	for (; *s; s += n) {
		n = json_utf8(s);
		if (!n) {
			fputs("\\ufffd", f);
			n = 1;
		} else if (*s == '"' || *s == '\\') {
			fprintf(f, "\\%c", *s);
		} else if (*s < 0x20 || *s == 0x7f) {
			fprintf(f, "\\u%04x", *s);
		} else {
			fwrite(s, 1, n, f);
		}
	}
	putc('"', f);
}

static void json_newline(struct json *j)
{
	if (!j->line)
		fprintf(j->f, "\n%*s", 3 * j->depth, "");
}

static void json_next(struct json *j, const char *key)
{
	if (j->depth) {
		if (j->filled[j->depth - 1])
			putc(',', j->f);
		j->filled[j->depth - 1] = true;
		json_newline(j);
	}
	if (key) {
		json_string(j->f, key);
		fputs(j->line ? ":" : ": ", j->f);
	}
}

static void json_open(struct json *j, const char *key, const char *brackets)
{
	json_next(j, key);
	if (j->depth == JSON_DEPTH)
		abort();
	putc(brackets[0], j->f);
	j->close[j->depth] = brackets[1];
	j->filled[j->depth] = false;
	j->depth++;
}

void json_object(struct json *j, const char *key)
{
	json_open(j, key, "{}");
}

void json_array(struct json *j, const char *key)
{
	json_open(j, key, "[]");
}

void json_end(struct json *j)
{
	j->depth--;
	if (j->filled[j->depth])
		json_newline(j);
	putc(j->close[j->depth], j->f);
	if (!j->depth)
		putc('\n', j->f);
}

void json_text(struct json *j, const char *key, const char *text)
{
	json_next(j, key);
	if (text)
		json_string(j->f, text);
	else
		fputs("null", j->f);
}

void json_num(struct json *j, const char *key, int64_t n)
{
	json_next(j, key);
	if (n == SYSFS_UNKNOWN)
		fputs("null", j->f);
	else
		fprintf(j->f, "%lld", (long long)n);
}

void json_real(struct json *j, const char *key, double n)
{
	json_next(j, key);
	fprintf(j->f, "%.3f", n);
}

void json_bool(struct json *j, const char *key, bool b)
{
	json_next(j, key);
	fputs(b ? "true" : "false", j->f);
}

void json_document(struct json *j, FILE *f, bool line)
{
	*j = (struct json){ .f = f, .line = line };
	json_object(j, NULL);
	json_text(j, "schema", JSON_SCHEMA);
}
