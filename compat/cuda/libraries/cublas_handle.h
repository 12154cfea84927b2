/* SPDX-License-Identifier: Apache-2.0 */
/** cublas_handle.h - the handle of libcublas, and how its functions launch their work. */
#ifndef KL_CUDA_CUBLAS_HANDLE_H
#define KL_CUDA_CUBLAS_HANDLE_H

#include "compat/cuda/include/cublas_v2.h"
#include "compat/cuda/libraries/library_kernel.h"

#define KL_CUBLAS_EXPORT __attribute__((visibility("default")))

/** Under the names of CUDA 12's library and 13's programs find one function. */
#define KL_CUBLAS_ENTRY(name)                                                                                          \
    extern __typeof__(name) kl_12_##name __attribute__((alias(#name), visibility("default")));                         \
    __asm__(".symver kl_12_" #name ", " #name "@libcublas.so.12");                                                     \
    __asm__(".symver " #name ", " #name "@@@libcublas.so.13")

struct cublasContext {
    cudaStream_t stream;
    cublasPointerMode_t pointer_mode;
    cublasMath_t math_mode;
    cublasAtomicsMode_t atomics_mode;
};

/** The element of a vector or a matrix in OpenBLAS's four forms of a function. */
enum kl_cublas_type { KL_CUBLAS_S, KL_CUBLAS_D, KL_CUBLAS_C, KL_CUBLAS_Z, KL_CUBLAS_TYPES };

/** A row of a table by type: functions that a macro has made for each. */
#define KL_CUBLAS_ROW(name)                                                                                            \
    {                                                                                                                  \
        [KL_CUBLAS_S] = name##_s, [KL_CUBLAS_D] = name##_d, [KL_CUBLAS_C] = name##_c, [KL_CUBLAS_Z] = name##_z         \
    }

/** A scalar as OpenBLAS takes it: real ones by value, complex ones by their address. */
#define KL_CUBLAS_FLOAT(at)   (*(const float *)(at))
#define KL_CUBLAS_DOUBLE(at)  (*(const double *)(at))
#define KL_CUBLAS_COMPLEX(at) (at)

/** Bytes of an element. */
static inline size_t kl_cublas_bytes(enum kl_cublas_type type)
{
    static const unsigned char bytes[] = {sizeof(float), sizeof(double), sizeof(cuComplex), sizeof(cuDoubleComplex)};

    return bytes[type];
}

/** alpha or beta: its value, or the place where the stream finds it. */
struct kl_cublas_scalar {
    const void *at; /* NULL: `value` */
    cuDoubleComplex value;
};

struct kl_cublas_scalar kl_cublas_scalar(cublasHandle_t handle, const void *scalar, size_t bytes);

static inline const void *kl_cublas_value(const struct kl_cublas_scalar *scalar)
{
    return scalar->at ? scalar->at : &scalar->value;
}

/** Launch a kernel in the handle's stream; `waits`: for a result that the host reads. */
cublasStatus_t kl_cublas_launch(cublasHandle_t handle, const struct kl_engine_kernel *kernel, unsigned blocks,
                                void *arguments, bool waits);

#endif
