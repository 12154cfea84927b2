/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/redop.h"
#include "plan/order.h"

const char *kl_order_scope_name(enum kl_order_scope scope)
{
    static const char *const names[] = {
        [KL_ORDER_ON_RANKS] = "ranks",    [KL_ORDER_IN_RUNS] = "runs",      [KL_ORDER_AT_COUNTS] = "counts",
        [KL_ORDER_BY_TOKEN] = "tokens",   [KL_ORDER_IN_PLACE] = "in_place", [KL_ORDER_REGISTERED] = "registered",
        [KL_ORDER_CAPTURED] = "captured", [KL_ORDER_IN_GROUP] = "group",    [KL_ORDER_ON_HOSTS] = "hosts",
        [KL_ORDER_IN_RELEASE] = "release"};

    return names[scope];
}

const char *kl_order_result_name(enum kl_order_result answer)
{
    static const char *const names[] = {[KL_ORDER_NO] = "no", [KL_ORDER_YES] = "yes", [KL_ORDER_UNKNOWN] = "unknown"};

    return names[answer];
}

static bool is_integer(ncclDataType_t type)
{
    return type == ncclInt8 || type == ncclUint8 || type == ncclInt32 || type == ncclUint32 || type == ncclInt64 ||
           type == ncclUint64;
}

const char *kl_order_rounding(const struct kl_order *o)
{
    int algo = o->op->choice.algo;

    if (is_integer(o->request.type) || o->request.op == ncclMin || o->request.op == ncclMax) return "none";
    if (algo == KL_ALGO_COLLNET_DIRECT || algo == KL_ALGO_COLLNET_CHAIN) return "network";
    return kl_order_undefined(algo) ? "switch" : "each_addition";
}

static bool is_fp8(ncclDataType_t type)
{
    return type == ncclFloat8e4m3 || type == ncclFloat8e5m2;
}

const char *kl_order_accumulator(const struct kl_order *o)
{
    ncclDataType_t type = o->request.type;
    int algo = o->op->choice.algo;
    bool small = type == ncclFloat16 || type == ncclBfloat16;

    if (algo == KL_ALGO_COLLNET_DIRECT || algo == KL_ALGO_COLLNET_CHAIN) return "network";
    if (kl_order_undefined(algo) && small)
        return kl_nccl_has(o->rules.nccl, KL_CHANGE_CUT_REGISTERED) ? "float" : "unspecified"; /* both since 2.27.3 */
    return is_fp8(type) ? "half" : kl_type_name(type);
}

void kl_order_arithmetic_text(const struct kl_order *o, struct kl_text *text)
{
    const char *type = kl_type_name(o->request.type);

    if (is_integer(o->request.type))
        kl_text_add(text, "integers wrap");
    else if (o->request.op == ncclMin || o->request.op == ncclMax)
        kl_text_add(text, "nothing is rounded; a NaN loses against a number");
    else if (o->op->choice.algo == KL_ALGO_NVLS_TREE)
        kl_text_add(text, "added in the switch of each node, then rounded to %s at every node", type);
    else if (kl_order_undefined(o->op->choice.algo))
        kl_text_add(text, "added in the %s, with an accumulator of %s",
                    o->op->choice.algo == KL_ALGO_NVLS ? "switch" : "network", kl_order_accumulator(o));
    else if (is_fp8(o->request.type))
        kl_text_add(text, "each addition is made in half and rounded back to %s, saturating", type);
    else
        kl_text_add(text, "each addition is rounded to %s", type);
    if (o->request.op != ncclAvg || is_integer(o->request.type)) return;
    bool power = !(o->rules.nranks & (o->rules.nranks - 1));

    kl_text_add(text, "; avg: each contribution is scaled by 1/%d first%s", o->rules.nranks,
                power                            ? ", which is exact"
                : o->request.type == ncclFloat32 ? ", fused with the addition but for the first of a chain"
                : o->request.type == ncclFloat64 ? ""
                                                 : "; fused with the addition or not, depending on the build");
}
