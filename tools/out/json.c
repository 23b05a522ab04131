// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>
#include "tools/out/escape.h"
#include "tools/out/json.h"
#include "tools/host/sysfs.h"

#define JSON_SCHEMA	"ibnbd/1"

/*
 * A byte that is not UTF-8 becomes the text \xNN in the string (ESCAPE_JSON). Invisible characters
 * and those that change the direction are written as \uNNNN, so that a document can be shown on a
 * terminal.
 */
static void json_string(FILE *f, const char *text)
{
	char *valid __free(free) = escape_text(ESCAPE_JSON, text);
	unsigned int code;
	const char *s;
	size_t n;

	putc('"', f);
	for (s = valid; *s; s += n) {
		n = escape_utf8(s, &code);
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if (escape_hidden(code) && code > 0xffff)
			fprintf(f, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10),
				0xdc00 + (code & 0x3ff));
		else if (escape_hidden(code))
			fprintf(f, "\\u%04x", code);
		else
			fwrite(s, 1, n, f);
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

void json_list(struct json *j, const char *key)
{
	json_document(j, stdout, false);
	json_array(j, key);
}

void json_close(struct json *j)
{
	while (j->depth)
		json_end(j);
}
