/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64. The compiler's checks include whether the operating system saves the wide registers. */
#include "base/atomic.h"
#include "device/host/redop_table.h"

#include <cpuid.h>

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

/* clang 14 has no name for F16C. The answer is cached, because CPUID traps in virtual machines. */
static bool has_f16c(void)
{
    static _Atomic(unsigned) bits;
    unsigned eax, ebx, ecx = kl_load_relaxed(&bits), edx;

    if (!ecx && __get_cpuid(1, &eax, &ebx, &ecx, &edx)) kl_store_relaxed(&bits, ecx);
    return has_avx2() && ecx & bit_F16C;
}

static bool always(void)
{
    return true;
}

const struct kl_redop_table kl_redop_tables[] = {
    {"avx512", has_avx512, kl_redop_avx512}, /* best first */
    {"avx2", has_avx2, kl_redop_avx2},
    {"f16c", has_f16c, kl_redop_f16c},
    {"baseline", always, kl_redop_baseline},
    {"smallfloat", always, kl_redop_smallfloat},
    {NULL, NULL, NULL}, /* the end */
};
