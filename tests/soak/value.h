/* SPDX-License-Identifier: Apache-2.0 */
/**
 * value.h - the sequential model: each rank's contribution to an operation, and its expected result, computed one
 * element after the other with plain integers.
 *
 * Contributions are small enough for no partial result to be rounded, whatever the order; the mean of floats over a number of ranks that is
 * no power of two is the exception, and may be a few units in the last place off. Integers wrap.
 */
#ifndef KOLO_SOAK_VALUE_H
#define KOLO_SOAK_VALUE_H

#include "tests/soak/program.h"

/** Elements that rank `me` of the n of the communicator sends and gets. */
size_t soak_sends(const struct soak_operation *o, int n, int me);
size_t soak_gets(const struct soak_operation *o, int n, int me);

/** Elements of rank `r` in operations with parts of different sizes; from `from` to `to` in all_to_all_v. */
size_t soak_part(const struct soak_operation *o, int r);
size_t soak_part_between(const struct soak_operation *o, int from, int to);

/** Of rank r's premulsum. */
int soak_scalar(const struct soak_operation *o, int n, int r);

/** Element i of rank `me`'s contribution, written to `at`. */
void soak_contribute(const struct soak_operation *o, int n, int me, size_t i, void *at);

/** Is this element i of rank `me`'s expected result? `want` receives the expected value. */
bool soak_is_right(const struct soak_operation *o, int n, int me, size_t i, const void *at, unsigned char want[8]);

#endif
