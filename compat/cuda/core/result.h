/* SPDX-License-Identifier: Apache-2.0 */
/** result.h - errors of CUDA within the stand-in, and the most devices that it has. */
#ifndef KL_CUDA_RESULT_H
#define KL_CUDA_RESULT_H

#include "compat/cuda/include/driver_types.h"

#define KL_CUDA_DEVICES 128 /* the most visible devices */

#define KL_CUDA_TRY(expr)                                                                                              \
    do {                                                                                                               \
        cudaError_t kl_cuda_try_rc = (expr);                                                                           \
        if (kl_cuda_try_rc) return kl_cuda_try_rc;                                                                     \
    } while (0)

#endif
