/* SPDX-License-Identifier: Apache-2.0 */
/** util.h - Thrust's own, which chooses the plans of kernels for compute capability 8.0: see nv/target. Its includes come first, without. */
#pragma once
#pragma GCC system_header
#include <thrust/detail/raw_pointer_cast.h>
#include <thrust/system/cuda/config.h>
#include <thrust/system/cuda/detail/core/load_iterator.h>
#include <thrust/system/cuda/detail/core/make_load_iterator.h>
#include <thrust/system/cuda/detail/util.h>
#include <thrust/type_traits/is_contiguous_iterator.h>

#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/util_temporary_storage.cuh>

#include <cuda/std/type_traits>

#define __CUDA_ARCH__ 800
#include_next <thrust/system/cuda/detail/core/util.h>
#undef __CUDA_ARCH__
