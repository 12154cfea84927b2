/* SPDX-License-Identifier: Apache-2.0 */
/**
 * redop.h - the arithmetic of reductions on host devices: one table of kernels, type by operation.
 *
 * A reduction travels over the ranks: the first rank contributes `first(own)`, each next one `combine(partial, own)`,
 * and the final one applies `last`. `merge` joins partial results of different paths. For sum, prod, min and max,
 * `first` is a copy and `last` a no-op. The mean of floating types scales each contribution by 1/nranks rounded to the
 * type (so that fp16 and fp8 do not overflow); the mean of integers divides the wrapped sum at the end, rounding toward
 * zero.
 *
 * Arithmetic: fp16, bf16 and fp8 compute in float and round to nearest even after every step; fp8 saturates at the
 *             largest finite value, infinity included; integers wrap. min and max propagate NaN and take -0 for less
 *             than +0. A computed NaN is the positive quiet NaN of its type.
 * Results:    independent of the instruction set, bit for bit, in the default floating-point environment.
 * Aliasing:   dst may equal partial, own or other exactly; other overlap is not allowed. No alignment is required.
 * Stores:     ordinary ones. To bypass the cache, combine blocks of a few KiB in scratch and copy these out.
 * Threads:    a kl_redop is constant after kl_redop_init; any number of threads may use it.
 */
#ifndef KL_DEVICE_HOST_REDOP_H
#define KL_DEVICE_HOST_REDOP_H

#include "include/nccl.h"

#include <stddef.h>
#include <stdint.h>

struct kl_redop {
    size_t elem_bytes;
    int nranks;
    float scale;       /* 1/nranks rounded to the type, for the mean of floating types */
    double scale_wide; /* the same for double */
    uint64_t factor;   /* factor of each contribution of integers, in kl_redop_init_scaled */

    /** dst = this rank's contribution, when it is the first. NULL: a plain copy. */
    void (*first)(const struct kl_redop *op, void *dst, const void *own, size_t count);
    /** dst = partial combined with this rank's contribution. Never NULL. */
    void (*combine)(const struct kl_redop *op, void *dst, const void *partial, const void *own, size_t count);
    /** dst = two partial results, each of other ranks, combined. Never NULL. */
    void (*merge)(const struct kl_redop *op, void *dst, const void *partial, const void *other, size_t count);
    /** dst = four partial results, merged one after the other, in one pass. NULL: no faster than merge. */
    void (*merge_four)(void *dst, const void *const partials[4], size_t count);
    /** dst = the result, from the combination of all. NULL: a no-op. */
    void (*last)(const struct kl_redop *op, void *dst, size_t count);
};

/** Bytes of one element; 0 for an unknown type. */
size_t kl_type_bytes(ncclDataType_t type);

/** "float", "half", "f8e4m3", ... as nccl-tests prints them; NULL for an unknown type. */
const char *kl_type_name(ncclDataType_t type);

/** "sum", "prod", ...; NULL for an unknown operation. */
const char *kl_redop_name(ncclRedOp_t op);

/** Unknown type or operation: ncclInvalidArgument. */
ncclResult_t kl_redop_init(struct kl_redop *redop, ncclDataType_t type, ncclRedOp_t op, int nranks);

/**
 * The sum of contributions that each rank multiplies by its own `scalar`, an element of the type. Unknown type:
 * ncclInvalidArgument.
 */
ncclResult_t kl_redop_init_scaled(struct kl_redop *redop, ncclDataType_t type, const void *scalar);

/** Bitwise and logical operations: any value but 0 is true, and logical results are 0 or 1. */
enum kl_bits_op { KL_BITS_AND, KL_BITS_OR, KL_BITS_XOR, KL_TRUTH_AND, KL_TRUTH_OR, KL_TRUTH_XOR, KL_BITS_OPS };

/** Integers only; else ncclInvalidArgument. */
ncclResult_t kl_redop_init_bits(struct kl_redop *redop, ncclDataType_t type, enum kl_bits_op op);

/**
 * dst = `n` partial results, at least one, merged one after the other. dst may equal the first or the second exactly.
 * Fastest for pieces that, with their inputs, stay in the nearest cache.
 */
void kl_redop_merge_all(const struct kl_redop *redop, void *dst, const void *const *partials, size_t n, size_t count);

#endif
