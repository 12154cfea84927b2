/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of fp16 and fp8 where the processor cannot convert fp16. */
#include "device/host/redop_loops.h"

FLOAT(f16, kl_f16_decode, kl_f16_encode, float, scale)
FLOAT(e4m3, kl_e4m3_decode, kl_e4m3_encode, float, scale)
FLOAT(e5m2, kl_e5m2_decode, kl_e5m2_encode, float, scale)

const struct kl_redop_kernels kl_redop_smallfloat[ncclNumTypes][ncclNumOps] = {
    [ncclFloat16] = {ARITHMETIC_OF(f16)},
    [ncclFloat8e4m3] = {ARITHMETIC_OF(e4m3)},
    [ncclFloat8e5m2] = {ARITHMETIC_OF(e5m2)},
};
