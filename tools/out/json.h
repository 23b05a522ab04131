/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes one JSON document: numbers as numbers, unknown as null, always valid UTF-8. */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH	16

struct json {
	FILE *f;
	bool line;		/* one line, for streams */
	int depth;
	char close[JSON_DEPTH];
	bool filled[JSON_DEPTH];
};

/* @key is NULL inside an array and for the document itself. */
void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end(struct json *j);
void json_text(struct json *j, const char *key, const char *text);
void json_num(struct json *j, const char *key, int64_t n);
void json_real(struct json *j, const char *key, double n);
void json_bool(struct json *j, const char *key, bool b);

/* Begins {"schema":"ibnbd/1", ...; the caller adds its keys and calls json_end(). */
void json_document(struct json *j, FILE *f, bool line);
/* Begins such a document on stdout, and an array @key in it; json_close() ends both. */
void json_list(struct json *j, const char *key);
/* Ends all that was begun. */
void json_close(struct json *j);

#endif
