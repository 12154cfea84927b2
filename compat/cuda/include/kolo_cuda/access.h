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

/* Addresses of shared memory as programs keep them, in 32 bits: below KOLO_SHARED_STATIC the offset in the block's dynamic memory, from there on the
 * distance from the thread-local variables of the thread that runs the block, where variables of static size are. Both keep the alignment. */
#define KOLO_SHARED_STATIC 0x80000000u
#define KOLO_SHARED_MIDDLE 0xc0000000u

static inline char *__koloStaticShared(void)
{
    return (char *)((uintptr_t)&__koloShared & ~(uintptr_t)4095);
}

static inline size_t __cvta_generic_to_shared(const void *p)
{
    size_t offset = (size_t)((const char *)p - (const char *)__koloShared);

    return offset < KOLO_SHARED_STATIC
               ? offset
               : (KOLO_SHARED_MIDDLE + (size_t)((const char *)p - __koloStaticShared())) & 0xffffffffu;
}

static inline void *__cvta_shared_to_generic(size_t offset)
{
    if (offset < KOLO_SHARED_STATIC) return (char *)__koloShared + offset;
    return __koloStaticShared() + ((intptr_t)offset - (intptr_t)KOLO_SHARED_MIDDLE);
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
