/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels and a macro that launches, in a header. */
#pragma once

#define LAUNCH(kernel, blocks, threads, ...) kernel<<<blocks, threads>>>(__VA_ARGS__)

template <typename T> __global__ void from_header(T *out, T value)
{
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

static inline void launch_from_header(int *out)
{
    from_header<<<1, 2>>>(out, 77);
}
