/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/type_named.h"

#include "device/host/redop.h"

#include <string.h>
#include <strings.h>

/* In addition to the names of kl_type_name. */
static const struct {
    const char *name;
    ncclDataType_t type;
} others[] = {
    {"char", ncclInt8},
    {"i8", ncclInt8},
    {"u8", ncclUint8},
    {"byte", ncclUint8},
    {"int", ncclInt32},
    {"i32", ncclInt32},
    {"u32", ncclUint32},
    {"i64", ncclInt64},
    {"u64", ncclUint64},
    {"fp16", ncclFloat16},
    {"f16", ncclFloat16},
    {"float16", ncclFloat16},
    {"fp32", ncclFloat32},
    {"f32", ncclFloat32},
    {"float32", ncclFloat32},
    {"fp64", ncclFloat64},
    {"f64", ncclFloat64},
    {"float64", ncclFloat64},
    {"bf16", ncclBfloat16},
    {"fp8_e4m3", ncclFloat8e4m3},
    {"float8_e4m3", ncclFloat8e4m3},
    {"fp8e4m3", ncclFloat8e4m3},
    {"float8e4m3", ncclFloat8e4m3},
    {"fp8_e5m2", ncclFloat8e5m2},
    {"float8_e5m2", ncclFloat8e5m2},
    {"fp8e5m2", ncclFloat8e5m2},
    {"float8e5m2", ncclFloat8e5m2},
};

bool kl_type_named(const char *name, ncclDataType_t *type)
{
    if (!strncasecmp(name, "nccl", 4)) name += 4;
    for (int t = 0; t < ncclNumTypes; t++)
        if (!strcasecmp(name, kl_type_name((ncclDataType_t)t))) return *type = (ncclDataType_t)t, true;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (!strcasecmp(name, others[i].name)) return *type = others[i].type, true;
    return false;
}
