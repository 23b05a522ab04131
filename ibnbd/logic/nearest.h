/* SPDX-License-Identifier: GPL-2.0-only */
/* How similar two words are, for "did you mean". */
#ifndef IBNBD_LOGIC_NEAREST_H
#define IBNBD_LOGIC_NEAREST_H

#include <ibtrs/pure.h>

#define IBNBD_NEAREST_MAX	64	/* longest word that is compared */

/**
 * ibnbd_nearest_distance() - how many letters differ between two words (Levenshtein)
 * @a: of @len bytes
 * @b: terminated
 *
 * Case, and '-' against '_', do not count. Return: the number; %IBNBD_NEAREST_MAX when one of the
 * words is longer than that.
 */
unsigned int ibnbd_nearest_distance(const char *a, size_t len, const char *b);

#endif
