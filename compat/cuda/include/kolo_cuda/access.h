/* SPDX-License-Identifier: Apache-2.0 */
/** access.h - loads and stores with hints, which are plain here, and conversions between kinds of addresses, which are all one kind. */
#ifndef KOLO_CUDA_ACCESS_H
#define KOLO_CUDA_ACCESS_H

#pragma GCC system_header

#include "abi.h"

/* clang-format off */
#define KOLO_CUDA_LOAD(name) template <class T> static inline T name(const T *p) { return *p; }
#define KOLO_CUDA_STORE(name) template <class T> static inline void name(T *p, T value) { *p = value; }
/* clang-format on */
KOLO_CUDA_LOAD(__ldg)
KOLO_CUDA_LOAD(__ldca)
KOLO_CUDA_LOAD(__ldcg)
KOLO_CUDA_LOAD(__ldcs)
KOLO_CUDA_LOAD(__ldlu)
KOLO_CUDA_LOAD(__ldcv)
KOLO_CUDA_STORE(__stwb)
KOLO_CUDA_STORE(__stcg)
KOLO_CUDA_STORE(__stcs)
KOLO_CUDA_STORE(__stwt)
#undef KOLO_CUDA_LOAD
#undef KOLO_CUDA_STORE

static inline size_t __cvta_generic_to_global(const void *p)
{
    return (size_t)p;
}

static inline void *__cvta_global_to_generic(size_t p)
{
    return (void *)p;
}

/** The offset in the block's dynamic memory: 32 bits of it go into registers. */
static inline size_t __cvta_generic_to_shared(const void *p)
{
    return (size_t)((const char *)p - (const char *)__koloShared) & 0xffffffffu;
}

static inline void *__cvta_shared_to_generic(size_t offset)
{
    return (char *)__koloShared + (int32_t)offset;
}

static inline unsigned __isGlobal(const void *)
{
    return 1;
}

static inline unsigned __isShared(const void *p)
{
    return (const char *)p >= (const char *)__koloShared && (const char *)p < (const char *)__koloShared + (1 << 20);
}

#endif
