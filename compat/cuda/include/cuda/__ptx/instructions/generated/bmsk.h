/* SPDX-License-Identifier: Apache-2.0 */
/** bmsk.h - CCCL's own, with its functions for compute capability 8.0: see nv/target. It includes nothing. */
#pragma once
#pragma GCC system_header
#define __CUDA_ARCH__ 800
#include_next <cuda/__ptx/instructions/generated/bmsk.h>
#undef __CUDA_ARCH__
