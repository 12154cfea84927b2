/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/redop.h"

#include "base/error.h"
#include "device/host/redop_table.h"
#include "device/host/smallfloat.h"

#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} types[ncclNumTypes] = {
    [ncclInt8] = {"int8", 1},         [ncclUint8] = {"uint8", 1},       [ncclInt32] = {"int32", 4},
    [ncclUint32] = {"uint32", 4},     [ncclInt64] = {"int64", 8},       [ncclUint64] = {"uint64", 8},
    [ncclFloat16] = {"half", 2},      [ncclFloat32] = {"float", 4},     [ncclFloat64] = {"double", 8},
    [ncclBfloat16] = {"bfloat16", 2}, [ncclFloat8e4m3] = {"f8e4m3", 1}, [ncclFloat8e5m2] = {"f8e5m2", 1},
};

static const char *const ops[ncclNumOps] = {
    [ncclSum] = "sum", [ncclProd] = "prod", [ncclMax] = "max", [ncclMin] = "min", [ncclAvg] = "avg",
};

static bool known_type(ncclDataType_t type)
{
    return (unsigned)type < ncclNumTypes;
}

static bool known_op(ncclRedOp_t op)
{
    return (unsigned)op < ncclNumOps;
}

size_t kl_type_bytes(ncclDataType_t type)
{
    return known_type(type) ? types[type].bytes : 0;
}

const char *kl_type_name(ncclDataType_t type)
{
    return known_type(type) ? types[type].name : NULL;
}

const char *kl_redop_name(ncclRedOp_t op)
{
    return known_op(op) ? ops[op] : NULL;
}

/* 1/nranks, as rounded to the type. */
static float rounded_scale(ncclDataType_t type, int nranks)
{
    const float scale = (float)(1.0 / nranks);

    switch (type) {
    case ncclFloat16:
        return kl_f16_decode(kl_f16_encode(scale));
    case ncclBfloat16:
        return kl_bf16_decode(kl_bf16_encode(scale));
    case ncclFloat8e4m3:
        return kl_e4m3_decode(kl_e4m3_encode(scale));
    case ncclFloat8e5m2:
        return kl_e5m2_decode(kl_e5m2_encode(scale));
    default:
        return scale;
    }
}

/* There always is one: the tables without conditions together have every type and operation. */
static const struct kl_redop_kernels *best_kernels(ncclDataType_t type, ncclRedOp_t op)
{
    const struct kl_redop_table *table = kl_redop_tables;

    while (!table->kernels[type][op].combine || !table->usable()) table++;
    return &table->kernels[type][op];
}

ncclResult_t kl_redop_init(struct kl_redop *redop, ncclDataType_t type, ncclRedOp_t op, int nranks)
{
    const struct kl_redop_kernels *kernels, *merging;

    if (!known_type(type)) return KL_FAIL(ncclInvalidArgument, "data type %d is none of 0..%d", type, ncclNumTypes - 1);
    if (!known_op(op)) return KL_FAIL(ncclInvalidArgument, "reduction %d is none of 0..%d", op, ncclNumOps - 1);
    if (nranks < 1) return KL_FAIL(ncclInvalidArgument, "a reduction over %d ranks", nranks);

    kernels = best_kernels(type, op);
    merging = best_kernels(type, op == ncclAvg ? ncclSum : op); /* scaled contributions are not scaled again */
    *redop = (struct kl_redop){
        .elem_bytes = types[type].bytes,
        .nranks = nranks,
        .scale = rounded_scale(type, nranks),
        .scale_wide = 1.0 / nranks,
        .first = kernels->first,
        .combine = kernels->combine,
        .merge = merging->combine,
        .merge_four = merging->four,
        .last = kernels->last,
    };
    return ncclSuccess;
}

void kl_redop_merge_all(const struct kl_redop *redop, void *dst, const void *const *partials, size_t n, size_t count)
{
    const void *sum = partials[0];
    size_t i = 1;

    for (; redop->merge_four && i + 3 <= n; i += 3, sum = dst)
        redop->merge_four(dst, (const void *const[]){sum, partials[i], partials[i + 1], partials[i + 2]}, count);
    for (; i < n; i++, sum = dst) redop->merge(redop, dst, sum, partials[i], count);
    if (sum != dst) memcpy(dst, sum, count * redop->elem_bytes);
}
