/* SPDX-License-Identifier: Apache-2.0 */
/** same.h - functions of the driver that are other names for the runtime's: handles, and many structures, are the same. */
#ifndef KL_CU_SAME_H
#define KL_CU_SAME_H

#include "compat/cuda/core/error.h"
#include "compat/cuda/driver/driver.h"
#include "compat/cuda/include/cuda_runtime_api.h"

/** The driver's code for a code of the runtime. A function that is no kernel can only come from machine code: 209. */
static inline CUresult kl_cu_of_runtime(cudaError_t rc)
{
    return rc == cudaErrorInvalidDeviceFunction ? kl_cu_refuse_code() : (CUresult)rc;
}

/** Return the driver's code for a call of the runtime, which keeps the thread's last error. */
#define KL_CU_RETURN_SAME(ready, call)                                                                                 \
    do {                                                                                                               \
        KL_CU_TRY(ready);                                                                                              \
        kl_cuda_driver_call(true);                                                                                     \
        cudaError_t kl_cu_same_rc = (call);                                                                            \
        kl_cuda_driver_call(false);                                                                                    \
        return kl_cu_of_runtime(kl_cu_same_rc);                                                                        \
    } while (0)

/** A function of the runtime's under the driver's name. */
#define SAME(name, function, parameters, arguments)                                                                    \
    __attribute__((visibility("default"))) CUresult name parameters;                                                   \
    CUresult name parameters                                                                                           \
    {                                                                                                                  \
        KL_CU_RETURN_SAME(kl_cu_ready(), function arguments);                                                          \
    }

#endif
