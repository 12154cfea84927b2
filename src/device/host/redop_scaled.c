/* SPDX-License-Identifier: Apache-2.0 */
/* Contributions that are multiplied before they are added: floats as for a mean, with another factor, and integers. */
#include "base/error.h"
#include "device/host/redop_loops.h"

#include <string.h>

#define SCALED(type)                                                                                                   \
    static void type##_scale(const struct kl_redop *op, void *dst, const void *own, size_t count)                      \
    {                                                                                                                  \
        type *to = dst;                                                                                                \
        const type *mine = own, factor = (type)op->factor;                                                             \
                                                                                                                       \
        _Pragma("omp simd") for (size_t i = 0; i < count; i++) to[i] = (type)(mine[i] * factor);                       \
    }                                                                                                                  \
    static void type##_add_scaled(const struct kl_redop *op, void *dst, const void *partial, const void *own,          \
                                  size_t count)                                                                        \
    {                                                                                                                  \
        type *to = dst;                                                                                                \
        const type *from = partial, *mine = own, factor = (type)op->factor;                                            \
                                                                                                                       \
        _Pragma("omp simd") for (size_t i = 0; i < count; i++) to[i] = (type)(from[i] + mine[i] * factor);             \
    }
SCALED(u8)
SCALED(u32)
SCALED(u64)

/* Unsigned arithmetic wraps, and serves both signednesses. */
static const struct kl_redop_kernels integers[] = {
    [1] = {.first = u8_scale, .combine = u8_add_scaled},
    [4] = {.first = u32_scale, .combine = u32_add_scaled},
    [8] = {.first = u64_scale, .combine = u64_add_scaled},
};

static float as_float(ncclDataType_t type, const void *scalar)
{
    uint16_t wide = 0;
    uint8_t narrow = *(const uint8_t *)scalar;
    float value;

    if (type == ncclFloat32) return memcpy(&value, scalar, sizeof value), value;
    if (kl_type_bytes(type) == sizeof wide) memcpy(&wide, scalar, sizeof wide);
    if (type == ncclFloat16) return kl_f16_decode(wide);
    if (type == ncclBfloat16) return kl_bf16_decode(wide);
    return type == ncclFloat8e4m3 ? kl_e4m3_decode(narrow) : kl_e5m2_decode(narrow);
}

static void scale_integers(struct kl_redop *redop, const void *scalar)
{
    const struct kl_redop_kernels *k = &integers[redop->elem_bytes];

    redop->first = k->first;
    redop->combine = k->combine;
    redop->last = NULL;
    redop->factor = 0;
    memcpy(&redop->factor, scalar, redop->elem_bytes); /* little-endian, as everywhere */
}

ncclResult_t kl_redop_init_scaled(struct kl_redop *redop, ncclDataType_t type, const void *scalar)
{
    KL_TRY(kl_redop_init(redop, type, ncclAvg, 1));
    if (type == ncclFloat64)
        memcpy(&redop->scale_wide, scalar, sizeof redop->scale_wide);
    else if (type < ncclFloat16)
        scale_integers(redop, scalar);
    else
        redop->scale = as_float(type, scalar);
    return ncclSuccess;
}
