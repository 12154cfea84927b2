/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuning_rules.h"

static bool is_fp8(ncclDataType_t type)
{
    return type == ncclFloat8e4m3 || type == ncclFloat8e5m2;
}

static bool nvswitch_reduces(ncclDataType_t type, ncclRedOp_t op)
{
    bool extreme = op == ncclMin || op == ncclMax;

    switch (type) {
    case ncclInt32:
    case ncclUint32:
    case ncclInt64:
    case ncclUint64:
    case ncclFloat16:
    case ncclBfloat16:
        return op == ncclSum || extreme;
    case ncclFloat32:
    case ncclFloat64:
        return op == ncclSum;
    default:
        return false;
    }
}

/* Broadcast and all-gather move bytes, whatever they mean. */
static bool reduces(int func)
{
    return func == KL_FUNC_ALL_REDUCE || func == KL_FUNC_REDUCE || func == KL_FUNC_REDUCE_SCATTER;
}

struct kl_tuning_op kl_tuning_op_of(int func, int64_t bytes, ncclDataType_t type, ncclRedOp_t op)
{
    return (struct kl_tuning_op){.func = func,
                                 .bytes = bytes,
                                 .npipe = 1,
                                 .nvls = !reduces(func) || nvswitch_reduces(type, op),
                                 .collnet = true,
                                 .prescaled = reduces(func) && op == ncclAvg,
                                 .fp8 = reduces(func) && is_fp8(type)};
}

double kl_tuning_bus_factor(int func, int nranks)
{
    double part = nranks > 0 ? (double)(nranks - 1) / nranks : 0;

    if (func == KL_FUNC_ALL_REDUCE) return 2 * part;
    return func == KL_FUNC_ALL_GATHER || func == KL_FUNC_REDUCE_SCATTER ? part : 1;
}

int kl_tuning_type_sm(const struct kl_tuning_constants *constants, ncclDataType_t type)
{
    return is_fp8(type) && !constants->any_reduction ? 90 : 0;
}
