/* SPDX-License-Identifier: Apache-2.0 */
/**
 * driver.h - the checks at the start of the driver's functions. Their codes are the runtime's numbers.
 *
 * Threads: any.
 */
#ifndef KL_CU_DRIVER_H
#define KL_CU_DRIVER_H

#include "compat/cuda/core/state.h"
#include "compat/cuda/include/cuda.h"

#define KL_CU_TRY(expr)                                                                                                \
    do {                                                                                                               \
        CUresult kl_cu_try_rc = (CUresult)(expr);                                                                      \
        if (kl_cu_try_rc) return kl_cu_try_rc;                                                                         \
    } while (0)

/** Check a structure of the driver that is passed to the runtime unchanged. */
#define KL_CU_ALIKE(type, runtime_type)                                                                                \
    _Static_assert(sizeof(type) == sizeof(runtime_type), #type " is not as the runtime has it")

/** 3 before cuInit, unless the runtime has begun. */
CUresult kl_cu_ready(void);

/** The same, and 201 without a current context. */
CUresult kl_cu_enter(void);

/** Report once per process that machine code cannot be loaded; returns 209. */
CUresult kl_cu_refuse_code(void);

static inline void *kl_cu_address(CUdeviceptr ptr)
{
    return (void *)(uintptr_t)ptr;
}

#endif
