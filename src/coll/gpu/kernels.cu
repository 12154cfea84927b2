/* SPDX-License-Identifier: Apache-2.0 */
/* All kernels, and for the CUDA stand-in the image that its driver loads: a table of their names. */
#include "coll/gpu/copy.cuh"
#include "coll/gpu/kernels.h"
#include "coll/gpu/schedule.cuh"

#define REDUCTION(format, operation)                                                                                   \
    extern "C" __global__ void __launch_bounds__(KL_JOB_THREADS)                                                       \
        kolo_##format##_##operation(const __grid_constant__ struct kl_gpu_job job)                                     \
    {                                                                                                                  \
        reduce<format, op_##operation<format>>(job);                                                                   \
    }
KL_REDUCTION_KERNELS(REDUCTION)

#define COPY(format, operation)                                                                                        \
    extern "C" __global__ void __launch_bounds__(KL_JOB_THREADS)                                                       \
        kolo_##format##_##operation(const __grid_constant__ struct kl_gpu_job job)                                     \
    {                                                                                                                  \
        operation(job);                                                                                                \
    }
KL_COPY_KERNELS(COPY)

#define SCHEDULE(format, operation)                                                                                    \
    extern "C" __global__ void __launch_bounds__(KL_JOB_THREADS)                                                       \
        kolo_schedule_##format##_##operation(const __grid_constant__ struct kl_gpu_schedule schedule)                  \
    {                                                                                                                  \
        __shared__ struct board board;                                                                                 \
        follow<format, op_##operation<format>>(schedule, board);                                                       \
    }
KL_REDUCTION_KERNELS(SCHEDULE)

#ifdef KL_FOR_STAND_IN
#include <kolo_cuda/image.h>

#define ENTRY(format, operation) {"kolo_" #format "_" #operation, (const void *)kolo_##format##_##operation},
#define SCHEDULE_ENTRY(format, operation)                                                                              \
    {"kolo_schedule_" #format "_" #operation, (const void *)kolo_schedule_##format##_##operation},
static const struct kolo_cuda_kernel table[] = {KL_KERNELS(ENTRY) KL_REDUCTION_KERNELS(SCHEDULE_ENTRY){0, 0}};
extern "C" __attribute__((visibility("default")))
const struct kolo_cuda_image kolo_cuda_image = {KOLO_CUDA_IMAGE, table};
#endif
