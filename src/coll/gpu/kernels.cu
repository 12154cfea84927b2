/* SPDX-License-Identifier: Apache-2.0 */
/* All kernels, and for the CUDA stand-in the image that its driver loads: a table of their names. */
#include "coll/gpu/copy.cuh"
#include "coll/gpu/kernels.h"
#include "coll/gpu/lines.cuh"
#include "coll/gpu/nvls.cuh"
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

#define LINES(format, operation)                                                                                       \
    extern "C" __global__ void __launch_bounds__(KL_LINES_BLOCK)                                                       \
        kolo_lines_##format##_##operation(const __grid_constant__ struct kl_lines_job job)                             \
    {                                                                                                                  \
        reduce_lines<format, op_##operation<format>>(job);                                                             \
    }
KL_REDUCTION_KERNELS(LINES)

extern "C" __global__ void __launch_bounds__(KL_LINES_BLOCK)
    kolo_lines_copy(const __grid_constant__ struct kl_lines_job job)
{
    copy_lines(job);
}

extern "C" __global__ void __launch_bounds__(KL_FLAGS_THREADS)
    kolo_flags_meet(const __grid_constant__ struct kl_meet_job job)
{
    meet(job);
}

#define SCHEDULE(format, operation)                                                                                    \
    extern "C" __global__ void __launch_bounds__(KL_JOB_THREADS, 1)                                                    \
        kolo_schedule_##format##_##operation(const __grid_constant__ struct kl_gpu_schedule schedule)                  \
    {                                                                                                                  \
        __shared__ struct board board;                                                                                 \
        follow<format, op_##operation<format>>(schedule, board);                                                       \
    }
KL_REDUCTION_KERNELS(SCHEDULE)

#define NVLS(format, operation)                                                                                        \
    extern "C" __global__ void __launch_bounds__(KL_NVLS_THREADS)                                                      \
        kolo_nvls_##format##_##operation(const __grid_constant__ struct kl_nvls_job job)                               \
    {                                                                                                                  \
        reduce_over_all<format, op_##operation<format>>(job);                                                          \
    }
KL_NVLS_KERNELS(NVLS)

extern "C" __global__ void __launch_bounds__(KL_NVLS_THREADS)
    kolo_nvls_copy(const __grid_constant__ struct kl_nvls_job job)
{
    copy_over_all(job);
}

#ifdef KL_FOR_STAND_IN
#include <kolo_cuda/image.h>

#define ENTRY(format, operation)          {"kolo_" #format "_" #operation, (const void *)kolo_##format##_##operation},
#define LINES_ENTRY(format, operation)    ENTRY(lines_##format, operation)
#define SCHEDULE_ENTRY(format, operation) ENTRY(schedule_##format, operation)
#define NVLS_ENTRY(format, operation)     ENTRY(nvls_##format, operation)
static const struct kolo_cuda_kernel table[] = {KL_KERNELS(ENTRY) KL_REDUCTION_KERNELS(LINES_ENTRY) KL_FLAGS_KERNELS(
    ENTRY) KL_REDUCTION_KERNELS(SCHEDULE_ENTRY) KL_NVLS_KERNELS(NVLS_ENTRY) ENTRY(nvls, copy){0, 0}};
extern "C" __attribute__((visibility("default")))
const struct kolo_cuda_image kolo_cuda_image = {KOLO_CUDA_IMAGE, table};
#endif
