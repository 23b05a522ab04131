/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The unit test kit: one header, one process per test file.
 *
 *	#include "unit.h"
 *
 *	UNIT_TEST(backoff_never_zero)
 *	{
 *		for (i = 0; i < ARRAY_SIZE(rows); i++) {
 *			UNIT_ROW("row %u: %s", i, rows[i].name);
 *			CHECK_EQ(f(rows[i].in), rows[i].want);
 *		}
 *	}
 *
 * A test is a function that registers itself; main() is in here. A failed check prints file:line,
 * the row, what was got and what was expected, and the test goes on, so that one run shows the
 * whole table. UNIT_ROW() names the row that later checks belong to. A test that made no check at
 * all counts as failed.
 *
 * The verdict has a channel of its own: the file named by UNIT_RESULT receives `<passed> <failed>`,
 * and only when main() came to its end. What a test prints on the way cannot be taken for success.
 */
#ifndef UNIT_H
#define UNIT_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit_test {
	const char *name;
	void (*run)(void);
	struct unit_test *next;
};

static struct unit_test *unit_tests, **unit_last = &unit_tests;
static unsigned long unit_checks, unit_failures;
static char unit_row[160];

#define UNIT_TEST(fn)								\
	static void fn(void);							\
	static struct unit_test unit_test_##fn = { #fn, fn, NULL };		\
	__attribute__((constructor)) static void unit_register_##fn(void)	\
	{									\
		*unit_last = &unit_test_##fn;					\
		unit_last = &unit_test_##fn.next;				\
	}									\
	static void fn(void)

__attribute__((format(printf, 1, 2), unused))
static void UNIT_ROW(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(unit_row, sizeof(unit_row), fmt, ap);
	va_end(ap);
}

__attribute__((format(printf, 3, 4)))
static void unit_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	unit_failures++;
	if (unit_failures > 50)
		return;
	fprintf(stderr, "%s:%d: %s%s", file, line, unit_row, *unit_row ? ": " : "");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	if (unit_failures == 50)
		fprintf(stderr, "50 failed checks; the rest is not printed\n");
}

__attribute__((unused))
static bool unit_eq(const char *file, int line, const char *expr, long long got, long long want)
{
	unit_checks++;
	if (got == want)
		return true;
	unit_fail(file, line, "%s: got %lld (0x%llx), expected %lld (0x%llx)", expr, got,
		  got, want, want);
	return false;
}

__attribute__((unused))
static bool unit_str(const char *file, int line, const char *expr, const char *got,
		     const char *want)
{
	unit_checks++;
	if (got && want ? !strcmp(got, want) : got == want)
		return true;
	unit_fail(file, line, "%s: got \"%s\", expected \"%s\"", expr, got ? got : "(null)",
		  want ? want : "(null)");
	return false;
}

__attribute__((unused))
static bool unit_mem(const char *file, int line, const char *expr, const void *got,
		     const void *want, size_t len)
{
	const unsigned char *g = got, *w = want;
	size_t i;

	unit_checks++;
	for (i = 0; i < len; i++) {
		if (g[i] != w[i]) {
			unit_fail(file, line, "%s: byte %zu of %zu: got 0x%02x, expected 0x%02x",
				  expr, i, len, g[i], w[i]);
			return false;
		}
	}
	return true;
}

/*
 * Each returns whether the check held, so that a test may skip what makes no sense after a failure.
 */
#define CHECK(cond)		unit_eq(__FILE__, __LINE__, #cond, !!(cond), 1)
#define CHECK_EQ(got, want)							\
	unit_eq(__FILE__, __LINE__, #got, (long long)(got), (long long)(want))
#define CHECK_STR(got, want)	unit_str(__FILE__, __LINE__, #got, got, want)
#define CHECK_MEM(got, want, n)	unit_mem(__FILE__, __LINE__, #got, got, want, n)

/*
 * Bytes that can be read to the last one and not beyond: ASan guards the end.
 * Freed by the caller; never NULL.
 */
__attribute__((unused))
static void *unit_exact(const void *src, size_t len)
{
	void *p = malloc(len);

	if (!p)
		abort();
	if (len)
		memcpy(p, src, len);
	return p;
}

/* A small, seeded generator: the same numbers in every run (xorshift64*). */
__attribute__((unused))
static uint64_t unit_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

int main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : NULL;
	const char *result = getenv("UNIT_RESULT");
	unsigned int passed = 0, failed = 0;
	struct unit_test *t;
	FILE *f;

	for (t = unit_tests; t; t = t->next) {
		unsigned long failures = unit_failures, checks = unit_checks;

		if (only && strcmp(only, t->name))
			continue;
		unit_row[0] = 0;
		t->run();
		if (unit_checks == checks)
			unit_fail(__FILE__, __LINE__, "%s checked nothing", t->name);
		if (unit_failures == failures) {
			passed++;
		} else {
			failed++;
			fprintf(stderr, "FAILED %s\n", t->name);
		}
	}
	if (only && !passed && !failed) {
		fprintf(stderr, "no test is called %s\n", only);
		failed++;
	}
	if (result) {
		f = fopen(result, "w");
		if (!f || fprintf(f, "%u %u\n", passed, failed) < 0 || fclose(f)) {
			perror(result);
			return 1;
		}
	}
	printf("%s: %u passed, %u failed (%lu checks)\n", argv[0], passed, failed, unit_checks);
	return failed || !passed;
}

#endif
