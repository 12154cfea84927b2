/* SPDX-License-Identifier: Apache-2.0 */
/**
 * expand.h - kernels in the shape that can become loops: operations of warps are statements of their own, and functions that wait for other
 * threads, or ask which one they run in, stand in the kernel.
 *
 *     v += __shfl_down_sync(m, v, d);      auto __kolo_w1 = __shfl_down_sync(m, v, d); v += __kolo_w1;
 *     x = 2 * sum(v);                      float __kolo_r2; { float v__kolo2 = v; ... __kolo_r2 = v__kolo2; } x = 2 * __kolo_r2;
 *     x = scan.sum(v);                     the same, with `scan.room` for the method's `room`
 *
 * The kernel as it was stands before it as a function, `__kolo_fibres_of_NAME`, for blocks whose extent is no multiple of warps. The first
 * statement of the kernel, `__kolo_or_fibres(NUMBER, call);`, calls that function.
 */
#ifndef KL_NVCC_EXPAND_H
#define KL_NVCC_EXPAND_H

#include "compat/cuda/nvcc/refusals.h"
#include "compat/cuda/nvcc/text.h"

#include <stdbool.h>

/**
 * Write the source with its kernels expanded, but for those in `refusals`, to which others are added; *methods becomes true if members are
 * used outside of their classes. False: none was expanded, `out` is empty.
 */
bool expand(const char *text, size_t bytes, struct refusals *refusals, bool *methods, struct text *out);

#endif
