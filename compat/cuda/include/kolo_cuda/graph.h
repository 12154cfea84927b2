/* SPDX-License-Identifier: Apache-2.0 */
/** graph.h - functions of kernels on their own graph. */
#ifndef KOLO_CUDA_GRAPH_H
#define KOLO_CUDA_GRAPH_H

#pragma GCC system_header

#include <cstdint>

/** A handle is the address of its value (runtime/condition.h). */
static inline void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value)
{
    __atomic_store_n((uint32_t *)(uintptr_t)handle, value, __ATOMIC_RELEASE);
}

#endif
