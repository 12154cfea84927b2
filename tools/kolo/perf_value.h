/* SPDX-License-Identifier: Apache-2.0 */
/**
 * perf_value.h - single elements of every data type: make them from numbers, compare and print them.
 *
 * For data that is prepared once and then copied: clarity before speed. Elements need no alignment.
 * Source: IEEE 754 formats; OCP 8-bit floating point (e4m3 has no infinity and one NaN, e5m2 has both as IEEE).
 */
#ifndef KOLO_TOOL_PERF_VALUE_H
#define KOLO_TOOL_PERF_VALUE_H

#include "include/nccl.h"

#include <stddef.h>
#include <stdint.h>

enum kl_value_kind { KL_VALUE_SIGNED, KL_VALUE_UNSIGNED, KL_VALUE_FLOAT };

struct kl_value_type {
    enum kl_value_kind kind;
    unsigned bytes;
    unsigned exponent_bits, mantissa_bits; /* floats; the mantissa without its hidden bit */
    int64_t exact;                         /* all integers up to this one are values (at most 2^62, for sums to fit) */
    int power;                             /* floats: 2^-power ... 2^power are normal values */
    int tiny_power;                        /* floats: 2^-tiny_power is the smallest positive value */
};

/** `type` is one of the 12. */
const struct kl_value_type *kl_value_type(ncclDataType_t type);

/** Integers wrap; floats: |value| <= exact. */
void kl_value_put_int(const struct kl_value_type *t, void *at, int64_t value);

/** Floats only: 2^exponent, |exponent| <= power. */
void kl_value_put_power(const struct kl_value_type *t, void *at, int exponent);

/** Floats only: round to nearest even; beyond the largest value, that one. */
void kl_value_put_nearest(const struct kl_value_type *t, void *at, long double value);

/** Floats only: the distance from |value| to the next larger value. */
long double kl_value_ulp(const struct kl_value_type *t, long double value);

/** The bits, zero-extended. */
uint64_t kl_value_bits(const struct kl_value_type *t, const void *at);

/** Floats: an integer that grows with the value by one per representable value; NaN lies beyond all. */
int64_t kl_value_order(const struct kl_value_type *t, uint64_t bits);

/** As people read it, with enough digits to tell neighbours apart. */
void kl_value_print(const struct kl_value_type *t, const void *at, char *text, size_t size);

#endif
