/* SPDX-License-Identifier: Apache-2.0 */
/* Bitwise and logical operations on integers. */
#include "base/error.h"
#include "device/host/redop_loops.h"

#define BITS(type)                                                                                                     \
    COMBINE(type##_and, type, a &b)                                                                                    \
    COMBINE(type##_or, type, a | b)                                                                                    \
    COMBINE(type##_xor, type, a ^ b)                                                                                   \
    COMBINE(type##_both, type, (a != 0) & (b != 0))                                                                    \
    COMBINE(type##_any, type, (a != 0) | (b != 0))                                                                     \
    COMBINE(type##_odd, type, (a != 0) ^ (b != 0))                                                                     \
    static void type##_truth(const struct kl_redop *op, void *dst, const void *own, size_t count)                      \
    {                                                                                                                  \
        type *to = dst;                                                                                                \
        const type *mine = own;                                                                                        \
                                                                                                                       \
        (void)op;                                                                                                      \
        _Pragma("omp simd") for (size_t i = 0; i < count; i++) to[i] = mine[i] != 0;                                   \
    }
BITS(u8)
BITS(u32)
BITS(u64)

#define ROW(type)                                                                                                      \
    {                                                                                                                  \
        [KL_BITS_AND] = {COMBINED_BY(type##_and)}, [KL_BITS_OR] = {COMBINED_BY(type##_or)},                            \
        [KL_BITS_XOR] = {COMBINED_BY(type##_xor)}, [KL_TRUTH_AND] = {.first = type##_truth, COMBINED_BY(type##_both)}, \
        [KL_TRUTH_OR] = {.first = type##_truth, COMBINED_BY(type##_any)},                                              \
        [KL_TRUTH_XOR] = {.first = type##_truth, COMBINED_BY(type##_odd)},                                             \
    }
static const struct kl_redop_kernels kernels[][KL_BITS_OPS] = {[1] = ROW(u8), [4] = ROW(u32), [8] = ROW(u64)};

ncclResult_t kl_redop_init_bits(struct kl_redop *redop, ncclDataType_t type, enum kl_bits_op op)
{
    size_t bytes = kl_type_bytes(type);

    if (!bytes || type >= ncclFloat16 || (unsigned)op >= KL_BITS_OPS)
        return KL_FAIL(ncclInvalidArgument, "operations on bits and truth values are of integers, not of %s",
                       bytes ? kl_type_name(type) : "that type");
    const struct kl_redop_kernels *k = &kernels[bytes][op];
    *redop = (struct kl_redop){.elem_bytes = bytes,
                               .nranks = 1,
                               .first = k->first,
                               .combine = k->combine,
                               .merge = k->combine,
                               .merge_four = k->four};
    return ncclSuccess;
}
