/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/names.h"

#include "coll/schedule/signature.h"

#define NAME(format, operation)          [KL_KERNEL_##format##_##operation] = "kolo_" #format "_" #operation,
#define LINES_NAME(format, operation)    NAME(lines_##format, operation)
#define SCHEDULE_NAME(format, operation) NAME(schedule_##format, operation)
#define NVLS_NAME(format, operation)     NAME(nvls_##format, operation)
const char *const kl_kernel_names[KL_KERNEL_COUNT] = {KL_KERNELS(NAME) KL_REDUCTION_KERNELS(
    LINES_NAME) KL_FLAGS_KERNELS(NAME) KL_REDUCTION_KERNELS(SCHEDULE_NAME) KL_NVLS_KERNELS(NVLS_NAME) NAME(nvls, copy)};
#undef LINES_NAME
#undef NAME
#undef SCHEDULE_NAME
#undef NVLS_NAME

/* Operations of one type: the built-in ones by their numbers, then the others. */
enum { SCALED = ncclNumOps, BITS, OPERATIONS = BITS + KL_BITS_OPS };

#define KERNEL(format, operation) KL_KERNEL_##format##_##operation
#define INTEGER(wrapping, format)                                                                                      \
    {                                                                                                                  \
        [ncclSum] = KERNEL(wrapping, sum), [ncclProd] = KERNEL(wrapping, prod), [ncclMax] = KERNEL(format, max),       \
        [ncclMin] = KERNEL(format, min), [ncclAvg] = KERNEL(format, mean), [SCALED] = KERNEL(wrapping, scaled),        \
        [BITS + KL_BITS_AND] = KERNEL(wrapping, bits_and), [BITS + KL_BITS_OR] = KERNEL(wrapping, bits_or),            \
        [BITS + KL_BITS_XOR] = KERNEL(wrapping, bits_xor), [BITS + KL_TRUTH_AND] = KERNEL(wrapping, truth_and),        \
        [BITS + KL_TRUTH_OR] = KERNEL(wrapping, truth_or), [BITS + KL_TRUTH_XOR] = KERNEL(wrapping, truth_xor),        \
    }
#define FLOATING(format)                                                                                               \
    {                                                                                                                  \
        [ncclSum] = KERNEL(format, sum), [ncclProd] = KERNEL(format, prod), [ncclMax] = KERNEL(format, max),           \
        [ncclMin] = KERNEL(format, min), [ncclAvg] = KERNEL(format, scaled), [SCALED] = KERNEL(format, scaled),        \
    }
static const uint8_t kernels[ncclNumTypes][OPERATIONS] = {
    [ncclInt8] = INTEGER(u8, i8),     [ncclUint8] = INTEGER(u8, u8),     [ncclInt32] = INTEGER(u32, i32),
    [ncclUint32] = INTEGER(u32, u32), [ncclInt64] = INTEGER(u64, i64),   [ncclUint64] = INTEGER(u64, u64),
    [ncclFloat16] = FLOATING(f16),    [ncclFloat32] = FLOATING(f32),     [ncclFloat64] = FLOATING(f64),
    [ncclBfloat16] = FLOATING(bf16),  [ncclFloat8e4m3] = FLOATING(e4m3), [ncclFloat8e5m2] = FLOATING(e5m2),
};

enum kl_kernel kl_kernel_of(const struct kl_task *t)
{
    const unsigned code = kl_task_op_code(t);
    const unsigned operation = code == KL_CALL_USER_OP   ? SCALED
                               : code >= KL_CALL_BITS_OP ? BITS + code - KL_CALL_BITS_OP
                                                         : code;

    return (enum kl_kernel)kernels[t->type][operation];
}

#define NVLS(format, operation) [KL_KERNEL_##format##_##operation] = KL_KERNEL_nvls_##format##_##operation,
static const uint16_t in_switches[KL_KERNEL_lines_u8_sum] = {KL_NVLS_KERNELS(NVLS)};
#undef NVLS

enum kl_kernel kl_nvls_kernel_of(const struct kl_task *t)
{
    const uint16_t kernel = in_switches[kl_kernel_of(t)];

    return kernel ? (enum kl_kernel)kernel : KL_KERNEL_COUNT;
}
