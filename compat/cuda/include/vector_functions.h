/* SPDX-License-Identifier: Apache-2.0 */
/** vector_functions.h - make_float4 and the like. */
#ifndef KOLO_CUDA_VECTOR_FUNCTIONS_H
#define KOLO_CUDA_VECTOR_FUNCTIONS_H

#include "vector_types.h"

/* clang-format off */
#define KOLO_CUDA_MAKE(name, type)                                                                                                     \
    static inline name##1 make_##name##1(type x) { name##1 v; v.x = x; return v; }                                                     \
    static inline name##2 make_##name##2(type x, type y) { name##2 v; v.x = x; v.y = y; return v; }                                    \
    static inline name##3 make_##name##3(type x, type y, type z) { name##3 v; v.x = x; v.y = y; v.z = z; return v; }                   \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { name##4 v; v.x = x; v.y = y; v.z = z; v.w = w; return v; }
/* clang-format on */

KOLO_CUDA_MAKE(char, signed char)
KOLO_CUDA_MAKE(uchar, unsigned char)
KOLO_CUDA_MAKE(short, short)
KOLO_CUDA_MAKE(ushort, unsigned short)
KOLO_CUDA_MAKE(int, int)
KOLO_CUDA_MAKE(uint, unsigned int)
KOLO_CUDA_MAKE(long, long)
KOLO_CUDA_MAKE(ulong, unsigned long)
KOLO_CUDA_MAKE(longlong, long long)
KOLO_CUDA_MAKE(ulonglong, unsigned long long)
KOLO_CUDA_MAKE(float, float)
KOLO_CUDA_MAKE(double, double)

#undef KOLO_CUDA_MAKE

#define KOLO_CUDA_MAKE(name, type)                                                                                     \
    static inline name make_##name(type x, type y, type z, type w)                                                     \
    {                                                                                                                  \
        name v;                                                                                                        \
        v.x = x, v.y = y, v.z = z, v.w = w;                                                                            \
        return v;                                                                                                      \
    }
KOLO_CUDA_MAKE(long4_16a, long)
KOLO_CUDA_MAKE(long4_32a, long)
KOLO_CUDA_MAKE(ulong4_16a, unsigned long)
KOLO_CUDA_MAKE(ulong4_32a, unsigned long)
KOLO_CUDA_MAKE(longlong4_16a, long long)
KOLO_CUDA_MAKE(longlong4_32a, long long)
KOLO_CUDA_MAKE(ulonglong4_16a, unsigned long long)
KOLO_CUDA_MAKE(ulonglong4_32a, unsigned long long)
KOLO_CUDA_MAKE(double4_16a, double)
KOLO_CUDA_MAKE(double4_32a, double)
#undef KOLO_CUDA_MAKE

#endif
