/* SPDX-License-Identifier: Apache-2.0 */
/** cuComplex.h - complex numbers of two floats or doubles, and arithmetic on them. */
#ifndef KOLO_CUDA_CU_COMPLEX_H
#define KOLO_CUDA_CU_COMPLEX_H

#include "vector_types.h"

#include <math.h>

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define KOLO_CUDA_COMPLEX(type, number, suffix)                                                                        \
    static inline type make_cu##suffix(number x, number y)                                                             \
    {                                                                                                                  \
        type z;                                                                                                        \
        z.x = x;                                                                                                       \
        z.y = y;                                                                                                       \
        return z;                                                                                                      \
    }
KOLO_CUDA_COMPLEX(cuFloatComplex, float, FloatComplex)
KOLO_CUDA_COMPLEX(cuDoubleComplex, double, DoubleComplex)
#undef KOLO_CUDA_COMPLEX

static inline cuComplex make_cuComplex(float x, float y)
{
    return make_cuFloatComplex(x, y);
}

/* The functions of both precisions: cuCrealf(z), cuCreal(z), ... */
#define KOLO_CUDA_COMPLEX(type, number, make, suffix, hypotenuse)                                                      \
    static inline number cuCreal##suffix(type z)                                                                       \
    {                                                                                                                  \
        return z.x;                                                                                                    \
    }                                                                                                                  \
    static inline number cuCimag##suffix(type z)                                                                       \
    {                                                                                                                  \
        return z.y;                                                                                                    \
    }                                                                                                                  \
    static inline type cuConj##suffix(type z)                                                                          \
    {                                                                                                                  \
        return make(z.x, -z.y);                                                                                        \
    }                                                                                                                  \
    static inline type cuCadd##suffix(type a, type b)                                                                  \
    {                                                                                                                  \
        return make(a.x + b.x, a.y + b.y);                                                                             \
    }                                                                                                                  \
    static inline type cuCsub##suffix(type a, type b)                                                                  \
    {                                                                                                                  \
        return make(a.x - b.x, a.y - b.y);                                                                             \
    }                                                                                                                  \
    static inline type cuCmul##suffix(type a, type b)                                                                  \
    {                                                                                                                  \
        return make(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);                                                     \
    }                                                                                                                  \
    static inline type cuCfma##suffix(type a, type b, type c)                                                          \
    {                                                                                                                  \
        return cuCadd##suffix(cuCmul##suffix(a, b), c);                                                                \
    }                                                                                                                  \
    static inline type cuCdiv##suffix(type a, type b)                                                                  \
    {                                                                                                                  \
        number scale = 1 / ((b.x < 0 ? -b.x : b.x) + (b.y < 0 ? -b.y : b.y)); /* keeps squares in range */             \
        number ax = a.x * scale, ay = a.y * scale, bx = b.x * scale, by = b.y * scale;                                 \
        number inverse = 1 / (bx * bx + by * by);                                                                      \
        return make((ax * bx + ay * by) * inverse, (ay * bx - ax * by) * inverse);                                     \
    }                                                                                                                  \
    static inline number cuCabs##suffix(type z)                                                                        \
    {                                                                                                                  \
        return hypotenuse(z.x, z.y);                                                                                   \
    }
KOLO_CUDA_COMPLEX(cuFloatComplex, float, make_cuFloatComplex, f, hypotf)
KOLO_CUDA_COMPLEX(cuDoubleComplex, double, make_cuDoubleComplex, , hypot)
#undef KOLO_CUDA_COMPLEX

static inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z)
{
    return make_cuDoubleComplex(z.x, z.y);
}

static inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z)
{
    return make_cuFloatComplex((float)z.x, (float)z.y);
}

#endif
