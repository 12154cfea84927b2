/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels.h - the list of the kernels, for C and CUDA: reductions by element format and operation, and copies. A
 * kernel's name is kolo_FORMAT_OPERATION; its only parameter is a job (job.h, flags_job.h). kolo_lines_FORMAT_OPERATION
 * and kolo_schedule_FORMAT_OPERATION have the same reduction; the latter's parameter is a kl_gpu_schedule (rows.h).
 *
 * Formats: unsigned and signed integers by bits, and floats. Sums, products and operations on bits of signed integers
 *          are those of unsigned ones.
 */
#ifndef KL_COLL_GPU_KERNELS_H
#define KL_COLL_GPU_KERNELS_H

#define KL_WRAPPING_KERNELS(X, format)                                                                                 \
    X(format, sum)                                                                                                     \
    X(format, prod)                                                                                                    \
    X(format, scaled)                                                                                                  \
    X(format, bits_and)                                                                                                \
    X(format, bits_or)                                                                                                 \
    X(format, bits_xor)                                                                                                \
    X(format, truth_and)                                                                                               \
    X(format, truth_or)                                                                                                \
    X(format, truth_xor)

#define KL_SIGNED_KERNELS(X, format)                                                                                   \
    X(format, max)                                                                                                     \
    X(format, min)                                                                                                     \
    X(format, mean)

#define KL_FLOAT_KERNELS(X, format)                                                                                    \
    X(format, sum)                                                                                                     \
    X(format, prod)                                                                                                    \
    X(format, max)                                                                                                     \
    X(format, min)                                                                                                     \
    X(format, scaled)

#define KL_REDUCTION_KERNELS(X)                                                                                        \
    KL_WRAPPING_KERNELS(X, u8)                                                                                         \
    KL_WRAPPING_KERNELS(X, u32)                                                                                        \
    KL_WRAPPING_KERNELS(X, u64)                                                                                        \
    KL_SIGNED_KERNELS(X, i8)                                                                                           \
    KL_SIGNED_KERNELS(X, u8)                                                                                           \
    KL_SIGNED_KERNELS(X, i32)                                                                                          \
    KL_SIGNED_KERNELS(X, u32)                                                                                          \
    KL_SIGNED_KERNELS(X, i64)                                                                                          \
    KL_SIGNED_KERNELS(X, u64)                                                                                          \
    KL_FLOAT_KERNELS(X, f16)                                                                                           \
    KL_FLOAT_KERNELS(X, f32)                                                                                           \
    KL_FLOAT_KERNELS(X, f64)                                                                                           \
    KL_FLOAT_KERNELS(X, bf16)                                                                                          \
    KL_FLOAT_KERNELS(X, e4m3)                                                                                          \
    KL_FLOAT_KERNELS(X, e5m2)

/* Every rank's part to all ranks; parts of every rank, one to each rank. */
#define KL_COPY_KERNELS(X)                                                                                             \
    X(copy, gather)                                                                                                    \
    X(copy, exchange)

#define KL_KERNELS(X)                                                                                                  \
    KL_REDUCTION_KERNELS(X)                                                                                            \
    KL_COPY_KERNELS(X)

/* Small operations, and meetings, of GPUs whose kernels wait for each other; their jobs are of flags_job.h. There is a
 * lines_ kernel for each reduction, too. */
#define KL_FLAGS_KERNELS(X)                                                                                            \
    X(lines, copy)                                                                                                     \
    X(flags, meet)

/* Reductions that switches do (NVLS), and a copy: kolo_nvls_FORMAT_OPERATION, with a kl_nvls_job (nvls_job.h). Integers of 8
 * bits have operations on bits alone; floats of 16 bits no minimum and maximum, which would treat NaN in another way. */
#define KL_NVLS_BITS(X, format)                                                                                        \
    X(format, bits_and)                                                                                                \
    X(format, bits_or)                                                                                                 \
    X(format, bits_xor)                                                                                                \
    X(format, truth_and)                                                                                               \
    X(format, truth_or)                                                                                                \
    X(format, truth_xor)

#define KL_NVLS_SUMS(X, format)                                                                                        \
    X(format, sum)                                                                                                     \
    X(format, scaled)

#define KL_NVLS_KERNELS(X)                                                                                             \
    KL_NVLS_BITS(X, u8)                                                                                                \
    KL_NVLS_BITS(X, u32)                                                                                               \
    KL_NVLS_BITS(X, u64)                                                                                               \
    KL_NVLS_SUMS(X, u32)                                                                                               \
    KL_NVLS_SUMS(X, u64)                                                                                               \
    KL_SIGNED_KERNELS(X, i32)                                                                                          \
    KL_SIGNED_KERNELS(X, u32)                                                                                          \
    KL_SIGNED_KERNELS(X, i64)                                                                                          \
    KL_SIGNED_KERNELS(X, u64)                                                                                          \
    KL_NVLS_SUMS(X, f16)                                                                                               \
    KL_NVLS_SUMS(X, bf16)                                                                                              \
    KL_NVLS_SUMS(X, f32)                                                                                               \
    KL_NVLS_SUMS(X, f64)                                                                                               \
    X(f32, max)                                                                                                        \
    X(f32, min)                                                                                                        \
    X(f64, max)                                                                                                        \
    X(f64, min)

#define KL_KERNEL_NUMBER(format, operation)   KL_KERNEL_##format##_##operation,
#define KL_LINES_NUMBER(format, operation)    KL_KERNEL_lines_##format##_##operation,
#define KL_SCHEDULE_NUMBER(format, operation) KL_KERNEL_schedule_##format##_##operation,
#define KL_NVLS_NUMBER(format, operation)     KL_KERNEL_nvls_##format##_##operation,
enum kl_kernel {
    KL_KERNELS(KL_KERNEL_NUMBER) KL_REDUCTION_KERNELS(KL_LINES_NUMBER) KL_FLAGS_KERNELS(KL_KERNEL_NUMBER)
        KL_REDUCTION_KERNELS(KL_SCHEDULE_NUMBER) KL_NVLS_KERNELS(KL_NVLS_NUMBER) KL_KERNEL_nvls_copy,
    KL_KERNEL_COUNT,
    /* from a reduction to the one in lines, and to the one of a schedule */
    KL_KERNEL_LINES = KL_KERNEL_lines_u8_sum - KL_KERNEL_u8_sum,
    KL_KERNEL_SCHEDULES = KL_KERNEL_schedule_u8_sum - KL_KERNEL_u8_sum,
    KL_KERNEL_SCHEDULES_END = KL_KERNEL_nvls_u8_bits_and
};
#undef KL_KERNEL_NUMBER
#undef KL_LINES_NUMBER
#undef KL_SCHEDULE_NUMBER
#undef KL_NVLS_NUMBER

#endif
