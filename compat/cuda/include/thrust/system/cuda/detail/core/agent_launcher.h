/* SPDX-License-Identifier: Apache-2.0 */
/** agent_launcher.h - Thrust's own, with kernels that have a body: see nv/target. Its includes come first, without. */
#pragma once
#pragma GCC system_header
#include <thrust/system/cuda/detail/core/triple_chevron_launch.h>
#include <thrust/system/cuda/detail/core/util.h>

#include <cassert>

#define __CUDA_ARCH__ 800
#include_next <thrust/system/cuda/detail/core/agent_launcher.h>
#undef __CUDA_ARCH__
