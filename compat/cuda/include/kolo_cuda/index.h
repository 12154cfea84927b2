/* SPDX-License-Identifier: Apache-2.0 */
/** index.h - which thread of which block this is. Constant in a thread: a fibre never changes the OS thread that these belong to. */
#ifndef KOLO_CUDA_INDEX_H
#define KOLO_CUDA_INDEX_H

#pragma GCC system_header

#include "abi.h"

#define KOLO_CUDA_INDEX(type, name, symbol)                                                                            \
    extern "C" KOLO_CUDA_API __thread const type name __asm__(symbol) __attribute__((tls_model("initial-exec")));

KOLO_CUDA_INDEX(uint3, threadIdx, "__koloThreadIdx")
KOLO_CUDA_INDEX(uint3, blockIdx, "__koloBlockIdx")
KOLO_CUDA_INDEX(dim3, blockDim, "__koloBlockDim")
KOLO_CUDA_INDEX(dim3, gridDim, "__koloGridDim")

#undef KOLO_CUDA_INDEX

static const int warpSize = 32;

#endif
