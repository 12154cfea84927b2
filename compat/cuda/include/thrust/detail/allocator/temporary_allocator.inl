/* SPDX-License-Identifier: Apache-2.0 */
/** temporary_allocator.inl - Thrust's own, with a function that it includes for devices only: here host and device are one pass. */
#pragma once
#pragma GCC system_header
#include <thrust/system/cuda/detail/terminate.h>

#include_next <thrust/detail/allocator/temporary_allocator.inl>
